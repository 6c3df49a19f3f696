/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See rqlite-rig.h. */
#include "tests/rigs/rqlite-rig.h"

#include <arpa/inet.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/worker/core/row-sink.h"
#include "daemon/worker/rqlite/rqlite-engine.h"

#define PAGE_SIZE 65536

/* ---- servers ---- */

static int read_port(int fd) {
        char text[16] = {};
        size_t size = 0;

        while (size < sizeof text - 1 && read(fd, text + size, 1) == 1 && text[size] != '\n')
                size++;
        g_assert_cmpint(atoi(text), >, 0);
        return atoi(text);
}

/* rqlite does not end with its standard input, as the imitation does. */
static void die_with_test(void *userdata) {
        (void) userdata;
        (void) prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/* The arguments are borrowed. The server prints its port. */
static void start(RqliteNodes *nodes, unsigned i, const char *const *arguments, int *ret_stdout) {
        g_autoptr(GError) error = NULL;

        g_assert_true(g_spawn_async_with_pipes(NULL, (char **) arguments, NULL,
                                               G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_SEARCH_PATH, die_with_test, NULL,
                                               &nodes->pids[i], &nodes->stdin_fds[i], ret_stdout, NULL, &error));
        g_assert_no_error(error);
}

/* ---- rqlite itself ---- */

/* A port that nothing listens at now. */
static int free_port(void) {
        struct sockaddr_in address = { .sin_family = AF_INET };
        socklen_t size = sizeof address;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        g_assert_cmpint(bind(fd, (struct sockaddr *) &address, sizeof address), ==, 0);
        g_assert_cmpint(getsockname(fd, (struct sockaddr *) &address, &size), ==, 0);
        (void) close(fd);
        return ntohs(address.sin_port);
}

/* The answer to a GET, without HTTP's niceties. */
static char *get(int port, const char *path) {
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t) port) };
        g_autofree char *request = g_strdup_printf("GET %s HTTP/1.0\r\n\r\n", path);
        GString *answer = g_string_new(NULL);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        char bytes[4096];
        ssize_t n;

        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (connect(fd, (struct sockaddr *) &address, sizeof address) == 0 &&
            write(fd, request, strlen(request)) == (ssize_t) strlen(request))
                while ((n = read(fd, bytes, sizeof bytes)) > 0)
                        g_string_append_len(answer, bytes, n);
        (void) close(fd);
        return g_string_free(answer, FALSE);
}

static bool is_ready(int port) {
        g_autofree char *answer = get(port, "/readyz");

        return strstr(answer, "[+]leader ok") && strstr(answer, "[+]store ok");
}

static void start_rqlited(RqliteNodes *nodes, const char *program) {
        g_autoptr(GString) join = g_string_new(NULL);
        int raft[RQLITE_NODES_MAX];

        for (unsigned i = 0; i < nodes->n; i++) {
                nodes->ports[i] = free_port();
                raft[i] = free_port();
                g_string_append_printf(join, "%s127.0.0.1:%d", i > 0 ? "," : "", raft[i]);
        }
        for (unsigned i = 0; i < nodes->n; i++) {
                g_autofree char *id = g_strdup_printf("%u", i + 1), *data = g_build_filename(nodes->folder, id, NULL);
                g_autofree char *http = g_strdup_printf("127.0.0.1:%d", nodes->ports[i]);
                g_autofree char *address = g_strdup_printf("127.0.0.1:%d", raft[i]), *n = g_strdup_printf("%u", nodes->n);
                const char *arguments[] = { program, "-fk", "-node-id", id, "-http-addr", http, "-raft-addr", address,
                                            "-bootstrap-expect", n, "-join", join->str, data, NULL };

                start(nodes, i, arguments, NULL);
        }
        for (unsigned i = 0; i < nodes->n; i++)
                while (!is_ready(nodes->ports[i]))
                        g_usleep(50000);
}

/* The program that a test uses instead of the imitation. The caller frees it. NULL: none. One node is the program only if a
 * variable names it. Only the imitation has a user. */
static char *find_rqlited(unsigned n, const char *user) {
        const char *named = g_getenv("SQLIPC_RQLITED");

        if (named)
                return user ? NULL : g_strdup(named);
        return n > 1 ? g_find_program_in_path("rqlited") : NULL;
}

void rqlite_nodes_start(RqliteNodes *nodes, unsigned n, const char *user) {
        g_autofree char *rqlited = find_rqlited(n, user);
        g_autofree char *program =
                g_build_filename(g_getenv("SQLIPC_SOURCE_ROOT"), "tests", "rigs", "rqlite_imitation.py", NULL);
        int outs[RQLITE_NODES_MAX];

        *nodes = (RqliteNodes) { .folder = g_dir_make_tmp("sqlipc-rqlite-XXXXXX", NULL), .n = n };
        if (rqlited) {
                start_rqlited(nodes, rqlited);
                return;
        }
        for (unsigned i = 0; i < n; i++) {
                g_autofree char *number = g_strdup_printf("%u", i + 1), *total = g_strdup_printf("%u", n);
                const char *arguments[] = { "python3", program, nodes->folder, number, total, user, NULL };

                start(nodes, i, arguments, &outs[i]);
        }
        for (unsigned i = 0; i < n; i++) {
                nodes->ports[i] = read_port(outs[i]);
                (void) close(outs[i]);
        }
}

void rqlite_nodes_start_hostile(RqliteNodes *nodes, const char *mode) {
        g_autofree char *program =
                g_build_filename(g_getenv("SQLIPC_SOURCE_ROOT"), "tests", "rigs", "rqlite_hostile.py", NULL);
        const char *arguments[] = { "python3", program, mode, NULL };
        int out;

        *nodes = (RqliteNodes) { .n = 1 };
        start(nodes, 0, arguments, &out);
        nodes->ports[0] = read_port(out);
        (void) close(out);
}

char *rqlite_nodes_urls(const RqliteNodes *nodes, const char *user) {
        GString *urls = g_string_new(NULL);

        for (unsigned i = 0; i < nodes->n; i++)
                g_string_append_printf(urls, "%shttp://%s%s127.0.0.1:%d", i > 0 ? " " : "", user ?: "", user ? "@" : "",
                                       nodes->ports[i]);
        return g_string_free(urls, FALSE);
}

int rqlite_nodes_leader(const RqliteNodes *nodes) {
        for (unsigned i = 0; i < nodes->n; i++) {
                g_autofree char *status = nodes->pids[i] ? get(nodes->ports[i], "/status") : NULL;
                const char *at = status ? strstr(status, "\"leader\":") : NULL;
                int leader;

                at = at ? strstr(at, "\"node_id\":") : NULL;
                at = at ? strpbrk(at, "0123456789") : NULL; /* rqlite puts no space before it, Python does */
                leader = at ? atoi(at) : 0;

                if (leader > 0 && nodes->pids[leader - 1])
                        return leader - 1;
        }
        return -1;
}

static void wait_for(RqliteNodes *nodes, unsigned i) {
        int status;

        g_assert_cmpint(waitpid(nodes->pids[i], &status, 0), ==, nodes->pids[i]);
        g_spawn_close_pid(nodes->pids[i]);
        nodes->pids[i] = 0;
        (void) close(nodes->stdin_fds[i]);
}

void rqlite_nodes_kill(RqliteNodes *nodes, unsigned i) {
        g_assert_cmpint(kill(nodes->pids[i], SIGKILL), ==, 0);
        wait_for(nodes, i);
}

void rqlite_nodes_stop(RqliteNodes *nodes) {
        for (unsigned i = 0; i < nodes->n; i++) {
                g_autofree char *name = g_strdup_printf("%u.port", i + 1);
                g_autofree char *path = nodes->folder ? g_build_filename(nodes->folder, name, NULL) : NULL;

                if (nodes->pids[i])
                        rqlite_nodes_kill(nodes, i);
                if (path)
                        (void) g_unlink(path);
        }
        if (nodes->folder && g_rmdir(nodes->folder) < 0) { /* rqlite has left its data */
                const char *arguments[] = { "rm", "-r", nodes->folder, NULL };

                g_assert_true(g_spawn_sync(NULL, (char **) arguments, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL,
                                           NULL, NULL));
        }
        g_free(nodes->folder);
}

/* ---- the engine ---- */

static int on_progress(void *userdata) {
        RqliteRig *rig = userdata;

        rig->n_progress++;
        if (rig->interrupt_at == 0 || rig->n_progress < rig->interrupt_at)
                return 0;
        if (rig->error.error == ERROR_NONE)
                (void) sql_error_set(&rig->error, ERROR_TIMED_OUT, "the test's time is over");
        return 1;
}

void rqlite_rig_begin(RqliteRig *rig, char *connection) {
        static bool initialized;

        *rig = (RqliteRig) {
                .connection = connection,
                .error = SQL_ERROR_INIT,
                .setup = {
                        .path = "",
                        .engine = ENGINE_KIND_RQLITE,
                        .connection = connection,
                        .connections_max = 4,
                        .consistency = CONSISTENCY_WEAK,
                        .heap_size_max = 64 << 20,
                        .sql_size_max = 1000000,
                        .expression_depth_max = 1000,
                        .compound_selects_max = 500,
                        .vdbe_ops_max = 1000000,
                        .variables_max = 32766,
                        .busy_usec = 5000000,
                        .writes = true,
                        .write_schema = true,
                        .foreign_keys = true,
                },
        };
        if (!initialized)
                g_assert_cmpint(rqlite_engine.init(&rig->setup), ==, 0);
        initialized = true;
        g_assert_cmpint(rqlite_engine.start(&rig->setup, on_progress, rig, &rig->pool), ==, 0);
}

void rqlite_rig_end(RqliteRig *rig) {
        rqlite_engine.stop(rig->pool);
        sql_error_done(&rig->error);
        g_free(rig->connection);
}

/* Tries again for a while if the node is busy, as the core does. */
static bool is_final(RqliteRig *rig, gint64 until) {
        if (rig->error.error != ERROR_BUSY || rig->error.extended_code == 0)
                return true;
        if (g_get_monotonic_time() >= until) {
                rqlite_engine.give_up(&rig->error);
                return true;
        }
        sql_error_done(&rig->error);
        g_usleep(20000);
        return false;
}

/* ---- rows ---- */

static void add_value(GString *text, PageValue v) {
        switch (v.type) {
        case VALUE_NULL:
                g_string_append_c(text, 'n');
                break;
        case VALUE_INTEGER:
                g_string_append_printf(text, "i%" G_GINT64_FORMAT, (gint64) load_le64(v.bytes));
                break;
        case VALUE_REAL:
                g_string_append_printf(text, "r%.17g", load_le_double(v.bytes));
                break;
        case VALUE_TEXT:
                g_string_append_c(text, 't');
                g_string_append_len(text, (const char *) v.bytes, (gssize) v.size);
                break;
        case VALUE_BLOB:
                g_string_append_c(text, 'b');
                for (size_t i = 0; i < v.size; i++)
                        g_string_append_printf(text, "%02X", v.bytes[i]);
                break;
        }
}

/* Decodes the rows of a page. */
static void add_page(GString *text, const uint8_t *page, size_t size, PageDecoder *d) {
        uint8_t *room;
        size_t room_size;
        int event;

        while (size > 0) {
                size_t n;

                g_assert_cmpint(page_decoder_reserve(d, &room, &room_size), ==, 0);
                n = MIN(size, room_size);
                memcpy(room, page, n);
                page_decoder_commit(d, n);
                page += n;
                size -= n;
                while ((event = page_decoder_next(d)) > 0)
                        if (event == PAGE_ROW) {
                                for (unsigned i = 0; i < d->n_columns; i++) {
                                        g_string_append(text, i > 0 ? "|" : "");
                                        add_value(text, page_decoder_value(d, i));
                                }
                                g_string_append_c(text, '\n');
                        }
                g_assert_cmpint(event, ==, PAGE_MORE);
        }
}

/* A row that fits into no page is added value by value. */
static void add_big_row(GString *text, EngineStatement *statement, unsigned n_columns) {
        for (unsigned i = 0; i < n_columns; i++) {
                SqlError error = SQL_ERROR_INIT;
                uint8_t number[8];
                const uint8_t *bytes;
                ValueType type;
                uint64_t size;

                g_assert_true(rqlite_engine.measure(statement, i, &type, &size, &error));
                bytes = rqlite_engine.value(statement, i, number, &error);
                g_string_append(text, i > 0 ? "|" : "");
                add_value(text, (PageValue) { .type = type, .bytes = bytes, .size = size - (type == VALUE_TEXT) });
        }
        g_string_append_c(text, '\n');
}

static bool add_columns(EngineStatement *statement, PageDecoder *d, GString *text, SqlError *error) {
        static uint8_t memory[PAGE_SIZE];
        PageEncoder encoder;
        const uint8_t *payload;
        size_t size;

        if (!rqlite_engine.columns(statement, PAGE_SIZE, &payload, &size, error))
                return false;
        page_encoder_init(&encoder, memory, sizeof memory, 1);
        g_assert_true(page_encoder_begin_part(&encoder, FRAME_COLUMNS));
        g_assert_cmpuint(page_encoder_append(&encoder, payload, size), ==, size);
        page_encoder_end_part(&encoder, false);
        add_page(text, memory, page_encoder_finish(&encoder), d);
        return true;
}

/* Reads the rows of a statement that was stepped, with `result`. */
static bool read_rows(EngineStatement *statement, RowSink *sink, EngineResult result, GString *text, SqlError *error) {
        static uint8_t memory[PAGE_SIZE];
        PageDecoder decoder;
        PageEncoder *e = sink->encoder;

        page_decoder_init(&decoder, PAGE_SIZE, 64 << 20);
        page_encoder_init(e, memory, sizeof memory, 1);
        if (result != ENGINE_FAILED && !add_columns(statement, &decoder, text, error))
                result = ENGINE_FAILED;
        while (result != ENGINE_DONE && result != ENGINE_FAILED) {
                result = rqlite_engine.fill(statement, sink, error);
                if (result == ENGINE_NO_ROOM && page_encoder_is_empty(e)) {
                        add_big_row(text, statement, sink->n_columns);
                        sink->row_waits = false;
                        result = ENGINE_ROW;
                        continue;
                }
                add_page(text, memory, page_encoder_finish(e), &decoder);
                page_encoder_clear(e);
        }
        page_decoder_done(&decoder);
        return result == ENGINE_DONE;
}

static bool query_once(RqliteRig *rig, const char *sql, const JobSpec *spec, GString *text) {
        static const PageWriter writer = { .fd = -1 };
        PageEncoder encoder;
        RowSink sink = { .encoder = &encoder, .writer = &writer, .row_size_max = 64 << 20, .n_rows_max = UINT64_MAX };
        EngineConnection *connection;
        EngineStatement *statement;
        bool ok;

        if (!rqlite_engine.connect(rig->pool, "", 0, NULL, &connection, &rig->error))
                return false;
        ok = rqlite_engine.compile(connection, sql, strlen(sql), false, NULL, &statement, &rig->error);
        if (ok) {
                ok = rqlite_engine.bind(statement, spec, &rig->error);
                if (ok) {
                        EngineResult result = rqlite_engine.step(statement, &sink, &rig->error);

                        ok = result != ENGINE_BUSY && read_rows(statement, &sink, result, text, &rig->error);
                }
                rqlite_engine.release(statement);
        }
        rqlite_engine.disconnect(rig->pool, connection);
        return ok;
}

char *rqlite_rig_query(RqliteRig *rig, const char *sql, GByteArray *parameters, unsigned n_parameters) {
        gint64 until = g_get_monotonic_time() + (gint64) rig->setup.busy_usec;
        JobSpec spec = {
                .n_positional = n_parameters,
                .parameters = parameters ? parameters->data : NULL,
                .parameters_size = parameters ? parameters->len : 0,
        };
        GString *text = g_string_new(NULL);

        sql_error_done(&rig->error);
        do
                if (query_once(rig, sql, &spec, text))
                        return g_string_free(text, FALSE);
        while (!is_final(rig, until));
        g_string_free(text, TRUE);
        return NULL;
}

char *rqlite_rig_query_here(sqlite3 *db, const char *sql) {
        GString *text = g_string_new(NULL);
        sqlite3_stmt *stmt;
        int rc;

        if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
                return g_string_free(text, TRUE);
        while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
                for (int i = 0, n = sqlite3_column_count(stmt); i < n; i++) {
                        uint8_t number[8];
                        PageValue v = { .type = (ValueType) sqlite3_column_type(stmt, i), .bytes = number };

                        if (v.type == VALUE_INTEGER)
                                store_le64(number, (uint64_t) sqlite3_column_int64(stmt, i));
                        else if (v.type == VALUE_REAL)
                                store_le_double(number, sqlite3_column_double(stmt, i));
                        else {
                                v.bytes = v.type == VALUE_TEXT ? sqlite3_column_text(stmt, i) : sqlite3_column_blob(stmt, i);
                                v.size = (size_t) sqlite3_column_bytes(stmt, i);
                        }
                        g_string_append(text, i > 0 ? "|" : "");
                        add_value(text, v);
                        g_string_append(text, i + 1 == n ? "\n" : "");
                }
        (void) sqlite3_finalize(stmt);
        return g_string_free(text, rc != SQLITE_DONE);
}

GByteArray *rqlite_rig_row(unsigned n, const PageValue *values) {
        GByteArray *row = g_byte_array_new();
        size_t end = 0;

        for (unsigned i = 0; i < n; i++)
                g_byte_array_append(row, (const uint8_t *) &(uint8_t) { (uint8_t) values[i].type }, 1);
        for (unsigned i = 0; i < n; i++) {
                uint8_t bytes[4];

                end += values[i].size + (values[i].type == VALUE_TEXT);
                store_le32(bytes, (uint32_t) end);
                g_byte_array_append(row, bytes, sizeof bytes);
        }
        for (unsigned i = 0; i < n; i++) {
                g_byte_array_append(row, values[i].bytes, (guint) values[i].size);
                if (values[i].type == VALUE_TEXT)
                        g_byte_array_append(row, (const uint8_t *) "", 1);
        }
        return row;
}

/* ---- writes ---- */

static bool note(RqliteRig *rig, EngineConnection *connection, const char *sql, RowSink *sink) {
        const JobSpec spec = {};
        EngineStatement *statement;
        bool ok;

        if (!rqlite_engine.compile(connection, sql, strlen(sql), false, NULL, &statement, &rig->error))
                return false;
        g_assert_true(rqlite_engine.writes(statement));
        ok = rqlite_engine.bind(statement, &spec, &rig->error) &&
             rqlite_engine.step(statement, sink, &rig->error) == ENGINE_DONE;
        rqlite_engine.release(statement);
        return ok;
}

static void settle(RqliteRig *rig, EngineConnection *connection, RqliteWrite *w, RowSink *sink) {
        EngineStatement *statement = rqlite_engine.outcome(connection);
        GString *text = g_string_new(NULL);

        g_assert_nonnull(statement);
        if (sink->n_columns > 0)
                g_assert_true(read_rows(statement, sink, ENGINE_ROW, text, &rig->error));
        rqlite_engine.changes(statement, &w->n_changes, &w->last_rowid);
        rqlite_engine.release(statement);
        w->rows = g_string_free(text, sink->n_columns == 0);
}

static bool commit(RqliteRig *rig, EngineConnection *connection, gint64 until) {
        while (!rqlite_engine.commit(connection, &rig->error)) {
                if (rig->error.error != ERROR_BUSY)
                        return false;
                if (is_final(rig, until))
                        return false;
        }
        return true;
}

bool rqlite_rig_write(RqliteRig *rig, RqliteWrite *writes, unsigned n, bool one_job) {
        static const PageWriter writer = { .fd = -1 };
        gint64 until = g_get_monotonic_time() + (gint64) rig->setup.busy_usec;
        PageEncoder encoder;
        g_autofree RowSink *sinks = g_new0(RowSink, n);
        EngineConnection *connection;
        bool ok = true;

        sql_error_done(&rig->error);
        while (!rqlite_engine.begin(rig->pool, true, &connection, &rig->error))
                if (is_final(rig, until))
                        return false;
        for (unsigned i = 0; ok && i < n; i++) {
                sinks[i] = (RowSink) {
                        .encoder = &encoder, .writer = &writer, .row_size_max = 64 << 20, .n_rows_max = UINT64_MAX };
                if (i == 0 || !one_job)
                        g_assert_true(rqlite_engine.save(connection, &rig->error));
                ok = note(rig, connection, writes[i].sql, &sinks[i]);
                if (!ok)
                        rqlite_engine.undo(connection);
        }
        ok = ok && commit(rig, connection, until);
        for (unsigned i = 0; ok && i < n; i++)
                settle(rig, connection, &writes[i], &sinks[i]);
        if (rqlite_engine.is_in_transaction(connection))
                rqlite_engine.rollback(connection);
        rqlite_engine.disconnect(rig->pool, connection);
        return ok;
}

bool rqlite_rig_execute(RqliteRig *rig, const char *sql) {
        RqliteWrite w = { .sql = sql };
        bool ok = rqlite_rig_write(rig, &w, 1, true);

        g_free(w.rows);
        return ok;
}
