/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads rows, see bulk-load.h. */
#include "tools/cli/import/bulk-load.h"

#include <errno.h>

#include "tools/cli/render/human.h"
#include "tools/cli/shell/wait.h"

enum { BAR_WIDTH = 24 };

static uint64_t now_usec(void) {
        return (uint64_t) g_get_monotonic_time();
}

void bulk_load_init(BulkLoad *bulk, Shell *shell) {
        *bulk = (BulkLoad) { .shell = shell, .parameters = g_array_new(false, true, sizeof(sqlipc_parameter)) };
        progress_begin(&bulk->progress, shell->settings.progress, now_usec());
}

void bulk_load_done(BulkLoad *bulk) {
        bulk_load_close(bulk);
        bulk_load_erase(bulk);
        g_array_unref(bulk->parameters);
}

/* ---- The bar ------------------------------------------------------------------------------------------------------ */

static void draw(BulkLoad *bulk, uint64_t now) {
        size_t width = progress_width(), filled = (size_t) (bulk->done * BAR_WIDTH);
        g_autofree char *totals = human_progress(bulk->n_rows, 0, now - bulk->progress.begin, width);
        g_autoptr(GString) line = g_string_new("[");

        for (size_t i = 0; i < BAR_WIDTH; i++)
                g_string_append_c(line, i < filled ? '#' : ' ');
        g_string_append_printf(line, "] %3.0f %% %s, %s", bulk->done * 100, bulk->action, totals);
        g_string_truncate(line, MIN(line->len, width));
        progress_draw(&bulk->progress, line->str);
}

int bulk_load_look_around(BulkLoad *bulk) {
        uint64_t now = bulk->progress.wanted ? now_usec() : 0;

        if (progress_is_due(&bulk->progress, now))
                draw(bulk, now);
        return wait_check_cancelled();
}

void bulk_load_erase(BulkLoad *bulk) {
        progress_erase(&bulk->progress);
}

/* ---- The load ----------------------------------------------------------------------------------------------------- */

static int wait_once(BulkLoad *bulk) {
        int r = wait_for_library(bulk->shell->session.connection, true, bulk->progress.due);

        return r < 0 ? r : bulk_load_look_around(bulk);
}

int bulk_load_open(BulkLoad *bulk, const char *sql, guint n_values) {
        Session *session = &bulk->shell->session;
        int r = sqlipc_set_blocking(session->connection, 0);

        if (r >= 0)
                r = sqlipc_load_open(session->connection, session->database, sql, &bulk->load);
        g_array_set_size(bulk->parameters, n_values);
        for (guint i = 0; i < n_values; i++)
                g_array_index(bulk->parameters, sqlipc_parameter, i).struct_size = sizeof(sqlipc_parameter);
        return r;
}

int bulk_load_row(BulkLoad *bulk, const Value *values) {
        sqlipc_parameter *parameters = (sqlipc_parameter *) (void *) bulk->parameters->data;
        guint n = bulk->parameters->len;
        int r;

        for (guint i = 0; i < n; i++) {
                parameters[i].type = values[i].type;
                parameters[i].integer = values[i].integer;
                parameters[i].real = values[i].real;
                parameters[i].bytes = values[i].bytes;
                parameters[i].size = values[i].size;
        }
        while ((r = sqlipc_load_row(bulk->load, parameters, n)) == -EAGAIN) {
                r = wait_once(bulk);
                if (r < 0)
                        return r;
        }
        return r;
}

int bulk_load_finish(BulkLoad *bulk, int64_t *ret_changes) {
        int r;

        while ((r = sqlipc_load_finish(bulk->load, ret_changes)) == -EAGAIN) {
                r = wait_once(bulk);
                if (r < 0)
                        return r;
        }
        if (r >= 0)
                bulk_load_close(bulk);
        return r;
}

void bulk_load_close(BulkLoad *bulk) {
        if (bulk->load)
                (void) sqlipc_set_blocking(bulk->shell->session.connection, 1);
        bulk->load = sqlipc_load_close(bulk->load);
}
