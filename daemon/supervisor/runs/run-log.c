/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Logs what an administrator must know about the end of a run. Supervisor. */
#include <inttypes.h>

#include "daemon/supervisor/base/refusal.h"
#include "daemon/supervisor/runs/run-log.h"

static void log_failure(const RunLogFacts *facts, const Failure *failure) {
        LogFields fields = facts->fields;

        fields.uid = NULL; /* it fails for all users, so one line a minute is enough for all of them */
        fields.error = error_to_name(failure->error);
        switch (failure->error) {
        case ERROR_CORRUPT:
                log_event_limited(LOG_EVENT_DATABASE_CORRUPT, fields.error, &fields, "%s", failure->message ?: "");
                return;
        case ERROR_FILE_MISSING:
        case ERROR_CANNOT_OPEN:
        case ERROR_NEEDS_OWNER:
        case ERROR_NEEDS_RECOVERY:
        case ERROR_INPUT_OUTPUT:
                log_event_limited(LOG_EVENT_DATABASE_UNAVAILABLE, fields.error, &fields, "%s", failure->message ?: "");
                return;
        default: return;
        }
}

static void log_slow(const RunLogFacts *facts, const Ended *ended) {
        LogFields fields = facts->fields;
        uint64_t waited = facts->waited_usec;

        fields.usec = ended->usec > waited ? ended->usec - waited : 0; /* waits for the reader do not make a query slow */
        fields.rows = ended->n_rows;
        if (!facts->is_prepare && fields.usec > facts->slow_usec)
                log_event_limited(LOG_EVENT_SLOW_QUERY, NULL, &fields,
                                  "Run %" PRIu64 " of uid %u took %.1f s, more than SlowQuerySec=; rows: %" PRIu64 ".",
                                  fields.run, (unsigned) *fields.uid, (double) fields.usec / 1e6, fields.rows);
}

void run_log_end(const RunLogFacts *facts, const Ended *ended) {
        log_failure(facts, &ended->failure);
        log_slow(facts, ended);
}
