/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The statements of an ExecuteBatch. Supervisor. */
#include <errno.h>

#include "daemon/supervisor/access/pacing.h"
#include "daemon/supervisor/base/try-bytes.h"
#include "daemon/supervisor/calls/parameters.h"
#include "daemon/supervisor/runs/sql-text.h"
#include "daemon/supervisor/runs/statement-array.h"

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Parameters, parameters_done)

static void name_statement(Refusal *refusal, uint32_t n) {
        char *sentence = refusal->message;

        if (refusal->error == ERROR_NONE)
                return;
        refusal->message = g_strdup_printf("Statement %" PRIu32 ": %s", n, sentence);
        g_free(sentence);
}

/* Reads SQL and parameters. `sql` is borrowed from `m`. */
static int read_statement(sd_bus_message *m, User *u, const Database *d, const char **ret_sql, size_t *ret_size,
                          Parameters *ret_parameters, Refusal *refusal) {
        int r = sd_bus_message_read_basic(m, 's', ret_sql);

        if (r >= 0)
                r = sql_text_check(u, d, *ret_sql, ret_size, refusal);
        return r < 0 ? r : parameters_read(m, ret_parameters, refusal);
}

static int add_statement(sd_bus_message *m, User *u, const Database *d, StatementList *list, Refusal *refusal) {
        g_auto(Parameters) parameters = PARAMETERS_INIT;
        const char *sql;
        size_t size;
        int r = read_statement(m, u, d, &sql, &size, &parameters, refusal);

        if (r < 0) {
                name_statement(refusal, list->n + 1);
                return r;
        }
        r = statement_list_add(list, &(JobSpec) {
                .sql = sql,
                .sql_size = size,
                .n_positional = parameters.n_positional,
                .n_named = parameters.n_named,
                .parameters = parameters.row,
                .parameters_size = parameters.row_size,
        });
        return r != -E2BIG ? r : refuse(refusal, ERROR_LIMITS_EXCEEDED,
                                        "A batch has at most %" PRIu32 " statements, and %zu MiB of SQL and parameters: "
                                        "divide it.", STATEMENT_LIST_N_MAX, STATEMENT_LIST_SIZE_MAX >> 20);
}

static int read_all(sd_bus_message *m, User *u, const Database *d, StatementList *list, Refusal *refusal) {
        int r = sd_bus_message_enter_container(m, 'a', "(sava{sv})");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'r', "sava{sv}")) > 0) {
                r = add_statement(m, u, d, list, refusal);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

int statement_array_read(sd_bus_message *m, User *u, const Database *d, StatementList *ret, Refusal *refusal) {
        g_auto(StatementList) list = STATEMENT_LIST_INIT;
        int r = read_all(m, u, d, &list, refusal);

        if (r < 0) {
                pacing_charge(u, list.size);
                return r;
        }
        *ret = list;
        list = STATEMENT_LIST_INIT;
        return 0;
}

GBytes *statement_array_first(const StatementList *list) {
        const uint8_t *at = list->bytes;
        JobSpec first = {};

        return statement_list_next(&at, at + list->size, &first) ? try_bytes(first.sql, first.sql_size) : NULL;
}
