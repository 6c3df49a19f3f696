/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Limits as D-Bus values (limits-bus.h). Supervisor. */
#include "daemon/supervisor/bus/limits-bus.h"

typedef struct LimitName {
        const char *key; /* the name in sqlipcd.conf(5), in the spelling of the bus */
        size_t offset;   /* in Limits */
} LimitName;

static const LimitName names[] = {
        { "statements-max", G_STRUCT_OFFSET(Limits, statements_max) },
        { "runs-max", G_STRUCT_OFFSET(Limits, runs_max) },
        { "channels-max", G_STRUCT_OFFSET(Limits, channels_max) },
        { "watches-max", G_STRUCT_OFFSET(Limits, watches_max) },
        { "result-rows-max", G_STRUCT_OFFSET(Limits, result_rows_max) },
        { "result-size-max", G_STRUCT_OFFSET(Limits, result_size_max) },
        { "row-size-max", G_STRUCT_OFFSET(Limits, row_size_max) },
        { "run-timeout-usec", G_STRUCT_OFFSET(Limits, run_timeout_usec) },
        { "prepare-timeout-usec", G_STRUCT_OFFSET(Limits, prepare_timeout_usec) },
        { "queue-timeout-usec", G_STRUCT_OFFSET(Limits, queue_timeout_usec) },
        { "park-timeout-usec", G_STRUCT_OFFSET(Limits, park_timeout_usec) },
        { "transactions-max", G_STRUCT_OFFSET(Limits, transactions_max) },
        { "pins-max", G_STRUCT_OFFSET(Limits, pins_max) },
        { "transaction-timeout-usec", G_STRUCT_OFFSET(Limits, transaction_timeout_usec) },
        { "transaction-idle-usec", G_STRUCT_OFFSET(Limits, transaction_idle_usec) },
        { "park-timeout-rollback-usec", G_STRUCT_OFFSET(Limits, park_timeout_rollback_usec) },
        { "busy-timeout-usec", G_STRUCT_OFFSET(Limits, busy_timeout_usec) },
        { "statement-idle-usec", G_STRUCT_OFFSET(Limits, statement_idle_usec) },
        { "heap-max", G_STRUCT_OFFSET(Limits, heap_max) },
        { "temp-size-max", G_STRUCT_OFFSET(Limits, temp_size_max) },
        { "sql-size-max", G_STRUCT_OFFSET(Limits, sql_size_max) },
        { "expression-depth-max", G_STRUCT_OFFSET(Limits, expression_depth_max) },
        { "compound-selects-max", G_STRUCT_OFFSET(Limits, compound_selects_max) },
        { "vdbe-ops-max", G_STRUCT_OFFSET(Limits, vdbe_ops_max) },
        { "variables-max", G_STRUCT_OFFSET(Limits, variables_max) },
};

int limits_append(sd_bus_message *m, const User *user, const Database *d) {
        const Limits limits = quota_caller_limits(user, d);
        int r = sd_bus_message_open_container(m, 'a', "{st}");

        for (size_t i = 0; i < G_N_ELEMENTS(names) && r >= 0; i++)
                r = sd_bus_message_append(m, "{st}", names[i].key, G_STRUCT_MEMBER(uint64_t, &limits, names[i].offset));
        return r < 0 ? r : sd_bus_message_close_container(m);
}
