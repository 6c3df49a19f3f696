/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker's core with an engine that is not SQLite: this program does not link SQLite. The engine here makes up rows,
 * errors, locks and long computations, and counts how often it is called.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/worker/core/job-slice.h"
#include "daemon/worker/core/row-sink.h"
#include "daemon/worker/core/supervisor-job.h"
#include "dbus-interfaces/wire/page-decoder.h"

#define PAGE_SIZE 16384
#define CODE 12345 /* an error code that only the stub knows */

/* ---- the engine ---- */

static struct {
        /* what the next statement does */
        uint64_t n_rows;          /* of two columns: a number, and a BLOB of `blob_size` bytes */
        size_t blob_size;
        bool refuses;             /* fails to compile */
        uint64_t fails_at;        /* the step that fails; 0: none */
        unsigned n_locks;         /* first steps that meet a lock */
        uint64_t computes_at;     /* the step that computes until it is interrupted; 0: none */

        /* what was called */
        unsigned n_connections, n_statements, n_compiles, n_fills, n_values, n_resets, n_held;
        bool given_up;
        EngineProgress progress;
        void *userdata;
        uint64_t row, limit;
        int64_t parameter;
        uint8_t columns[256];
        uint8_t blob[200000];
} stub;

static int stub_start(const Setup *setup, EngineProgress progress, void *userdata, EnginePool **ret) {
        g_assert_nonnull(setup);
        stub.progress = progress;
        stub.userdata = userdata;
        *ret = (EnginePool *) (void *) &stub;
        return 0;
}

static bool stub_connect(EnginePool *pool, const char *sql, size_t sql_size, const EngineHint *hint, EngineConnection **ret,
                         SqlError *error) {
        (void) sql;
        (void) sql_size;
        (void) hint;
        (void) error;
        g_assert_true((void *) pool == &stub);
        stub.n_connections++;
        *ret = (EngineConnection *) (void *) &stub;
        return true;
}

static void stub_disconnect(EnginePool *pool, EngineConnection *connection) {
        g_assert_true((void *) pool == &stub && (void *) connection == &stub);
        stub.n_connections--;
        stub.n_held = 0;
}

static void stub_hold(EngineConnection *connection) {
        (void) connection;
        stub.n_held++;
}

static void stub_let_go(EngineConnection *connection) {
        (void) connection;
        stub.n_held = 0;
}

static bool stub_compile(EngineConnection *connection, const char *sql, size_t sql_size, bool describe, EngineHint *hint,
                         EngineStatement **ret, SqlError *error) {
        (void) connection;
        (void) describe;
        (void) hint;
        stub.n_compiles++;
        stub.row = 0;
        g_assert_cmpuint(strlen(sql), ==, sql_size);
        if (stub.refuses) {
                (void) sql_error_set(error, ERROR_SQL, "\"%s\" is not understood", sql);
                error->extended_code = CODE;
                return false;
        }
        stub.n_statements++;
        *ret = (EngineStatement *) (void *) &stub;
        return true;
}

static void stub_release(EngineStatement *statement) {
        (void) statement;
        stub.n_statements--;
}

static bool stub_describe(EngineStatement *statement, EngineDescription *ret, SqlError *error) {
        static const Bytes strings[] = { { "number", 6 }, { "INTEGER", 7 }, { "bytes", 5 }, { NULL, 0 }, { ":from", 5 } };

        (void) statement;
        (void) error;
        *ret = (EngineDescription) {
                .n_columns = 2,
                .n_parameters = 1,
                .strings = (Bytes *) g_memdup2(strings, sizeof strings),
        };
        return true;
}

static bool stub_columns(EngineStatement *statement, uint32_t page_size, const uint8_t **ret_payload, size_t *ret_size,
                         SqlError *error) {
        (void) statement;
        (void) error;
        store_le32(stub.columns, 2);
        store_le32(stub.columns + 4, page_size);
        for (size_t i = 0; i < 4; i++)
                store_le32(stub.columns + 8 + 4 * i, i < 2 ? 2 : 4);
        memcpy(stub.columns + 24, "n\0b", 4);
        *ret_payload = stub.columns;
        *ret_size = 28;
        return true;
}

static bool stub_bind(EngineStatement *statement, const JobSpec *spec, SqlError *error) {
        (void) statement;
        if (spec->n_positional > 1)
                return sql_error_set(error, ERROR_PARAMETER_COUNT, "one is enough");
        stub.parameter = spec->n_positional == 1 ? (int64_t) load_le64(spec->parameters + ROW_HEAD_SIZE(1)) : 0;
        return true;
}

/* The next row. A long computation ends when the core asks for it, with the core's error. */
static EngineResult next(RowSink *sink, SqlError *error) {
        sink->row_waits = false;
        stub.row++;
        if (stub.row == stub.computes_at) {
                while (stub.progress(stub.userdata) == 0)
                        ;
                return ENGINE_FAILED;
        }
        if (stub.row == stub.fails_at) {
                (void) sql_error_set(error, ERROR_CORRUPT, "row %" G_GUINT64_FORMAT " is bad", stub.row);
                error->extended_code = CODE;
                return ENGINE_FAILED;
        }
        sink->row_waits = stub.row <= stub.n_rows;
        return sink->row_waits ? ENGINE_ROW : ENGINE_DONE;
}

static EngineResult stub_step(EngineStatement *statement, RowSink *sink, SqlError *error) {
        (void) statement;
        if (stub.n_locks > 0) {
                stub.n_locks--;
                (void) sql_error_set(error, ERROR_BUSY, "locked");
                error->extended_code = CODE;
                return ENGINE_BUSY;
        }
        sink->n_columns = 2;
        return next(sink, error);
}

static EngineResult stub_fill(EngineStatement *statement, RowSink *sink, SqlError *error) {
        EngineResult result = ENGINE_ROW;

        (void) statement;
        stub.n_fills++;
        while (result == ENGINE_ROW) {
                if (sink->row_waits) {
                        result = row_sink_begin(sink);
                        if (result != ENGINE_ROW)
                                return result;
                        page_encoder_add_int64(sink->encoder, (int64_t) stub.row + stub.parameter);
                        page_encoder_add_blob(sink->encoder, stub.blob, stub.blob_size);
                        result = row_sink_end(sink);
                }
                if (result == ENGINE_ROW)
                        result = next(sink, error);
        }
        return result;
}

static bool stub_measure(EngineStatement *statement, unsigned i, ValueType *ret_type, uint64_t *ret_size, SqlError *error) {
        (void) statement;
        (void) error;
        *ret_type = i == 0 ? VALUE_INTEGER : VALUE_BLOB;
        *ret_size = i == 0 ? 8 : stub.blob_size;
        return true;
}

static const uint8_t *stub_value(EngineStatement *statement, unsigned i, uint8_t number[static 8], SqlError *error) {
        (void) statement;
        (void) error;
        stub.n_values++;
        store_le64(number, stub.row + (uint64_t) stub.parameter);
        return i == 0 ? number : stub.blob;
}

static void stub_counters(EngineStatement *statement, EndCounters *counters) {
        (void) statement;
        counters->vm_steps += stub.row;
}

static void stub_reset(EngineStatement *statement) {
        (void) statement;
        stub.n_resets++;
}

static bool never(const EngineConnection *connection) {
        (void) connection;
        return false;
}

static void stub_give_up(SqlError *error) {
        stub.given_up = true;
        g_assert_cmpint(error->error, ==, ERROR_BUSY);
        g_assert_cmpint(error->extended_code, ==, CODE);
        (void) sql_error_set(error, ERROR_NEEDS_OWNER, "still locked");
}

static const Engine stub_engine = {
        .start = stub_start,
        .connect = stub_connect,
        .disconnect = stub_disconnect,
        .hold = stub_hold,
        .let_go = stub_let_go,
        .keeps_writers_out = never,
        .writer_waits = never,
        .compile = stub_compile,
        .release = stub_release,
        .describe = stub_describe,
        .columns = stub_columns,
        .bind = stub_bind,
        .step = stub_step,
        .fill = stub_fill,
        .measure = stub_measure,
        .value = stub_value,
        .counters = stub_counters,
        .reset = stub_reset,
        .give_up = stub_give_up,
};

/* ---- a job ---- */

typedef struct Outcome {
        uint64_t n_rows, n_pages, n_retries;
        int64_t first, last;        /* numbers */
        size_t blob_size;           /* of the last row */
        bool over;                  /* END or ERROR came */
        EndCounters counters;
        uint32_t error;
        char message[256];
        Started started;            /* only its numbers */
        Failure failure;            /* without its message */
} Outcome;

static Setup setup;
static JobContext context;
static int reports_fd;
static Job *current;

/* As the worker's loop, but as if a lot of time had passed. */
static int on_progress(void *userdata) {
        (void) userdata;
        return job_on_progress(current, UINT64_MAX, false);
}

static void set_up(void) {
        int fds[2];

        memset(&stub, 0, sizeof stub);
        setup = (Setup) { .sql_size_max = 1000, .busy_usec = 60000000, .park_usec = 60000000, .drain_usec = 60000000 };
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), ==, 0);
        reports_fd = fds[1];
        context = (JobContext) { .setup = &setup, .engine = &stub_engine, .control_fd = fds[0] };
        g_assert_cmpint(stub_engine.start(&setup, on_progress, NULL, &context.pool), ==, 0);
}

static void tear_down(void) {
        g_assert_cmpuint(stub.n_connections, ==, 0);
        g_assert_cmpuint(stub.n_statements, ==, 0);
        g_assert_cmpint(context.report_error, ==, 0);
        job_context_trim(&context);
        close(context.control_fd);
        close(reports_fd);
}

static void take_row(Outcome *o, PageDecoder *d) {
        PageValue number = page_decoder_value(d, 0), blob = page_decoder_value(d, 1);

        o->last = (int64_t) load_le64(number.bytes);
        if (o->n_rows++ == 0)
                o->first = o->last;
        o->blob_size = blob.size;
        g_assert_true(blob.size == 0 || memcmp(blob.bytes, stub.blob, blob.size) == 0);
}

static void read_pipe(Outcome *o, PageDecoder *d, int fd) {
        for (;;) {
                uint8_t *room;
                size_t size;
                ssize_t n;
                int event;

                g_assert_cmpint(page_decoder_reserve(d, &room, &size), ==, 0);
                n = read(fd, room, size);
                if (n <= 0)
                        return;
                o->n_pages++;
                page_decoder_commit(d, (size_t) n);
                while ((event = page_decoder_next(d)) > 0) {
                        if (event == PAGE_ROW)
                                take_row(o, d);
                        o->over = event == PAGE_END || event == PAGE_ERROR;
                        if (event == PAGE_END)
                                o->counters = d->end_counters;
                        if (event != PAGE_ERROR)
                                continue;
                        o->error = d->error_number;
                        (void) g_snprintf(o->message, sizeof o->message, "%.*s", (int) d->error_message_size,
                                          d->error_message);
                }
                g_assert_cmpint(event, ==, PAGE_MORE);
        }
}

static void take_reports(Outcome *o) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;

        while (message_receive(reports_fd, &m) > 0) {
                if (m.message.kind == MESSAGE_STARTED)
                        o->started = m.message.started;
                if (m.message.kind == MESSAGE_ENDED) {
                        o->failure = m.message.ended.failure;
                        if (o->failure.error != ERROR_NONE)
                                (void) g_strlcpy(o->message, o->failure.message, sizeof o->message);
                        o->failure.message = NULL;
                }
                received_message_done(&m);
        }
}

static SupervisorJob *receive(const JobSpec *spec, bool is_prepare, int pipe_fd) {
        Message m = { .kind = is_prepare ? MESSAGE_PREPARE : MESSAGE_RUN, .job = *spec };
        ReceivedMessage received = RECEIVED_MESSAGE_INIT;
        SupervisorJob *job;
        uint8_t *bytes;
        size_t size;

        g_assert_cmpint(message_encode(&m, &bytes, &size), ==, 0);
        g_assert_cmpint(message_decode(bytes, size, &received), ==, 0);
        received.pipe_fd = pipe_fd;
        g_assert_cmpint(supervisor_job_new(&context, &received, &job), ==, 0);
        return job;
}

static JobSpec spec_of(const char *sql) {
        return (JobSpec) {
                .number = 1,
                .sql = sql,
                .sql_size = strlen(sql),
                .describe = true,
                .page_size = PAGE_SIZE,
                .deadline_usec = UINT64_MAX - 1,
                .lock_wait_usec = UINT64_MAX,
                .row_size_max = 1000000,
                .result_rows_max = 1000000,
                .result_size_max = UINT64_C(1) << 40,
        };
}

static Outcome execute(const JobSpec *spec, bool is_prepare) {
        Outcome o = {};
        PageDecoder decoder;
        SupervisorJob *job;
        int fds[2];

        g_assert_cmpint(pipe2(fds, O_CLOEXEC | O_NONBLOCK), ==, 0);
        page_decoder_init(&decoder, PAGE_SIZE, 2000000);
        job = receive(spec, is_prepare, is_prepare ? -1 : fds[1]);
        current = &job->job;
        while (job_slice(current) != JOB_OVER) {
                o.n_retries += current->state == JOB_RETRY;
                read_pipe(&o, &decoder, fds[0]);
        }
        read_pipe(&o, &decoder, fds[0]);
        (void) supervisor_job_free(job);
        take_reports(&o);
        page_decoder_done(&decoder);
        close(fds[0]);
        if (is_prepare)
                close(fds[1]);
        return o;
}

static Outcome run(void) {
        JobSpec spec = spec_of("anything");

        return execute(&spec, false);
}

/* ---- tests ---- */

static void test_prepare(void) {
        JobSpec spec = spec_of("anything");
        Outcome o;

        set_up();
        o = execute(&spec, true);
        g_assert_true(o.started.described);
        g_assert_cmpuint(o.started.n_columns, ==, 2);
        g_assert_cmpuint(o.started.n_parameters, ==, 1);
        g_assert_cmpuint(stub.n_fills, ==, 0);
        tear_down();
}

static void test_no_rows(void) {
        Outcome o;

        set_up();
        o = run();
        g_assert_true(o.over);
        g_assert_cmpuint(o.n_rows + o.error, ==, 0);
        tear_down();
}

/* The engine is called once for each page, however many rows a page has. */
static void test_many_rows(void) {
        Outcome o;

        set_up();
        stub.n_rows = 200000;
        o = run();
        g_assert_true(o.over);
        g_assert_cmpuint(o.n_rows, ==, 200000);
        g_assert_cmpint(o.first, ==, 1);
        g_assert_cmpint(o.last, ==, 200000);
        g_assert_cmpuint(o.counters.vm_steps, ==, 200001);
        g_assert_cmpuint(stub.n_fills, <, 200000 / 100);
        g_assert_cmpuint(stub.n_values, ==, 0);
        tear_down();
}

static void test_parameter(void) {
        uint8_t row[ROW_HEAD_SIZE(1) + 8] = { VALUE_INTEGER };
        JobSpec spec = spec_of("anything");
        Outcome o;

        set_up();
        store_le32(row + 1, 8);
        store_le64(row + ROW_HEAD_SIZE(1), 1000);
        spec.n_positional = 1;
        spec.parameters = row;
        spec.parameters_size = sizeof row;
        stub.n_rows = 3;
        o = execute(&spec, false);
        g_assert_cmpint(o.first, ==, 1001);
        tear_down();
}

/* Rows that fit into no page are read value by value. */
static void test_big_rows(void) {
        Outcome o;

        set_up();
        memset(stub.blob, 'x', sizeof stub.blob);
        stub.blob_size = sizeof stub.blob;
        stub.n_rows = 5;
        o = run();
        g_assert_true(o.over);
        g_assert_cmpuint(o.n_rows, ==, 5);
        g_assert_cmpuint(o.blob_size, ==, sizeof stub.blob);
        g_assert_cmpint(o.last, ==, 5);
        g_assert_cmpuint(stub.n_values, >, 0);
        tear_down();
}

static void test_limits(void) {
        JobSpec spec = spec_of("anything");
        Outcome o;

        set_up();
        stub.n_rows = 11;
        spec.result_rows_max = 10;
        o = execute(&spec, false);
        g_assert_cmpuint(o.error, ==, ERROR_LIMITS_EXCEEDED);
        g_assert_cmpuint(o.n_rows, ==, 10);
        stub.blob_size = 1000;
        spec.row_size_max = 999;
        o = execute(&spec, false);
        g_assert_cmpuint(o.error, ==, ERROR_ROW_TOO_LARGE);
        stub.blob_size = 100000; /* fits into no page either */
        o = execute(&spec, false);
        g_assert_cmpuint(o.error, ==, ERROR_ROW_TOO_LARGE);
        tear_down();
}

static void test_compile_error(void) {
        Outcome o;

        set_up();
        stub.refuses = true;
        o = run();
        g_assert_false(o.over);
        g_assert_cmpuint(o.failure.error, ==, ERROR_SQL);
        g_assert_cmpint(o.failure.extended_code, ==, CODE);
        g_assert_cmpstr(o.message, ==, "\"anything\" is not understood");
        tear_down();
}

/* Rows before the error arrive. */
static void test_step_error(void) {
        Outcome o;

        set_up();
        stub.n_rows = 1000;
        stub.fails_at = 501;
        o = run();
        g_assert_true(o.over);
        g_assert_cmpuint(o.n_rows, ==, 500);
        g_assert_cmpuint(o.error, ==, ERROR_CORRUPT);
        g_assert_cmpstr(o.message, ==, "row 501 is bad");
        stub.fails_at = 1; /* before the columns are known */
        o = run();
        g_assert_cmpuint(o.n_rows, ==, 0);
        g_assert_cmpuint(o.error, ==, ERROR_CORRUPT);
        tear_down();
}

static void test_lock(void) {
        Outcome o;

        set_up();
        stub.n_rows = 1;
        stub.n_locks = 3;
        o = run();
        g_assert_cmpuint(o.n_retries, ==, 3);
        g_assert_cmpuint(stub.n_resets, ==, 3);
        g_assert_cmpuint(stub.n_compiles, ==, 1);
        g_assert_cmpuint(o.n_rows, ==, 1);
        g_assert_cmpuint(o.error, ==, ERROR_NONE);
        g_assert_false(stub.given_up);
        setup.busy_usec = 0;
        stub.n_locks = 1;
        o = run();
        g_assert_true(stub.given_up);
        g_assert_cmpuint(o.error, ==, ERROR_NEEDS_OWNER);
        tear_down();
}

/* The error of an interrupt is the core's. */
static void test_interrupt(void) {
        Outcome o;

        set_up();
        stub.n_rows = 1000;
        stub.computes_at = 301;
        o = run();
        g_assert_true(o.over);
        g_assert_cmpuint(o.error, ==, ERROR_TIMED_OUT);
        g_assert_cmpuint(o.n_rows, ==, 300);
        tear_down();
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/worker/engine/prepare", test_prepare);
        g_test_add_func("/worker/engine/no-rows", test_no_rows);
        g_test_add_func("/worker/engine/many-rows", test_many_rows);
        g_test_add_func("/worker/engine/parameter", test_parameter);
        g_test_add_func("/worker/engine/big-rows", test_big_rows);
        g_test_add_func("/worker/engine/limits", test_limits);
        g_test_add_func("/worker/engine/compile-error", test_compile_error);
        g_test_add_func("/worker/engine/step-error", test_step_error);
        g_test_add_func("/worker/engine/lock", test_lock);
        g_test_add_func("/worker/engine/interrupt", test_interrupt);
        return g_test_run();
}
