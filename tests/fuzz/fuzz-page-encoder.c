/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bytes as a program of rows, for encoder and decoder: the decoder finds what the encoder wrote, bit for bit, through
 * pages of every size, rows longer than a page, rows given up, ERROR in the middle of a row, and pieces of every size.
 *
 * The program is read from the front, and any bytes are valid: after its end, zeros follow.
 *
 *      u8 page size, u16 piece size, then runs:
 *      u16 n_columns, names, then steps: u8 step, and values for a row; a step says when the run is over, and how
 *
 * About: dbus-interfaces/wire/page-encoder.c dbus-interfaces/wire/page-encoder.h
 * About: dbus-interfaces/wire/page-decoder.c dbus-interfaces/wire/page-decoder.h dbus-interfaces/wire/page-payload.c
 */
#include <string.h>

#include "dbus-interfaces/wire/page-decoder.h"
#include "dbus-interfaces/wire/page-encoder.h"
#include "tests/fuzz/replay.h"

enum { N_COLUMNS_MAX = 2000, N_VALUES_MAX = 64 * 1024, N_ROWS_MAX = 4096, N_RUNS_MAX = 8 };
#define LONG_SIZE ((size_t) 1024 * 1024)
#define STREAM_SIZE_MAX ((size_t) 3 * 1024 * 1024)

/* ---- what is said ---- */

typedef struct Value {
        ValueType type;
        uint64_t number;      /* INTEGER, REAL: the bits */
        const uint8_t *bytes; /* TEXT, BLOB; borrowed from the input or from long_bytes */
        size_t size;
} Value;

typedef struct Said {
        unsigned n_columns;
        size_t row, n_rows, start; /* of its bytes in the stream */
        const uint8_t *names; /* each column's is one byte more of them than the last's, up to 7; borrowed */
        bool failed;
        const uint8_t *message;
        size_t message_size;
        EndCounters counters;
} Said;

static Value values[N_VALUES_MAX];
static size_t rows[N_ROWS_MAX]; /* the first value of each */
static Said runs[N_RUNS_MAX];
static size_t n_values, n_rows, n_runs;
static uint8_t long_bytes[2 * LONG_SIZE], page[SQLIPC_PAGE_SIZE_MAX], stream[STREAM_SIZE_MAX + 2 * SQLIPC_PAGE_SIZE_MAX];
static size_t stream_size;

typedef struct Program {
        const uint8_t *bytes;
        size_t left;
} Program;

/* The next number of `size` bytes. */
static uint64_t take(Program *p, size_t size) {
        uint64_t value = 0;

        for (size_t i = 0; i < size && p->left > 0; i++, p->left--)
                value |= (uint64_t) *p->bytes++ << (8 * i);
        return value;
}

/* As many of the next bytes as there are. */
static const uint8_t *take_bytes(Program *p, size_t *size) {
        const uint8_t *bytes = p->bytes;

        *size = *size < p->left ? *size : p->left;
        p->bytes += *size;
        p->left -= *size;
        return bytes;
}

static uint64_t take_extreme(Program *p) {
        static const uint64_t extremes[] = {
                0, 1, UINT64_MAX, INT64_MAX, UINT64_C(1) << 63, UINT32_MAX, UINT64_C(0x7ff0000000000000),
                UINT64_C(0xfff8000000000001), UINT64_C(0x7ff0000000000001), UINT64_C(0x0000000000000001),
        };

        return extremes[take(p, 1) % (sizeof extremes / sizeof *extremes)];
}

static Value take_value(Program *p) {
        static const ValueType types[] = { VALUE_NULL, VALUE_INTEGER, VALUE_REAL, VALUE_TEXT, VALUE_BLOB };
        unsigned kind = (unsigned) take(p, 1);
        Value v = { .type = types[kind % 5], .bytes = long_bytes };
        bool strange = kind >= 128;

        if (v.type == VALUE_INTEGER || v.type == VALUE_REAL)
                v.number = strange ? take_extreme(p) : take(p, 8);
        else if (v.type != VALUE_NULL && strange) {
                v.bytes = long_bytes + take(p, 1);
                v.size = (size_t) take(p, 2) * (kind & 64 ? 16 : 1);
        } else if (v.type != VALUE_NULL) {
                v.size = (size_t) take(p, 1);
                v.bytes = take_bytes(p, &v.size);
        }
        return v;
}

static size_t size_of(const Value *v) {
        return v->type == VALUE_NULL ? 0 : v->type <= VALUE_REAL ? 8 : v->size + (v->type == VALUE_TEXT);
}

/* ---- the encoder's side, as the worker has it ---- */

static void add(const uint8_t *bytes, size_t size) {
        demand(stream_size + size <= sizeof stream);
        memcpy(stream + stream_size, bytes, size);
        stream_size += size;
}

static void send(PageEncoder *e) {
        size_t size = page_encoder_finish(e);

        demand(size <= e->page_size && size % FRAME_ALIGN == 0 && e->tail_size <= size);
        add(page, size - e->tail_size);
        if (e->tail)
                add(e->tail, e->tail_size);
        page_encoder_clear(e);
}

static int add_row(PageEncoder *e, const Value *v, unsigned n_columns) {
        if (!page_encoder_begin_row(e, n_columns))
                return 0;
        for (unsigned i = 0; i < n_columns; i++, v++)
                switch (v->type) {
                case VALUE_NULL: page_encoder_add_null(e); break;
                case VALUE_INTEGER: page_encoder_add_int64(e, (int64_t) v->number); break;
                case VALUE_REAL: page_encoder_add_double(e, load_le_double(&(uint64_t) { htole64(v->number) })); break;
                case VALUE_TEXT: page_encoder_add_text(e, v->bytes, v->size); break;
                case VALUE_BLOB: page_encoder_add_blob(e, v->bytes, v->size); break;
                }
        return page_encoder_end_row(e);
}

/* Bytes of a payload into part after part; `behind` them are so many more. */
static void add_payload(PageEncoder *e, FrameKind kind, const uint8_t *bytes, size_t size, size_t behind) {
        while (size > 0) {
                size_t n;

                if (e->open != kind && !page_encoder_begin_part(e, kind)) {
                        send(e);
                        continue;
                }
                n = page_encoder_end_part_with(e, bytes, size, behind > 0);
                if (n > 0) {
                        send(e); /* behind a tail there is no more */
                } else {
                        n = page_encoder_append(e, bytes, size);
                        if (page_encoder_part_room(e) == 0) {
                                page_encoder_end_part(e, behind > 0 || n < size);
                                send(e);
                        }
                }
                bytes += n;
                size -= n;
        }
        if (behind == 0 && e->open == kind)
                page_encoder_end_part(e, false);
}

static size_t store_head(uint8_t *head, const Value *v, unsigned n_columns) {
        size_t end = 0;

        for (unsigned i = 0; i < n_columns; i++) {
                head[i] = (uint8_t) v[i].type;
                end += size_of(v + i);
                store_le32(head + n_columns + (size_t) 4 * i, (uint32_t) end);
        }
        return end;
}

/* `give_up`: in the middle, so that what is out of the row is void. False: it was. */
static bool add_big_row(PageEncoder *e, const Value *v, unsigned n_columns, bool give_up) {
        static uint8_t head[ROW_HEAD_SIZE(N_COLUMNS_MAX)];
        static const uint8_t nul;
        size_t left = store_head(head, v, n_columns);

        add_payload(e, FRAME_BIG_ROW, head, ROW_HEAD_SIZE(n_columns), left);
        for (unsigned i = 0; i < n_columns; i++, v++) {
                bool is_number = v->type == VALUE_INTEGER || v->type == VALUE_REAL;
                uint64_t bits = htole64(v->number);

                if (give_up && left > 0 && i == n_columns / 2)
                        return false;
                left -= size_of(v);
                if (is_number)
                        add_payload(e, FRAME_BIG_ROW, (const uint8_t *) &bits, 8, left);
                else if (v->type != VALUE_NULL)
                        add_payload(e, FRAME_BIG_ROW, v->bytes, v->size, left + (v->type == VALUE_TEXT));
                if (v->type == VALUE_TEXT)
                        add_payload(e, FRAME_BIG_ROW, &nul, 1, left);
        }
        return true;
}

/* False: the row was given up. */
static bool say_row(PageEncoder *e, const Value *v, unsigned n_columns, bool give_up) {
        size_t size = ROW_HEAD_SIZE(n_columns);

        if (add_row(e, v, n_columns))
                return true;
        if (!page_encoder_is_empty(e)) {
                send(e);
                if (add_row(e, v, n_columns))
                        return true;
        }
        for (unsigned i = 0; i < n_columns; i++)
                size += size_of(v + i);
        demand(size + FRAME_HEADER_SIZE + 4 > e->page_size);
        return add_big_row(e, v, n_columns, give_up);
}

static const uint8_t *name_of(const Said *run, unsigned i, size_t *ret_size) {
        *ret_size = i % 8;
        return run->names + i % 256;
}

static void say_columns(PageEncoder *e, const Said *run) {
        static uint8_t payload[8 + N_COLUMNS_MAX * 32];
        uint8_t *at = payload + 8 + (size_t) run->n_columns * 8;
        size_t end = 0;

        store_le32(payload, run->n_columns);
        store_le32(payload + 4, (uint32_t) e->page_size);
        for (unsigned i = 0; i < run->n_columns; i++) {
                size_t size;
                const uint8_t *name = name_of(run, i, &size);

                memcpy(at + end, name, size);
                end += size;
                at[end++] = 0;
                store_le32(payload + 8 + (size_t) 8 * i, (uint32_t) end);
                if (i % 3 > 0) { /* absent, empty, "A" */
                        if (i % 3 > 1)
                                at[end++] = 'A';
                        at[end++] = 0;
                }
                store_le32(payload + 12 + (size_t) 8 * i, (uint32_t) end);
        }
        add_payload(e, FRAME_COLUMNS, payload, (size_t) (at - payload) + end, 0);
}

static void say_end(PageEncoder *e, Program *p, Said *run) {
        run->message_size = (size_t) take(p, 2) % 4096;
        run->message = take_bytes(p, &run->message_size);
        run->counters = (EndCounters) { .n_rows = run->n_rows, .usec = take(p, 8) };
        run->counters.n_bytes = stream_size + page_encoder_finish(e) - run->start;
        run->counters.autoindexes = UINT64_MAX;
        while (run->failed ? !page_encoder_error(e, 1, -1, INT32_MAX, (const char *) run->message, run->message_size)
                           : !page_encoder_end(e, &run->counters))
                send(e);
        send(e);
}

/* A row, and the other actions of a step. False: the run is over. */
static bool say_step(PageEncoder *e, Program *p, Said *run, unsigned step) {
        Value *v = values + n_values;
        size_t size = ROW_HEAD_SIZE(run->n_columns);
        bool said;

        if (n_values + run->n_columns > N_VALUES_MAX || n_rows == N_ROWS_MAX)
                return false;
        for (unsigned i = 0; i < run->n_columns; i++) {
                v[i] = take_value(p);
                size += size_of(v + i);
        }
        if (stream_size + 2 * size > STREAM_SIZE_MAX)
                return false;
        if (step & 4 && add_row(e, v, run->n_columns) == 0)
                page_encoder_abort_row(e);
        else if (step & 4)
                rows[n_rows++] = n_values;
        if (n_rows == N_ROWS_MAX)
                return false;
        if (step & 8)
                (void) page_encoder_finish(e);
        if (step & 16)
                send(e);
        run->failed = step & 2;
        said = say_row(e, v, run->n_columns, step & 32);
        if (said)
                rows[n_rows++] = n_values;
        run->failed |= !said;
        n_values += run->n_columns;
        return said && !(step & 1);
}

static void say_run(PageEncoder *e, Program *p) {
        static const uint8_t no_names[256 + 8];
        Said *run = runs + n_runs++;
        size_t names_size = sizeof no_names;

        *run = (Said) { .n_columns = (unsigned) take(p, 2) % (N_COLUMNS_MAX + 1), .row = n_rows, .start = stream_size };
        run->names = p->left > 4 * names_size ? take_bytes(p, &names_size) : no_names;
        say_columns(e, run);
        while (run->n_columns > 0 && p->left > 0 && say_step(e, p, run, (unsigned) take(p, 1)))
                ;
        run->n_rows = n_rows - run->row;
        say_end(e, p, run);
}

/* ---- the decoder's side ---- */

static void check_value(PageValue v, const Value *said) {
        uint64_t bits = htole64(said->number);
        bool number = v.type == VALUE_INTEGER || v.type == VALUE_REAL;

        demand(v.type == said->type && v.size == size_of(said) - (v.type == VALUE_TEXT));
        demand(v.size == 0 || memcmp(v.bytes, number ? (const uint8_t *) &bits : said->bytes, v.size) == 0);
        demand(v.type != VALUE_TEXT || v.bytes[v.size] == 0);
}

static void check_columns(const PageDecoder *d, const Said *run) {
        demand(d->n_columns == run->n_columns);
        for (unsigned i = 0; i < d->n_columns; i++) {
                const char *name, *type;
                size_t size, said_size;
                const uint8_t *said = name_of(run, i, &said_size);

                page_decoder_column(d, i, &name, &type);
                demand(i % 3 == 0 ? !type : type && strcmp(type, i % 3 == 1 ? "" : "A") == 0);
                page_decoder_column_name(d, i, &name, &size);
                demand(size == said_size && memcmp(name, said, size) == 0);
        }
}

static void check_error(const PageDecoder *d, const Said *run) {
        size_t same = d->error_message_size;

        demand(run->failed && d->error_number == 1 && d->error_extended_code == -1 && d->error_sql_offset == INT32_MAX);
        if (run->message_size > SQLIPC_MESSAGE_SIZE_MAX) {
                demand(same <= SQLIPC_MESSAGE_SIZE_MAX && same >= SQLIPC_MESSAGE_SIZE_MAX - 3);
                same -= strlen("\u2026");
                demand(strcmp(d->error_message + same, "\u2026") == 0);
        } else
                demand(same == run->message_size);
        demand(same == 0 || memcmp(d->error_message, run->message, same) == 0);
}

/* Returns whether the run is over. */
static bool check_event(const PageDecoder *d, int event, const Said *run, size_t *row) {
        demand(d->run == (uint64_t) (run - runs) + 1);
        switch (event) {
        case PAGE_COLUMNS:
                check_columns(d, run);
                return false;
        case PAGE_ROW:
                demand(*row < run->row + run->n_rows);
                for (unsigned i = 0; i < d->n_columns; i++)
                        check_value(page_decoder_value(d, i), values + rows[*row] + i);
                (*row)++;
                return false;
        case PAGE_END:
                demand(!run->failed && memcmp(&d->end_counters, &run->counters, sizeof run->counters) == 0);
                return true;
        default:
                demand(event == PAGE_ERROR);
                check_error(d, run);
                return true;
        }
}

/* Memory of the caller's, with the size that it has. */
static uint8_t *resize(void *userdata, uint8_t *bytes, size_t size, size_t new_size) {
        size_t *held = userdata;

        demand(*held == size);
        *held = new_size;
        if (new_size > 0)
                return realloc(bytes, new_size);
        free(bytes);
        return NULL;
}

static void check(size_t page_size, size_t piece, bool own_memory) {
        size_t run = 0, row = 0, at = 0, held = 0;
        PageDecoder d;
        int r;

        page_decoder_init(&d, page_size, SQLIPC_ROW_SIZE_MAX);
        if (own_memory)
                page_decoder_set_resize(&d, resize, &held);
        for (;;) {
                uint8_t *room;
                size_t n;

                while ((r = page_decoder_next(&d)) > 0) {
                        demand(run < n_runs);
                        if (check_event(&d, r, runs + run, &row))
                                demand(row == runs[run].row + runs[run].n_rows), run++;
                }
                demand(r == 0);
                if (at == stream_size)
                        break;
                demand(page_decoder_reserve(&d, &room, &n) == 0 && n > 0);
                n = n < piece ? n : piece;
                n = n < stream_size - at ? n : stream_size - at;
                memcpy(room, stream + at, n);
                page_decoder_commit(&d, n);
                at += n;
        }
        demand(run == n_runs && page_decoder_end_of_file(&d) == 0);
        page_decoder_done(&d);
        demand(held == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
        Program p = { bytes, size };
        unsigned first = (unsigned) take(&p, 1);
        size_t page_size = SQLIPC_PAGE_SIZE_MIN << first % 9, piece = 1 + (size_t) take(&p, 2);
        PageEncoder e;

        if (long_bytes[1] == 0)
                for (size_t i = 0; i < sizeof long_bytes; i++)
                        long_bytes[i] = (uint8_t) (i * UINT64_C(2654435761) >> 13);
        n_values = n_rows = n_runs = stream_size = 0;
        do {
                page_encoder_init(&e, page, page_size, n_runs + 1);
                say_run(&e, &p);
        } while (p.left > 0 && n_runs < N_RUNS_MAX);
        check(page_size, piece + stream_size / 65536, first & 128); /* in so many pieces at most */
        if (stream_size < 65536)
                check(page_size, 1, false);
        check(page_size, SIZE_MAX, false);
        return 0;
}
