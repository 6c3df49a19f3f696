/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* STATEMENT in a channel's stream: accepted whole and in parts of any size, refused if any part of it is wrong. Pure. */
#include <errno.h>

#include "dbus-interfaces/wire/page-decoder.h"
#include "tests/unit/stream.h"

#define PAGE SQLIPC_PAGE_SIZE_MIN

/* A statement of two columns ("id" INTEGER, "x" without a type) and two parameters (nameless, ":b"), with one thing changed:
 * the u32 at `offset` is `value`. */
static void add_payload(Stream *s, size_t offset, uint32_t value) {
        static const uint32_t head[] = { 2, 2, STATEMENT_READ_ONLY, 0, 3, 11, 13, 13, 13, 16 };

        for (size_t i = 0; i < N_ELEMENTS(head); i++)
                stream_add_le32(s, head[i]);
        stream_add(s, "id\0INTEGER\0x\0:b", 16);
        if (offset < s->size)
                store_le32(s->bytes + offset, value);
}

/* Reads `s`, `chunk` bytes at a time, up to an event that is not PAGE_MORE, or the end. */
static int read_event(PageDecoder *d, const Stream *s, size_t *at, size_t chunk) {
        for (;;) {
                uint8_t *room;
                size_t size;
                int r = page_decoder_next(d);

                if (r != PAGE_MORE || *at == s->size)
                        return r;
                CHECK_INT(page_decoder_reserve(d, &room, &size), 0);
                size = size < chunk ? size : chunk;
                size = size < s->size - *at ? size : s->size - *at;
                memcpy(room, s->bytes + *at, size);
                page_decoder_commit(d, size);
                *at += size;
        }
}

static int first_event(Stream *s, bool allow) {
        PageDecoder d;
        size_t at = 0;
        int r;

        page_decoder_init(&d, PAGE, SQLIPC_ROW_SIZE_MAX);
        if (allow)
                page_decoder_allow_statements(&d);
        r = read_event(&d, s, &at, SIZE_MAX);
        page_decoder_done(&d);
        stream_done(s);
        return r;
}

static void check_statement(const PageDecoder *d) {
        const char *name, *declared_type;

        CHECK_INT(d->statement_n_columns, 2);
        CHECK_INT(d->statement_n_parameters, 2);
        CHECK_INT(d->statement_read_only, true);
        page_decoder_statement_column(d, 0, &name, &declared_type);
        CHECK_STRING(name, "id");
        CHECK_STRING(declared_type, "INTEGER");
        page_decoder_statement_column(d, 1, &name, &declared_type);
        CHECK_STRING(name, "x");
        CHECK(!declared_type);
        CHECK(!page_decoder_statement_parameter(d, 0));
        CHECK_STRING(page_decoder_statement_parameter(d, 1), ":b");
}

/* Between runs, in one frame and in several, in pieces of every size. */
static void test_statement(void) {
        for (size_t part = 1; part <= 64; part++)
                for (size_t chunk = 1; chunk <= 41; chunk += 8) {
                        Stream s = STREAM_INIT, payload = STREAM_INIT;
                        PageDecoder d;
                        size_t at = 0;

                        add_payload(&payload, SIZE_MAX, 0);
                        stream_add_series(&s, FRAME_STATEMENT, 1, &payload, part, 0);
                        stream_add_columns(&s, 2, 1, PAGE);
                        stream_add_end(&s, 2, 0);
                        stream_add_series(&s, FRAME_STATEMENT, 3, &payload, part, 0);
                        page_decoder_init(&d, PAGE, SQLIPC_ROW_SIZE_MAX);
                        page_decoder_allow_statements(&d);
                        CHECK_INT(read_event(&d, &s, &at, chunk), PAGE_STATEMENT);
                        CHECK_INT(d.run, 1);
                        check_statement(&d);
                        CHECK_INT(read_event(&d, &s, &at, chunk), PAGE_COLUMNS);
                        CHECK_INT(read_event(&d, &s, &at, chunk), PAGE_END);
                        CHECK_INT(read_event(&d, &s, &at, chunk), PAGE_STATEMENT);
                        check_statement(&d);
                        CHECK_INT(read_event(&d, &s, &at, chunk), PAGE_MORE);
                        CHECK_INT(page_decoder_end_of_file(&d), 0);
                        page_decoder_done(&d);
                        stream_done(&payload);
                        stream_done(&s);
                }
}

/* Flags, the reserved field and items of a later version say nothing to this one. */
static void test_unknown_fields(void) {
        Stream s = STREAM_INIT, payload = STREAM_INIT;
        PageDecoder d;
        size_t at = 0;

        add_payload(&payload, 8, UINT32_MAX);
        store_le32(payload.bytes + 12, 77);
        stream_add_item(&payload, 9, "later", 5);
        stream_add_item(&payload, UINT32_MAX, "", 0);
        stream_take_frame(&s, FRAME_STATEMENT, 0, 1, &payload);
        page_decoder_init(&d, PAGE, SQLIPC_ROW_SIZE_MAX);
        page_decoder_allow_statements(&d);
        CHECK_INT(read_event(&d, &s, &at, SIZE_MAX), PAGE_STATEMENT);
        check_statement(&d);
        CHECK_INT(d.extension.size, 8 + 5 + 8);
        page_decoder_done(&d);
        stream_done(&s);
}

static void test_wrong_payload(void) {
        static const struct {
                size_t offset;
                uint32_t value;
        } wrong[] = {
                { 0, SQLIPC_N_COLUMNS_MAX + 1 }, { 0, UINT32_MAX }, { 0, 5 }, { 0, 1 },
                { 4, SQLIPC_N_COLUMNS_MAX + 1 }, { 4, UINT32_MAX }, { 4, 20 }, { 4, 1 },
                { 16, 0 }, { 16, 2 }, { 16, 17 }, { 20, 2 }, { 20, 10 }, { 24, 11 }, { 28, 12 }, { 36, 15 }, { 36, 17 },
                { 36, UINT32_MAX },
        };

        for (size_t i = 0; i < N_ELEMENTS(wrong); i++) {
                Stream s = STREAM_INIT, payload = STREAM_INIT;

                add_payload(&payload, wrong[i].offset, wrong[i].value);
                stream_take_frame(&s, FRAME_STATEMENT, 0, 1, &payload);
                CHECK_INT(first_event(&s, true), -EBADMSG);
        }
        for (size_t size = 0; size < 56; size++) { /* cut off anywhere */
                Stream s = STREAM_INIT, payload = STREAM_INIT;

                add_payload(&payload, SIZE_MAX, 0);
                stream_add_frame(&s, FRAME_STATEMENT, 0, 1, payload.bytes, size);
                stream_done(&payload);
                CHECK_INT(first_event(&s, true), -EBADMSG);
        }
}

/* Two frames of which the second may not follow the first. */
static void check_order(unsigned first, unsigned flags, unsigned second, uint64_t second_run) {
        Stream s = STREAM_INIT, payload = STREAM_INIT;

        add_payload(&payload, SIZE_MAX, 0);
        if (first == FRAME_COLUMNS && flags == 0)
                stream_add_columns(&s, 1, 1, PAGE);
        else
                stream_add_frame(&s, first, flags, 1, payload.bytes, 20);
        stream_add_frame(&s, second, 0, second_run, payload.bytes, payload.size);
        stream_done(&payload);
        if (first == FRAME_COLUMNS && flags == 0) {
                PageDecoder d;
                size_t at = 0;

                page_decoder_init(&d, PAGE, SQLIPC_ROW_SIZE_MAX);
                page_decoder_allow_statements(&d);
                CHECK_INT(read_event(&d, &s, &at, SIZE_MAX), PAGE_COLUMNS);
                CHECK_INT(read_event(&d, &s, &at, SIZE_MAX), -EBADMSG);
                page_decoder_done(&d);
                stream_done(&s);
        } else
                CHECK_INT(first_event(&s, true), -EBADMSG);
}

static void test_wrong_place(void) {
        Stream s = STREAM_INIT, payload = STREAM_INIT;

        add_payload(&payload, SIZE_MAX, 0);
        stream_take_frame(&s, FRAME_STATEMENT, 0, 1, &payload);
        CHECK_INT(first_event(&s, false), -EBADMSG); /* not down a pipe */

        check_order(FRAME_COLUMNS, 0, FRAME_STATEMENT, 1);                  /* in a run */
        check_order(FRAME_COLUMNS, FRAME_MORE, FRAME_STATEMENT, 1);         /* in unfinished columns */
        check_order(FRAME_STATEMENT, FRAME_MORE, FRAME_COLUMNS, 1);         /* and the reverse */
        check_order(FRAME_STATEMENT, FRAME_MORE, FRAME_STATEMENT, 2);       /* another's */
        check_order(FRAME_STATEMENT, FRAME_MORE, FRAME_END, 1);
        check_order(FRAME_STATEMENT, FRAME_MORE, FRAME_BIG_ROW, 1);
}

/* ERROR may cut off an unfinished one; one without end is refused before it takes more memory than it may. */
static void test_unfinished(void) {
        static const uint8_t part[4000];
        Stream s = STREAM_INIT;
        PageDecoder d;
        size_t at = 0;
        int r;

        stream_add_frame(&s, FRAME_STATEMENT, FRAME_MORE, 1, part, 20);
        stream_add_error(&s, 1, 35, "no");
        CHECK_INT(first_event(&s, true), PAGE_ERROR);

        page_decoder_init(&d, PAGE, SQLIPC_ROW_SIZE_MAX);
        page_decoder_allow_statements(&d);
        stream_add_frame(&s, FRAME_STATEMENT, FRAME_MORE, 1, part, sizeof part);
        do {
                at = 0;
                r = read_event(&d, &s, &at, SIZE_MAX);
                CHECK(d.joined_capacity <= 4 * 1048576);
        } while (r == PAGE_MORE);
        CHECK_INT(r, -EBADMSG);
        page_decoder_reset(&d); /* as new, except its memory */
        stream_done(&s);
        stream_add_columns(&s, 1, 1, PAGE);
        at = 0;
        CHECK_INT(read_event(&d, &s, &at, SIZE_MAX), PAGE_COLUMNS);
        page_decoder_done(&d);
        stream_done(&s);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_statement),
                TEST(test_unknown_fields),
                TEST(test_wrong_payload),
                TEST(test_wrong_place),
                TEST(test_unfinished),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
