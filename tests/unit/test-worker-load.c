/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * daemon/worker/core/load: loads of their own and in transactions, every way in which they end, and streams that are not in
 * order. The engine is a fake one, and so is time (tests/rigs/writing-rig.h).
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "tests/rigs/writing-rig.h"
#include "tests/unit/stream.h"

#define MSEC UINT64_C(1000)
#define SEC (1000 * MSEC)
#define LONG (60 * SEC)
#define N_LARGE 2000u

/* The pages of a client. */
typedef struct Pages {
        uint8_t bytes[65536];
        PageEncoder encoder;
        uint64_t n_rows, n_sent;
        int fd;
} Pages;

static void begin_pages(Pages *p, int fd, uint32_t n_columns) {
        uint8_t payload[8 + 9 * 2] = {};

        p->fd = fd;
        p->n_rows = p->n_sent = 0;
        page_encoder_init(&p->encoder, p->bytes, 16384, 7);
        store_le32(payload, n_columns);
        store_le32(payload + 4, 16384);
        for (uint32_t i = 0; i < 2 * n_columns; i++) /* names without a byte, and no types */
                store_le32(payload + 8 + 4 * i, i / 2 + 1);
        g_assert_cmpint(page_encoder_begin_part(&p->encoder, FRAME_COLUMNS), ==, 1);
        g_assert_cmpuint(page_encoder_append(&p->encoder, payload, 8 + 9 * n_columns), ==, 8 + 9 * n_columns);
        page_encoder_end_part(&p->encoder, false);
}

static void send_pages(Pages *p) {
        size_t size = page_encoder_finish(&p->encoder);

        g_assert_cmpint(write(p->fd, p->bytes, size), ==, (ssize_t) size);
        p->n_sent += size;
        page_encoder_clear(&p->encoder);
}

static void add_row(Pages *p, const char *value) {
        g_assert_cmpint(page_encoder_begin_row(&p->encoder, 1), ==, 1);
        page_encoder_add_text(&p->encoder, value, strlen(value));
        g_assert_cmpint(page_encoder_end_row(&p->encoder), ==, 1);
        p->n_rows++;
}

static void add_end(Pages *p) {
        size_t fill = page_encoder_finish(&p->encoder);
        EndCounters end = { .n_rows = p->n_rows, .n_bytes = p->n_sent + fill };

        g_assert_cmpint(page_encoder_end(&p->encoder, &end), ==, 1);
}

/* Columns, and these rows. */
static void send_rows(Pages *p, int fd, const char *rows) {
        char **values = g_strsplit(rows, " ", -1);

        begin_pages(p, fd, 1);
        for (char **v = values; *v && **v; v++)
                add_row(p, *v);
        send_pages(p);
        g_strfreev(values);
}

static void send_end(Pages *p) {
        add_end(p);
        send_pages(p);
}

static Pages pages;
static int pipe_fd;

static void lease(void) {
        writing_settle();
        writing_say(MESSAGE_LEASE);
        writing_settle();
}

/* A load with this statement has started. Its number is 1. */
static void begin(const char *sql) {
        writing_begin();
        (void) writing_load(sql, &pipe_fd);
        writing_expect("started 1 to write; ");
}

static bool service_has_closed(void) {
        return write(pipe_fd, "", 1) < 0 && errno == EPIPE;
}

static void finish(void) {
        close(pipe_fd);
        writing_end();
}

/* ---- a load of its own ---- */

/* The lease is wanted once a row is there. */
static void test_commit(void) {
        begin("a");
        begin_pages(&pages, pipe_fd, 1);
        send_pages(&pages);
        writing_expect("");
        add_row(&pages, "1");
        add_row(&pages, "2");
        send_pages(&pages);
        writing_expect("wanted; ");
        lease();
        add_row(&pages, "3");
        send_pages(&pages);
        writing_expect("");
        writing_expect_durable("");
        send_end(&pages);
        writing_expect("committing 1; ended 1 wrote 3 0; ");
        writing_expect_durable("a:1 a:2 a:3 | ");
        g_assert_true(service_has_closed());
        finish();
}

static void test_no_rows(void) {
        begin("a");
        send_rows(&pages, pipe_fd, "");
        send_end(&pages);
        writing_settle();
        lease();
        writing_expect("wanted; committing 1; ended 1 wrote 0 0; ");
        finish();
}

/* Other tasks have turns between the rows. */
static void test_many_rows(void) {
        Outcome o;
        int fd;

        begin("a");
        begin_pages(&pages, pipe_fd, 1);
        for (unsigned i = 0; i < N_LARGE; i++) {
                add_row(&pages, "1");
                if (i % 500 == 499)
                        send_pages(&pages);
        }
        send_end(&pages);
        (void) writing_run("r read rows=100", &fd);
        lease();
        o = writing_read(fd, 2);
        g_assert_cmpuint(o.n_rows, ==, 100);
        writing_settle();
        g_assert_cmpuint(writing.durable->len, ==, 4 * N_LARGE + 2);
        finish();
}

static void lose(const char *expected) {
        writing_expect(expected);
        writing_expect_durable("");
        g_assert_false(writing.in_transaction);
        g_assert_true(service_has_closed());
        finish();
}

/* The client is gone before END. */
static void test_end_of_file(void) {
        begin("a");
        send_rows(&pages, pipe_fd, "1 2");
        writing_settle();
        lease();
        g_assert_true(writing.in_transaction);
        close(pipe_fd);
        pipe_fd = -1;
        writing_expect("wanted; ended 1 error 30; ");
        writing_expect_durable("");
        g_assert_cmpuint(writing.n_rollbacks, ==, 1);
        writing_end();
}

static void test_end_of_file_at_once(void) {
        begin("a");
        close(pipe_fd);
        writing_expect("ended 1 error 30; ");
        g_assert_cmpuint(writing.n_begins, ==, 0);
        writing_end();
}

static void test_client_error(void) {
        begin("a");
        send_rows(&pages, pipe_fd, "1");
        lease();
        g_assert_cmpint(page_encoder_error(&pages.encoder, ERROR_CANCELLED, 0, -1, "no", 2), ==, 1);
        send_pages(&pages);
        lose("wanted; ended 1 error 30; ");
}

static void test_row_fails(void) {
        begin("a fail at=2");
        send_rows(&pages, pipe_fd, "1 2 3");
        writing_settle();
        lease();
        lose("wanted; ended 1 error 11; ");
}

static void test_row_rolls_back(void) {
        begin("a rollback at=2");
        send_rows(&pages, pipe_fd, "1 2 3");
        writing_settle();
        lease();
        lose("wanted; ended 1 error 11; ");
}

static void test_cancel(void) {
        begin("a");
        send_rows(&pages, pipe_fd, "1");
        writing_settle();
        lease();
        writing_cancel(1);
        lose("wanted; ended 1 error 30; ");
}

static void test_cancel_before_rows(void) {
        begin("a");
        writing_cancel(1);
        lose("ended 1 error 30; ");
}

static void cancel_it(void) {
        writing_cancel(1);
}

static void test_cancel_in_step(void) {
        begin("a hook hang");
        writing.hook = cancel_it;
        send_rows(&pages, pipe_fd, "1");
        writing_settle();
        lease();
        lose("wanted; ended 1 error 30; ");
}

/* A query that computes does not delay the end, nor the next writer. */
static void end_it_and_look(void) {
        writing_cancel(1);
        for (unsigned i = 0; i < 10; i++) {
                writing.clock_usec += 1000;
                g_assert_cmpint(writing.progress(writing.userdata), ==, 0);
        }
        g_assert_false(writing.in_transaction);
}

static void test_cancel_beside_query(void) {
        Outcome o;
        int fd;

        begin("a");
        send_rows(&pages, pipe_fd, "1");
        writing_settle();
        lease();
        g_assert_true(writing.in_transaction);
        writing.hook = end_it_and_look;
        (void) writing_run("q read hook rows=1", &fd);
        o = writing_read(fd, 2);
        g_assert_cmpuint(o.n_rows, ==, 1);
        writing_settle();
        g_free(writing_reports());
        finish();
}

static void test_deadline(void) {
        writing_begin();
        (void) writing_load_until("a", SEC, &pipe_fd);
        send_rows(&pages, pipe_fd, "1");
        writing_settle();
        lease();
        writing_pass(2 * SEC);
        lose("started 1 to write; wanted; ended 1 error 28; ");
}

static void test_deadline_in_step(void) {
        writing_begin();
        (void) writing_load_until("a hang", SEC, &pipe_fd);
        send_rows(&pages, pipe_fd, "1");
        writing_settle();
        lease();
        lose("started 1 to write; wanted; ended 1 error 28; ");
}

static void test_statement_is_wrong(void) {
        writing_begin();
        (void) writing_load("nonsense", &pipe_fd);
        lose("ended 1 error 11; ");
        writing_begin();
        (void) writing_load("a read", &pipe_fd);
        lose("ended 1 error 16; ");
}

static void test_commit_fails(void) {
        begin("a");
        writing.commits[0] = ERROR_NO_SPACE;
        send_rows(&pages, pipe_fd, "1");
        send_end(&pages);
        writing_settle();
        lease();
        lose("wanted; committing 1; ended 1 error 26; ");
}

static void test_commit_busy(void) {
        begin("a");
        writing.commits[0] = ERROR_BUSY;
        send_rows(&pages, pipe_fd, "1");
        send_end(&pages);
        writing_settle();
        lease();
        writing_pass(SEC);
        writing_expect("wanted; committing 1; ended 1 wrote 1 0; ");
        writing_expect_durable("a:1 | ");
        finish();
}

static void test_file_is_locked(void) {
        begin("a");
        writing.n_begin_busy = 3;
        send_rows(&pages, pipe_fd, "1");
        send_end(&pages);
        writing_settle();
        lease();
        writing_pass(SEC);
        writing_expect("wanted; committing 1; ended 1 wrote 1 0; ");
        finish();
}

/* ---- others wait ---- */

/* A load without rows gives way after TransactionIdleSec=, but not before, and only if others wait. */
static void test_idle(void) {
        begin("a");
        send_rows(&pages, pipe_fd, "1");
        writing_settle();
        lease();
        writing_pass(2 * WRITING_IDLE_USEC);
        writing_expect("wanted; ");
        add_row(&pages, "2");
        send_pages(&pages);
        writing_settle();
        writing_say(MESSAGE_LEASE_ASKED);
        writing_pass(WRITING_IDLE_USEC - SEC);
        writing_expect("kept; ");
        add_row(&pages, "3");
        send_pages(&pages);
        writing_pass(WRITING_IDLE_USEC - SEC);
        writing_expect("");
        writing_pass(2 * SEC);
        lose("returned; ended 1 error 40; ");
}

/* A load whose client has sent no row keeps no other writer waiting. */
static void test_others_before_rows(void) {
        begin("a");
        (void) writing_execute("b");
        writing_settle();
        lease();
        writing_expect("wanted; committing 2; ended 2 wrote 3 77; ");
        send_rows(&pages, pipe_fd, "1");
        send_end(&pages);
        writing_expect("committing 1; ended 1 wrote 1 0; ");
        writing_expect_durable("b | a:1 | ");
        finish();
}

static void test_two_loads(void) {
        static Pages second;
        int fd;

        begin("a");
        send_rows(&pages, pipe_fd, "1");
        (void) writing_load("b", &fd);
        send_rows(&second, fd, "2");
        writing_settle();
        lease();
        send_end(&second);
        writing_expect("started 2 to write; wanted; ");
        send_end(&pages);
        writing_expect("committing 1; ended 1 wrote 1 0; committing 2; ended 2 wrote 1 0; ");
        writing_expect_durable("a:1 | b:2 | ");
        close(fd);
        finish();
}

/* ---- in a transaction ---- */

static void begin_transaction(const char *sql) {
        writing_begin();
        writing.transaction = writing_open(true, LONG);
        writing_settle();
        lease();
        (void) writing_execute("x");
        (void) writing_load(sql, &pipe_fd);
        (void) writing_execute("y");
        writing_expect("wanted; started 1 to write; ended 2 wrote 3 77; started 3 to write; ");
}

static void end_transaction(const char *expected, const char *durable) {
        writing_commit(1);
        writing_expect(expected);
        writing_expect_durable(durable);
        finish();
}

/* The statement after the load waits for it. */
static void test_in_transaction(void) {
        begin_transaction("a");
        send_rows(&pages, pipe_fd, "1 2");
        writing_expect("");
        send_end(&pages);
        end_transaction("ended 3 wrote 2 0; ended 4 wrote 3 77; committing 1; ended 1 wrote 0 0; ", "x a:1 a:2 y | ");
}

/* COMMIT waits for the load, as for any statement before it. */
static void test_commit_before_end(void) {
        begin_transaction("a");
        writing_commit(1);
        send_rows(&pages, pipe_fd, "1");
        writing_expect("");
        send_end(&pages);
        end_transaction("ended 3 wrote 1 0; ended 4 wrote 3 77; committing 1; ended 1 wrote 0 0; ", "x a:1 y | ");
}

static void test_fails_in_transaction(void) {
        begin_transaction("a fail at=2");
        send_rows(&pages, pipe_fd, "1 2");
        end_transaction("ended 3 error 11; ended 4 wrote 3 77; committing 1; ended 1 wrote 0 0; ", "x y | ");
}

static void test_cancel_in_transaction(void) {
        begin_transaction("a");
        send_rows(&pages, pipe_fd, "1 2");
        writing_settle();
        writing_cancel(3);
        end_transaction("ended 3 error 30; ended 4 wrote 3 77; committing 1; ended 1 wrote 0 0; ", "x y | ");
}

static void test_rolls_back_transaction(void) {
        begin_transaction("a rollback at=2");
        send_rows(&pages, pipe_fd, "1 2");
        writing_settle();
        end_transaction("ended 1 error 40; ended 4 error 40; ended 3 error 11; ", "");
}

static void test_rollback_of_transaction(void) {
        begin_transaction("a");
        send_rows(&pages, pipe_fd, "1 2");
        writing_settle();
        writing_cancel(1);
        end_transaction("ended 1 error 30; ended 4 error 40; ended 3 error 40; ", "");
}

static void test_in_transaction_that_reads(void) {
        writing_begin();
        writing.transaction = writing_open(false, LONG);
        writing_settle();
        (void) writing_load("a", &pipe_fd);
        lose("started 1; ended 2 error 15; ");
}

/* ---- hostile streams ---- */

/* Sends the bytes after a good row. */
static void test_bytes(const Stream *s, const char *expected) {
        begin("a");
        send_rows(&pages, pipe_fd, "1");
        writing_settle();
        lease();
        g_assert_cmpint(write(pipe_fd, s->bytes, s->size), ==, (ssize_t) s->size);
        lose(expected);
}

static void test_garbage(void) {
        Stream s = STREAM_INIT;

        memset(stream_extend(&s, 100), 0xa5, 100);
        test_bytes(&s, "wanted; ended 1 error 37; ");
        stream_done(&s);
}

/* Rows of more values than the columns. */
static void test_other_columns(void) {
        static const uint8_t row[] = { 1, 0, 0, 0, VALUE_NULL, VALUE_NULL, 0, 0, 0, 0, 0, 0, 0, 0 };
        Stream s = STREAM_INIT;

        stream_add_frame(&s, FRAME_ROWS, 0, 7, row, sizeof row);
        test_bytes(&s, "wanted; ended 1 error 37; ");
        stream_done(&s);
}

static void test_end_counts_wrong(void) {
        uint8_t end[FRAME_END_SIZE] = { 2 };
        Stream s = STREAM_INIT;

        stream_add_frame(&s, FRAME_END, 0, 7, end, sizeof end);
        test_bytes(&s, "wanted; ended 1 error 37; ");
        stream_done(&s);
}

static void test_frame_too_large(void) {
        Stream s = STREAM_INIT;
        uint8_t *header = stream_extend(&s, FRAME_HEADER_SIZE);

        store_le32(header, UINT32_MAX);
        header[4] = FRAME_ROWS;
        header[5] = SQLIPC_PAGE_VERSION;
        store_le64(header + 8, 7);
        test_bytes(&s, "wanted; ended 1 error 37; ");
        stream_done(&s);
}

/* A row that grows and grows: it ends at the limit, which the rig sets to 100,000 bytes. */
static void test_row_too_large(void) {
        static const uint8_t part[16000];
        Stream s = STREAM_INIT;

        for (unsigned i = 0; i < 4; i++)
                stream_add_frame(&s, FRAME_BIG_ROW, FRAME_MORE, 7, part, sizeof part);
        begin("a");
        send_rows(&pages, pipe_fd, "1");
        writing_settle();
        lease();
        for (unsigned i = 0; i < 2; i++) {
                g_assert_cmpint(write(pipe_fd, s.bytes, s.size), ==, (ssize_t) s.size);
                writing_settle();
        }
        lose("wanted; ended 1 error 24; ");
        stream_done(&s);
}

/* The bytes come one by one. */
static void test_trickle(void) {
        size_t size;

        begin("a");
        begin_pages(&pages, pipe_fd, 1);
        add_row(&pages, "1");
        add_end(&pages);
        size = page_encoder_finish(&pages.encoder);
        for (size_t i = 0; i < size; i++) {
                g_assert_cmpint(write(pipe_fd, pages.bytes + i, 1), ==, 1);
                writing_settle();
                if (writing.loop.writer.lease == WRITER_LEASE_WANTED)
                        lease();
        }
        writing_expect("wanted; committing 1; ended 1 wrote 1 0; ");
        finish();
}

/* The stream is cut at each byte: nothing is written, and nothing leaks. */
static void test_truncated(void) {
        size_t size;

        begin_pages(&pages, -1, 1);
        add_row(&pages, "1");
        add_end(&pages);
        size = page_encoder_finish(&pages.encoder);
        for (size_t n = 0; n < size; n++) {
                begin("a");
                g_assert_cmpint(n == 0 ? 0 : write(pipe_fd, pages.bytes, n), ==, (ssize_t) n);
                writing_settle();
                if (writing.loop.writer.lease == WRITER_LEASE_WANTED)
                        lease();
                close(pipe_fd);
                writing_settle();
                writing_expect_durable("");
                g_assert_false(writing.in_transaction);
                g_assert_null(writing.loop.tasks.first);
                writing_end();
        }
}

int main(int argc, char **argv) {
        (void) signal(SIGPIPE, SIG_IGN);
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/worker/load/commit", test_commit);
        g_test_add_func("/worker/load/no-rows", test_no_rows);
        g_test_add_func("/worker/load/many-rows", test_many_rows);
        g_test_add_func("/worker/load/end-of-file", test_end_of_file);
        g_test_add_func("/worker/load/end-of-file-at-once", test_end_of_file_at_once);
        g_test_add_func("/worker/load/client-error", test_client_error);
        g_test_add_func("/worker/load/row-fails", test_row_fails);
        g_test_add_func("/worker/load/row-rolls-back", test_row_rolls_back);
        g_test_add_func("/worker/load/cancel", test_cancel);
        g_test_add_func("/worker/load/cancel-before-rows", test_cancel_before_rows);
        g_test_add_func("/worker/load/cancel-in-step", test_cancel_in_step);
        g_test_add_func("/worker/load/cancel-beside-query", test_cancel_beside_query);
        g_test_add_func("/worker/load/deadline", test_deadline);
        g_test_add_func("/worker/load/deadline-in-step", test_deadline_in_step);
        g_test_add_func("/worker/load/statement-is-wrong", test_statement_is_wrong);
        g_test_add_func("/worker/load/commit-fails", test_commit_fails);
        g_test_add_func("/worker/load/commit-busy", test_commit_busy);
        g_test_add_func("/worker/load/file-is-locked", test_file_is_locked);
        g_test_add_func("/worker/load/idle", test_idle);
        g_test_add_func("/worker/load/others-before-rows", test_others_before_rows);
        g_test_add_func("/worker/load/two-loads", test_two_loads);
        g_test_add_func("/worker/load/in-transaction", test_in_transaction);
        g_test_add_func("/worker/load/commit-before-end", test_commit_before_end);
        g_test_add_func("/worker/load/fails-in-transaction", test_fails_in_transaction);
        g_test_add_func("/worker/load/cancel-in-transaction", test_cancel_in_transaction);
        g_test_add_func("/worker/load/rolls-back-transaction", test_rolls_back_transaction);
        g_test_add_func("/worker/load/rollback-of-transaction", test_rollback_of_transaction);
        g_test_add_func("/worker/load/in-transaction-that-reads", test_in_transaction_that_reads);
        g_test_add_func("/worker/load/garbage", test_garbage);
        g_test_add_func("/worker/load/other-columns", test_other_columns);
        g_test_add_func("/worker/load/end-counts-wrong", test_end_counts_wrong);
        g_test_add_func("/worker/load/frame-too-large", test_frame_too_large);
        g_test_add_func("/worker/load/row-too-large", test_row_too_large);
        g_test_add_func("/worker/load/trickle", test_trickle);
        g_test_add_func("/worker/load/truncated", test_truncated);
        return g_test_run();
}
