/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes the lines below a result (footer.h). */
#include "tools/cli/shell/footer.h"

#include <glib.h>

#include "tools/cli/render/human.h"

/* Formats times. The server's time is known at the end of a run; it includes the time it waited for us to read. */
static char *times(const QueryTotals *totals) {
        uint64_t rest = totals->total_usec - MIN(totals->server_usec, totals->total_usec);
        g_autofree char *server = human_time(totals->server_usec), *transfer = human_time(rest);

        return totals->server_usec > 0 ? g_strdup_printf("server %s, transfer %s", server, transfer)
                                       : g_strdup_printf("%s in all", transfer);
}

/* Returns "2 rows", "2 rows changed" if the statement has no result, or "2 rows, 2 changed" after RETURNING. */
static char *counts(const QueryTotals *totals) {
        g_autofree char *rows = human_rows(totals->n_rows), *changed = human_rows((uint64_t) totals->n_changes);

        if (totals->n_columns == 0)
                return g_strdup_printf("%s changed", changed);
        if (totals->n_changes > 0)
                return g_strdup_printf("%s, %" G_GINT64_FORMAT " changed", rows, totals->n_changes);
        return g_strdup(rows);
}

static void append_line(GString *text, const Query *query, bool complete) {
        const Settings *settings = &query->shell->settings;
        /* A user at the prompt also wants the number of rows that went into a file. */
        bool rows_wanted = settings->footer && (query->on_terminal || query->shell->interactive);
        g_autofree char *rows = counts(&query->totals), *time = times(&query->totals);

        if (rows_wanted)
                g_string_append_printf(text, "%s%s", rows, complete ? "" : " so far");
        if (settings->timer)
                g_string_append_printf(text, rows_wanted ? " (%s)" : "%s", time);
        if (rows_wanted || settings->timer)
                g_string_append_c(text, '\n');
}

/* AUTO: no transport was used. */
static const char *transport_name(sqlipc_transport transport) {
        return transport == SQLIPC_TRANSPORT_AUTO ? "none" : settings_values("transport")[transport];
}

static void append_stats(GString *text, const QueryTotals *totals) {
        g_autofree char *rows = human_rows(totals->n_rows), *bytes = human_size(totals->n_bytes);
        g_autofree char *first = human_time(totals->first_usec), *server = human_time(totals->server_usec);
        g_autofree char *total = human_time(totals->total_usec);

        g_string_append_printf(text,
                               "Result:      %s, %s of pages\n"
                               "Transport:   %s\n"
                               "First row:   after %s\n"
                               "Server:      %s\n"
                               "In all:      %s\n",
                               rows, bytes, transport_name(totals->transport), first, server, total);
}

void footer_write_changes(const Session *session, FILE *file) {
        fprintf(file, "changes: %" G_GINT64_FORMAT "   total_changes: %" G_GINT64_FORMAT "\n", session->n_changes,
                session->n_total_changes);
}

void footer_write(const Query *query, bool complete, FILE *file) {
        g_autoptr(GString) text = g_string_new(NULL);

        append_line(text, query, complete);
        if (query->shell->settings.stats)
                append_stats(text, &query->totals);
        if (!query->on_terminal) /* standard output is data */
                (void) fflush(file);
        fputs(text->str, query->on_terminal ? file : stderr);
}
