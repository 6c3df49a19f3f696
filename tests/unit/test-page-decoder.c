/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The decoder with sound streams, and with those cut or changed at any byte: it gives back what the encoder was given,
 * whatever the pieces it arrives in, in bounded memory and few reads. test-page-refused.c tests streams that the format
 * does not allow. Streams are compared as the lines of page-text.h. Under AddressSanitizer the memory after the last
 * received byte is poisoned, so a decoder that reads too far is found.
 *
 * malloc() and realloc() are wrapped by the linker, to fail when a test says so.
 */
#include <errno.h>
#include <math.h>

#include "tests/unit/decode.h"

#define PAGE SQLIPC_PAGE_SIZE_MIN
#define ROW_SIZE_LIMIT ((size_t) 64 * 1024 * 1024)
#define READ_SIZE ((size_t) 65536)

/* How many allocations succeed before one fails; below zero: all. */
static int allocations_left = -1;

void *__real_malloc(size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool allocation_fails(void) {
        return allocations_left >= 0 && allocations_left-- == 0;
}

void *__wrap_malloc(size_t size) {
        return allocation_fails() ? NULL : __real_malloc(size);
}

void *__wrap_realloc(void *p, size_t size) {
        return allocation_fails() ? NULL : __real_realloc(p, size);
}

/* ---- helpers ---------- */

/* Checks that `s` gives these lines, in pieces of several sizes. */
static void check_lines(const Stream *s, const char *expected) {
        static const size_t chunks[] = { SIZE_MAX, 1, 3, 8, 17, 4096 };

        for (size_t i = 0; i < N_ELEMENTS(chunks); i++) {
                char *text;
                int r;

                text = decode_with(s, chunks[i], SQLIPC_PAGE_SIZE_MAX, ROW_SIZE_LIMIT, &r);
                CHECK_INT(r, 0);
                CHECK_STRING(text, expected);
                free(text);
        }
}

/* Gives a decoder a stream in pieces that have nothing to do with frames, until it has a row. */
static void feed_until_row(PageDecoder *d, const Stream *s, size_t piece) {
        size_t at = 0;
        int r;

        while ((r = page_decoder_next(d)) != PAGE_ROW) {
                uint8_t *room;
                size_t n;

                if (r == PAGE_COLUMNS)
                        continue;
                CHECK_INT(r, PAGE_MORE);
                CHECK(at < s->size);
                CHECK_INT(page_decoder_reserve(d, &room, &n), 0);
                n = n > piece ? piece : n;
                n = n > s->size - at ? s->size - at : n;
                memcpy(room, s->bytes + at, n);
                page_decoder_commit(d, n);
                at += n;
        }
}

static void encoder_new(PageEncoder *e, size_t page_size, uint64_t run) {
        uint8_t *page = malloc(page_size);

        CHECK(page);
        page_encoder_init(e, page, page_size, run);
}

static void encoder_free(PageEncoder *e) {
        free(e->page);
}

/* A payload through the encoder, as a worker sends it: a part, send the page, the next part. */
static void encode_series(Stream *s, PageEncoder *e, FrameKind kind, const uint8_t *bytes, size_t size) {
        if (!page_encoder_begin_part(e, kind)) {
                stream_take_page(s, e);
                CHECK_INT(page_encoder_begin_part(e, kind), 1);
        }
        for (;;) {
                size_t n = page_encoder_append(e, bytes, size);

                bytes += n;
                size -= n;
                page_encoder_end_part(e, size > 0);
                if (size == 0)
                        return;
                stream_take_page(s, e);
                CHECK_INT(page_encoder_begin_part(e, kind), 1);
        }
}

/* ---- what goes in comes out ---------- */

static const int64_t integers[] = { INT64_MIN, INT64_MIN + 1, -1, 0, 1, 255, 65536, INT64_MAX - 1, INT64_MAX };
static const uint64_t reals[] = {
        0, UINT64_C(0x8000000000000000), 1, UINT64_C(0x8000000000000001), UINT64_C(0x0010000000000000),
        UINT64_C(0x7fefffffffffffff), UINT64_C(0x7ff0000000000000), UINT64_C(0xfff0000000000000),
        UINT64_C(0x7ff8000000000000), UINT64_C(0xfff8dead0000beef), UINT64_C(0x7ff0000000000001),
};
static const struct {
        const char *bytes;
        size_t size;
} strings[] = {
        { "", 0 }, { "\0", 1 }, { "a", 1 }, { "a\0", 2 }, { "\0a\0\0", 4 }, { "\xff", 1 }, { "\xed\xa0\x80", 3 },
        { "\xef\xbf\xbe", 3 }, { "Gr\xc3\xbc\xc3\x9f" "e", 7 },
};
#define N_VALUES (N_ELEMENTS(integers) + N_ELEMENTS(reals) + 2 * N_ELEMENTS(strings) + 1)

static void encode_every_value(Stream *s) {
        PageEncoder e;

        encoder_new(&e, PAGE, 77);
        CHECK_INT(page_encoder_begin_row(&e, N_VALUES), 1);
        for (size_t i = 0; i < N_ELEMENTS(integers); i++)
                page_encoder_add_int64(&e, integers[i]);
        for (size_t i = 0; i < N_ELEMENTS(reals); i++)
                page_encoder_add_double(&e, load_le_double(&(uint64_t) { htole64(reals[i]) }));
        for (size_t i = 0; i < N_ELEMENTS(strings); i++) {
                page_encoder_add_text(&e, strings[i].bytes, strings[i].size);
                page_encoder_add_blob(&e, strings[i].bytes, strings[i].size);
        }
        page_encoder_add_null(&e);
        CHECK_INT(page_encoder_end_row(&e), 1);
        stream_take_page(s, &e);
        encoder_free(&e);
}

/* By the values themselves, not by their text. */
static void test_every_value(void) {
        Stream s = STREAM_INIT;
        PageDecoder d;
        unsigned column = 0;

        stream_add_columns(&s, 77, N_VALUES, PAGE);
        encode_every_value(&s);
        page_decoder_init(&d, PAGE, ROW_SIZE_LIMIT);
        feed(&d, s.bytes, s.size);
        CHECK_INT(page_decoder_next(&d), PAGE_COLUMNS);
        CHECK_INT(d.run, 77);
        CHECK_INT(d.page_size, PAGE);
        CHECK_INT(page_decoder_next(&d), PAGE_ROW);

        for (size_t i = 0; i < N_ELEMENTS(integers); i++) {
                PageValue v = page_decoder_value(&d, column++);

                CHECK(v.type == VALUE_INTEGER && v.size == 8 && (int64_t) load_le64(v.bytes) == integers[i]);
        }
        for (size_t i = 0; i < N_ELEMENTS(reals); i++) {
                PageValue v = page_decoder_value(&d, column++);
                double expected = load_le_double(&(uint64_t) { htole64(reals[i]) }), got = load_le_double(v.bytes);

                CHECK(v.type == VALUE_REAL && v.size == 8 && load_le64(v.bytes) == reals[i]);
                CHECK(isnan(expected) ? isnan(got) : got == expected && !signbit(got) == !signbit(expected));
        }
        for (size_t i = 0; i < N_ELEMENTS(strings); i++) {
                PageValue text = page_decoder_value(&d, column), blob = page_decoder_value(&d, column + 1);

                column += 2;
                CHECK(text.type == VALUE_TEXT && blob.type == VALUE_BLOB);
                CHECK_INT(text.size, strings[i].size);
                CHECK_INT(blob.size, strings[i].size);
                CHECK(memcmp(text.bytes, strings[i].bytes, text.size) == 0 && text.bytes[text.size] == 0);
                CHECK(memcmp(blob.bytes, strings[i].bytes, blob.size) == 0);
        }
        CHECK(page_decoder_value(&d, column).type == VALUE_NULL && page_decoder_value(&d, column).size == 0);
        CHECK_INT(column + 1, N_VALUES);
        CHECK_INT(page_decoder_next(&d), PAGE_MORE);
        CHECK_INT(page_decoder_end_of_file(&d), -ECONNRESET);
        page_decoder_done(&d);
        stream_done(&s);
}

static void encode_counters(Stream *s, uint64_t run) {
        const EndCounters counters = { 0, stream_run_size(s), 3, 4, 5, UINT64_MAX, 7 };
        PageEncoder e;

        encoder_new(&e, PAGE, run);
        CHECK_INT(page_encoder_end(&e, &counters), 1);
        stream_take_page(s, &e);
        encoder_free(&e);
}

/* Decodes a run without columns whose END has these fields, in `size` bytes. */
static int decode_changes(EndCounters *ret, int64_t n_changes, int64_t last_rowid, size_t size) {
        Stream s = STREAM_INIT;
        PageDecoder d;
        int r;

        stream_add_columns(&s, 7, 0, PAGE);
        stream_add_end_wrote(&s, 7, 0, n_changes, last_rowid, size);
        page_decoder_init(&d, PAGE, ROW_SIZE_LIMIT);
        feed(&d, s.bytes, s.size);
        CHECK_INT(page_decoder_next(&d), PAGE_COLUMNS);
        CHECK_INT(d.n_columns, 0);
        r = page_decoder_next(&d);
        *ret = d.end_counters;
        page_decoder_done(&d);
        stream_done(&s);
        return r;
}

static void test_changes(void) {
        static const int64_t valid[][2] = {
                { 0, 0 }, { 1, INT64_MIN }, { INT64_MAX, INT64_MAX }, { 0, -1 },
        };
        EndCounters end;

        for (size_t i = 0; i < N_ELEMENTS(valid); i++)
                for (size_t size = FRAME_END_WROTE_SIZE; size < FRAME_END_WROTE_SIZE + 9; size++) {
                        CHECK_INT(decode_changes(&end, valid[i][0], valid[i][1], size), PAGE_END);
                        CHECK(end.wrote && end.n_changes == valid[i][0] && end.last_rowid == valid[i][1]);
                }
        for (size_t size = FRAME_END_SIZE; size < FRAME_END_WROTE_SIZE; size++) { /* too short to say so */
                CHECK_INT(decode_changes(&end, 5, 7, size), PAGE_END);
                CHECK(!end.wrote && end.n_changes == 0 && end.last_rowid == 0);
        }
        CHECK_INT(decode_changes(&end, -1, 7, FRAME_END_WROTE_SIZE), PAGE_END);
        CHECK(!end.wrote && end.n_changes == 0 && end.last_rowid == 0);
        CHECK_INT(decode_changes(&end, -2, 7, FRAME_END_WROTE_SIZE), -EBADMSG);
        CHECK_INT(decode_changes(&end, INT64_MIN, 7, FRAME_END_WROTE_SIZE), -EBADMSG);
}

static void test_columns(void) {
        static const char payload[] = "\4\0\0\0" "\0\x10\0\0"
                                      "\2\0\0\0\2\0\0\0" "\4\0\0\0\5\0\0\0" "\6\0\0\0\xa\0\0\0" "\xe\0\0\0\xe\0\0\0"
                                      "a\0" "b\0" "\0" "\0" "INT\0" "c\0d";
        static const char *const names[] = { "a", "b", "", "c" }, *const declared_types[] = { NULL, "", "INT", NULL };
        Stream s = STREAM_INIT;
        const char *name;
        PageDecoder d;
        size_t size;

        stream_add_frame(&s, FRAME_COLUMNS, 0, 5, payload, sizeof payload);
        page_decoder_init(&d, PAGE, ROW_SIZE_LIMIT);
        feed(&d, s.bytes, s.size);
        CHECK_INT(page_decoder_next(&d), PAGE_COLUMNS);
        CHECK_INT(d.n_columns, 4);
        for (unsigned i = 0; i < 4; i++) {
                const char *declared_type;

                page_decoder_column(&d, i, &name, &declared_type);
                CHECK_STRING(name, names[i]);
                CHECK(!declared_type == !declared_types[i]);
                if (declared_type)
                        CHECK_STRING(declared_type, declared_types[i]);
        }
        page_decoder_column_name(&d, 2, &name, &size);
        CHECK_INT(size, 0);
        page_decoder_column_name(&d, 3, &name, &size);
        CHECK_INT(size, 3);
        CHECK(memcmp(name, "c\0d", 4) == 0);
        page_decoder_done(&d);
        stream_done(&s);
}

static void test_error_and_counters(void) {
        char message[SQLIPC_MESSAGE_SIZE_MAX];
        Stream s = STREAM_INIT;
        PageEncoder e;
        PageDecoder d;

        memset(message, 0xff, sizeof message); /* no UTF-8: carried as it is */
        encoder_new(&e, PAGE, 78);
        CHECK_INT(page_encoder_error(&e, UINT32_MAX, INT32_MIN, INT32_MAX, message, sizeof message), 1);
        stream_take_page(&s, &e);
        stream_add_columns(&s, 79, 1, PAGE);
        encode_counters(&s, 79);

        page_decoder_init(&d, PAGE, ROW_SIZE_LIMIT);
        feed(&d, s.bytes, s.size);
        CHECK_INT(page_decoder_next(&d), PAGE_ERROR);
        CHECK(d.run == 78 && d.error_number == UINT32_MAX && d.error_extended_code == INT32_MIN);
        CHECK(d.error_sql_offset == INT32_MAX && d.error_message_size == sizeof message);
        CHECK(memcmp(d.error_message, message, sizeof message) == 0 && d.error_message[sizeof message] == 0);
        CHECK_INT(page_decoder_next(&d), PAGE_COLUMNS);
        CHECK_INT(page_decoder_next(&d), PAGE_END);
        CHECK(d.run == 79 && d.end_counters.n_rows == 0 && d.end_counters.n_bytes == 40 && d.end_counters.usec == 3);
        CHECK(d.end_counters.vm_steps == 4 && d.end_counters.fullscan_steps == 5);
        CHECK(d.end_counters.sorts == UINT64_MAX && d.end_counters.autoindexes == 7);
        CHECK_INT(page_decoder_next(&d), PAGE_MORE);
        CHECK_INT(page_decoder_end_of_file(&d), 0);
        page_decoder_done(&d);
        encoder_free(&e);
        stream_done(&s);
}

/* Columns as many as `n`, in COLUMNS and in a row, through pages of every size. */
static void check_many_columns(unsigned n, size_t page_size) {
        Stream s = STREAM_INIT, columns = STREAM_INIT, row = STREAM_INIT;
        PageEncoder e, large;
        PageDecoder d;

        stream_add_columns_payload(&columns, n, (uint32_t) page_size);
        encoder_new(&large, SQLIPC_PAGE_SIZE_MAX, 1);
        CHECK_INT(page_encoder_begin_row(&large, n), 1);
        for (unsigned i = 0; i < n; i++)
                page_encoder_add_int64(&large, i);
        CHECK_INT(page_encoder_end_row(&large), 1);
        stream_add(&row, large.page + FRAME_HEADER_SIZE + 4, large.fill - FRAME_HEADER_SIZE - 4);

        encoder_new(&e, page_size, 1);
        encode_series(&s, &e, FRAME_COLUMNS, columns.bytes, columns.size);
        encode_series(&s, &e, FRAME_BIG_ROW, row.bytes, row.size);
        stream_take_page(&s, &e);

        page_decoder_init(&d, page_size, ROW_SIZE_LIMIT);
        feed_until_row(&d, &s, 5003);
        CHECK_INT(d.n_columns, n);
        for (unsigned i = 0; i < n; i++)
                CHECK(page_decoder_value(&d, i).type == VALUE_INTEGER && load_le64(page_decoder_value(&d, i).bytes) == i);
        page_decoder_done(&d);
        encoder_free(&e);
        encoder_free(&large);
        stream_done(&columns);
        stream_done(&row);
        stream_done(&s);
}

static void test_many_columns(void) {
        for (size_t page_size = SQLIPC_PAGE_SIZE_MIN; page_size <= SQLIPC_PAGE_SIZE_MAX; page_size *= 4) {
                check_many_columns(2000, page_size);
                check_many_columns(SQLIPC_N_COLUMNS_MAX, page_size);
        }
}

/* A row of 3 MiB through pages of every size. */
static void test_big_rows(void) {
        const size_t size = 3 * 1024 * 1024;
        Stream row = STREAM_INIT;

        stream_add_blob_row(&row, size);
        for (size_t i = 0; i < size; i++)
                row.bytes[5 + i] = (uint8_t) (i * 131 >> 5);

        for (size_t page_size = SQLIPC_PAGE_SIZE_MIN; page_size <= SQLIPC_PAGE_SIZE_MAX; page_size *= 2) {
                Stream s = STREAM_INIT;
                PageEncoder e;
                PageDecoder d;

                stream_add_columns(&s, 1, 1, (uint32_t) page_size);
                encoder_new(&e, page_size, 1);
                encode_series(&s, &e, FRAME_BIG_ROW, row.bytes, row.size);
                stream_take_page(&s, &e);

                page_decoder_init(&d, page_size, row.size);
                feed_until_row(&d, &s, 10007);
                CHECK_INT(page_decoder_value(&d, 0).size, size);
                CHECK(memcmp(page_decoder_value(&d, 0).bytes, row.bytes + 5, size) == 0);
                CHECK(d.capacity <= (page_size + FRAME_HEADER_SIZE > READ_SIZE ? page_size + FRAME_HEADER_SIZE : READ_SIZE));
                CHECK(d.joined_capacity <= row.size + FRAME_ALIGN + FRAME_HEADER_SIZE);
                page_decoder_done(&d);
                encoder_free(&e);
                stream_done(&s);
        }
        stream_done(&row);
}

/* ---- the order of things ---------- */

/* Five runs: one complete, one that fails first, one without rows, one that fails in COLUMNS, one that fails in a row. */
static void make_runs(Stream *s) {
        Stream row = STREAM_INIT, rows = STREAM_INIT, columns = STREAM_INIT;

        stream_add_blob_row(&row, 9);
        stream_add_le32(&rows, 2);
        stream_add(&rows, row.bytes, row.size);
        stream_add(&rows, row.bytes, row.size);
        stream_add_columns(s, 1, 1, PAGE);
        stream_add_frame(s, FRAME_ROWS, 0, 1, rows.bytes, rows.size);
        stream_add_series(s, FRAME_BIG_ROW, 1, &row, 4, 0);
        stream_add_frame(s, FRAME_BIG_ROW, 0, 1, row.bytes, row.size);
        stream_add_end(s, 1, 4);

        stream_add_error(s, 2, 27, "locked");

        stream_add_columns_payload(&columns, 2, PAGE);
        stream_add_series(s, FRAME_COLUMNS, 3, &columns, 9, 0);
        stream_add_end(s, 3, 0);

        stream_add_series(s, FRAME_COLUMNS, 4, &columns, 20, FRAME_MORE);
        stream_add_error(s, 4, 30, "");

        stream_add_columns(s, 5, 1, PAGE);
        stream_add_series(s, FRAME_BIG_ROW, 5, &row, 5, FRAME_MORE);
        stream_add_error(s, 5, 30, "x");
        stream_done(&row);
        stream_done(&rows);
        stream_done(&columns);
}

static void test_several_runs(void) {
        static const char row[] = "row b:b1b1b1b1b1b1b1b1b1\n";
        char expected[1024];
        Stream s = STREAM_INIT;

        snprintf(expected, sizeof expected,
                 "run 1 4096\ncolumn x63 -\n%s%s%s%send 4 216 0 0 0 0 0\n"
                 "run 2 -\nerror 27 1 -1 x6c6f636b6564\n"
                 "run 3 4096\ncolumn x63 -\ncolumn x63 -\nend 0 120 0 0 0 0 0\n"
                 "run 4 -\nerror 30 1 -1 x\n"
                 "run 5 4096\ncolumn x63 -\nerror 30 1 -1 x78\n", row, row, row, row);
        make_runs(&s);
        check_lines(&s, expected);
        stream_done(&s);
}

/* Fields and items of a later writer, in a result without columns and in an ERROR. */
static void test_later_fields(void) {
        Stream s = STREAM_INIT, columns = STREAM_INIT, error = STREAM_INIT;

        stream_add_columns_payload(&columns, 0, PAGE);
        stream_add_item(&columns, 7, "ab", 2);
        stream_add_item(&columns, UINT32_MAX, "", 0);
        stream_take_frame(&s, FRAME_COLUMNS, 0, 1, &columns);
        stream_add_end_with(&s, 1, 0, s.size, PAGE - FRAME_HEADER_SIZE);

        stream_add(&error, "\1\0\0\0\0\0\0\0\xff\xff\xff\xff\1\0\0\0x", 18);
        stream_add_item(&error, 1, "c", 1);
        stream_take_frame(&s, FRAME_ERROR, 0, 2, &error);
        check_lines(&s, "run 1 4096\ncolumns-item 7 x6162\ncolumns-item 4294967295 x\n"
                        "end 0 48 0 0 0 0 0 -1 0 17216961135462248174\n"
                        "run 2 -\nerror-item 1 x63\nerror 1 0 -1 x78\n");
        stream_done(&s);
}

/* A stream that stops is never a complete one: only between runs. */
static void test_truncated(void) {
        Stream s = STREAM_INIT;
        size_t n_borders = 0;

        make_runs(&s);
        for (size_t size = 0; size <= s.size; size++) {
                Stream cut = { s.bytes, size, 0 };
                int r = decode_result(&cut, PAGE, ROW_SIZE_LIMIT);

                CHECK(r == 0 || r == -ECONNRESET);
                n_borders += r == 0;
        }
        CHECK_INT(n_borders, 6); /* nothing at all, and behind each of five runs */
        stream_done(&s);
}

/* For any change of a byte, the result is a documented one, and the same for every size of pieces. */
static void test_flipped(void) {
        Stream s = STREAM_INIT;
        unsigned n_refused = 0;

        make_runs(&s);
        for (size_t at = 0; at < s.size; at++)
                for (unsigned flip = 1; flip < 512; flip *= 2) {
                        uint8_t mask = flip == 256 ? 0xff : (uint8_t) flip;
                        char *whole, *dribbled;
                        int r, q;

                        s.bytes[at] ^= mask;
                        whole = decode_with(&s, SIZE_MAX, PAGE, 4096, &r);
                        dribbled = decode_with(&s, 5, PAGE, 4096, &q);
                        CHECK(r == 0 || r == -EBADMSG || r == -ECONNRESET || r == -EMSGSIZE);
                        CHECK_INT(q, r);
                        CHECK_STRING(dribbled, whole);
                        n_refused += r < 0;
                        free(whole);
                        free(dribbled);
                        s.bytes[at] ^= mask;
                }
        CHECK(n_refused > 0);
        CHECK_INT(decode_result(&s, PAGE, 4096), 0);
        stream_done(&s);
}

/* ---- memory and reads ---------- */

/* A header announces a page of 1 MiB: memory follows what arrives, not what was announced. */
static void test_growth(void) {
        Stream s = STREAM_INIT;
        PageDecoder d;

        stream_add_columns(&s, 1, 1, SQLIPC_PAGE_SIZE_MAX);
        stream_add_frame(&s, FRAME_BIG_ROW, 0, 1, "", 0);
        store_le32(s.bytes + s.size - FRAME_HEADER_SIZE, SQLIPC_PAGE_SIZE_MAX - FRAME_HEADER_SIZE);
        page_decoder_init(&d, SQLIPC_PAGE_SIZE_MAX, ROW_SIZE_LIMIT);
        feed(&d, s.bytes, s.size);
        CHECK_INT(page_decoder_next(&d), PAGE_COLUMNS);
        for (size_t arrived = FRAME_HEADER_SIZE; arrived < SQLIPC_PAGE_SIZE_MAX; arrived++) {
                size_t allowed = 4 * arrived < READ_SIZE ? READ_SIZE : 4 * arrived + FRAME_HEADER_SIZE;

                CHECK_INT(page_decoder_next(&d), PAGE_MORE);
                feed(&d, (const uint8_t *) "", 1);
                CHECK(d.capacity <= allowed && d.capacity <= SQLIPC_PAGE_SIZE_MAX + FRAME_HEADER_SIZE);
        }
        CHECK_INT(page_decoder_next(&d), -EBADMSG);
        page_decoder_done(&d);
        stream_done(&s);
}

/* Reads a stream as from a pipe that always has more; returns how many reads it took. */
static unsigned count_reads(const Stream *s, size_t page_size, size_t *ret_moved) {
        unsigned n_reads = 0;
        PageDecoder d;
        size_t at = 0;

        *ret_moved = 0;
        page_decoder_init(&d, page_size, ROW_SIZE_LIMIT);
        for (;;) {
                size_t n, unread;
                uint8_t *room;
                int r;

                while ((r = page_decoder_next(&d)) > 0)
                        ;
                CHECK_INT(r, PAGE_MORE);
                if (at == s->size)
                        break;
                unread = d.start;
                CHECK_INT(page_decoder_reserve(&d, &room, &n), 0);
                if (d.start != unread)
                        *ret_moved += d.fill - d.start;
                n = n > s->size - at ? s->size - at : n;
                memcpy(room, s->bytes + at, n);
                page_decoder_commit(&d, n);
                at += n;
                n_reads++;
        }
        CHECK_INT(page_decoder_end_of_file(&d), 0);
        page_decoder_done(&d);
        return n_reads;
}

static void make_rows(Stream *s, size_t page_size, size_t n_frames, size_t size) {
        Stream row = STREAM_INIT;

        stream_add_columns(s, 1, 1, (uint32_t) page_size);
        stream_add_blob_row(&row, size - FRAME_HEADER_SIZE - 5);
        for (size_t i = 0; i < n_frames; i++)
                stream_add_frame(s, FRAME_BIG_ROW, 0, 1, row.bytes, row.size);
        stream_add_end(s, 1, n_frames);
        stream_done(&row);
}

static void test_reads(void) {
        Stream s = STREAM_INIT;
        size_t moved;

        /* a small result takes one read */
        make_rows(&s, 262144, 1, 1024);
        CHECK_INT(count_reads(&s, 262144, &moved), 1);
        stream_done(&s);

        /* many small frames: as many at a time as a read brings */
        make_rows(&s, 262144, 1000, 1024);
        CHECK(count_reads(&s, 262144, &moved) <= 1000 * 1024 / READ_SIZE + 2);
        CHECK(moved <= 1024 * (1000 * 1024 / READ_SIZE + 2));
        stream_done(&s);

        /* full pages: about one read each, and once the buffer has grown only headers are moved */
        make_rows(&s, 262144, 100, 262144);
        CHECK(count_reads(&s, 262144, &moved) <= 100 + 8);
        CHECK(moved <= 100 * FRAME_HEADER_SIZE + READ_SIZE);
        stream_done(&s);

        /* frames that are large, but less than the buffer has become: those are not moved either */
        make_rows(&s, SQLIPC_PAGE_SIZE_MAX, 1, SQLIPC_PAGE_SIZE_MAX);
        make_rows(&s, SQLIPC_PAGE_SIZE_MAX, 100, 200000);
        CHECK(count_reads(&s, SQLIPC_PAGE_SIZE_MAX, &moved) <= 100 + 16);
        CHECK(moved <= 100 * FRAME_HEADER_SIZE + READ_SIZE + 200000); /* one, behind the second COLUMNS */
        stream_done(&s);
}

/* A reader may stop in the middle of a ROWS frame, read on, and go on with its rows. */
static void test_read_on_between_rows(void) {
        Stream s = in_run(1), rows = STREAM_INIT;
        PageDecoder d;
        size_t at;

        stream_add_le32(&rows, 5);
        for (uint8_t i = 0; i < 5; i++) {
                stream_add_blob_row(&rows, 3);
                rows.bytes[rows.size - 1] = i;
        }
        stream_add_frame(&s, FRAME_ROWS, 0, 1, rows.bytes, rows.size);
        at = s.size;
        stream_add_frame(&s, FRAME_ROWS, 0, 1, rows.bytes, rows.size);
        stream_add_end(&s, 1, 10);

        page_decoder_init(&d, PAGE, ROW_SIZE_LIMIT);
        feed(&d, s.bytes, at);
        CHECK_INT(page_decoder_next(&d), PAGE_COLUMNS);
        for (uint8_t i = 0; i < 10; i++) {
                CHECK_INT(page_decoder_next(&d), PAGE_ROW);
                CHECK_INT(page_decoder_value(&d, 0).bytes[2], i % 5);
                if (i == 2)
                        feed(&d, s.bytes + at, s.size - at);
        }
        CHECK_INT(page_decoder_next(&d), PAGE_END);
        page_decoder_done(&d);
        stream_done(&rows);
        stream_done(&s);
}

/* Nor does it matter that whole frames are still there when it reads on, also large ones. */
static void test_read_on_before_frames(void) {
        Stream s = STREAM_INIT;
        PageDecoder d;
        unsigned n_rows = 0;
        int r;

        stream_add_columns(&s, 1, 1, 262144);
        page_decoder_init(&d, 262144, ROW_SIZE_LIMIT);
        feed(&d, s.bytes, s.size);
        CHECK_INT(page_decoder_next(&d), PAGE_COLUMNS);
        stream_done(&s);
        make_rows(&s, 262144, 3, 40000);
        /* one frame and a header, then the rest: the room behind is neither nothing nor behind the buffer */
        feed(&d, s.bytes + 40, 40000 + FRAME_HEADER_SIZE);
        feed(&d, s.bytes + 40 + 40000 + FRAME_HEADER_SIZE, s.size - 40 - 40000 - FRAME_HEADER_SIZE);
        for (; (r = page_decoder_next(&d)) == PAGE_ROW; n_rows++)
                CHECK_INT(page_decoder_value(&d, 0).size, 40000 - FRAME_HEADER_SIZE - 5);
        CHECK_INT(r, PAGE_END);
        CHECK_INT(n_rows, 3);
        page_decoder_done(&d);
        stream_done(&s);
}

/* Every allocation in turn fails: -ENOMEM, sticky, and nothing leaks. */
static void test_no_memory(void) {
        Stream s = STREAM_INIT, columns = STREAM_INIT, row = STREAM_INIT;
        int r = -ENOMEM, n;

        stream_add_columns(&s, 1, 1, SQLIPC_PAGE_SIZE_MAX);
        stream_add_error(&s, 1, 1, "");
        stream_add_columns_payload(&columns, 1000, SQLIPC_PAGE_SIZE_MAX);
        stream_add_series(&s, FRAME_COLUMNS, 2, &columns, 3000, 0);
        stream_add_error(&s, 2, 1, "");
        stream_add_columns(&s, 3, 1, SQLIPC_PAGE_SIZE_MAX);
        stream_add_blob_row(&row, 1000000);
        stream_add_series(&s, FRAME_BIG_ROW, 3, &row, 400000, 0);
        stream_add_end(&s, 3, 1);

        for (n = 0; r < 0; n++) {
                PageDecoder d;
                FILE *out = fopen("/dev/null", "w");

                CHECK(out);
                page_decoder_init(&d, SQLIPC_PAGE_SIZE_MAX, ROW_SIZE_LIMIT);
                allocations_left = n;
                r = page_text_decode(out, &d, s.bytes, s.size, SIZE_MAX);
                allocations_left = -1;
                CHECK(r == 0 || r == -ENOMEM);
                if (r < 0)
                        CHECK_INT(page_decoder_next(&d), -ENOMEM);
                page_decoder_done(&d);
                fclose(out);
        }
        CHECK(n > 10); /* the buffer, twice COLUMNS, a series of COLUMNS, a series of BIG_ROW, growth */
        stream_done(&columns);
        stream_done(&row);
        stream_done(&s);
}

static void test_init_and_done(void) {
        PageDecoder d = { 0 };

        page_decoder_done(&d);
        page_decoder_init(&d, PAGE, SIZE_MAX);
        CHECK_INT(d.row_size_max, SQLIPC_ROW_SIZE_MAX);
        CHECK_INT(page_decoder_next(&d), PAGE_MORE);
        CHECK_INT(page_decoder_end_of_file(&d), 0);
        page_decoder_done(&d);
        page_decoder_done(&d);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_every_value),
                TEST(test_changes),
                TEST(test_columns),
                TEST(test_error_and_counters),
                TEST(test_many_columns),
                TEST(test_big_rows),
                TEST(test_several_runs),
                TEST(test_later_fields),
                TEST(test_truncated),
                TEST(test_flipped),
                TEST(test_growth),
                TEST(test_reads),
                TEST(test_read_on_between_rows),
                TEST(test_read_on_before_frames),
                TEST(test_no_memory),
                TEST(test_init_and_done),
        };
        return test_main(tests, N_ELEMENTS(tests));
}
