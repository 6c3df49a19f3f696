/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as a page stream: the decoder survives them, and its results do not depend on the pieces in which they
 * come.
 *
 * The corpus is the streams of tests/vectors, and streams with one thing wrong under a name that says what; one that broke
 * something joins them.
 *
 * About: dbus-interfaces/wire/page-decoder.c dbus-interfaces/wire/page-payload.c
 */
#include <errno.h>
#include <stdlib.h>

#include "dbus-interfaces/wire/page-decoder.h"
#include "dbus-interfaces/wire/page-payload.h"
#include "tests/fuzz/replay.h"

#define ROW_SIZE_LIMIT ((size_t) 1048576)
#define JOINED_SIZE_LIMIT ((size_t) 4 * 1048576) /* of a statement's description */

/* A sum over all that was found; FNV-1a. */
static void add(uint64_t *sum, const void *bytes, size_t size) {
        for (size_t i = 0; i < size; i++)
                *sum = (*sum ^ ((const uint8_t *) bytes)[i]) * UINT64_C(0x100000001b3);
}

static void add_columns(uint64_t *sum, const PageDecoder *d) {
        for (unsigned i = 0; i < d->n_columns; i++) {
                const char *name, *declared_type;
                size_t size;

                page_decoder_column(d, i, &name, &declared_type);
                add(sum, declared_type ? declared_type : "\1", declared_type ? strlen(declared_type) + 1 : 1);
                page_decoder_column_name(d, i, &name, &size);
                add(sum, name, size + 1);
        }
}

static void add_string(uint64_t *sum, const char *string) {
        if (string)
                add(sum, string, strlen(string) + 1);
}

static void add_statement(uint64_t *sum, const PageDecoder *d) {
        for (unsigned i = 0; i < d->statement_n_columns; i++) {
                const char *name, *declared_type;

                page_decoder_statement_column(d, i, &name, &declared_type);
                add_string(sum, name);
                add_string(sum, declared_type);
        }
        for (unsigned i = 0; i < d->statement_n_parameters; i++)
                add_string(sum, page_decoder_statement_parameter(d, i));
}

static void add_items(uint64_t *sum, const PageDecoder *d) {
        Extension rest = d->extension;
        Item item;

        while (payload_next_item(&rest, &item) > 0) {
                add(sum, &item.tag, sizeof item.tag);
                add(sum, item.bytes, item.size);
        }
}

/* Looks at every byte that a caller may look at. */
static void add_event(uint64_t *sum, const PageDecoder *d, int event) {
        add(sum, &event, sizeof event);
        add(sum, &d->run, sizeof d->run);
        switch (event) {
        case PAGE_COLUMNS:
                add_columns(sum, d);
                add_items(sum, d);
                return;
        case PAGE_ROW:
                for (unsigned i = 0; i < d->n_columns; i++) {
                        PageValue v = page_decoder_value(d, i);

                        add(sum, &v.type, sizeof v.type);
                        add(sum, v.bytes, v.size + (v.type == VALUE_TEXT));
                }
                return;
        case PAGE_STATEMENT:
                add_statement(sum, d);
                add_items(sum, d);
                return;
        case PAGE_END:
                add(sum, &d->end_counters, offsetof(EndCounters, wrote)); /* without the padding of the struct */
                add(sum, &d->end_counters.wrote, sizeof d->end_counters.wrote);
                return;
        case PAGE_ERROR:
                add(sum, &d->error_number, sizeof d->error_number);
                add(sum, d->error_message, d->error_message_size + 1);
                add_items(sum, d);
                return;
        }
}

/* Returns the end of the stream; the buffer must keep its limit. */
static int decode(const uint8_t *bytes, size_t size, size_t chunk, size_t page_size_max, uint64_t *ret_sum) {
        uint64_t sum = UINT64_C(0xcbf29ce484222325);
        PageDecoder d;
        int r;

        page_decoder_init(&d, page_size_max, ROW_SIZE_LIMIT);
        page_decoder_allow_statements(&d);
        for (;;) {
                uint8_t *room;
                size_t n;

                while ((r = page_decoder_next(&d)) > 0)
                        add_event(&sum, &d, r);
                if (r < 0)
                        break;
                if (size == 0) {
                        r = page_decoder_end_of_file(&d);
                        break;
                }
                r = page_decoder_reserve(&d, &room, &n);
                if (r < 0)
                        break;
                n = n > chunk ? chunk : n;
                n = n > size ? size : n;
                memcpy(room, bytes, n);
                page_decoder_commit(&d, n);
                bytes += n;
                size -= n;
                if (d.joined_capacity > JOINED_SIZE_LIMIT || d.capacity > page_size_max + 65536)
                        abort();
        }
        page_decoder_done(&d);
        *ret_sum = sum;
        return r;
}

static void check_row(const uint8_t *bytes, size_t size) {
        /* a copy of exactly its size, so that AddressSanitizer sees a look behind it */
        uint8_t *copy = malloc(size + 1);
        size_t row_size = 0;

        if (!copy)
                abort();
        if (size > 0)
                memcpy(copy + 1, bytes, size);
        for (unsigned n_columns = 0; n_columns < 4; n_columns++)
                if (page_check_row(copy + 1, size, n_columns, &row_size) == 0 && row_size > size)
                        abort();
        free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
        static const size_t page_sizes[] = { SQLIPC_PAGE_SIZE_MIN, SQLIPC_PAGE_SIZE_MAX };

        for (size_t i = 0; i < sizeof page_sizes / sizeof *page_sizes; i++) {
                uint64_t whole_sum, sum;
                int r = decode(bytes, size, SIZE_MAX, page_sizes[i], &whole_sum);

                if (r != 0 && r != -EBADMSG && r != -EMSGSIZE && r != -ECONNRESET)
                        abort();
                if (decode(bytes, size, 1, page_sizes[i], &sum) != r || sum != whole_sum)
                        abort();
                if (decode(bytes, size, 29, page_sizes[i], &sum) != r || sum != whole_sum)
                        abort();
        }
        check_row(bytes, size);
        return 0;
}
