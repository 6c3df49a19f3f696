/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The decoder with rows of several large parts, which it reads directly into the memory in which it joins them: after a read
 * that ended anywhere, in memory that grows only with the received bytes, and with errors in the parts.
 */
#include <errno.h>

#include "tests/unit/decode.h"

#define ROW_SIZE_LIMIT ((size_t) 64 * 1024 * 1024)
#define READ_SIZE ((size_t) 65536)

#define LONG_PART ((size_t) 40003) /* a frame of it is large, and has padding */

#define LONG_FRAME (FRAME_HEADER_SIZE + frame_padded(LONG_PART))
#define COLUMNS_FRAME (FRAME_HEADER_SIZE + 24)

/* Two rows of three parts each and a little, which is no large part. */
static void make_long_rows(Stream *s, Stream *row) {
        stream_add_blob_row(row, 3 * LONG_PART + 3);
        for (size_t i = 5; i < row->size; i++)
                row->bytes[i] = (uint8_t) (i * 131 >> 5);
        stream_add_columns(s, 1, 1, 65536);
        stream_add_series(s, FRAME_BIG_ROW, 1, row, LONG_PART, 0);
        stream_add_series(s, FRAME_BIG_ROW, 1, row, LONG_PART, 0);
        stream_add_end(s, 1, 2);
}

/* Decodes as much as there is; how many of the rows were whole. */
static unsigned take_long_rows(PageDecoder *d, const Stream *row) {
        unsigned n = 0;
        int r;

        while ((r = page_decoder_next(d)) > 0)
                if (r == PAGE_ROW) {
                        CHECK_INT(page_decoder_value(d, 0).size, row->size - 5);
                        CHECK(memcmp(page_decoder_value(d, 0).bytes, row->bytes + 5, row->size - 5) == 0);
                        n++;
                }
        CHECK_INT(r, PAGE_MORE);
        return n;
}

/* Close to the beginning of a frame of the first row, or among the small frames. */
static bool near_a_border(size_t at, const Stream *s) {
        size_t row = COLUMNS_FRAME + 3 * LONG_FRAME, rest = FRAME_HEADER_SIZE + frame_padded(8);

        return at < COLUMNS_FRAME || (at < row && (at - COLUMNS_FRAME + 32) % LONG_FRAME < 64) ||
               (at >= row - 32 && at < row + rest + 64) || s->size - at < 256;
}

/* Parts of a long row are read into the joined row, after a read that ended anywhere in a frame: at each byte around the
 * borders of frames, and at some within. Memory that is not needed yet may be given back there, too. */
static void test_long_rows_in_two_pieces(void) {
        Stream s = STREAM_INIT, row = STREAM_INIT;

        make_long_rows(&s, &row);
        for (size_t at = 0; at <= s.size; at += near_a_border(at, &s) ? 1 : 997)
                for (unsigned trims = 0; trims < 2; trims++) {
                        unsigned n_rows = 0;
                        PageDecoder d;

                        page_decoder_init(&d, 65536, row.size);
                        for (size_t done = 0; done < s.size;) {
                                size_t n, end = done < at ? at : s.size;
                                uint8_t *room;

                                CHECK_INT(page_decoder_reserve(&d, &room, &n), 0);
                                n = n < end - done ? n : end - done;
                                memcpy(room, s.bytes + done, n);
                                page_decoder_commit(&d, n);
                                done += n;
                                n_rows += take_long_rows(&d, &row);
                                if (trims)
                                        page_decoder_trim(&d);
                        }
                        CHECK_INT(n_rows, 2);
                        CHECK_INT(page_decoder_end_of_file(&d), 0);
                        page_decoder_done(&d);
                }
        stream_done(&row);
        stream_done(&s);
}

/* As from a pipe that always has more: once there is room for the row, its parts, except its head and its short rest, are
 * read into their final place, by a read for each. */
static void test_long_rows_are_read_in_place(void) {
        Stream s = STREAM_INIT, row = STREAM_INIT;
        size_t elsewhere = 0;
        unsigned n_reads = 0;
        PageDecoder d;

        make_long_rows(&s, &row);
        page_decoder_init(&d, 65536, ROW_SIZE_LIMIT);
        for (size_t done = 0; done < s.size; n_reads++) {
                uint8_t *room;
                size_t n;

                CHECK_INT(page_decoder_reserve(&d, &room, &n), 0);
                n = n < s.size - done ? n : s.size - done;
                memcpy(room, s.bytes + done, n);
                if (room < d.joined || room >= d.joined + d.joined_capacity)
                        elsewhere += n;
                page_decoder_commit(&d, n);
                done += n;
                (void) take_long_rows(&d, &row);
        }
        CHECK(elsewhere < READ_SIZE + 1000); /* the first read knew of no frame */
        CHECK(n_reads < 20);
        page_decoder_done(&d);
        stream_done(&row);
        stream_done(&s);
}

/* Errors in a long part are found, too; and a run may fail after any of them. */
static void test_long_parts_refused(void) {
        Stream s = STREAM_INIT, row = STREAM_INIT, cut = STREAM_INIT;

        make_long_rows(&s, &row);
        CHECK_INT(decode_result(&s, 65536, row.size), 0);
        CHECK_INT(decode_result(&s, 65536, row.size - 1), -EMSGSIZE);
        for (size_t at = COLUMNS_FRAME + LONG_FRAME; at <= COLUMNS_FRAME + 3 * LONG_FRAME; at += LONG_FRAME) {
                s.bytes[at - 1] = 1; /* padding */
                CHECK_INT(decode_result(&s, 65536, row.size), -EBADMSG);
                s.bytes[at - 1] = 0;

                stream_add(&cut, s.bytes, at);
                CHECK_INT(decode_result(&cut, 65536, row.size), -ECONNRESET);
                stream_add_error(&cut, 1, 1, "");
                CHECK_INT(decode_result(&cut, 65536, row.size), 0);
                stream_done(&cut);
        }
        stream_done(&row);
        stream_done(&s);
}

/* A part announces a page of 1 MiB: memory follows what arrives, not what was announced. */
static void test_growth_of_parts(void) {
        Stream s = STREAM_INIT;
        PageDecoder d;

        stream_add_columns(&s, 1, 1, SQLIPC_PAGE_SIZE_MAX);
        stream_add_frame(&s, FRAME_BIG_ROW, FRAME_MORE, 1, "", 0);
        store_le32(s.bytes + s.size - FRAME_HEADER_SIZE, SQLIPC_PAGE_SIZE_MAX - FRAME_HEADER_SIZE);
        page_decoder_init(&d, SQLIPC_PAGE_SIZE_MAX, ROW_SIZE_LIMIT);
        feed(&d, s.bytes, s.size);
        CHECK_INT(page_decoder_next(&d), PAGE_COLUMNS);
        for (size_t arrived = 0; arrived < SQLIPC_PAGE_SIZE_MAX - FRAME_HEADER_SIZE; arrived++) {
                CHECK_INT(page_decoder_next(&d), PAGE_MORE);
                feed(&d, (const uint8_t *) "", 1);
                CHECK(d.capacity <= READ_SIZE);
                CHECK(d.joined_capacity <= (4 * arrived < READ_SIZE ? READ_SIZE : 4 * arrived));
        }
        CHECK_INT(page_decoder_next(&d), PAGE_MORE);
        CHECK_INT(page_decoder_end_of_file(&d), -ECONNRESET);
        page_decoder_done(&d);
        stream_done(&s);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_long_rows_in_two_pieces),
                TEST(test_long_rows_are_read_in_place),
                TEST(test_long_parts_refused),
                TEST(test_growth_of_parts),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
