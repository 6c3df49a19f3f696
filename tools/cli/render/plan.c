/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Draws query plans as trees (plan.h). Pure. */
#include "tools/cli/render/plan.h"

#include <string.h>

#include "tools/terminal/format.h"

/* Returns true if the next token, without blanks and comments, is this word. */
static bool next_is(SqlDialect dialect, const char *sql, size_t size, size_t *position, const char *word) {
        SqlToken token;

        do
                if (!sql_scan_next(dialect, sql, size, position, &token))
                        return false;
        while (token.type == SQL_SPACE || token.type == SQL_COMMENT);
        return sql_token_is(sql, &token, word);
}

Explain explain_of(SqlDialect dialect, const char *sql) {
        size_t position = 0, size = strlen(sql);

        if (!next_is(dialect, sql, size, &position, "EXPLAIN"))
                return EXPLAIN_NOT;
        return next_is(dialect, sql, size, &position, "QUERY") ? EXPLAIN_PLAN : EXPLAIN_CODE;
}

typedef struct PlanRow {
        int64_t id, parent;
        char *detail; /* owned, safe to show */
} PlanRow;

struct Plan {
        GArray *rows; /* of PlanRow */
};

static void clear_row(void *data) {
        g_free(((PlanRow *) data)->detail);
}

Plan *plan_new(void) {
        Plan *plan = g_new(Plan, 1);

        plan->rows = g_array_new(FALSE, FALSE, sizeof(PlanRow));
        g_array_set_clear_func(plan->rows, clear_row);
        return plan;
}

Plan *plan_free(Plan *plan) {
        if (plan)
                g_array_unref(plan->rows);
        g_free(plan);
        return NULL;
}

void plan_add(Plan *plan, int64_t id, int64_t parent, const char *detail, size_t size) {
        GString *shown = g_string_new(NULL);
        PlanRow row = { .id = id, .parent = parent };

        format_shown_text(shown, detail, size, SIZE_MAX);
        row.detail = g_string_free(shown, FALSE);
        g_array_append_val(plan->rows, row);
}

/* Returns the first child of `parent` at or after index `i`. */
static guint next_child(const Plan *plan, int64_t parent, guint i) {
        while (i < plan->rows->len && g_array_index(plan->rows, PlanRow, i).parent != parent)
                i++;
        return i;
}

/* The maximum indentation, as in sqlite3's shell. */
enum { INDENT_MAX = 93 };

/* Appends the children of a node. SQLite numbers children after their parents; searching only later rows excludes cycles. */
static void append_children(const Plan *plan, int64_t parent, guint from, GString *indent, GString *text) {
        gsize length = indent->len;

        for (guint i = next_child(plan, parent, from), next; i < plan->rows->len; i = next) {
                const PlanRow *row = &g_array_index(plan->rows, PlanRow, i);

                next = next_child(plan, parent, i + 1);
                bool last = next == plan->rows->len;

                g_string_append_printf(text, "%s%s%s\n", indent->str, last ? "`--" : "|--", row->detail);
                g_string_append(indent, last ? "   " : "|  ");
                if (length < INDENT_MAX)
                        append_children(plan, row->id, i + 1, indent, text);
                g_string_truncate(indent, length);
        }
}

void plan_append(const Plan *plan, GString *text) {
        g_autoptr(GString) indent = g_string_new(NULL);

        if (plan->rows->len == 0)
                return;
        g_string_append(text, "QUERY PLAN\n");
        append_children(plan, 0, 0, indent, text);
}
