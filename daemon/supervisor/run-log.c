/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Logs what an administrator must know about the end of a run. Supervisor. */
#include <inttypes.h>

#include "daemon/supervisor/clock.h"
#include "daemon/supervisor/context.h"
#include "daemon/supervisor/log.h"
#include "daemon/supervisor/run-log.h"
#include "daemon/supervisor/worker.h"

static LogFields fields_of(const Run *run) {
        return (LogFields) {
                .database = database_name(run->database),
                .client = run->session ? run->session->name : NULL,
                .uid = &run->user->uid,
                .run = run->number,
                .worker_pid = run->worker ? run->worker->pid : 0,
        };
}

static void log_failure(const Run *run, const Failure *failure) {
        LogFields fields = fields_of(run);

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

static void log_slow(const Run *run, const Ended *ended) {
        uint64_t slow = run->context->config->service.slow_query_usec;
        uint64_t waited = run->parked_usec + (run->parked ? clock_usec() - run->parked_since_usec : 0);
        LogFields fields = fields_of(run);

        fields.usec = ended->usec > waited ? ended->usec - waited : 0; /* waits for the reader do not make a query slow */
        fields.rows = ended->n_rows;
        if (run->kind != RUN_PREPARE && fields.usec > slow)
                log_event_limited(LOG_EVENT_SLOW_QUERY, NULL, &fields,
                                  "Run %" PRIu64 " of uid %u took %.1f s, more than SlowQuerySec=; rows: %" PRIu64 ".",
                                  run->number, (unsigned) run->user->uid, (double) fields.usec / 1e6, fields.rows);
}

void run_log_end(const Run *run, const Ended *ended) {
        log_failure(run, &ended->failure);
        log_slow(run, ended);
}
