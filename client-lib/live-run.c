/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One run of a live query (live-run.h). Library. */
#include <string.h>

#include "client-lib/block.h"
#include "client-lib/cursor-next.h"
#include "client-lib/cursor.h"
#include "client-lib/error.h"
#include "client-lib/fetch.h"
#include "client-lib/live-run.h"
#include "client-lib/live.h"
#include "client-lib/query.h"
#include "client-lib/table-watch.h"
#include "dbus-interfaces/wire/page-decoder.h"

static void on_ready(sqlipc_cursor *cursor, void *userdata) {
        sqlipc_live *l = userdata;

        (void) cursor;
        if (!live_advance(l))
                (void) live_arm(l);
}

int live_run_begin(sqlipc_live *l) {
        int r = query_begin_alone(l->connection, l->database, l->sql, l->parameters, l->n_parameters, &l->cursor);

        if (r < 0)
                return r;
        l->run_n_opened = l->watch->n_opened;
        l->cursor->on_ready = on_ready;
        l->cursor->on_ready_userdata = l;
        return 0;
}

void live_run_end(sqlipc_live *l) {
        object_fd_forget(&l->object_fd, l->connection, l->object_fd.data.fd); /* the cursor may close it */
        l->cursor = sqlipc_cursor_close(l->cursor);
        live_rows_index_done(&l->index);
        live_rows_done(&l->next);
        free(steal(l->changes));
}

/* ---- The result --------------------------------------------------------------------------------------------------- */

/* Copies the names of the columns into one piece of memory. */
static char **copy_names(const PageDecoder *d) {
        const char *name, *type;
        size_t size = 0;
        char **names, *at;

        for (unsigned i = 0; i < d->n_columns; i++) {
                page_decoder_column(d, i, &name, &type);
                size += strlen(name) + 1;
        }
        names = malloc((d->n_columns + 1) * sizeof *names + size);
        if (!names)
                return NULL;
        at = (char *) (names + d->n_columns + 1);
        for (unsigned i = 0; i < d->n_columns; i++) {
                page_decoder_column(d, i, &name, &type);
                names[i] = at;
                at = stpcpy(at, name) + 1;
        }
        return names;
}

/* Keeps a failure for the program. Returns `r`. */
static int check(sqlipc_live *l, int r) {
        return r < 0 ? connection_fail_errno(l->connection, r) : r;
}

/* The columns are known: at the first row, or at the end. */
static int begin_result(sqlipc_live *l, const PageDecoder *d) {
        if (l->index.key_columns)
                return 0;
        for (size_t i = 0; i < l->n_key_columns; i++)
                if (l->key_columns[i] >= d->n_columns)
                        return error_set_errno(&l->connection->error, -EINVAL,
                                               "Column %u belongs to the key, but the result has %u columns.",
                                               l->key_columns[i], d->n_columns);
        l->next.n_columns = d->n_columns;
        return check(l, live_rows_index_init(&l->index, &l->rows, d->n_columns, l->key_columns, l->n_key_columns));
}

/* Takes the rows that have come. */
static int take_rows(sqlipc_live *l) {
        Fetch *fetch = l->cursor->fetch;
        const sqlipc_value *values;
        size_t n;
        int r = begin_result(l, &fetch->decoder);

        if (r < 0)
                return r;
        r = block_take(&fetch->block, &fetch->decoder, 0, &n);
        values = fetch->block.values;
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = live_rows_add(&l->next, &l->index, values + i * l->next.n_columns);
        return check(l, r);
}

static int end_result(sqlipc_live *l) {
        const PageDecoder *d = &l->cursor->fetch->decoder;
        char **names;
        int r = begin_result(l, d);

        if (r < 0)
                return r;
        names = copy_names(d);
        r = names ? rows_difference(l->rows.n, l->next.matches, l->next.n, &l->changes, &l->n_changes) : -ENOMEM;
        if (r < 0) {
                free(names);
                return connection_fail_errno(l->connection, r);
        }
        free(l->names);
        l->names = names;
        l->n_told = 0;
        l->sequence = sqlipc_cursor_sequence(l->cursor);
        l->n_opened = l->run_n_opened;
        return 1;
}

int live_run_read(sqlipc_live *l) {
        int r;

        while ((r = cursor_next_now(l->cursor)) > 0) {
                r = take_rows(l);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : end_result(l);
}

void live_run_settle(sqlipc_live *l) {
        live_rows_done(&l->rows);
        l->rows = l->next;
        free(steal(l->rows.matches));
        l->rows.capacity = l->rows.n;
        l->next = (LiveRows) { .n = 0 };
        free(steal(l->changes));
        l->n_changes = 0;
}
