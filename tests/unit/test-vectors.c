/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The streams of tests/vectors, as bytes: decoded in pieces of every size, cut at every byte, with every byte changed.
 * test_vectors.py compares their contents with their JSON. Argument: the folder.
 */
#include <dirent.h>
#include <errno.h>

#include "tests/unit/stream.h"
#include "tests/unit/test.h"
#include "tests/vectors/page-text.h"

#define N_VECTORS_MIN 10

static struct {
        char name[64];
        Stream stream;
} vectors[64];
static size_t n_vectors;

/* Digits of a line up to a comment; the rest means nothing. */
static void read_line(Stream *s, const char *line) {
        unsigned n_digits = 0, byte = 0;

        for (; *line && *line != '#'; line++) {
                const char *digits = "0123456789abcdef", *digit = strchr(digits, *line);

                if (!digit)
                        continue;
                byte = byte << 4 | (unsigned) (digit - digits);
                if (++n_digits % 2 == 0)
                        *stream_extend(s, 1) = (uint8_t) byte;
        }
        CHECK_INT(n_digits % 2, 0);
}

static void read_vectors(const char *folder) {
        struct dirent **entries;
        int n = scandir(folder, &entries, NULL, alphasort);

        CHECK(n >= 0);
        for (int i = 0; i < n; i++) {
                size_t length = strlen(entries[i]->d_name);

                if (length > 4 && strcmp(entries[i]->d_name + length - 4, ".hex") == 0) {
                        char path[4096], line[4096];
                        FILE *file;

                        CHECK(n_vectors < N_ELEMENTS(vectors) && length < sizeof vectors->name);
                        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
                        strcpy(vectors[n_vectors].name, entries[i]->d_name);
                        file = fopen(path, "re");
                        CHECK(file);
                        while (fgets(line, sizeof line, file))
                                read_line(&vectors[n_vectors].stream, line);
                        CHECK(feof(file) && fclose(file) == 0);
                        n_vectors++;
                }
                free(entries[i]);
        }
        free(entries);
}

static char *decode(const uint8_t *bytes, size_t size, size_t chunk, int *ret_result) {
        size_t text_size;
        char *text;
        FILE *out = open_memstream(&text, &text_size);
        PageDecoder d;

        CHECK(out);
        page_decoder_init(&d, SQLIPC_PAGE_SIZE_MAX, SQLIPC_ROW_SIZE_MAX);
        *ret_result = page_text_decode(out, &d, bytes, size, chunk);
        page_decoder_done(&d);
        CHECK(fclose(out) == 0);
        return text;
}

static void test_pieces(void) {
        CHECK(n_vectors >= N_VECTORS_MIN);
        for (size_t i = 0; i < n_vectors; i++) {
                const Stream *s = &vectors[i].stream;
                char *whole;
                int r;

                whole = decode(s->bytes, s->size, SIZE_MAX, &r);
                if (r < 0)
                        test_fail(__FILE__, __LINE__, vectors[i].name, strerror(-r), "sound");
                for (size_t chunk = 1; chunk < s->size; chunk = 2 * chunk + 1) {
                        char *text = decode(s->bytes, s->size, chunk, &r);

                        CHECK_INT(r, 0);
                        CHECK_STRING(text, whole);
                        free(text);
                }
                free(whole);
        }
}

/* Each cut gives what came before it, and is an error unless it is between runs. */
static void test_truncated(void) {
        for (size_t i = 0; i < n_vectors; i++) {
                const Stream *s = &vectors[i].stream;
                char *whole;
                int r;

                whole = decode(s->bytes, s->size, SIZE_MAX, &r);
                for (size_t size = 0; size < s->size; size += s->size > 2000 ? 61 : 1) {
                        char *text = decode(s->bytes, size, SIZE_MAX, &r);
                        size_t length = strlen(text);

                        CHECK(strncmp(text, whole, length) == 0);
                        if (r == 0) /* only behind END or ERROR, so only in front of another run */
                                CHECK(length == 0 || strncmp(whole + length, "run ", 4) == 0);
                        else
                                CHECK_INT(r, -ECONNRESET);
                        free(text);
                }
                free(whole);
        }
}

/* A changed byte may change a value or break the stream; it never means something that depends on how it arrived. */
static void test_changed(void) {
        for (size_t i = 0; i < n_vectors; i++) {
                const Stream *s = &vectors[i].stream;

                for (size_t at = 0; at < s->size; at += s->size > 2000 ? 37 : 1) {
                        char *whole, *pieces;
                        int r, q;

                        s->bytes[at] ^= (uint8_t) (1 << at % 8);
                        whole = decode(s->bytes, s->size, SIZE_MAX, &r);
                        pieces = decode(s->bytes, s->size, 1000, &q);
                        s->bytes[at] ^= (uint8_t) (1 << at % 8);
                        CHECK(r == 0 || r == -EBADMSG || r == -ECONNRESET);
                        CHECK_INT(q, r);
                        CHECK_STRING(pieces, whole);
                        free(whole);
                        free(pieces);
                }
        }
}

int main(int argc, char **argv) {
        static const Test tests[] = {
                TEST(test_pieces),
                TEST(test_truncated),
                TEST(test_changed),
        };
        int r;

        if (argc != 2) {
                fputs("usage: test-vectors FOLDER\n", stderr);
                return EXIT_FAILURE;
        }
        test_name = "reading the vectors";
        read_vectors(argv[1]);
        r = test_main(tests, N_ELEMENTS(tests));
        for (size_t i = 0; i < n_vectors; i++)
                stream_done(&vectors[i].stream);
        return r;
}
