/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The worker: rows, pages, and readers of every kind. */
#include <sys/socket.h>
#include <unistd.h>

#include "worker-rig.h"

static void test_values(void) {
        Rig rig;
        PageDecoder d;
        uint64_t number;
        int fd;

        rig_init(&rig, wide);
        fd = send_run(&rig, "SELECT i, r, s, b, n FROM t ORDER BY i", &number);
        page_decoder_init(&d, SQLIPC_PAGE_SIZE_MAX, SQLIPC_ROW_SIZE_MAX);
        g_assert_cmpint(next_event(&d, fd), ==, PAGE_COLUMNS);
        g_assert_cmpuint(d.n_columns, ==, 5);
        g_assert_cmpint(next_event(&d, fd), ==, PAGE_ROW);
        g_assert_cmpint((int64_t) load_le64(page_decoder_value(&d, 0).bytes), ==, INT64_MIN);
        g_assert_true(load_le64(page_decoder_value(&d, 1).bytes) == 0 ||
                      load_le64(page_decoder_value(&d, 1).bytes) == UINT64_C(1) << 63);
        g_assert_cmpint(page_decoder_value(&d, 2).type, ==, VALUE_TEXT);
        g_assert_cmpuint(page_decoder_value(&d, 2).size, ==, 0);
        g_assert_cmpint(page_decoder_value(&d, 3).type, ==, VALUE_BLOB);
        g_assert_cmpint(page_decoder_value(&d, 4).type, ==, VALUE_NULL);
        g_assert_cmpint(next_event(&d, fd), ==, PAGE_ROW);
        g_assert_cmpint((int64_t) load_le64(page_decoder_value(&d, 0).bytes), ==, INT64_MAX);
        g_assert_cmpfloat(load_le_double(page_decoder_value(&d, 1).bytes), ==, 1e308);
        g_assert_cmpmem(page_decoder_value(&d, 3).bytes, page_decoder_value(&d, 3).size, "\x00\xff", 2);
        g_assert_cmpint(next_event(&d, fd), ==, PAGE_END);
        page_decoder_done(&d);
        close(fd);
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        expect_ended(&rig, number, ERROR_NONE);
        rig_done(&rig);
}

/* An error in the middle: rows first, then the ERROR frame. */
static void test_error_after_rows(void) {
        Rig rig;
        Outcome o;

        rig_init(&rig, wide);
        o = run(&rig, "SELECT abs(i) FROM t ORDER BY i DESC");
        g_assert_true(o.in_stream);
        g_assert_cmpint(o.error, ==, ERROR_SQL);
        g_assert_cmpuint(o.n_rows, ==, 1);
        g_assert_cmpstr(o.message, ==, "integer overflow");
        rig_done(&rig);
}

/* A row that is found before a long step arrives before that step ends: it never ends here. */
static void test_row_before_long_step(void) {
        Rig rig;
        PageDecoder d;
        uint64_t number;
        int fd;

        rig_init(&rig, wide);
        fd = send_run(&rig, "SELECT 'early' UNION ALL SELECT * FROM (" ENDLESS ")", &number);
        page_decoder_init(&d, SQLIPC_PAGE_SIZE_MAX, SQLIPC_ROW_SIZE_MAX);
        g_assert_cmpint(next_event(&d, fd), ==, PAGE_COLUMNS);
        g_assert_cmpint(next_event(&d, fd), ==, PAGE_ROW);
        page_decoder_done(&d);
        close(fd); /* and the worker notices, in the middle of that step */
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        expect_ended(&rig, number, ERROR_PIPE_CLOSED);
        rig_done(&rig);
}

/* A reader that stalls: parked, told so, ended; meanwhile others are answered. What was under way is still whole. */
static void test_stalled_reader(void) {
        Setup setup = wide;
        Rig rig;
        uint64_t number;
        int fd;
        Outcome o;

        setup.park_usec = setup.park_rollback_usec = 300000;
        rig_init(&rig, setup);
        fd = send_run(&rig, MANY, &number);
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        {
                ReceivedMessage m = next_report(&rig, number, MESSAGE_PARKED);
                g_assert_true(m.message.parked.parked);
                received_message_done(&m);
        }
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        {
                ReceivedMessage m = next_report(&rig, number, MESSAGE_ENDED);
                g_assert_cmpint(m.message.ended.failure.error, ==, ERROR_READER_TOO_SLOW);
                g_assert_false(m.message.ended.drained);
                received_message_done(&m);
        }
        o = read_stream(fd, number);
        g_assert_cmpint(o.error, ==, ERROR_READER_TOO_SLOW);
        g_assert_cmpuint(o.n_rows, >, 0);
        expect_number(&rig, number, MESSAGE_DRAINED);
        close(fd);
        rig_done(&rig);
}

static void test_rows_of_any_size(void) {
        static const size_t sizes[] = { 1, 4000, 4096, 4097, 65536, 1 << 20, 5 << 20 };
        static const uint32_t page_sizes[] = { 4096, 65536, 1 << 20 };
        Rig rig;

        rig_init(&rig, wide);
        for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++)
                for (size_t k = 0; k < G_N_ELEMENTS(page_sizes); k++) {
                        g_autofree char *sql = g_strdup_printf("SELECT 1, zeroblob(%zu), 'x', hex(zeroblob(%zu)) UNION ALL SELECT 2, 3, 4, 5",
                                                               sizes[i], sizes[i]);
                        Outcome o;

                        rig.page_size = page_sizes[k];
                        o = run(&rig, sql);
                        g_assert_cmpint(o.error, ==, ERROR_NONE);
                        g_assert_cmpuint(o.n_rows, ==, 2);
                }
        rig_done(&rig);
}

static void test_row_limit(void) {
        Rig rig;

        rig_init(&rig, wide);
        for (size_t limit = 1000; limit <= 1000000; limit *= 1000) {
                /* one blob and its five bytes of type and end */
                g_autofree char *at = g_strdup_printf("SELECT zeroblob(%zu)", limit - 5);
                g_autofree char *over = g_strdup_printf("SELECT zeroblob(%zu)", limit - 4);

                rig.row_size_max = limit;
                g_assert_cmpuint(run(&rig, at).n_rows, ==, 1);
                g_assert_cmpint(run(&rig, over).error, ==, ERROR_ROW_TOO_LARGE);
        }
        rig_done(&rig);
}

static void test_result_limit(void) {
        Rig rig;

        rig_init(&rig, wide);
        rig.result_size_max = 1000000;
        g_assert_cmpint(run(&rig, MANY).error, ==, ERROR_LIMITS_EXCEEDED);
        rig_done(&rig);
}

/* Whoever has read the end may ask for the next run at once: the report of the end must be there already. */
static void test_end_is_reported_first(void) {
        Rig rig;

        rig_init(&rig, wide);
        for (unsigned i = 0; i < 3000; i++) {
                uint64_t number;
                bool free_again = false;
                int fd = send_run(&rig, "SELECT * FROM t", &number);

                g_assert_cmpuint(read_stream(fd, number).n_rows, ==, 2);
                for (;;) {
                        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
                        int r = message_receive(rig.control_fd, &m);

                        if (r == -EAGAIN)
                                break;
                        g_assert_cmpint(r, ==, 1);
                        free_again |= (m.message.kind == MESSAGE_ENDED && m.message.ended.drained) || m.message.kind == MESSAGE_DRAINED;
                        received_message_done(&m);
                }
                g_assert_true(free_again);
                close(fd);
        }
        rig_done(&rig);
}

/* The reader leaves between the report of the end and the last bytes. A socket that is shut down takes nothing and still polls
 * writable, so it is always in time for that. What is over must not be reported a second time: the supervisor ends a worker that
 * speaks of what does not exist. */
static void test_reader_leaves_at_the_end(void) {
        Rig rig;
        int fds[2];
        uint64_t number;

        rig_init(&rig, wide);
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), ==, 0);
        g_assert_cmpint(shutdown(fds[1], SHUT_WR), ==, 0);
        number = send_run_into(&rig, "SELECT * FROM t", fds[1]);
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        expect_ended(&rig, number, ERROR_NONE);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        close(fds[0]);
        close(fds[1]);
        rig_done(&rig);
}

/* RowSizeMax= bounds the rows that go out, not what is stored, nor the schema that another program made. */
static void test_row_limit_leaves_values_alone(void) {
        g_autofree char *schema = g_strdup_printf("CREATE TABLE u(b /* %0*d */); INSERT INTO u VALUES(zeroblob(100000))", 5000, 0);
        Rig rig;
        Outcome o;

        rig_init(&rig, wide);
        rig.row_size_max = 1000;
        g_assert_cmpuint(run(&rig, "SELECT i FROM t").n_rows, ==, 2);
        exec_sql(rig.database, schema);
        o = run(&rig, "SELECT length(b), substr(b, 5, 10) FROM u");
        g_test_message("%s", o.message);
        g_assert_cmpint(o.error, ==, ERROR_NONE);
        g_assert_cmpuint(o.n_rows, ==, 1);
        o = run(&rig, "SELECT b FROM u");
        g_assert_cmpint(o.error, ==, ERROR_ROW_TOO_LARGE);
        g_assert_nonnull(strstr(o.message, " 100005 bytes"));
        rig.row_size_max = 64 << 20;
        o = run(&rig, "SELECT zeroblob(length(b) * 9000) FROM u"); /* not made to be refused: there is no memory for it */
        g_assert_cmpint(o.error, ==, ERROR_ROW_TOO_LARGE);
        g_assert_cmpint(run(&rig, "SELECT zeroblob(2000000000)").error, ==, ERROR_ROW_TOO_LARGE);
        rig_done(&rig);
}

int main(int argc, char **argv) {
        rig_main_init(&argc, &argv);
        g_test_add_func("/worker/values", test_values);
        g_test_add_func("/worker/error-after-rows", test_error_after_rows);
        g_test_add_func("/worker/row-before-long-step", test_row_before_long_step);
        g_test_add_func("/worker/stalled-reader", test_stalled_reader);
        g_test_add_func("/worker/rows-of-any-size", test_rows_of_any_size);
        g_test_add_func("/worker/row-limit", test_row_limit);
        g_test_add_func("/worker/result-limit", test_result_limit);
        g_test_add_func("/worker/end-is-reported-first", test_end_is_reported_first);
        g_test_add_func("/worker/reader-leaves-at-the-end", test_reader_leaves_at_the_end);
        g_test_add_func("/worker/row-limit-leaves-values-alone", test_row_limit_leaves_values_alone);
        return g_test_run();
}
