/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lists, see listing.h. */
#include "tools/ctl/listing.h"

#include <libsmartcols/libsmartcols.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ctl/stdout-pager.h"
#include "tools/ctl/variant.h"
#include "tools/terminal/format.h"

enum { TITLE_WIDTH = 12 };

#define SEPARATOR "  "

/* ---- Values ------------------------------------------------------------------------------------------------------- */

static bool foreign_users;

void users_are_foreign(void) {
        foreign_users = true;
}

char *user_name(uid_t uid) {
        const struct passwd *user = foreign_users ? NULL : getpwuid(uid);

        return user ? g_strdup(user->pw_name) : g_strdup_printf("%u", (unsigned) uid);
}

static void append_size(GString *output, guint64 size) {
        static const char units[] = "BKMGTPE";
        guint64 tenths = 0, whole = size;
        size_t unit = 0;

        for (; whole >= 1024; unit++) {
                tenths = whole % 1024 * 10 / 1024;
                whole /= 1024;
        }
        if (unit > 0 && whole < 100)
                g_string_append_printf(output, "%" G_GUINT64_FORMAT ".%" G_GUINT64_FORMAT "%c", whole, tenths, units[unit]);
        else
                g_string_append_printf(output, "%" G_GUINT64_FORMAT "%c", whole, units[unit]);
}

static void append_time(GString *output, guint64 usec) {
        guint64 seconds = usec / G_USEC_PER_SEC;

        if (seconds < 1)
                g_string_append_printf(output, "%" G_GUINT64_FORMAT "ms", usec / 1000);
        else if (seconds < 60)
                g_string_append_printf(output, "%" G_GUINT64_FORMAT ".%" G_GUINT64_FORMAT "s", seconds,
                                       usec % G_USEC_PER_SEC / (G_USEC_PER_SEC / 10));
        else if (seconds < 3600)
                g_string_append_printf(output, "%" G_GUINT64_FORMAT "min %" G_GUINT64_FORMAT "s", seconds / 60,
                                       seconds % 60);
        else if (seconds < 86400)
                g_string_append_printf(output, "%" G_GUINT64_FORMAT "h %" G_GUINT64_FORMAT "min", seconds / 3600,
                                       seconds / 60 % 60);
        else
                g_string_append_printf(output, "%" G_GUINT64_FORMAT "d %" G_GUINT64_FORMAT "h", seconds / 86400,
                                       seconds / 3600 % 24);
}

static guint64 number_of(GVariant *value) {
        return g_variant_is_of_type(value, G_VARIANT_TYPE_UINT32) ? g_variant_get_uint32(value)
               : g_variant_is_of_type(value, G_VARIANT_TYPE_UINT64) ? g_variant_get_uint64(value)
                                                                    : 0;
}

static void append_text(GString *output, GVariant *value) {
        bool is_text = g_variant_is_of_type(value, G_VARIANT_TYPE_STRING) ||
                       g_variant_is_of_type(value, G_VARIANT_TYPE_OBJECT_PATH);
        g_autofree char *printed = is_text ? g_variant_dup_string(value, NULL) : g_variant_print(value, FALSE);

        format_shown_text(output, printed, strlen(printed), SIZE_MAX);
}

void shown_append(GString *output, GVariant *value, Shown as) {
        g_autofree char *name = NULL;

        switch (as) {
        case SHOWN_TEXT:
                append_text(output, value);
                return;
        case SHOWN_NUMBER:
                g_string_append_printf(output, "%" G_GUINT64_FORMAT, number_of(value));
                return;
        case SHOWN_SIZE:
                append_size(output, number_of(value));
                return;
        case SHOWN_TIME:
                append_time(output, number_of(value));
                return;
        case SHOWN_USER:
                name = user_name((uid_t) number_of(value));
                format_shown_text(output, name, strlen(name), SIZE_MAX);
                return;
        }
}

/* ---- Tables ------------------------------------------------------------------------------------------------------- */

static bool is_wanted(GVariant *rows, const Column *column) {
        gsize n = g_variant_n_children(rows);

        for (gsize i = 0; column->optional && i < n; i++) {
                g_autoptr(GVariant) row = g_variant_get_child_value(rows, i);
                g_autoptr(GVariant) value = g_variant_lookup_value(row, column->key, NULL);

                if (value)
                        return true;
        }
        return !column->optional;
}

static GString *cell_of(GVariant *row, const Column *column) {
        g_autoptr(GVariant) value = g_variant_lookup_value(row, column->key, NULL);
        GString *shown = g_string_new(value ? NULL : "-");

        if (value)
                shown_append(shown, value, column->as);
        return shown;
}

/* The least width of a column that may be cut. */
enum { CUT_WIDTH = 12 };

static size_t width_of(GVariant *rows, const Column *column) {
        gsize n = g_variant_n_children(rows);
        size_t width = strlen(column->title);

        for (gsize i = 0; i < n; i++) {
                g_autoptr(GVariant) row = g_variant_get_child_value(rows, i);
                g_autoptr(GString) cell = cell_of(row, column);

                width = MAX(width, format_shown_width(cell->str, cell->len));
        }
        return column->gives_way ? MIN(width, CUT_WIDTH) : width;
}

/* Leaves out columns, the highest rank first, until the rest fits into `width`; returns how many are left. */
static size_t fit(GVariant *rows, const Column **columns, size_t n, size_t width) {
        size_t total = 0;

        for (size_t i = 0; i < n; i++)
                total += width_of(rows, columns[i]) + (i > 0 ? strlen(SEPARATOR) : 0);
        while (total > width) {
                size_t last = 0;

                for (size_t i = 1; i < n; i++)
                        if (columns[i]->rank >= columns[last]->rank)
                                last = i;
                if (columns[last]->rank == 0)
                        break;
                total -= width_of(rows, columns[last]) + strlen(SEPARATOR);
                memmove(columns + last, columns + last + 1, (--n - last) * sizeof *columns);
        }
        return n;
}

/* Only an allocation can fail here, and GLib also ends the program in that case. */
static void check_allocated(bool allocated) {
        if (!allocated)
                g_error("out of memory");
}

static void fill_line(struct libscols_line *line, GVariant *row, const Column *const *columns, size_t n_columns) {
        check_allocated(line);
        for (size_t i = 0; i < n_columns; i++) {
                g_autoptr(GString) shown = cell_of(row, columns[i]);

                check_allocated(scols_line_set_data(line, i, shown->str) >= 0);
        }
}

static struct libscols_table *make_table(const Column *const *columns, size_t n_columns, bool legend, size_t width) {
        struct libscols_table *table = scols_new_table();

        check_allocated(table && scols_table_set_column_separator(table, SEPARATOR) >= 0);
        (void) scols_table_enable_noencoding(table, 1); /* the text is escaped already */
        (void) scols_table_enable_noheadings(table, !legend);
        (void) scols_table_set_termforce(table, width > 0 ? SCOLS_TERMFORCE_ALWAYS : SCOLS_TERMFORCE_NEVER);
        if (width > 0)
                (void) scols_table_set_termwidth(table, width);
        for (size_t i = 0; i < n_columns; i++) {
                bool right = columns[i]->as == SHOWN_NUMBER || columns[i]->as == SHOWN_SIZE || columns[i]->as == SHOWN_TIME;

                check_allocated(scols_table_new_column(table, columns[i]->title, columns[i]->gives_way ? 0.1 : 1,
                                                       (right ? SCOLS_FL_RIGHT : 0) |
                                                       (columns[i]->gives_way ? SCOLS_FL_TRUNC : 0)));
        }
        return table;
}

char *listing_to_text(GVariant *rows, const Column *columns, size_t n_columns, bool legend, size_t width) {
        g_autofree const Column **wanted = g_new(const Column *, n_columns);
        gsize n_rows = g_variant_n_children(rows);
        struct libscols_table *table;
        char *printed = NULL, *text;
        size_t n_wanted = 0;

        for (size_t i = 0; i < n_columns; i++)
                if (is_wanted(rows, &columns[i]))
                        wanted[n_wanted++] = &columns[i];
        if (width > 0)
                n_wanted = fit(rows, wanted, n_wanted, width);
        table = make_table(wanted, n_wanted, legend, width);
        for (gsize i = 0; i < n_rows; i++) {
                g_autoptr(GVariant) row = g_variant_get_child_value(rows, i);

                fill_line(scols_table_new_line(table, NULL), row, wanted, n_wanted);
        }
        check_allocated(scols_print_table_to_string(table, &printed) >= 0);
        scols_unref_table(table);
        text = g_str_has_suffix(printed, "\n") ? g_strdup(printed) : g_strconcat(printed, "\n", NULL);
        free(printed);
        return text;
}

void document_print(const Context *c, GVariant *document) {
        g_autoptr(GVariant) held = g_variant_ref_sink(document);
        g_autoptr(GString) json = g_string_new(NULL);

        json_append_variant(json, held, c->json == JSON_PRETTY ? 0 : JSON_IN_A_LINE);
        stdout_pager_open(!c->no_pager);
        puts(json->str);
}

void listing_print(const Context *c, GVariant *rows, const Column *columns, size_t n_columns, const char *thing) {
        gsize n = g_variant_n_children(rows);

        if (c->json) {
                document_print(c, rows);
                return;
        }
        stdout_pager_open(!c->no_pager);
        if (n > 0) {
                g_autofree char *text = listing_to_text(rows, columns, n_columns, !c->no_legend, stdout_pager_width());

                fputs(text, stdout);
        }
        if (!c->no_legend) {
                g_autofree char *listed = counted(n, thing);

                printf("%s%s listed.\n", n > 0 ? "\n" : "", listed);
        }
}

char *counted(uint64_t n, const char *thing) {
        const char *ending = n == 1 ? "" : g_str_has_suffix(thing, "ch") ? "es" : "s";

        return g_strdup_printf("%" G_GUINT64_FORMAT " %s%s", n, thing, ending);
}

void field_print(const char *title, const char *format, ...) {
        g_autoptr(GString) shown = g_string_new(NULL);
        g_autofree char *text = NULL;
        va_list arguments;

        va_start(arguments, format);
        text = g_strdup_vprintf(format, arguments);
        va_end(arguments);
        format_shown_text(shown, text, strlen(text), SIZE_MAX);
        printf("%*s%s %s\n", TITLE_WIDTH, title, *title ? ":" : " ", shown->str);
}
