/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ends the runs whose deadline has passed. Supervisor. */
#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/runs/run-due.h"
#include "daemon/supervisor/runs/run-timer.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/workers/worker.h"

#define SPARED_USEC UINT64_C(1000000)

/* Collects numbers, not pointers, of the runs whose deadline has passed: handling one run may free others. */
static GArray *find_all(const Context *context, uint64_t now, uint64_t *ret_next) {
        GArray *numbers = g_array_new(FALSE, FALSE, sizeof(uint64_t));
        GHashTableIter i;
        void *value;

        *ret_next = UINT64_MAX;
        g_hash_table_iter_init(&i, context->runs);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                const Run *run = value;

                if (run->due_usec <= now)
                        g_array_append_val(numbers, run->number);
                else
                        *ret_next = MIN(*ret_next, run->due_usec);
        }
        return numbers;
}

/* Returns the run of this number if its deadline still holds after its worker's messages were read: the answer may already
 * be in the socket. */
static Run *find_due(Context *context, uint64_t number, uint64_t now) {
        Run *run = g_hash_table_lookup(context->runs, &number);

        if (run && run->worker) {
                worker_process(run->worker);
                run = g_hash_table_lookup(context->runs, &number);
        }
        return run && run->due_usec <= now ? run : NULL;
}

uint64_t run_due(void *userdata, uint64_t now) {
        Context *context = userdata;
        uint64_t next;
        g_autoptr(GArray) numbers = find_all(context, now, &next);

        for (unsigned i = 0; i < numbers->len; i++) {
                Run *run = find_due(context, g_array_index(numbers, uint64_t, i), now);

                if (!run)
                        continue;
                if (clock_timer_was_late(run->due_usec, &run->spared)) {
                        run->due_usec = now + SPARED_USEC;
                        run_timer_arm(context->run_timer, run->due_usec);
                } else {
                        run->due_usec = UINT64_MAX;
                        run_on_timeout(run);
                }
        }
        return next;
}
