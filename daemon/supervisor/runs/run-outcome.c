/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The outcome of a run that writes, as far as it is known. Supervisor. */
#include <string.h>
#include <unistd.h>

#include "daemon/supervisor/runs/run-outcome.h"
#include "dbus-interfaces/wire/page-encoder.h"

static bool may_be_committed(const RunOutcome *o) {
        return o->committing || (o->writes && o->ended) || (o->may_write && o->unheard);
}

void run_outcome_lose(const RunOutcome *o, Refusal *end) {
        if (may_be_committed(o)) { /* even if it was told to end */
                refusal_done(end);
                (void) refuse(end, ERROR_OUTCOME_UNKNOWN,
                              "The worker process that had the statement was lost before it reported the end: it is unknown "
                              "whether the statement took effect.");
        } else if (o->writes)
                (void) refuse(end, ERROR_WORKER_LOST,
                              "The worker process that had the statement was lost, and nothing was written: run it again.");
        else
                (void) refuse(end, ERROR_WORKER_LOST,
                              "The worker process that had the query was lost: run it again; what it sent is void.");
}

bool run_outcome_write(int fd, uint64_t number, const Failure *f) {
        uint8_t page[SQLIPC_PAGE_SIZE_MIN];
        PageEncoder e;
        size_t size;

        if (fd < 0)
                return false;
        page_encoder_init(&e, page, sizeof page, number);
        if (page_encoder_error(&e, f->error, f->extended_code, f->sql_offset, f->message, strlen(f->message)) != 1)
                return false;
        size = page_encoder_finish(&e);
        return write(fd, page, size) == (ssize_t) size;
}

void run_outcome_tell_reader(const RunOutcome *o, int fd, uint64_t number, const Refusal *end) {
        const Failure f = { .error = end->error, .sql_offset = -1, .message = end->message };

        if (o->writes && !may_be_committed(o))
                (void) run_outcome_write(fd, number, &f);
}
