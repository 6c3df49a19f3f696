/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Events of a decoder -> lines. Tests only. */
#include <inttypes.h>
#include <stdlib.h>

#include "tests/vectors/page-text.h"

/* The decoder's buffer has room behind what arrived: to AddressSanitizer that is fair game unless it is told otherwise. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ADDRESS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WITH_ADDRESS_SANITIZER 1
#endif
#ifdef WITH_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(bytes, size) ((void) (bytes), (void) (size))
#define ASAN_UNPOISON_MEMORY_REGION(bytes, size) ((void) (bytes), (void) (size))
#endif

static void print_hex(FILE *out, const void *bytes, size_t size) {
        for (size_t i = 0; i < size; i++)
                fprintf(out, "%02x", ((const uint8_t *) bytes)[i]);
}

static void print_run(FILE *out, const PageDecoder *d, bool *in_run) {
        if (*in_run)
                return;
        fprintf(out, "run %" PRIu64 " -\n", d->run);
        *in_run = true;
}

static void print_items(FILE *out, const PageDecoder *d, const char *verb) {
        Extension rest = d->extension;
        Item item;

        while (payload_next_item(&rest, &item) > 0) {
                fprintf(out, "%s %" PRIu32 " x", verb, item.tag);
                print_hex(out, item.bytes, item.size);
                fputc('\n', out);
        }
}

static void print_columns(FILE *out, const PageDecoder *d) {
        fprintf(out, "run %" PRIu64 " %" PRIu32 "\n", d->run, d->page_size);
        for (unsigned i = 0; i < d->n_columns; i++) {
                const char *name, *sized_name, *declared_type, *next, *ignored;
                size_t name_size;

                page_decoder_column(d, i, &name, &declared_type);
                page_decoder_column_name(d, i, &sized_name, &name_size);
                if (name != sized_name)
                        abort();
                fputs("column x", out);
                print_hex(out, name, name_size);
                fputs(declared_type ? " x" : " -", out);
                /* the next name starts behind the declared type's NUL; there may be other NULs in it */
                next = (const char *) d->columns + d->columns_size;
                if (i + 1 < d->n_columns)
                        page_decoder_column(d, i + 1, &next, &ignored);
                print_hex(out, declared_type, declared_type ? (size_t) (next - declared_type) - 1 : 0);
                fputc('\n', out);
        }
        print_items(out, d, "columns-item");
}

static void print_value(FILE *out, PageValue v) {
        switch (v.type) {
        case VALUE_INTEGER:
                fprintf(out, " i:%" PRId64, (int64_t) load_le64(v.bytes));
                return;
        case VALUE_REAL:
                fprintf(out, " r:%016" PRIx64, load_le64(v.bytes));
                return;
        case VALUE_TEXT:
                fputs(v.bytes[v.size] == 0 ? " t:" : " t-without-nul:", out);
                print_hex(out, v.bytes, v.size);
                return;
        case VALUE_BLOB:
                fputs(" b:", out);
                print_hex(out, v.bytes, v.size);
                return;
        case VALUE_NULL:
                fputs(v.size == 0 ? " n" : " n-with-bytes", out);
                return;
        }
        fputs(" ?", out);
}

void page_text_event(FILE *out, const PageDecoder *d, int event, bool *in_run) {
        switch (event) {
        case PAGE_COLUMNS:
                print_columns(out, d);
                *in_run = true;
                return;
        case PAGE_ROW:
                print_run(out, d, in_run);
                fputs("row", out);
                for (unsigned i = 0; i < d->n_columns; i++)
                        print_value(out, page_decoder_value(d, i));
                fputc('\n', out);
                return;
        case PAGE_END: {
                const EndCounters *c = &d->end_counters;

                print_run(out, d, in_run);
                fprintf(out, "end %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
                        c->n_rows, c->n_bytes, c->usec, c->vm_steps, c->fullscan_steps, c->sorts, c->autoindexes);
                if (c->wrote || c->sequence > 0)
                        fprintf(out, " %" PRId64 " %" PRId64, c->wrote ? c->n_changes : -1, c->wrote ? c->last_rowid : 0);
                if (c->sequence > 0)
                        fprintf(out, " %" PRIu64, c->sequence);
                fputc('\n', out);
                *in_run = false;
                return;
        }
        case PAGE_ERROR:
                print_run(out, d, in_run);
                print_items(out, d, "error-item");
                fprintf(out, "error %" PRIu32 " %" PRId32 " %" PRId32 " x", d->error_number, d->error_extended_code,
                        d->error_sql_offset);
                print_hex(out, d->error_message, d->error_message_size + (d->error_message[d->error_message_size] != 0));
                fputc('\n', out);
                *in_run = false;
                return;
        }
}

int page_text_decode(FILE *out, PageDecoder *d, const uint8_t *bytes, size_t size, size_t chunk) {
        bool in_run = false;

        for (;;) {
                uint8_t *room;
                size_t n;
                int r;

                while ((r = page_decoder_next(d)) > 0)
                        page_text_event(out, d, r, &in_run);
                if (r < 0)
                        return r;
                if (size == 0)
                        return page_decoder_end_of_file(d);
                ASAN_UNPOISON_MEMORY_REGION(d->buffer, d->capacity);
                r = page_decoder_reserve(d, &room, &n);
                if (r < 0)
                        return r;
                n = n > chunk ? chunk : n;
                n = n > size ? size : n;
                memcpy(room, bytes, n);
                page_decoder_commit(d, n);
                ASAN_POISON_MEMORY_REGION(d->buffer + d->fill, d->capacity - d->fill);
                bytes += n;
                size -= n;
        }
}
