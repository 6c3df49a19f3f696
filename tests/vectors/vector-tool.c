/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The C codec for the test of the vectors, which has no C codec of its own: standard input to standard output, raw bytes
 * on the side of the stream.
 *
 *      vector-tool decode   page stream -> lines of page-text.h
 *      vector-tool encode   the same lines -> page stream
 *
 * encode packs as many whole frames into a page as fit, as a writer does that is never kept waiting. It knows more lines:
 *
 *      columns                   behind "run", if the run has COLUMNS
 *      partial FRAMES VALUE...   a row as BIG_ROW of which only the first FRAMES frames are written
 *      end-fields STRING         bytes behind the counters of the END in the next line
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "dbus-interfaces/wire/page-encoder.h"
#include "tests/vectors/page-text.h"

static _Noreturn void die(const char *what) {
        fprintf(stderr, "vector-tool: %s\n", what);
        exit(EXIT_FAILURE);
}

/* A page under way, and the COLUMNS payload as it is put together. */
typedef struct Writer {
        PageEncoder encoder;
        uint8_t page[SQLIPC_PAGE_SIZE_MAX];
        uint8_t ends[8 * SQLIPC_N_COLUMNS_MAX], strings[SQLIPC_COLUMNS_SIZE_MAX];
        uint32_t n_columns;
        size_t strings_size;
        bool columns_are_due;
        uint8_t behind[1024]; /* items of the next COLUMNS or ERROR, or fields of the next END */
        size_t behind_size;
} Writer;

static void flush(Writer *w) {
        size_t size = page_encoder_finish(&w->encoder);

        if (size > 0 && fwrite(w->page, size, 1, stdout) != 1)
                die("cannot write");
        page_encoder_clear(&w->encoder);
}

static int hex_digit(char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Hex to bytes, in place: they take less. */
static size_t parse_hex(char *hex) {
        size_t size = strlen(hex);

        if (size % 2 != 0)
                die("odd number of hex digits");
        for (size_t i = 0; i < size; i += 2) {
                int high = hex_digit(hex[i]), low = hex_digit(hex[i + 1]);

                if (high < 0 || low < 0)
                        die("no hex digit");
                hex[i / 2] = (char) (high << 4 | low);
        }
        return size / 2;
}

static uint64_t parse_number(const char *word, int base, bool *ret_negative) {
        char *end;
        uint64_t value;

        *ret_negative = *word == '-';
        errno = 0;
        value = strtoull(word + *ret_negative, &end, base);
        if (errno != 0 || *end || end == word + *ret_negative)
                die("no number");
        return value;
}

static int64_t parse_signed(const char *word) {
        bool negative;
        uint64_t value = parse_number(word, 10, &negative);

        return (int64_t) (negative ? 0 - value : value);
}

static uint64_t parse_unsigned(const char *word, int base) {
        bool negative;
        uint64_t value = parse_number(word, base, &negative);

        if (negative)
                die("negative number");
        return value;
}

static char *next_word(char **line) {
        char *word = strsep(line, " ");

        if (!word || !*word)
                die("a word is missing");
        return word;
}

static void add_string(Writer *w, char *word, size_t index) {
        if (word[0] == 'x') {
                size_t size = parse_hex(word + 1);

                if (size + 1 > sizeof w->strings - w->strings_size)
                        die("too many strings");
                memcpy(w->strings + w->strings_size, word + 1, size);
                w->strings[w->strings_size + size] = 0;
                w->strings_size += size + 1;
        }
        store_le32(w->ends + 4 * index, (uint32_t) w->strings_size);
}

/* Appends to the open part, opening the next one of `kind` where the page is full. Stops after `n_frames` frames. */
static bool append(Writer *w, FrameKind kind, const uint8_t *bytes, size_t size, size_t *n_frames) {
        while (size > 0) {
                size_t n = page_encoder_append(&w->encoder, bytes, size);

                bytes += n;
                size -= n;
                if (size == 0 || page_encoder_part_room(&w->encoder) > 0)
                        continue;
                page_encoder_end_part(&w->encoder, true);
                flush(w);
                if (--*n_frames == 0)
                        return false;
                page_encoder_begin_part(&w->encoder, kind);
        }
        return true;
}

static void begin_part(Writer *w, FrameKind kind) {
        if (!page_encoder_begin_part(&w->encoder, kind)) {
                flush(w);
                page_encoder_begin_part(&w->encoder, kind);
        }
}

static void write_columns(Writer *w) {
        size_t n_frames = SIZE_MAX;
        uint8_t head[8];

        store_le32(head, w->n_columns);
        store_le32(head + 4, (uint32_t) w->encoder.page_size);
        begin_part(w, FRAME_COLUMNS);
        append(w, FRAME_COLUMNS, head, sizeof head, &n_frames);
        append(w, FRAME_COLUMNS, w->ends, (size_t) 8 * w->n_columns, &n_frames);
        append(w, FRAME_COLUMNS, w->strings, w->strings_size, &n_frames);
        append(w, FRAME_COLUMNS, w->behind, w->behind_size, &n_frames);
        page_encoder_end_part(&w->encoder, false);
        w->columns_are_due = false;
        w->strings_size = w->behind_size = 0;
}

static void add_behind(Writer *w, char *string) {
        size_t size = parse_hex(string + 1);

        if (size > sizeof w->behind - w->behind_size)
                die("too many bytes behind a payload");
        memcpy(w->behind + w->behind_size, string + 1, size);
        w->behind_size += size;
}

static void add_item(Writer *w, char *line) {
        uint64_t tag = parse_unsigned(next_word(&line), 10);
        size_t head = w->behind_size;

        if (ITEM_HEAD_SIZE > sizeof w->behind - head)
                die("too many items");
        w->behind_size += ITEM_HEAD_SIZE;
        add_behind(w, next_word(&line));
        store_le32(w->behind + head, (uint32_t) tag);
        store_le32(w->behind + head + 4, (uint32_t) (w->behind_size - head - ITEM_HEAD_SIZE));
}

/* What a later writer puts behind the END or ERROR at `start`, the last frame of the page. */
static void extend_last_frame(Writer *w, size_t start) {
        uint8_t *frame = w->page + start;
        size_t size = load_le32(frame), padded = FRAME_HEADER_SIZE + frame_padded(size + w->behind_size);

        if (padded > w->encoder.page_size - start)
                die("no room behind the last frame");
        memset(frame + FRAME_HEADER_SIZE + size, 0, padded - FRAME_HEADER_SIZE - size);
        memcpy(frame + FRAME_HEADER_SIZE + size, w->behind, w->behind_size);
        store_le32(frame, (uint32_t) (size + w->behind_size));
        w->encoder.fill = start + padded;
        w->behind_size = 0;
}

static void add_value(PageEncoder *e, char *word) {
        size_t size = word[0] == 't' || word[0] == 'b' ? parse_hex(word + 2) : 0;

        switch (word[0]) {
        case 'i':
                page_encoder_add_int64(e, parse_signed(word + 2));
                return;
        case 'r': {
                uint8_t *at = page_encoder_add(e, VALUE_REAL, 8);

                if (at)
                        store_le64(at, parse_unsigned(word + 2, 16));
                return;
        }
        case 't':
                page_encoder_add_text(e, word + 2, size);
                return;
        case 'b':
                page_encoder_add_blob(e, word + 2, size);
                return;
        case 'n':
                page_encoder_add_null(e);
                return;
        }
        die("unknown type of value");
}

/* The row in `line` with its values, in whatever page `e` has. The line is used up. */
static int put_row(PageEncoder *e, const char *line, unsigned n_columns) {
        char *copy = strdup(line), *rest = copy;
        int r;

        if (!copy)
                die("out of memory");
        r = page_encoder_begin_row(e, n_columns);
        for (unsigned i = 0; r > 0 && i < n_columns; i++)
                add_value(e, next_word(&rest));
        r = r > 0 ? page_encoder_end_row(e) : 0;
        free(copy);
        return r;
}

/* The bytes of a large row are those that it has as the only one of a large enough page. */
static void write_big_row(Writer *w, const char *line, size_t n_frames) {
        static uint8_t page[SQLIPC_PAGE_SIZE_MAX];
        PageEncoder large;

        page_encoder_init(&large, page, sizeof page, 0);
        if (!put_row(&large, line, w->n_columns))
                die("row too large for this tool");

        begin_part(w, FRAME_BIG_ROW);
        if (append(w, FRAME_BIG_ROW, page + FRAME_HEADER_SIZE + 4, large.fill - FRAME_HEADER_SIZE - 4, &n_frames))
                page_encoder_end_part(&w->encoder, false);
}

static void write_row(Writer *w, const char *line) {
        if (put_row(&w->encoder, line, w->n_columns))
                return;
        flush(w);
        if (!put_row(&w->encoder, line, w->n_columns))
                write_big_row(w, line, SIZE_MAX);
}

static void write_end(Writer *w, char *line) {
        uint64_t v[7];

        for (size_t i = 0; i < 7; i++)
                v[i] = parse_unsigned(next_word(&line), 10);
        EndCounters counters = { v[0], v[1], v[2], v[3], v[4], v[5], v[6], .wrote = line };

        if (counters.wrote) {
                counters.n_changes = parse_signed(next_word(&line));
                counters.last_rowid = parse_signed(next_word(&line));
                counters.wrote = counters.n_changes >= 0;
                if (line)
                        counters.sequence = parse_unsigned(next_word(&line), 10);
        }

        size_t start = page_encoder_finish(&w->encoder);

        if (!page_encoder_end(&w->encoder, &counters)) {
                flush(w);
                start = 0;
                page_encoder_end(&w->encoder, &counters);
        }
        extend_last_frame(w, start);
        flush(w);
}

static void write_error(Writer *w, char *line) {
        uint32_t number = (uint32_t) parse_unsigned(next_word(&line), 10);
        int32_t code = (int32_t) parse_signed(next_word(&line)), offset = (int32_t) parse_signed(next_word(&line));
        char *message = next_word(&line) + 1;
        size_t size = parse_hex(message), start = page_encoder_finish(&w->encoder);

        if (!page_encoder_error(&w->encoder, number, code, offset, message, size)) {
                flush(w);
                start = 0;
                page_encoder_error(&w->encoder, number, code, offset, message, size);
        }
        extend_last_frame(w, start);
        flush(w);
}

static void encode_line(Writer *w, char *line) {
        const char *verb = next_word(&line);

        if (w->columns_are_due && strncmp(verb, "column", strlen("column")) != 0)
                write_columns(w);
        if (strcmp(verb, "run") == 0) {
                uint64_t run = parse_unsigned(next_word(&line), 10), page_size = parse_unsigned(next_word(&line), 10);

                page_encoder_init(&w->encoder, w->page, page_size, run);
                w->n_columns = 0;
        } else if (strcmp(verb, "columns") == 0)
                w->columns_are_due = true;
        else if (strcmp(verb, "columns-item") == 0 || strcmp(verb, "error-item") == 0)
                add_item(w, line);
        else if (strcmp(verb, "end-fields") == 0)
                add_behind(w, next_word(&line));
        else if (strcmp(verb, "column") == 0) {
                if (w->n_columns == SQLIPC_N_COLUMNS_MAX)
                        die("too many columns");
                add_string(w, next_word(&line), 2 * w->n_columns);
                add_string(w, next_word(&line), 2 * w->n_columns + 1);
                w->n_columns++;
        } else if (strcmp(verb, "row") == 0)
                write_row(w, line);
        else if (strcmp(verb, "partial") == 0) {
                size_t n_frames = parse_unsigned(next_word(&line), 10);

                write_big_row(w, line, n_frames);
        } else if (strcmp(verb, "end") == 0)
                write_end(w, line);
        else if (strcmp(verb, "error") == 0)
                write_error(w, line);
        else
                die("unknown line");
}

static int encode(void) {
        static Writer w;
        char *line = NULL;
        size_t capacity = 0;
        ssize_t size;

        while ((size = getline(&line, &capacity, stdin)) > 0) {
                if (line[size - 1] == '\n')
                        line[size - 1] = 0;
                encode_line(&w, line);
        }
        free(line);
        return EXIT_SUCCESS;
}

static int decode(void) {
        PageDecoder d;
        bool in_run = false;
        int r;

        page_decoder_init(&d, SQLIPC_PAGE_SIZE_MAX, SQLIPC_ROW_SIZE_MAX);
        for (;;) {
                uint8_t *room;
                ssize_t n;
                size_t size;

                while ((r = page_decoder_next(&d)) > 0)
                        page_text_event(stdout, &d, r, &in_run);
                if (r < 0 || (r = page_decoder_reserve(&d, &room, &size)) < 0)
                        break;
                n = read(STDIN_FILENO, room, size);
                if (n < 0)
                        die("cannot read");
                if (n == 0) {
                        r = page_decoder_end_of_file(&d);
                        break;
                }
                page_decoder_commit(&d, (size_t) n);
        }
        page_decoder_done(&d);
        if (r < 0)
                die(strerror(-r));
        return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
        int r;

        if (argc == 2 && strcmp(argv[1], "decode") == 0)
                r = decode();
        else if (argc == 2 && strcmp(argv[1], "encode") == 0)
                r = encode();
        else
                die("usage: vector-tool decode|encode");
        if (fflush(stdout) != 0)
                die("cannot write");
        return r;
}
