/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The worker's pages: when they are sent and how full they are, for readers that read, stall, cancel or leave. */
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/rigs/worker-rig.h"

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

/* The first page goes out long before it is full: it has hundreds of these rows, not the ten thousand that it would hold. */
static void test_first_page_is_early(void) {
        Rig rig;
        PageDecoder d;
        uint64_t number;
        int fd;

        rig_init(&rig, wide);
        fd = send_run(&rig, MANY, &number);
        page_decoder_init(&d, SQLIPC_PAGE_SIZE_MAX, SQLIPC_ROW_SIZE_MAX);
        g_assert_cmpint(next_event(&d, fd), ==, PAGE_COLUMNS);
        g_assert_cmpint(next_event(&d, fd), ==, PAGE_ROW);
        g_assert_cmpuint(d.rows_left, <, 1000);
        page_decoder_done(&d);
        close(fd);
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        expect_ended(&rig, number, ERROR_PIPE_CLOSED);
        rig_done(&rig);
}

/* Reads up to `size` more bytes. False: the file has ended. */
static bool read_more(int fd, GByteArray *stream, size_t size) {
        uint8_t bytes[4096];
        ssize_t n;

        wait_for(fd);
        n = read(fd, bytes, MIN(size, sizeof bytes));
        g_assert_cmpint(n, >=, 0);
        g_byte_array_append(stream, bytes, (guint) n);
        return n > 0;
}

/* The stream of a run has an END or ERROR frame. */
static bool has_end(const GByteArray *stream) {
        size_t at = 0;

        while (stream->len >= at + FRAME_HEADER_SIZE) {
                uint8_t kind = stream->data[at + 4];

                at += FRAME_HEADER_SIZE + frame_padded(load_le32(stream->data + at));
                if (stream->len >= at && (kind == FRAME_END || kind == FRAME_ERROR))
                        return true;
        }
        return false;
}

/* The stream of a run, byte by byte as it came, up to its end. */
static void read_to_end(int fd, GByteArray *stream) {
        while (!has_end(stream))
                g_assert_true(read_more(fd, stream, SIZE_MAX));
}

/* All of it. The caller frees it. */
static GByteArray *read_bytes(int fd) {
        GByteArray *stream = g_byte_array_new();

        read_to_end(fd, stream);
        return stream;
}

/* Rows larger than a page follow each other directly, and each page except the last is full: none is sent only for the few
 * bytes by which a row was larger than its pages. */
static void test_big_rows_fill_pages(void) {
        Rig rig;
        uint64_t number;
        size_t at = 0, page = 0;
        int fd;

        rig_init(&rig, wide);
        rig.page_size = 4096;
        fd = send_run(&rig, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 5) "
                            "SELECT randomblob(3 * 4096) FROM c", &number);
        g_autoptr(GByteArray) stream = read_bytes(fd);
        while (at < stream->len) {
                size_t end = at + FRAME_HEADER_SIZE + frame_padded(load_le32(stream->data + at));

                g_assert_cmpuint(end - page, <=, 4096);
                if (end - page == 4096)
                        page = end;
                at = end;
        }
        g_assert_cmpuint(page / 4096, ==, stream->len / 4096);
        g_assert_cmpuint(page / 4096, >=, 15);
        close(fd);
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        expect_ended(&rig, number, ERROR_NONE);
        rig_done(&rig);
}

/* A reader that stalls: parked, told so, ended; meanwhile others are answered. The bytes on their way are still whole. */
static void test_stalled_reader(void) {
        Setup setup = wide;
        Rig rig;
        uint64_t number;
        int fd;
        Outcome o;

        setup.park_usec = setup.park_rollback_usec = LATER;
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
        close(fd);
        expect_ended(&rig, number, ERROR_PIPE_CLOSED);
        rig_stop(&rig);

        setup.park_usec = setup.park_rollback_usec = 100000;
        rig_start(&rig, setup);
        fd = send_run(&rig, MANY, &number);
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
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

/* A run reports its progress, at most twice a second. */
static void test_progress(void) {
        uint64_t number, started, n_read = 0, n_progress = 0, n_rows = 0;
        static char bytes[65536];
        Rig rig;

        rig_init(&rig, wide);
        started = now_usec();
        int fd = send_run(&rig, MANY, &number);
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        while (n_progress < 2) {
                struct pollfd p = { .fd = rig.control_fd, .events = POLLIN };
                ReceivedMessage m = RECEIVED_MESSAGE_INIT;

                wait_for(fd);
                n_read += (uint64_t) read(fd, bytes, sizeof bytes);
                if (poll(&p, 1, 0) == 0)
                        continue;
                g_assert_cmpint(message_receive(rig.control_fd, &m), ==, 1);
                if (m.message.kind == MESSAGE_PROGRESS) {
                        g_assert_cmpuint(m.message.progress.number, ==, number);
                        g_assert_cmpuint(m.message.progress.n_rows, >, n_rows);
                        g_assert_cmpuint(m.message.progress.n_bytes, <=, n_read + (uint64_t) fcntl(fd, F_GETPIPE_SZ));
                        n_rows = m.message.progress.n_rows;
                        n_progress++;
                }
                received_message_done(&m);
        }
        g_assert_cmpuint(now_usec() - started, >=, 2 * UINT64_C(490000)); /* its clock may be a tick behind */
        close(fd);
        expect_ended(&rig, number, ERROR_PIPE_CLOSED);
        rig_done(&rig);
}

/* A client that has read the end may start the next run at once: the report of the end must be there already. */
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
                        free_again |= (m.message.kind == MESSAGE_ENDED && m.message.ended.drained) ||
                                      m.message.kind == MESSAGE_DRAINED;
                        received_message_done(&m);
                }
                g_assert_true(free_again);
                close(fd);
        }
        rig_done(&rig);
}

/* The reader leaves between the report of the end and the last bytes. A socket that is shut down takes nothing and still
 * polls writable, so it is always in time for that. The end must not be reported a second time: the supervisor ends
 * a worker that reports unknown runs. A worker that got no CPU for long sends its first page before the end, and finds
 * the pipe closed. */
static void test_reader_leaves_at_the_end(void) {
        ReceivedMessage m;
        ErrorNumber error;
        Rig rig;
        int fds[2];
        uint64_t number;

        rig_init(&rig, wide);
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), ==, 0);
        g_assert_cmpint(shutdown(fds[1], SHUT_WR), ==, 0);
        number = send_run_into(&rig, "SELECT * FROM t", fds[1]);
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        m = next_report(&rig, number, MESSAGE_ENDED);
        error = (ErrorNumber) m.message.ended.failure.error;
        g_assert_true(error == ERROR_NONE || error == ERROR_PIPE_CLOSED);
        if (!m.message.ended.drained)
                expect_number(&rig, number, MESSAGE_DRAINED);
        received_message_done(&m);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        close(fds[0]);
        close(fds[1]);
        rig_done(&rig);
}

/* Cancelled at any place: after so many bytes, with the page half out. Whole rows arrive, then the error. */
static void test_cancel_anywhere(void) {
        static const char *const queries[] = {
                MANY,
                "SELECT zeroblob(3000000), 1 UNION ALL SELECT * FROM (" MANY ")",
                "SELECT *, hex(zeroblob(5000)) FROM (" MANY ")",
        };
        Rig rig;

        rig_init(&rig, wide);
        rig.page_size = 65536;
        for (size_t i = 0; i < G_N_ELEMENTS(queries); i++)
                for (size_t behind = 1; behind < 300000; behind = behind * 3 + 7) {
                        g_autofree uint8_t *bytes = g_malloc(behind);
                        PageDecoder d;
                        uint64_t number;
                        int fd = send_run(&rig, queries[i], &number), r;

                        (void) fcntl(fd, F_SETPIPE_SZ, 4096);
                        page_decoder_init(&d, SQLIPC_PAGE_SIZE_MAX, SQLIPC_ROW_SIZE_MAX);
                        for (size_t done = 0; done < behind;) {
                                ssize_t n;

                                wait_for(fd);
                                n = read(fd, bytes + done, behind - done);
                                g_assert_cmpint(n, >, 0);
                                done += (size_t) n;
                        }
                        send_cancel(&rig, number);
                        for (size_t done = 0; done < behind;) {
                                uint8_t *room;
                                size_t size;

                                while ((r = page_decoder_next(&d)) != PAGE_MORE)
                                        g_assert_true(r == PAGE_COLUMNS || r == PAGE_ROW);
                                g_assert_cmpint(page_decoder_reserve(&d, &room, &size), ==, 0);
                                size = size < behind - done ? size : behind - done;
                                memcpy(room, bytes + done, size);
                                page_decoder_commit(&d, size);
                                done += size;
                        }
                        while ((r = next_event(&d, fd)) == PAGE_COLUMNS || r == PAGE_ROW)
                                ;
                        g_assert_cmpint(r, ==, PAGE_ERROR);
                        g_assert_cmpint(d.error_number, ==, ERROR_CANCELLED);
                        page_decoder_done(&d);
                        close(fd);
                        expect_number(&rig, number, MESSAGE_TAKEN);
                        expect_started(&rig, number);
                        expect_ended(&rig, number, ERROR_CANCELLED);
                }
        rig_done(&rig);
}

#define LONG_VALUE "SELECT replace(hex(zeroblob(1500000)), '0', 'a')"

/* The frames of a run of LONG_VALUE that did not come to its end: whole ones, of only its bytes, then the error. */
static void check_unfinished(const GByteArray *stream, ErrorNumber error) {
        const uint8_t *payload = NULL;
        size_t at = 0, row = 0, size;
        uint8_t kind = 0;

        for (; at < stream->len; at += FRAME_HEADER_SIZE + frame_padded(size)) {
                g_assert_cmpint(kind, !=, FRAME_ERROR);
                payload = stream->data + at + FRAME_HEADER_SIZE;
                size = load_le32(stream->data + at);
                kind = stream->data[at + 4];
                if (kind != FRAME_BIG_ROW)
                        continue;
                g_assert_cmpint(load_le16(stream->data + at + 6), ==, FRAME_MORE);
                for (size_t i = row == 0 ? 5 : 0; i < size; i++)
                        g_assert_cmpint(payload[i], ==, 'a');
                row += size;
        }
        g_assert_cmpuint(at, ==, stream->len);
        g_assert_cmpuint(row, >, 0);
        g_assert_cmpint(kind, ==, FRAME_ERROR);
        g_assert_cmpint(load_le32(payload), ==, error);
}

/* The worker is done with SQLite, and the reader has not caught up. Returns the size of the whole stream. */
static uint64_t expect_ended_undrained(Rig *rig, uint64_t number, ErrorNumber error) {
        ReceivedMessage m = next_report(rig, number, MESSAGE_ENDED);
        uint64_t n_bytes = m.message.ended.n_bytes;

        g_assert_cmpint(m.message.ended.failure.error, ==, error);
        g_assert_false(m.message.ended.drained);
        received_message_done(&m);
        return n_bytes;
}

/* A run of LONG_VALUE that is cancelled behind so many bytes, or whose reader stays away from there on. */
static void end_in_long_value(Rig *rig, size_t behind, ErrorNumber error) {
        g_autoptr(GByteArray) stream = g_byte_array_new();
        uint64_t number, n_bytes;
        int fd = send_run(rig, LONG_VALUE, &number);

        (void) fcntl(fd, F_SETPIPE_SZ, 4096);
        /* A test that is paused may itself be the slow reader before it has read so much. */
        while (stream->len < behind && read_more(fd, stream, behind - stream->len))
                ;
        if (error == ERROR_CANCELLED)
                send_cancel(rig, number);
        expect_number(rig, number, MESSAGE_TAKEN);
        expect_started(rig, number);
        n_bytes = expect_ended_undrained(rig, number, error);
        read_to_end(fd, stream);
        g_assert_cmpuint(stream->len, ==, n_bytes);
        check_unfinished(stream, error);
        expect_number(rig, number, MESSAGE_DRAINED);
        close(fd);
}

/* The bytes of a long value go out from SQLite's memory, which it frees when the run is cancelled: the frame under way still
 * ends with them, wherever it was. */
static void test_cancel_in_long_value(void) {
        Rig rig;

        rig_init(&rig, wide);
        for (size_t behind = 1; behind < 1000000; behind = behind * 2 + 4093)
                end_in_long_value(&rig, behind, ERROR_CANCELLED);
        rig_done(&rig);
}

/* The same for a reader that does not come back in time, when what was sent of the page is the kernel's again. */
static void test_stalled_in_long_value(void) {
        Setup setup = wide;
        Rig rig;

        setup.park_usec = setup.park_rollback_usec = 100000;
        rig_init(&rig, setup);
        for (size_t behind = 0; behind < 600000; behind += 100003)
                end_in_long_value(&rig, behind, ERROR_READER_TOO_SLOW);
        rig_done(&rig);
}

/* All that the pipe has, up to the end of the file: the worker has closed its end. */
static void read_to_eof(int fd, GByteArray *stream) {
        uint8_t bytes[4096];
        ssize_t n;

        while ((n = read(fd, bytes, sizeof bytes)) > 0)
                g_byte_array_append(stream, bytes, (guint) n);
        g_assert_cmpint(n, ==, 0);
}

static Outcome outcome_of(const GByteArray *stream, uint64_t number) {
        int fd = memfd_create("stream", MFD_CLOEXEC);
        Outcome o;

        g_assert_cmpint(write(fd, stream->data, stream->len), ==, stream->len);
        g_assert_cmpint(lseek(fd, 0, SEEK_SET), ==, 0);
        o = read_stream(fd, number);
        close(fd);
        return o;
}

/* A run of `sql` ends with `error` and its reader has read so many bytes: the worker hands the rest over. The written bytes
 * and the rest are one whole stream. */
static Outcome hand_over(Rig *rig, const char *sql, size_t behind, ErrorNumber error) {
        g_autoptr(GByteArray) stream = g_byte_array_new();
        uint64_t number, n_bytes;
        Bytes unread;
        int fds[2], fd;

        g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
        g_assert_cmpint(fcntl(fds[1], F_SETPIPE_SZ, 4096), ==, 4096);
        number = send_run_into(rig, sql, fds[1]);
        close(fds[1]);
        fd = fds[0];
        expect_number(rig, number, MESSAGE_TAKEN);
        expect_started(rig, number);
        /* A test that is paused may itself be the slow reader before it has read so much. */
        while (stream->len < behind && read_more(fd, stream, behind - stream->len))
                ;
        n_bytes = expect_ended_undrained(rig, number, error);
        ReceivedMessage m = next_report(rig, number, MESSAGE_DRAINED);
        unread = m.message.drained.unread;
        g_assert_cmpuint(unread.size, >, 0);
        g_assert_cmpuint(unread.size, <=, unread_size_max(rig->page_size));
        read_to_eof(fd, stream);
        g_byte_array_append(stream, (const uint8_t *) unread.data, (guint) unread.size);
        g_assert_cmpuint(stream->len, ==, n_bytes);
        received_message_done(&m);
        close(fd);
        return outcome_of(stream, number);
}

/* For each end of a run, and each place at which its reader stops: nothing of it stays in the worker. */
static void test_hand_over(void) {
        static const char *const queries[] = { MANY, LONG_VALUE, "SELECT *, hex(zeroblob(5000)) FROM (" MANY ")" };
        Setup setup = wide;
        Rig rig;

        setup.park_usec = setup.park_rollback_usec = 50000;
        setup.drain_usec = 1000;
        rig_init(&rig, setup);
        rig.page_size = 65536;
        for (size_t i = 0; i < G_N_ELEMENTS(queries); i++) {
                g_assert_cmpint(hand_over(&rig, queries[i], 70000, ERROR_READER_TOO_SLOW).error, ==, ERROR_READER_TOO_SLOW);
                g_assert_cmpint(hand_over(&rig, queries[i], 1, ERROR_READER_TOO_SLOW).error, ==, ERROR_READER_TOO_SLOW);
        }
        /* a whole result, in one page with its end */
        g_assert_cmpint(hand_over(&rig, "SELECT zeroblob(12000)", 1, ERROR_NONE).error, ==, ERROR_NONE);
        rig_done(&rig);
}

int main(int argc, char **argv) {
        rig_main_init(&argc, &argv);
        g_test_add_func("/worker/row-before-long-step", test_row_before_long_step);
        g_test_add_func("/worker/first-page-is-early", test_first_page_is_early);
        g_test_add_func("/worker/big-rows-fill-pages", test_big_rows_fill_pages);
        g_test_add_func("/worker/stalled-reader", test_stalled_reader);
        g_test_add_func("/worker/progress", test_progress);
        g_test_add_func("/worker/end-is-reported-first", test_end_is_reported_first);
        g_test_add_func("/worker/reader-leaves-at-the-end", test_reader_leaves_at_the_end);
        g_test_add_func("/worker/cancel-anywhere", test_cancel_anywhere);
        g_test_add_func("/worker/cancel-in-long-value", test_cancel_in_long_value);
        g_test_add_func("/worker/hand-over", test_hand_over);
        g_test_add_func("/worker/stalled-in-long-value", test_stalled_in_long_value);
        return g_test_run();
}
