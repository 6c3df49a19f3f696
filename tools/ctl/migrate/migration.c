/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parts that the steps of a migration share, see migration.h. */
#include "tools/ctl/migrate/migration.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>

#include "tools/ctl/complain.h"
#include "tools/terminal/format.h"

enum { ROWS_UNWATCHED = 256 }; /* between two looks at the clock and Ctrl-C */

static volatile sig_atomic_t interrupted;
static sqlipc_connection *interruptible;

static void on_signal(int number) {
        (void) number;
        interrupted = 1;
        (void) sqlipc_interrupt(interruptible);
}

void migration_catch_signals(sqlipc_connection *connection) {
        static const int signals[] = { SIGHUP, SIGINT, SIGTERM };
        struct sigaction action = { .sa_handler = on_signal };

        interruptible = connection;
        for (size_t i = 0; i < G_N_ELEMENTS(signals); i++)
                (void) sigaction(signals[i], &action, NULL);
}

bool migration_is_interrupted(void) {
        return interrupted;
}

void migration_begin_work(Migration *m, const char *doing, const char *table) {
        m->doing = doing;
        m->table = table;
        m->n_rows = 0;
}

int migration_tick(Migration *m) {
        if (++m->n_rows % ROWS_UNWATCHED != 0)
                return 0;
        if (interrupted)
                return -ECANCELED;
        uint64_t now = (uint64_t) g_get_monotonic_time();

        if (m->keep && now - m->kept > G_USEC_PER_SEC) {
                (void) m->keep(m->keep_userdata); /* if it has ended, the switch notices that */
                m->kept = now;
        }
        if (progress_is_due(&m->progress, now)) {
                g_autoptr(GString) line = g_string_new(NULL);

                format_shown_text(line, m->table, strlen(m->table), progress_width() / 2);
                g_string_prepend(line, m->doing);
                g_string_append_printf(line, ": %" PRIu64 " rows", m->n_rows);
                progress_draw(&m->progress, line->str);
        }
        return 0;
}

int migration_fail(Migration *m, const Side *side, int r) {
        progress_erase(&m->progress);
        complain("%s%s: %s", m->doing, m->table, interrupted ? "interrupted" : side_message(side, r));
        return r;
}

/* ---- Scan --------------------------------------------------------------------------------------------------------- */

typedef struct Scan {
        Migration *m;
        GArray *columns; /* of PlanColumn */
} Scan;

static int scan_row(const sqlipc_value *row, void *userdata) {
        const Scan *scan = userdata;

        for (guint i = 0; i < scan->columns->len; i++)
                column_found_add(&g_array_index(scan->columns, PlanColumn, i).found, &row[i]);
        return migration_tick(scan->m);
}

int migration_scan(Migration *m) {
        for (guint i = 0; i < m->plan->tables->len; i++) {
                const PlanTable *table = m->plan->tables->pdata[i];
                Scan scan = { m, table->columns };
                int r;

                migration_begin_work(m, "Scanning ", table->source->name);
                r = side_read_rows(&m->source, table->read, NULL, scan_row, &scan);
                if (r < 0)
                        return migration_fail(m, &m->source, r);
        }
        progress_erase(&m->progress);
        return 0;
}

/* ---- Compare ------------------------------------------------------------------------------------------------------ */

typedef struct Summing {
        Migration *m;
        const GArray *columns; /* of PlanColumn */
        RowSum *sum;
} Summing;

static int sum_row(const sqlipc_value *row, void *userdata) {
        const Summing *summing = userdata;

        for (guint i = 0; i < summing->columns->len; i++) {
                Converted converted;

                value_compared(g_array_index(summing->columns, PlanColumn, i).kind, &row[i], &converted);
                row_sum_add_value(summing->sum, &converted.value);
        }
        row_sum_end_row(summing->sum);
        return migration_tick(summing->m);
}

static int compare_table(Migration *m, const PlanTable *table, TableResult *result) {
        g_auto(RowSum) before = result->source;
        Summing source = { m, table->columns, &result->source }, target = { m, table->columns, &result->sum };
        bool again = result->is_compared && !result->is_equal;
        int r;

        row_sum_init(&result->source);
        row_sum_done(&result->sum);
        row_sum_init(&result->sum);
        migration_begin_work(m, "Comparing ", table->source->name);
        r = side_read_rows(&m->source, table->read, NULL, sum_row, &source);
        if (r < 0)
                return migration_fail(m, &m->source, r);
        r = side_read_rows(&m->target, table->read_copy, NULL, sum_row, &target);
        if (r < 0)
                return migration_fail(m, &m->target, r);
        result->is_compared = true;
        result->is_equal = row_sum_equal(&result->source, &result->sum);
        result->is_inexact = again && !result->is_equal && row_sum_equal(&result->source, &before);
        return 0;
}

int migration_compare(Migration *m, guint *ret_n_different, uint64_t *ret_sequence) {
        uint64_t before = 0, after = 0;
        int r = side_query(&m->source, "SELECT 1", NULL, NULL, NULL, &before);

        *ret_n_different = 0;
        for (guint i = 0; r >= 0 && i < m->plan->tables->len; i++) {
                TableResult *result = &g_array_index(m->results, TableResult, i);

                r = compare_table(m, m->plan->tables->pdata[i], result);
                *ret_n_different += !result->is_equal;
        }
        if (r >= 0)
                r = side_query(&m->source, "SELECT 1", NULL, NULL, NULL, &after);
        progress_erase(&m->progress);
        *ret_sequence = before == after ? after : 0;
        return r;
}
