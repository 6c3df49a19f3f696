/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The encoder by its bytes and at its edges: data that fits to the last byte, data that does not by one, data that is
 * dropped without a trace. test-page-decoder.c and the vectors test that a decoder reads them.
 */
#include <stdbool.h>

#include "dbus-interfaces/wire/page-encoder.h"
#include "tests/unit/stream.h"
#include "tests/unit/test.h"

#define PAGE SQLIPC_PAGE_SIZE_MIN
#define ROWS_SIZE (FRAME_HEADER_SIZE + 4) /* the bytes before the first row of a page */

/* A page of exactly its size, so that AddressSanitizer sees each byte behind it. */
static void encoder_new(PageEncoder *e, size_t page_size, uint64_t run) {
        uint8_t *page = malloc(page_size);

        CHECK(page);
        memset(page, 0xee, page_size);
        page_encoder_init(e, page, page_size, run);
}

static void encoder_free(PageEncoder *e) {
        free(e->page);
}

/* A row of one TEXT of `size` bytes. */
static int put_text_row(PageEncoder *e, size_t size) {
        char *text = malloc(size + 1);
        int r;

        CHECK(text);
        memset(text, 't', size);
        r = page_encoder_begin_row(e, 1);
        if (r > 0) {
                page_encoder_add_text(e, text, size);
                r = page_encoder_end_row(e);
        }
        free(text);
        return r;
}

/* Fills the page with one row until `left` bytes are left (of the unpadded page). */
static void leave(PageEncoder *e, size_t left) {
        CHECK_INT(put_text_row(e, e->page_size - left - ROWS_SIZE - ROW_HEAD_SIZE(1) - 1), 1);
        CHECK_INT(e->page_size - e->fill, left);
}

static void test_bytes_of_rows(void) {
        static const uint8_t expected[] = {
                0x36, 0, 0, 0, FRAME_ROWS, 1, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, /* header */
                2, 0, 0, 0,                                                 /* two rows */
                1, 2, 3, 4, 5, 8, 0, 0, 0, 16, 0, 0, 0, 19, 0, 0, 0, 20, 0, 0, 0, 20, 0, 0, 0,
                0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 'a', 'b', 0, 0xff,
                5, 0, 0, 0, 0, /* the second row */
                0, 0,          /* padding */
        };
        PageEncoder e;

        encoder_new(&e, PAGE, UINT64_C(0x0102030405060708));
        CHECK(page_encoder_is_empty(&e));
        CHECK_INT(page_encoder_begin_row(&e, 5), 1);
        CHECK(page_encoder_is_empty(&e));
        page_encoder_add_int64(&e, -2);
        page_encoder_add_double(&e, 1.5);
        page_encoder_add_text(&e, "ab", 2);
        page_encoder_add_blob(&e, "\xff", 1);
        page_encoder_add_null(&e);
        CHECK_INT(page_encoder_end_row(&e), 1);
        CHECK(!page_encoder_is_empty(&e));
        CHECK_INT(page_encoder_begin_row(&e, 1), 1);
        page_encoder_add_null(&e);
        CHECK_INT(page_encoder_end_row(&e), 1);

        CHECK_INT(e.page[0], 0xee); /* the header is not read before it is finished */
        CHECK_INT(page_encoder_finish(&e), sizeof expected);
        CHECK(memcmp(e.page, expected, sizeof expected) == 0);
        CHECK_INT(e.page[sizeof expected], 0xee);

        /* finishing again changes nothing, and the next row opens a frame of its own */
        CHECK_INT(page_encoder_finish(&e), 72);
        CHECK_INT(put_text_row(&e, 0), 1);
        CHECK_INT(page_encoder_finish(&e), 72 + 32);
        CHECK_INT(load_le32(e.page + 72), 4 + 6);
        page_encoder_clear(&e);
        CHECK(page_encoder_is_empty(&e));
        CHECK_INT(page_encoder_finish(&e), 0);
        encoder_free(&e);
}

static void test_row_fills_page(void) {
        for (size_t size = SQLIPC_PAGE_SIZE_MIN; size <= SQLIPC_PAGE_SIZE_MAX; size *= 2) {
                size_t fits = size - ROWS_SIZE - ROW_HEAD_SIZE(1) - 1;
                PageEncoder e;

                encoder_new(&e, size, 1);
                CHECK_INT(put_text_row(&e, fits), 1);
                CHECK_INT(page_encoder_begin_row(&e, 1), 0);
                CHECK_INT(page_encoder_finish(&e), size);
                page_encoder_clear(&e);
                CHECK_INT(put_text_row(&e, fits + 1), 0);
                CHECK(page_encoder_is_empty(&e));
                CHECK_INT(page_encoder_finish(&e), 0);
                encoder_free(&e);
        }
}

/* A row that does not fit leaves the page as it was, down to the byte. */
static void test_row_that_does_not_fit(void) {
        uint8_t before[PAGE];
        PageEncoder e;
        size_t size;

        encoder_new(&e, PAGE, 1);
        leave(&e, 100);
        CHECK_INT(put_text_row(&e, 100 - 5), 0);
        CHECK_INT(put_text_row(&e, 100 - 6), 1);
        CHECK_INT(page_encoder_begin_row(&e, 1), 0);
        CHECK_INT(page_encoder_end_row(&e), 0);
        size = page_encoder_finish(&e);
        CHECK_INT(size, PAGE);
        CHECK_INT(load_le32(e.page + 16), 2);

        page_encoder_clear(&e);
        leave(&e, 100);
        page_encoder_finish(&e);
        memcpy(before, e.page, PAGE);
        size = e.fill;
        CHECK_INT(put_text_row(&e, 90), 0);
        CHECK_INT(page_encoder_finish(&e), size);
        CHECK(memcmp(before, e.page, size) == 0);
        encoder_free(&e);
}

/* After a value that did not fit smaller ones do not sneak in. */
static void test_sticky(void) {
        PageEncoder e;

        encoder_new(&e, PAGE, 1);
        CHECK_INT(page_encoder_begin_row(&e, 3), 1);
        CHECK(!page_encoder_add(&e, VALUE_BLOB, PAGE));
        CHECK(!page_encoder_add(&e, VALUE_NULL, 0));
        page_encoder_add_int64(&e, 1);
        page_encoder_add_double(&e, 1);
        page_encoder_add_text(&e, "x", 1);
        page_encoder_add_blob(&e, "x", 1);
        CHECK_INT(page_encoder_end_row(&e), 0);
        CHECK_INT(page_encoder_end_row(&e), 0);
        CHECK(!page_encoder_add(&e, VALUE_BLOB, SIZE_MAX));
        CHECK(page_encoder_is_empty(&e));
        encoder_free(&e);
}

static void begin_half_a_row(PageEncoder *e) {
        CHECK_INT(page_encoder_begin_row(e, 2), 1);
        page_encoder_add_text(e, "half a row", 10);
}

static void test_dropped_rows(void) {
        const EndCounters counters = { .n_rows = 1 };
        PageEncoder e;
        size_t size;

        encoder_new(&e, PAGE, 1);
        CHECK_INT(put_text_row(&e, 7), 1);
        begin_half_a_row(&e);
        page_encoder_abort_row(&e);
        CHECK_INT(page_encoder_end_row(&e), 0);
        begin_half_a_row(&e);
        size = page_encoder_finish(&e);
        CHECK_INT(size, frame_padded(ROWS_SIZE + 5 + 8));
        CHECK_INT(load_le32(e.page + 16), 1);
        CHECK_INT(page_encoder_end_row(&e), 0);

        begin_half_a_row(&e);
        CHECK_INT(page_encoder_end(&e, &counters), 1);
        CHECK_INT(page_encoder_finish(&e), size + 72);
        begin_half_a_row(&e);
        CHECK_INT(page_encoder_error(&e, 1, 0, -1, "", 0), 1);
        CHECK_INT(page_encoder_finish(&e), size + 72 + 40);
        begin_half_a_row(&e);
        page_encoder_clear(&e);
        CHECK_INT(page_encoder_end_row(&e), 0);
        CHECK_INT(page_encoder_finish(&e), 0);
        encoder_free(&e);
}

/* The END of a run that wrote has two fields more. */
static void test_end_of_a_write(void) {
        EndCounters counters = { .autoindexes = 7, .n_changes = 3, .last_rowid = -2 };
        PageEncoder e;

        encoder_new(&e, PAGE, 1);
        CHECK_INT(page_encoder_end(&e, &counters), 1);
        CHECK_INT(page_encoder_finish(&e), FRAME_HEADER_SIZE + FRAME_END_SIZE);
        page_encoder_clear(&e);
        counters.wrote = true;
        CHECK_INT(page_encoder_end(&e, &counters), 1);
        CHECK_INT(page_encoder_finish(&e), FRAME_HEADER_SIZE + FRAME_END_WROTE_SIZE);
        CHECK_INT(load_le32(e.page), FRAME_END_WROTE_SIZE);
        CHECK_INT(load_le64(e.page + FRAME_HEADER_SIZE + 48), 7);
        CHECK_INT((int64_t) load_le64(e.page + FRAME_HEADER_SIZE + 56), 3);
        CHECK_INT((int64_t) load_le64(e.page + FRAME_HEADER_SIZE + 64), -2);
        encoder_free(&e);
}

static void test_parts(void) {
        static const uint8_t bytes[PAGE];
        PageEncoder e;

        /* 1. A part takes what is left behind a row, to the last byte. */
        encoder_new(&e, PAGE, 5);
        CHECK_INT(put_text_row(&e, 2), 1);
        CHECK_INT(page_encoder_begin_part(&e, FRAME_BIG_ROW), 1);
        CHECK_INT(e.page[4], FRAME_ROWS);
        CHECK_INT(page_encoder_part_room(&e), PAGE - 32 - 16);
        CHECK_INT(page_encoder_append(&e, NULL, 0), 0);
        CHECK_INT(page_encoder_append(&e, bytes, 10), 10);
        CHECK_INT(page_encoder_append(&e, bytes, sizeof bytes), PAGE - 32 - 16 - 10);
        CHECK_INT(page_encoder_part_room(&e), 0);
        CHECK_INT(page_encoder_append(&e, bytes, 1), 0);
        page_encoder_end_part(&e, true);
        CHECK_INT(page_encoder_finish(&e), PAGE);
        CHECK_INT(load_le32(e.page + 32), PAGE - 48);
        CHECK_INT(e.page[32 + 4], FRAME_BIG_ROW);
        CHECK_INT(load_le16(e.page + 32 + 6), FRAME_MORE);
        CHECK_INT(load_le64(e.page + 32 + 8), 5);

        /* 2. The last part is padded and says that it is the last. */
        page_encoder_clear(&e);
        CHECK_INT(page_encoder_begin_part(&e, FRAME_COLUMNS), 1);
        CHECK_INT(page_encoder_append(&e, "\1\1\1", 3), 3);
        page_encoder_end_part(&e, false);
        CHECK_INT(page_encoder_finish(&e), 24);
        CHECK(memcmp(e.page, "\3\0\0\0\1\1\0\0\5\0\0\0\0\0\0\0\1\1\1\0\0\0\0\0", 24) == 0);

        /* 3. One that is not closed is void. */
        CHECK_INT(page_encoder_begin_part(&e, FRAME_BIG_ROW), 1);
        CHECK_INT(page_encoder_append(&e, "\1", 1), 1);
        CHECK_INT(page_encoder_finish(&e), 24);
        CHECK_INT(put_text_row(&e, 1), 1);
        encoder_free(&e);
}

/* A part may end in bytes that are sent from their own memory: the page has room for them, and none after them. */
static void test_tail(void) {
        static uint8_t bytes[100000];
        PageEncoder e;

        /* 1. Up to the end of the page. */
        encoder_new(&e, 65536, 5);
        CHECK_INT(page_encoder_begin_part(&e, FRAME_BIG_ROW), 1);
        CHECK_INT(page_encoder_append(&e, bytes, 5), 5);
        CHECK_INT(page_encoder_end_part_with(&e, bytes, sizeof bytes, false), 65536 - 16 - 5);
        CHECK(e.tail == bytes);
        CHECK_INT(e.tail_size, 65536 - 16 - 5);
        CHECK_INT(page_encoder_finish(&e), 65536);
        CHECK_INT(load_le32(e.page), 65536 - 16);
        CHECK_INT(load_le16(e.page + 6), FRAME_MORE);

        /* 2. Parts without padding: some bytes are left then, and more follows, regardless of the caller's flag. */
        page_encoder_clear(&e);
        CHECK(!e.tail);
        CHECK_INT(page_encoder_begin_part(&e, FRAME_BIG_ROW), 1);
        CHECK_INT(page_encoder_end_part_with(&e, bytes, 20007, false), 20000);
        CHECK_INT(page_encoder_finish(&e), 20016);
        CHECK_INT(load_le16(e.page + 6), FRAME_MORE);

        /* 3. The last of them: alone, and when the caller has more. */
        for (unsigned more = 0; more < 2; more++) {
                page_encoder_clear(&e);
                CHECK_INT(page_encoder_begin_part(&e, FRAME_BIG_ROW), 1);
                CHECK_INT(page_encoder_end_part_with(&e, bytes, 20000, more), 20000);
                CHECK_INT(load_le16(e.page + 6), more ? FRAME_MORE : 0);
        }

        /* 4. Few are not worth it; the part stays open. */
        page_encoder_clear(&e);
        CHECK_INT(page_encoder_begin_part(&e, FRAME_BIG_ROW), 1);
        CHECK_INT(page_encoder_end_part_with(&e, bytes, 3, false), 0);
        CHECK_INT(page_encoder_append(&e, bytes, 3), 3);
        page_encoder_end_part(&e, false);
        CHECK_INT(page_encoder_finish(&e), 24);

        /* 5. It is dropped with the row that it ended. */
        CHECK_INT(page_encoder_begin_part(&e, FRAME_BIG_ROW), 1);
        CHECK_INT(page_encoder_end_part_with(&e, bytes, 20000, true), 20000);
        page_encoder_cut(&e, 24);
        CHECK(!e.tail);
        CHECK_INT(put_text_row(&e, 1), 1);
        encoder_free(&e);
}

static void test_part_needs_a_byte(void) {
        for (size_t left = 8; left <= 32; left += 8) {
                PageEncoder e;

                encoder_new(&e, PAGE, 1);
                leave(&e, left);
                CHECK_INT(page_encoder_begin_part(&e, FRAME_BIG_ROW), left > 16);
                if (left > 16)
                        CHECK_INT(page_encoder_part_room(&e), left - 16);
                encoder_free(&e);
        }
}

static void test_end(void) {
        const EndCounters counters = { 1, 2, 3, 4, 5, 6, UINT64_MAX };
        PageEncoder e;

        encoder_new(&e, PAGE, 9);
        leave(&e, 64);
        CHECK_INT(page_encoder_end(&e, &counters), 0);
        CHECK_INT(page_encoder_finish(&e), PAGE - 64);
        page_encoder_clear(&e);
        leave(&e, 72);
        CHECK_INT(page_encoder_end(&e, &counters), 1);
        CHECK_INT(page_encoder_finish(&e), PAGE);
        CHECK(memcmp(e.page + PAGE - 72, "\x38\0\0\0\4\1\0\0\x9\0\0\0\0\0\0\0", 16) == 0);
        for (size_t i = 0; i < 6; i++)
                CHECK_INT(load_le64(e.page + PAGE - 56 + 8 * i), i + 1);
        CHECK(load_le64(e.page + PAGE - 8) == UINT64_MAX);
        encoder_free(&e);
}

static void test_error(void) {
        PageEncoder e;

        encoder_new(&e, PAGE, 9);
        leave(&e, 32);
        CHECK_INT(page_encoder_error(&e, 1, 0, -1, "", 0), 0);
        page_encoder_clear(&e);
        leave(&e, 40);
        CHECK_INT(page_encoder_error(&e, 1, 0, -1, "12345678", 8), 0);
        CHECK_INT(page_encoder_error(&e, 11, -517, -1, "1234567", 7), 1);
        CHECK_INT(page_encoder_finish(&e), PAGE);
        CHECK(memcmp(e.page + PAGE - 40, "\x18\0\0\0\5\1\0\0\x9\0\0\0\0\0\0\0\xb\0\0\0\xfb\xfd\xff\xff\xff\xff\xff\xff"
                                         "\7\0\0\0" "1234567", 40) == 0);

        /* a message is bytes: a NUL and invalid UTF-8 stay in it */
        page_encoder_clear(&e);
        CHECK_INT(page_encoder_error(&e, 11, 0, 5, "a\0\xff" "b", 4), 1);
        CHECK_INT(load_le32(e.page + 28), 4);
        CHECK(memcmp(e.page + 32, "a\0\xff" "b", 5) == 0);
        CHECK_INT(load_le32(e.page + 24), 5);
        encoder_free(&e);
}

/* Encodes `message`, checks the frame, and returns how many bytes of it were kept in front of an ellipsis; all: -1. */
static int kept_of_message(const char *message, size_t size) {
        PageEncoder e;
        size_t stored;
        bool cut;

        encoder_new(&e, PAGE, 1);
        CHECK_INT(page_encoder_error(&e, 11, 0, -1, message, size), 1);
        stored = load_le32(e.page + 28);
        CHECK(stored <= SQLIPC_MESSAGE_SIZE_MAX);
        CHECK_INT(load_le32(e.page), 16 + stored + 1);
        CHECK_INT(e.page[32 + stored], 0);
        cut = stored != size || memcmp(e.page + 32, message, size) != 0;
        if (cut) {
                stored -= 3;
                CHECK(memcmp(e.page + 32 + stored, "\xe2\x80\xa6", 3) == 0);
                CHECK(memcmp(e.page + 32, message, stored) == 0);
        }
        encoder_free(&e);
        return cut ? (int) stored : -1;
}

static void test_long_messages(void) {
        const int room = SQLIPC_MESSAGE_SIZE_MAX - 3;
        char message[3000];

        memset(message, 'm', sizeof message);
        CHECK_INT(kept_of_message(message, SQLIPC_MESSAGE_SIZE_MAX), -1);
        CHECK_INT(kept_of_message(message, SQLIPC_MESSAGE_SIZE_MAX + 1), room);
        CHECK_INT(kept_of_message(message, sizeof message), room);

        /* a character of four bytes across the cut is left out whole, and kept if it ends at the cut */
        for (int before = 1; before <= 3; before++) {
                memset(message, 'm', sizeof message);
                memcpy(message + room - before, "\xf0\x9f\x82\xa1", 4);
                CHECK_INT(kept_of_message(message, sizeof message), room - before);
        }
        memset(message, 'm', sizeof message);
        memcpy(message + room - 4, "\xf0\x9f\x82\xa1", 4);
        CHECK_INT(kept_of_message(message, sizeof message), room);

        /* no UTF-8 at all: nothing to respect */
        memset(message, 0x80, sizeof message);
        CHECK_INT(kept_of_message(message, sizeof message), room);
        memset(message, 0xff, sizeof message);
        CHECK_INT(kept_of_message(message, sizeof message), room);
}

/* As many columns as SQLite can be built for; their head alone is larger than a small page. */
static void test_many_columns(void) {
        const unsigned n = SQLIPC_N_COLUMNS_MAX;
        PageEncoder e;

        encoder_new(&e, PAGE, 1);
        CHECK_INT(page_encoder_begin_row(&e, n), 0);
        CHECK_INT(page_encoder_begin_row(&e, (PAGE - ROWS_SIZE) / 5 + 1), 0);
        CHECK_INT(page_encoder_begin_row(&e, (PAGE - ROWS_SIZE) / 5), 1);
        for (unsigned i = 0; i < (PAGE - ROWS_SIZE) / 5; i++)
                page_encoder_add_null(&e);
        CHECK_INT(page_encoder_end_row(&e), 1);
        encoder_free(&e);

        encoder_new(&e, SQLIPC_PAGE_SIZE_MAX, 1);
        CHECK_INT(page_encoder_begin_row(&e, n), 1);
        for (unsigned i = 0; i < n; i++)
                page_encoder_add_int64(&e, i);
        CHECK_INT(page_encoder_end_row(&e), 1);
        CHECK_INT(e.fill, ROWS_SIZE + (size_t) 13 * n);
        CHECK_INT(load_le64(e.page + e.fill - 8), n - 1);
        encoder_free(&e);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_bytes_of_rows),
                TEST(test_row_fills_page),
                TEST(test_row_that_does_not_fit),
                TEST(test_sticky),
                TEST(test_dropped_rows),
                TEST(test_end_of_a_write),
                TEST(test_parts),
                TEST(test_tail),
                TEST(test_part_needs_a_byte),
                TEST(test_end),
                TEST(test_error),
                TEST(test_long_messages),
                TEST(test_many_columns),
        };
        return test_main(tests, N_ELEMENTS(tests));
}
