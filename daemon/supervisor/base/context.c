/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Data that the modules of the service share. Supervisor. */
#include <errno.h>
#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include "daemon/configuration/configuration-main.h"
#include "daemon/supervisor/base/context.h"

/* From a random start below 2^52 the counter stays below 2^53 for longer than any machine runs (I5). */
static int start_numbers(Context *context) {
        uint64_t n;

        if (getrandom(&n, sizeof n, 0) != sizeof n)
                return -errno;
        context->next_number = (n >> 12) + 1;
        return 0;
}

uint64_t context_next_number(Context *context) {
        return context->next_number++;
}

static unsigned count_cpus(void) {
        cpu_set_t cpus;

        return sched_getaffinity(0, sizeof cpus, &cpus) < 0 ? 1 : (unsigned) CPU_COUNT(&cpus);
}

int context_init(Context *context, const ContextEvents *events) {
        *context = (Context) {
                .uid = geteuid(),
                .n_cpus = count_cpus(),
                .memory_size = (uint64_t) sysconf(_SC_PHYS_PAGES) * (uint64_t) sysconf(_SC_PAGESIZE),
                .config = config_new(),
                .events = events,
                .databases = g_hash_table_new(g_str_hash, g_str_equal),
                .peers = g_hash_table_new(g_str_hash, g_str_equal),
                .sessions = g_hash_table_new(g_str_hash, g_str_equal),
                .users = g_hash_table_new(NULL, NULL),
                .statements = g_hash_table_new(g_int64_hash, g_int64_equal),
                .runs = g_hash_table_new(g_int64_hash, g_int64_equal),
                .channels = g_hash_table_new(g_int64_hash, g_int64_equal),
                .watches = g_hash_table_new(g_int64_hash, g_int64_equal),
                .leases = g_hash_table_new(g_str_hash, g_str_equal),
                .workers = G_QUEUE_INIT,
        };
        int r = start_numbers(context);
        return r < 0 ? r : sd_event_new(&context->event);
}

void context_done(Context *context) {
        g_clear_pointer(&context->databases, g_hash_table_unref);
        g_clear_pointer(&context->peers, g_hash_table_unref);
        g_clear_pointer(&context->sessions, g_hash_table_unref);
        g_clear_pointer(&context->users, g_hash_table_unref);
        g_clear_pointer(&context->statements, g_hash_table_unref);
        g_clear_pointer(&context->runs, g_hash_table_unref);
        g_clear_pointer(&context->channels, g_hash_table_unref);
        g_clear_pointer(&context->watches, g_hash_table_unref);
        g_clear_pointer(&context->leases, g_hash_table_unref);
        context->config = config_free(context->config);
        context->bus = sd_bus_flush_close_unref(context->bus);
        context->event = sd_event_unref(context->event);
}
