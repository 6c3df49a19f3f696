/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The statements of windows (live-sql.h). GLib library. Pure. */
#include "client-lib/glib/live-sql.h"

#include <string.h>

char *live_sql_quote(const char *name) {
        g_auto(GStrv) parts = g_strsplit(name, "\"", -1);
        g_autofree char *doubled = g_strjoinv("\"\"", parts);

        return g_strdup_printf("\"%s\"", doubled);
}

static void clear_term(gpointer data) { g_free(((LiveTerm *) data)->column); }

static bool has_term(const GArray *terms, const char *column) {
        for (guint i = 0; i < terms->len; i++)
                if (g_str_equal(g_array_index(terms, LiveTerm, i).column, column))
                        return true;
        return false;
}

static void add_term(GArray *terms, const char *column, gsize size, bool descending) {
        LiveTerm term = { g_strndup(column, size), descending };

        if (has_term(terms, term.column))
                clear_term(&term);
        else
                g_array_append_val(terms, term);
}

GArray *live_sql_terms(const char *const *key, const char *const *order) {
        GArray *terms = g_array_new(FALSE, FALSE, sizeof(LiveTerm));

        g_array_set_clear_func(terms, clear_term);
        for (gsize i = 0; order && order[i]; i++) {
                gsize size = strlen(order[i]);
                bool descending = size > 5 && g_ascii_strcasecmp(order[i] + size - 5, " DESC") == 0;
                bool ascending = size > 4 && g_ascii_strcasecmp(order[i] + size - 4, " ASC") == 0;

                add_term(terms, order[i], size - (descending ? 5 : ascending ? 4 : 0), descending);
        }
        for (gsize i = 0; key && key[i]; i++)
                add_term(terms, key[i], strlen(key[i]), false);
        return terms;
}

static void append_order(GString *text, const GArray *terms) {
        g_string_append(text, "\nORDER BY ");
        for (guint i = 0; i < terms->len; i++) {
                const LiveTerm *term = &g_array_index(terms, LiveTerm, i);
                g_autofree char *column = live_sql_quote(term->column);

                g_string_append_printf(text, "%s%s%s", i > 0 ? ", " : "", column, term->descending ? " DESC" : "");
        }
}

/* The program's statement is first, so that its positional parameters keep their indexes. A comment at its end must not hide
 * what follows. */
static GString *begin(const char *sql) {
        GString *text = g_string_new(NULL);

        g_string_append_printf(text, "WITH sqlipc_rows AS (\n%s\n)\n", sql);
        return text;
}

char *live_sql_scan(const char *sql, const GArray *terms) {
        GString *text = begin(sql);

        g_string_append(text, "SELECT ");
        for (guint i = 0; i < terms->len; i++) {
                g_autofree char *column = live_sql_quote(g_array_index(terms, LiveTerm, i).column);

                g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", column);
        }
        g_string_append(text, " FROM sqlipc_rows");
        append_order(text, terms);
        return g_string_free(text, FALSE);
}

/* Returns the name of a new parameter. There are only a few different ones, and they are never freed. */
static const char *add_parameter(GArray *parameters, const sqlipc_value *value) {
        sqlipc_parameter p = { .struct_size = sizeof p, .type = value->type };
        g_autofree char *name = g_strdup_printf(":sqlipc%u", parameters->len);

        p.name = g_intern_string(name);
        p.integer = value->type == SQLIPC_INTEGER ? value->as.integer : 0;
        p.real = value->type == SQLIPC_REAL ? value->as.real : 0;
        if (value->type == SQLIPC_TEXT || value->type == SQLIPC_BLOB) {
                p.bytes = value->as.blob;
                p.size = value->size;
        }
        g_array_append_val(parameters, p);
        return p.name;
}

/* The term alone: after the value, or at it if `equal`. */
static char *after_value(const char *column, bool descending, const sqlipc_value *value, bool equal, const char *name) {
        if (value->type == SQLIPC_NULL) {
                if (descending)
                        return equal ? g_strdup_printf("%s IS NULL", column) : g_strdup("0");
                return equal ? g_strdup("1") : g_strdup_printf("%s IS NOT NULL", column);
        }
        if (descending)
                return g_strdup_printf("(%s %s %s OR %s IS NULL)", column, equal ? "<=" : "<", name, column);
        return g_strdup_printf("%s %s %s", column, equal ? ">=" : ">", name);
}

/* "The row is not before these values", from term `i` on. */
static void append_from(GString *text, const GArray *terms, guint i, const sqlipc_value *values, GArray *parameters) {
        const LiveTerm *term = &g_array_index(terms, LiveTerm, i);
        g_autofree char *column = live_sql_quote(term->column);
        const char *name = values[i].type == SQLIPC_NULL ? "NULL" : add_parameter(parameters, &values[i]);
        g_autofree char *here = after_value(column, term->descending, &values[i], i + 1 == terms->len, name);

        if (i + 1 == terms->len) {
                g_string_append(text, here);
                return;
        }
        g_string_append_printf(text, "(%s OR (%s IS %s AND ", here, column, name);
        append_from(text, terms, i + 1, values, parameters);
        g_string_append(text, "))");
}

char *live_sql_window(const char *sql, const GArray *terms, const sqlipc_value *start, const sqlipc_value *end, guint limit,
                      GArray *parameters) {
        const LiveTerm *first = &g_array_index(terms, LiveTerm, 0);
        GString *text = begin(sql);

        g_string_append(text, "SELECT *");
        if (end) {
                g_string_append(text, ", (");
                append_from(text, terms, 0, end, parameters);
                g_string_append(text, ") IS TRUE");
        }
        g_string_append(text, " FROM sqlipc_rows");
        if (start) {
                g_string_append(text, "\nWHERE ");
                append_from(text, terms, 0, start, parameters);
                /* This follows from the condition before it, and SQLite can seek by it in an index. */
                if (terms->len > 1 && !first->descending && start[0].type != SQLIPC_NULL) {
                        g_autofree char *column = live_sql_quote(first->column);

                        g_string_append_printf(text, " AND %s >= %s", column, add_parameter(parameters, &start[0]));
                }
        }
        append_order(text, terms);
        g_string_append_printf(text, "\nLIMIT %u", limit);
        return g_string_free(text, FALSE);
}
