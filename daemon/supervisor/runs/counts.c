/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers that clients and the status line show. Supervisor. */
#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/counts.h"
#include "daemon/supervisor/runs/run.h"

uint64_t counts_runs(const Context *context) {
        GHashTableIter i;
        uint64_t n = 0;
        void *value;

        g_hash_table_iter_init(&i, context->runs);
        while (g_hash_table_iter_next(&i, NULL, &value))
                n += run_is_execution(value);
        g_hash_table_iter_init(&i, context->channels);
        while (g_hash_table_iter_next(&i, NULL, &value))
                n += ((Channel *) value)->run.state != CHANNEL_RUN_NONE;
        return n;
}

uint64_t counts_parked(const Context *context) {
        GHashTableIter i;
        uint64_t n = 0;
        void *value;

        g_hash_table_iter_init(&i, context->runs);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                const Run *run = value;

                /* a run that has ended waits for its reader too, but no longer holds a transaction */
                n += run->state == RUN_PARKED;
        }
        g_hash_table_iter_init(&i, context->channels);
        while (g_hash_table_iter_next(&i, NULL, &value))
                n += ((Channel *) value)->run.state == CHANNEL_RUN_PARKED;
        return n;
}
