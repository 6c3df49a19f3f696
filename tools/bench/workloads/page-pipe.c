/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The data plane alone, see page-pipe.h. */
#include "tools/bench/workloads/page-pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dbus-interfaces/wire/page-encoder.h"
#include "tools/bench/core/child.h"
#include "tools/bench/core/page-read.h"

enum { RUN = 1 }; /* the number of the only run */

/* ---- The child ---------------------------------------------------------------------------------------------------- */

typedef struct Writer {
        const PagePipe *pages;
        int fds[2];
        PageEncoder encoder;
        sqlite3_stmt *statement;
        EndCounters counters;
} Writer;

static int send_page(Writer *w) {
        size_t size = page_encoder_finish(&w->encoder), most = w->pages->write_size > 0 ? w->pages->write_size : size;

        for (size_t sent = 0; sent < size;) {
                ssize_t n = TEMP_FAILURE_RETRY(write(w->fds[1], w->encoder.page + sent, MIN(size - sent, most)));

                if (n < 0)
                        return -errno;
                sent += (size_t) n;
        }
        w->counters.n_bytes += size;
        page_encoder_clear(&w->encoder);
        return 0;
}

static int send_end(Writer *w) {
        EndCounters counters = w->counters;
        int r = 0;

        counters.n_bytes += page_encoder_finish(&w->encoder);
        if (!page_encoder_end(&w->encoder, &counters)) {
                r = send_page(w);
                (void) page_encoder_end(&w->encoder, &counters);
        }
        return r < 0 ? r : send_page(w);
}

/* Encodes a row as the service does. 0: the page has no room. */
static int encode_row(Writer *w, unsigned n_columns) {
        PageEncoder *e = &w->encoder;

        if (!page_encoder_begin_row(e, n_columns))
                return 0;
        for (unsigned i = 0; i < n_columns; i++) {
                sqlite3_value *value = sqlite3_column_value(w->statement, (int) i);
                const void *bytes;

                switch (sqlite3_value_type(value)) {
                case SQLITE_INTEGER:
                        page_encoder_add_int64(e, sqlite3_value_int64(value));
                        break;
                case SQLITE_FLOAT:
                        page_encoder_add_double(e, sqlite3_value_double(value));
                        break;
                case SQLITE_TEXT:
                        bytes = sqlite3_value_text(value);
                        page_encoder_add_text(e, bytes, (size_t) sqlite3_value_bytes(value));
                        break;
                case SQLITE_BLOB:
                        bytes = sqlite3_value_blob(value);
                        page_encoder_add_blob(e, bytes, (size_t) sqlite3_value_bytes(value));
                        break;
                default:
                        page_encoder_add_null(e);
                }
        }
        return page_encoder_end_row(e);
}

/* Encodes a COLUMNS frame with empty names, because the reader does not use them. */
static void encode_columns(Writer *w, uint32_t n_columns) {
        g_autofree uint8_t *payload = g_malloc0(8 + (size_t) 9 * n_columns);

        store_le32(payload, n_columns);
        store_le32(payload + 4, (uint32_t) w->pages->page_size);
        for (uint32_t i = 0; i < n_columns; i++) {
                store_le32(payload + 8 + (size_t) 8 * i, i + 1);  /* an empty name */
                store_le32(payload + 12 + (size_t) 8 * i, i + 1); /* no declared type */
        }
        (void) page_encoder_begin_part(&w->encoder, FRAME_COLUMNS);
        (void) page_encoder_append(&w->encoder, payload, 8 + (size_t) 9 * n_columns);
        page_encoder_end_part(&w->encoder, false);
}

static int send_rows(Writer *w) {
        unsigned n_columns = (unsigned) sqlite3_column_count(w->statement);
        int code, r = 0;

        encode_columns(w, n_columns);
        for (; r >= 0 && (code = sqlite3_step(w->statement)) == SQLITE_ROW; w->counters.n_rows++)
                while (r >= 0 && !encode_row(w, n_columns)) {
                        if (page_encoder_is_empty(&w->encoder))
                                return -EMSGSIZE;
                        r = send_page(w);
                }
        if (r >= 0 && code != SQLITE_DONE)
                return -EIO;
        return r < 0 ? r : send_end(w);
}

static int serve(int fd, void *userdata) {
        Writer *w = userdata;
        sqlite3 *db = NULL;
        uint8_t *page;
        int r = -EIO;

        close(w->fds[0]);
        page = mmap(NULL, w->pages->page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED)
                return -errno;
        page_encoder_init(&w->encoder, page, w->pages->page_size, RUN);
        if (sqlite3_open_v2(w->pages->file, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK &&
            sqlite3_prepare_v2(db, w->pages->sql, -1, &w->statement, NULL) == SQLITE_OK)
                r = send_rows(w);
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: a pipe of pages: %s: %s\n", g_strerror(-r), sqlite3_errmsg(db));
        (void) sqlite3_finalize(w->statement);
        (void) sqlite3_close(db);
        return r;
}

/* ---- This process ------------------------------------------------------------------------------------------------- */

static int receive_rows(int fd, size_t page_size, Copy *copy) {
        PageDecoder decoder;
        int r;

        page_decoder_init(&decoder, page_size, SQLIPC_ROW_SIZE_MAX);
        r = page_read_run(&decoder, fd, copy);
        page_decoder_done(&decoder);
        return r;
}

int page_pipe_copy(const PagePipe *pages, Copy *copy) {
        Child child = CHILD_INIT;
        Writer w = { .pages = pages };
        int r, stopped;

        if (pipe2(w.fds, O_CLOEXEC) < 0)
                r = -errno;
        else {
                r = fcntl(w.fds[1], F_SETPIPE_SZ, (int) pages->pipe_size) < 0 ? -errno : 0;
                if (r >= 0)
                        r = child_start(SOCK_STREAM, serve, &w, &child);
                close(w.fds[1]);
                if (r >= 0)
                        r = receive_rows(w.fds[0], pages->page_size, copy);
                close(w.fds[0]);
                stopped = child_stop(&child);
                if (r >= 0)
                        r = stopped;
        }
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: a pipe of pages: %s\n", g_strerror(-r));
        return r;
}
