/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Streams that the decoder refuses: each violation of the format, in a stream that is otherwise right, whole and byte by
 * byte; and each limit, reached and exceeded by one.
 */
#include <errno.h>

#include "dbus-interfaces/wire/page-payload.h"
#include "tests/unit/decode.h"

#define PAGE SQLIPC_PAGE_SIZE_MIN
#define ROW_SIZE_LIMIT ((size_t) 64 * 1024 * 1024)

/* Checks that `s`, which is freed, ends in `expected`, in one piece and byte by byte, and gives the same rows before. */
static void check_refused(const char *what, Stream *s, int expected) {
        char *whole, *dribbled;
        int r, q;

        whole = decode_with(s, SIZE_MAX, PAGE, ROW_SIZE_LIMIT, &r);
        dribbled = decode_with(s, 1, PAGE, ROW_SIZE_LIMIT, &q);
        if (r != expected || q != expected)
                test_fail(__FILE__, __LINE__, what, strerror(-r), strerror(-expected));
        CHECK_STRING(dribbled, whole);
        free(whole);
        free(dribbled);
        stream_done(s);
}

#define ROW_NULL "\5\0\0\0\0"
#define ROWS_NULL "\1\0\0\0" ROW_NULL

static void test_bad_headers(void) {
        Stream s;

        s = in_run(1);
        stream_add_frame(&s, FRAME_ROWS, 0, 1, ROWS_NULL, 9);
        stream_add_end(&s, 1, 1);
        CHECK_INT(decode_result(&s, PAGE, ROW_SIZE_LIMIT), 0); /* what follows is wrong in one thing each */
        stream_done(&s);

        for (unsigned kind = 0; kind < 256; kind = kind == 0 ? 6 : kind + 1) {
                s = in_run(1);
                stream_add_frame(&s, kind, 0, 1, ROWS_NULL, 9);
                check_refused("unknown kind", &s, -EBADMSG);
        }
        for (unsigned version = 0; version < 256; version = version == 0 ? 2 : version + 1) {
                s = in_run(1);
                stream_add_frame(&s, FRAME_ROWS, 0, 1, ROWS_NULL, 9);
                s.bytes[s.size - 32 + 5] = (uint8_t) version;
                check_refused("unknown version", &s, -EBADMSG);
        }
        for (unsigned flags = 2; flags < 65536; flags *= 2) {
                s = in_run(1);
                stream_add_frame(&s, FRAME_BIG_ROW, flags, 1, ROW_NULL, 5);
                check_refused("unknown flag", &s, -EBADMSG);
        }
        s = in_run(1);
        stream_add_frame(&s, FRAME_ROWS, FRAME_MORE, 1, ROWS_NULL, 9);
        check_refused("MORE on ROWS", &s, -EBADMSG);
        s = in_run(1);
        stream_add_end(&s, 1, 0);
        s.bytes[s.size - 72 + 6] = FRAME_MORE;
        check_refused("MORE on END", &s, -EBADMSG);
        s = STREAM_INIT;
        stream_add_error(&s, 1, 1, "");
        s.bytes[6] = FRAME_MORE;
        check_refused("MORE on ERROR", &s, -EBADMSG);

        for (size_t i = 1; i <= 7; i++) { /* the payload of 9 bytes has 7 of padding */
                s = in_run(1);
                stream_add_frame(&s, FRAME_ROWS, 0, 1, ROWS_NULL, 9);
                s.bytes[s.size - i] = 1;
                check_refused("padding", &s, -EBADMSG);
        }
}

static void test_bad_order(void) {
        Stream s, columns = STREAM_INIT;

        stream_add_columns_payload(&columns, 1, PAGE);

        s = STREAM_INIT;
        stream_add_frame(&s, FRAME_ROWS, 0, 1, ROWS_NULL, 9);
        check_refused("ROWS first", &s, -EBADMSG);
        s = STREAM_INIT;
        stream_add_frame(&s, FRAME_BIG_ROW, 0, 1, ROW_NULL, 5);
        check_refused("BIG_ROW first", &s, -EBADMSG);
        s = STREAM_INIT;
        stream_add_end(&s, 1, 0);
        check_refused("END first", &s, -EBADMSG);
        s = in_run(1);
        stream_add_columns(&s, 1, 1, PAGE);
        check_refused("COLUMNS again", &s, -EBADMSG);
        s = in_run(1);
        stream_add_end(&s, 1, 0);
        stream_add_frame(&s, FRAME_ROWS, 0, 1, ROWS_NULL, 9);
        check_refused("ROWS behind END", &s, -EBADMSG);
        s = in_run(1);
        stream_add_end(&s, 1, 0);
        stream_add_end(&s, 1, 0);
        check_refused("END behind END", &s, -EBADMSG);
        s = STREAM_INIT;
        stream_add_error(&s, 1, 1, "");
        stream_add_end(&s, 1, 0);
        check_refused("END behind ERROR", &s, -EBADMSG);

        s = in_run(1);
        stream_add_frame(&s, FRAME_ROWS, 0, 2, ROWS_NULL, 9);
        check_refused("ROWS of another run", &s, -EBADMSG);
        s = in_run(1);
        stream_add_end(&s, 2, 0);
        check_refused("END of another run", &s, -EBADMSG);
        s = in_run(1);
        stream_add_error(&s, 2, 1, "");
        check_refused("ERROR of another run", &s, -EBADMSG);
        s = STREAM_INIT;
        stream_add_series(&s, FRAME_COLUMNS, 1, &columns, columns.size, FRAME_MORE);
        stream_add_frame(&s, FRAME_COLUMNS, 0, 2, "", 0);
        check_refused("COLUMNS continued by another run", &s, -EBADMSG);
        s = STREAM_INIT;
        stream_add_series(&s, FRAME_COLUMNS, 1, &columns, columns.size, FRAME_MORE);
        stream_add_error(&s, 2, 1, "");
        check_refused("ERROR of another run behind half of COLUMNS", &s, -EBADMSG);

        s = STREAM_INIT;
        stream_add_series(&s, FRAME_COLUMNS, 1, &columns, 8, FRAME_MORE);
        stream_add_end(&s, 1, 0);
        check_refused("END behind half of COLUMNS", &s, -EBADMSG);
        s = STREAM_INIT;
        stream_add_series(&s, FRAME_COLUMNS, 1, &columns, 8, FRAME_MORE);
        stream_add_frame(&s, FRAME_ROWS, 0, 1, ROWS_NULL, 9);
        check_refused("ROWS behind half of COLUMNS", &s, -EBADMSG);
        s = in_run(1);
        stream_add_frame(&s, FRAME_BIG_ROW, FRAME_MORE, 1, ROW_NULL, 3);
        stream_add_frame(&s, FRAME_ROWS, 0, 1, ROWS_NULL, 9);
        check_refused("ROWS in a BIG_ROW", &s, -EBADMSG);
        s = in_run(1);
        stream_add_frame(&s, FRAME_BIG_ROW, FRAME_MORE, 1, ROW_NULL, 3);
        stream_add_end(&s, 1, 0);
        check_refused("END in a BIG_ROW", &s, -EBADMSG);
        s = in_run(1);
        stream_add_frame(&s, FRAME_BIG_ROW, FRAME_MORE, 1, ROW_NULL, 3);
        stream_add_columns(&s, 1, 1, PAGE);
        check_refused("COLUMNS in a BIG_ROW", &s, -EBADMSG);
        stream_done(&columns);
}

/* One row of `n` columns in ROWS, in a BIG_ROW, and in a continued one. */
static void check_row_refused(const char *what, unsigned n, const char *bytes, size_t size) {
        Stream s, row = STREAM_INIT;
        size_t row_size;

        s = in_run(n);
        stream_add_le32(&row, 1);
        stream_add(&row, bytes, size);
        stream_take_frame(&s, FRAME_ROWS, 0, 1, &row);
        check_refused(what, &s, -EBADMSG);

        s = in_run(n);
        stream_add_frame(&s, FRAME_BIG_ROW, 0, 1, bytes, size);
        check_refused(what, &s, -EBADMSG);

        s = in_run(n);
        stream_add(&row, bytes, size);
        stream_add_series(&s, FRAME_BIG_ROW, 1, &row, 3, 0);
        check_refused(what, &s, size > 0 ? -EBADMSG : -ECONNRESET);

        if (strcmp(what, "bytes behind the row") != 0)
                CHECK_INT(page_check_row(row.bytes, size, n, &row_size), -EBADMSG);
        stream_done(&row);
}
#define CHECK_ROW_REFUSED(what, n, bytes) check_row_refused(what, n, bytes, sizeof bytes - 1)

static void test_bad_rows(void) {
        CHECK_ROW_REFUSED("no row", 1, "");
        CHECK_ROW_REFUSED("half a head", 1, "\5\0\0\0");
        CHECK_ROW_REFUSED("half of two heads", 2, "\5\5\0\0\0\0\0\0\0");
        CHECK_ROW_REFUSED("type 0", 1, "\0\0\0\0\0");
        CHECK_ROW_REFUSED("type 6", 1, "\6\0\0\0\0");
        CHECK_ROW_REFUSED("type 255", 1, "\xff\0\0\0\0");
        CHECK_ROW_REFUSED("NULL with a byte", 1, "\5\1\0\0\0x");
        CHECK_ROW_REFUSED("INTEGER of 7 bytes", 1, "\1\7\0\0\0" "1234567");
        CHECK_ROW_REFUSED("INTEGER of 9 bytes", 1, "\1\x9\0\0\0" "123456789");
        CHECK_ROW_REFUSED("INTEGER of no bytes", 1, "\1\0\0\0\0");
        CHECK_ROW_REFUSED("REAL of 7 bytes", 1, "\2\7\0\0\0" "1234567");
        CHECK_ROW_REFUSED("REAL of 9 bytes", 1, "\2\x9\0\0\0" "123456789");
        CHECK_ROW_REFUSED("TEXT of no bytes", 1, "\3\0\0\0\0");
        CHECK_ROW_REFUSED("TEXT without NUL", 1, "\3\2\0\0\0ab");
        CHECK_ROW_REFUSED("TEXT with its NUL outside", 1, "\3\3\0\0\0ab");
        CHECK_ROW_REFUSED("second TEXT of no bytes behind a NUL", 2, "\3\3\2\0\0\0\2\0\0\0" "a\0");
        CHECK_ROW_REFUSED("end outside", 1, "\4\3\0\0\0ab");
        CHECK_ROW_REFUSED("end far outside", 1, "\4\xff\xff\xff\xff" "ab");
        CHECK_ROW_REFUSED("decreasing ends", 2, "\4\4\2\0\0\0\1\0\0\0ab");
        CHECK_ROW_REFUSED("end that wraps around", 2, "\4\1\xff\xff\xff\xff\7\0\0\0" "12345678");
        CHECK_ROW_REFUSED("bytes behind the row", 1, "\4\2\0\0\0abc");
}

static void test_bad_rows_frames(void) {
        static const struct {
                const char *what, *bytes;
                size_t size;
        } frames[] = {
                { "no count", "\0\0\0", 0 },
                { "half a count", "\1\0\0\0", 3 },
                { "no rows", "\0\0\0\0", 4 },
                { "no rows, but a row", "\0\0\0\0" ROW_NULL, 9 },
                { "rows that are not there", "\2\0\0\0" ROW_NULL, 9 },
                { "rows as many as can be counted", "\xff\xff\xff\xff" ROW_NULL, 9 },
                { "more rows than are counted", "\1\0\0\0" ROW_NULL ROW_NULL, 14 },
        };

        for (size_t i = 0; i < N_ELEMENTS(frames); i++) {
                Stream s = in_run(1);
                char *text;
                int r;

                stream_add_frame(&s, FRAME_ROWS, 0, 1, frames[i].bytes, frames[i].size);
                text = decode_with(&s, SIZE_MAX, PAGE, ROW_SIZE_LIMIT, &r);
                if (strstr(text, "row") && load_le32(frames[i].bytes) <= 1) /* uncounted, or the last with bytes behind it */
                        test_fail(__FILE__, __LINE__, frames[i].what, text, "no row");
                free(text);
                check_refused(frames[i].what, &s, -EBADMSG);
        }
}

static void test_bad_columns(void) {
        static const struct {
                const char *what, *bytes;
                size_t size;
        } payloads[] = {
                { "nothing", "", 0 },
                { "half a head", "\1\0\0\0\0\x10\0", 7 },
                { "no ends", "\1\0\0\0\0\x10\0\0", 8 },
                { "half of the ends", "\1\0\0\0\0\x10\0\0\2\0\0\0\2\0\0", 15 },
                { "no strings", "\1\0\0\0\0\x10\0\0\2\0\0\0\2\0\0\0", 16 },
                { "absent name", "\1\0\0\0\0\x10\0\0\0\0\0\0\2\0\0\0a\0", 18 },
                { "name without NUL", "\1\0\0\0\0\x10\0\0\2\0\0\0\2\0\0\0ab", 18 },
                { "declared type without NUL", "\1\0\0\0\0\x10\0\0\2\0\0\0\3\0\0\0a\0b", 19 },
                { "decreasing ends", "\1\0\0\0\0\x10\0\0\2\0\0\0\1\0\0\0a\0", 18 },
                { "end outside", "\1\0\0\0\0\x10\0\0\2\0\0\0\4\0\0\0a\0b", 19 },
                { "end far outside", "\1\0\0\0\0\x10\0\0\2\0\0\0\xff\xff\xff\xff" "a\0", 18 },
                { "half of an item", "\1\0\0\0\0\x10\0\0\2\0\0\0\2\0\0\0a\0\0", 19 },
                { "an item without its size", "\0\0\0\0\0\x10\0\0\1\0\0\0\0\0\0", 15 },
                { "an item that is not there whole", "\0\0\0\0\0\x10\0\0\1\0\0\0\3\0\0\0ab", 18 },
                { "an item of 4 GiB", "\0\0\0\0\0\x10\0\0\1\0\0\0\xff\xff\xff\xff" "ab", 18 },
                { "a byte behind an item", "\0\0\0\0\0\x10\0\0\1\0\0\0\2\0\0\0ab\0", 19 },
                { "32768 columns", "\0\x80\0\0\0\x10\0\0\2\0\0\0\2\0\0\0a\0", 18 },
                { "2^29 columns", "\0\0\0\x20\0\x10\0\0\2\0\0\0\2\0\0\0a\0", 18 },
                { "2^32 - 1 columns", "\xff\xff\xff\xff\0\x10\0\0\2\0\0\0\2\0\0\0a\0", 18 },
                { "page of 0", "\1\0\0\0\0\0\0\0\2\0\0\0\2\0\0\0a\0", 18 },
                { "page of 2048", "\1\0\0\0\0\x8\0\0\2\0\0\0\2\0\0\0a\0", 18 },
                { "page of 4100", "\1\0\0\0\4\x10\0\0\2\0\0\0\2\0\0\0a\0", 18 },
                { "page of 8192, above what was agreed on", "\1\0\0\0\0\x20\0\0\2\0\0\0\2\0\0\0a\0", 18 },
        };
        Stream s;

        for (size_t i = 0; i < N_ELEMENTS(payloads); i++) {
                Stream payload = STREAM_INIT;

                s = STREAM_INIT;
                stream_add_frame(&s, FRAME_COLUMNS, 0, 1, payloads[i].bytes, payloads[i].size);
                check_refused(payloads[i].what, &s, -EBADMSG);

                s = STREAM_INIT;
                stream_add(&payload, payloads[i].bytes, payloads[i].size);
                stream_add_series(&s, FRAME_COLUMNS, 1, &payload, 5, 0);
                check_refused(payloads[i].what, &s, payload.size > 0 ? -EBADMSG : 0);
                stream_done(&payload);
        }
}

static void test_bad_ends(void) {
        Stream s;

        for (size_t size = 0; size < FRAME_END_SIZE; size++) {
                s = in_run(1);
                stream_add_end_with(&s, 1, 0, stream_run_size(&s), size);
                check_refused("size of END", &s, -EBADMSG);
        }
        s = in_run(1);
        stream_add_end_with(&s, 1, 0, stream_run_size(&s), PAGE - FRAME_HEADER_SIZE + 1);
        check_refused("END larger than a page", &s, -EBADMSG);

        for (size_t size = 0; size <= 16; size++) {
                s = STREAM_INIT;
                stream_add_frame(&s, FRAME_ERROR, 0, 1, "\1\0\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\0", size);
                check_refused("short ERROR", &s, -EBADMSG);
        }
        s = STREAM_INIT;
        stream_add_frame(&s, FRAME_ERROR, 0, 1, "\0\0\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\0", 17);
        check_refused("ERROR number 0", &s, -EBADMSG);
        s = STREAM_INIT;
        stream_add_frame(&s, FRAME_ERROR, 0, 1, "\1\0\0\0\0\0\0\0\xfe\xff\xff\xff\0\0\0\0", 17);
        check_refused("offset -2", &s, -EBADMSG);
        s = STREAM_INIT;
        stream_add_frame(&s, FRAME_ERROR, 0, 1, "\1\0\0\0\0\0\0\0\xff\xff\xff\xff\2\0\0\0a", 18);
        check_refused("message longer than its frame", &s, -EBADMSG);
        s = STREAM_INIT;
        stream_add_frame(&s, FRAME_ERROR, 0, 1, "\1\0\0\0\0\0\0\0\xff\xff\xff\xff\1\0\0\0ab", 18);
        check_refused("message without NUL", &s, -EBADMSG);
        s = STREAM_INIT;
        stream_add_frame(&s, FRAME_ERROR, 0, 1, "\1\0\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\0\0", 18);
        check_refused("half of an item behind the message", &s, -EBADMSG);
        s = STREAM_INIT;
        stream_add_frame(&s, FRAME_ERROR, 0, 1, "\1\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 17);
        check_refused("message of 4 GiB", &s, -EBADMSG);
}

/* Two runs of which the second has a wrong END. */
static void test_bad_totals(void) {
        static const int64_t wrong[][2] = {
                { 1, 0 }, { -1, 0 }, { 0, 1 }, { 0, -1 }, { 0, 8 }, { INT64_MIN, 0 }, { 0, INT64_MIN },
        };

        for (size_t i = 0; i <= N_ELEMENTS(wrong); i++) {
                Stream s = in_run(1), row = STREAM_INIT;
                const int64_t *difference = i == 0 ? (const int64_t[]) { 0, 0 } : wrong[i - 1];

                stream_add_end(&s, 1, 0);
                stream_add_columns(&s, 1, 1, PAGE);
                stream_add_blob_row(&row, 9);
                stream_add_series(&s, FRAME_BIG_ROW, 1, &row, 4, 0);
                stream_add_frame(&s, FRAME_ROWS, 0, 1, ROWS_NULL, 9);
                stream_add_end_with(&s, 1, 2 + (uint64_t) difference[0], stream_run_size(&s) + (uint64_t) difference[1],
                                    FRAME_END_SIZE);
                check_refused("totals of END", &s, i == 0 ? 0 : -EBADMSG);
                stream_done(&row);
        }
}

/* A series of them would have no end. */
static void test_empty_parts(void) {
        Stream s = STREAM_INIT;

        stream_add_frame(&s, FRAME_COLUMNS, FRAME_MORE, 1, "", 0);
        check_refused("an empty part of COLUMNS", &s, -EBADMSG);
        s = in_run(1);
        stream_add_frame(&s, FRAME_BIG_ROW, FRAME_MORE, 1, "", 0);
        check_refused("an empty part of BIG_ROW", &s, -EBADMSG);
        s = in_run(1);
        stream_add_frame(&s, FRAME_BIG_ROW, FRAME_MORE, 1, ROW_NULL, 5);
        stream_add_frame(&s, FRAME_BIG_ROW, FRAME_MORE, 1, "", 0);
        check_refused("an empty part behind another", &s, -EBADMSG);
        s = in_run(1);
        stream_add_frame(&s, FRAME_BIG_ROW, FRAME_MORE, 1, ROW_NULL, 5);
        stream_add_frame(&s, FRAME_BIG_ROW, 0, 1, "", 0);
        stream_add_end(&s, 1, 1);
        check_refused("an empty last part, which is none", &s, 0);
}

/* A row would take no bytes, and one frame could announce billions of them. */
static void test_rows_without_columns(void) {
        Stream s = in_run(0);

        stream_add_frame(&s, FRAME_ROWS, 0, 1, "\1\0\0\0", 4);
        check_refused("ROWS without columns", &s, -EBADMSG);
        s = in_run(0);
        stream_add_frame(&s, FRAME_BIG_ROW, 0, 1, "", 0);
        check_refused("BIG_ROW without columns", &s, -EBADMSG);
}

/* Parameters travel as a row (daemon/protocol/protocol.h): there may be none. */
static void test_check_row(void) {
        size_t size = 99;

        CHECK_INT(page_check_row(NULL, 0, 0, &size), 0);
        CHECK_INT(size, 0);
        CHECK_INT(page_check_row((const uint8_t *) "\3\2\0\0\0a\0more", 11, 1, &size), 0);
        CHECK_INT(size, 7);
        CHECK_INT(page_check_row((const uint8_t *) "\5", 1, UINT32_MAX, &size), -EBADMSG);
        CHECK_INT(page_check_row(NULL, 0, 1, &size), -EBADMSG);
}

/* ---- limits ---------- */

static void test_row_size_limit(void) {
        for (size_t over = 0; over <= 1; over++) {
                const int expected = over ? -EMSGSIZE : 0;
                Stream s, row = STREAM_INIT, rows = STREAM_INIT;

                stream_add_blob_row(&row, 1000 - 5 + over);
                stream_add_le32(&rows, 1);
                stream_add(&rows, row.bytes, row.size);

                s = in_run(1);
                stream_take_frame(&s, FRAME_ROWS, 0, 1, &rows);
                stream_add_end(&s, 1, 1);
                CHECK_INT(decode_result(&s, PAGE, 1000), expected);
                stream_done(&s);

                s = in_run(1);
                stream_add_frame(&s, FRAME_BIG_ROW, 0, 1, row.bytes, row.size);
                stream_add_end(&s, 1, 1);
                CHECK_INT(decode_result(&s, PAGE, 1000), expected);
                stream_done(&s);

                s = in_run(1);
                stream_add_series(&s, FRAME_BIG_ROW, 1, &row, 300, 0);
                stream_add_end(&s, 1, 1);
                CHECK_INT(decode_result(&s, PAGE, 1000), expected);
                stream_done(&s);
                stream_done(&row);
        }
}

/* A series that never ends is refused once it is over the limit, without ever holding more. */
static void test_series_without_end(void) {
        static const uint8_t part[1024];
        Stream s = in_run(1), frame = STREAM_INIT;
        PageDecoder d;
        int r = 0;

        stream_add_frame(&frame, FRAME_BIG_ROW, FRAME_MORE, 1, part, sizeof part);
        page_decoder_init(&d, PAGE, 100000);
        feed(&d, s.bytes, s.size);
        CHECK_INT(page_decoder_next(&d), PAGE_COLUMNS);
        for (unsigned i = 0; i < 97; i++) {
                feed(&d, frame.bytes, frame.size);
                r = page_decoder_next(&d);
                CHECK_INT(r, PAGE_MORE);
                CHECK(d.joined_capacity <= 100000);
        }
        feed(&d, frame.bytes, frame.size);
        CHECK_INT(page_decoder_next(&d), -EMSGSIZE);
        CHECK(d.joined_capacity <= 100000);
        page_decoder_done(&d);
        stream_done(&s);
        stream_done(&frame);
}

static void test_column_count_limit(void) {
        for (uint32_t over = 0; over <= 1; over++) {
                Stream s = STREAM_INIT;

                stream_add_columns(&s, 1, SQLIPC_N_COLUMNS_MAX + over, SQLIPC_PAGE_SIZE_MAX);
                stream_add_end(&s, 1, 0);
                CHECK_INT(decode_result(&s, SQLIPC_PAGE_SIZE_MAX, ROW_SIZE_LIMIT), over ? -EBADMSG : 0);
                stream_done(&s);
        }
}

/* COLUMNS of `size` bytes: one name that fills them. */
static int decode_columns_of(size_t size) {
        Stream s = STREAM_INIT, payload = STREAM_INIT;
        int r;

        stream_add_le32(&payload, 1);
        stream_add_le32(&payload, PAGE);
        stream_add_le32(&payload, (uint32_t) (size - 16));
        stream_add_le32(&payload, (uint32_t) (size - 16));
        memset(stream_extend(&payload, size - 16), 'n', size - 17);
        stream_add_series(&s, FRAME_COLUMNS, 1, &payload, PAGE - FRAME_HEADER_SIZE, 0);
        stream_add_end(&s, 1, 0);
        r = decode_result(&s, PAGE, 1000);
        stream_done(&payload);
        stream_done(&s);
        return r;
}

static void test_columns_size_limit(void) {
        CHECK_INT(decode_columns_of(SQLIPC_COLUMNS_SIZE_MAX), 0);
        CHECK_INT(decode_columns_of(SQLIPC_COLUMNS_SIZE_MAX + 1), -EBADMSG);
}

static void test_page_size_limit(void) {
        Stream s, row = STREAM_INIT;

        /* as agreed on: the first frame has no other limit */
        s = STREAM_INIT;
        stream_add_blob_row(&row, 3 * PAGE);
        stream_add_frame(&s, FRAME_COLUMNS, FRAME_MORE, 1, row.bytes, PAGE - FRAME_HEADER_SIZE);
        stream_add_error(&s, 1, 1, "");
        CHECK_INT(decode_result(&s, PAGE, ROW_SIZE_LIMIT), 0);
        stream_done(&s);
        stream_add_frame(&s, FRAME_COLUMNS, FRAME_MORE, 1, row.bytes, PAGE - FRAME_HEADER_SIZE + 1);
        stream_add_error(&s, 1, 1, "");
        CHECK_INT(decode_result(&s, PAGE, ROW_SIZE_LIMIT), -EBADMSG);
        CHECK_INT(decode_result(&s, 2 * PAGE, ROW_SIZE_LIMIT), 0);
        stream_done(&s);

        /* a power of two */
        for (uint32_t page_size = PAGE; page_size <= SQLIPC_PAGE_SIZE_MAX; page_size *= 2)
                for (int off = -8; off <= 8; off += 8) {
                        s = STREAM_INIT;
                        stream_add_columns(&s, 1, 1, page_size + (uint32_t) off);
                        stream_add_end(&s, 1, 0);
                        CHECK_INT(decode_result(&s, SQLIPC_PAGE_SIZE_MAX, ROW_SIZE_LIMIT), off == 0 ? 0 : -EBADMSG);
                        stream_done(&s);
                }

        /* as COLUMNS says: a stream is held to it, until its run ends */
        for (size_t over = 0; over <= 1; over++) {
                s = in_run(1);
                stream_add_series(&s, FRAME_BIG_ROW, 1, &row, PAGE - FRAME_HEADER_SIZE + over, 0);
                stream_add_end(&s, 1, 1);
                stream_add_frame(&s, FRAME_COLUMNS, FRAME_MORE, 2, row.bytes, 2 * PAGE - FRAME_HEADER_SIZE);
                stream_add_error(&s, 2, 1, "");
                CHECK_INT(decode_result(&s, 2 * PAGE, ROW_SIZE_LIMIT), over ? -EBADMSG : 0);
                stream_done(&s);
        }

        /* sizes that wrap around when they are rounded up; refused before a byte of payload is there */
        for (uint32_t size = UINT32_MAX - 24; size > UINT32_MAX - 25; size++) {
                s = in_run(1);
                stream_add_frame(&s, FRAME_ROWS, 0, 1, "", 0);
                store_le32(s.bytes + s.size - FRAME_HEADER_SIZE, size);
                check_refused("size", &s, -EBADMSG);
        }
        stream_done(&row);
}

static void test_message_size_limit(void) {
        char message[SQLIPC_MESSAGE_SIZE_MAX + 2];

        memset(message, 'm', sizeof message);
        message[SQLIPC_MESSAGE_SIZE_MAX + 1] = 0;
        for (size_t over = 0; over <= 1; over++) {
                Stream s = STREAM_INIT;

                stream_add_error(&s, 1, 1, message + !over);
                CHECK_INT(decode_result(&s, PAGE, 1000), over ? -EBADMSG : 0);
                stream_done(&s);
        }
}

int main(void) {
        static const Test tests[] = {
                TEST(test_bad_headers),
                TEST(test_bad_order),
                TEST(test_bad_rows),
                TEST(test_bad_rows_frames),
                TEST(test_bad_columns),
                TEST(test_bad_ends),
                TEST(test_bad_totals),
                TEST(test_empty_parts),
                TEST(test_rows_without_columns),
                TEST(test_check_row),
                TEST(test_row_size_limit),
                TEST(test_series_without_end),
                TEST(test_column_count_limit),
                TEST(test_columns_size_limit),
                TEST(test_page_size_limit),
                TEST(test_message_size_limit),
        };
        return test_main(tests, N_ELEMENTS(tests));
}
