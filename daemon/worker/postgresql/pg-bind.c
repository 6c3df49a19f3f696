/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-bind.h. From top to bottom: memory, values, rows, names.
 */
#include "daemon/worker/postgresql/pg-bind.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/postgresql/pg-number.h"
#include "dbus-interfaces/wire/page-decoder.h"

#define EXACT_DOUBLE (INT64_C(1) << 53)
#define EXACT_FLOAT (INT64_C(1) << 24)

/* ---- memory ---- */

/* A parameter that is being encoded. */
typedef struct PgParameter {
        PgStatement *statement;
        unsigned index;       /* of the client's, from 0 */
        unsigned number;      /* of the server's, from 0 */
        PgKind kind;
        SqlError *error;
        char *room;           /* PG_NUMBER_SIZE bytes that live as long as the binding */
} PgParameter;

static bool fail(const PgParameter *p, const char *value, const char *wanted) {
        const char *name = p->statement->text.names[p->index].name;

        return sql_error_set(p->error, ERROR_PARAMETER_TYPE, "parameter %u%s%s%s is %s, and the server expects %s",
                             p->index + 1, name ? " (" : "", name ? name : "", name ? ")" : "", value, wanted);
}

static bool set(const PgParameter *p, const void *bytes, size_t size, bool binary) {
        PgStatement *s = p->statement;

        s->values[p->number] = bytes;
        s->lengths[p->number] = (int) size;
        s->formats[p->number] = binary;
        return true;
}

static bool set_room(const PgParameter *p, const void *bytes, size_t size) {
        memcpy(p->room, bytes, size);
        return set(p, p->room, size, true);
}

/* ---- values ---- */

static const char *expected(PgKind kind) {
        switch (kind) {
        case PG_KIND_BOOL: return "a boolean: 0 or 1";
        case PG_KIND_INT2: return "a smallint";
        case PG_KIND_INT4: return "an integer of 32 bits";
        case PG_KIND_INT8: return "a bigint";
        case PG_KIND_OID: return "an oid";
        case PG_KIND_FLOAT4: return "a real, which would round it";
        case PG_KIND_FLOAT8: return "a double precision, which would round it";
        case PG_KIND_BYTEA: return "a bytea: give it a BLOB";
        case PG_KIND_UUID: return "a UUID: give it a TEXT";
        case PG_KIND_DATE:
        case PG_KIND_TIME:
        case PG_KIND_TIMESTAMP:
        case PG_KIND_TIMESTAMPTZ: return "a date or time: give it a TEXT";
        default: return "another type";
        }
}

static bool fail_integer(const PgParameter *p, int64_t v) {
        char value[PG_NUMBER_SIZE];

        (void) snprintf(value, sizeof value, "%" PRId64, v);
        return fail(p, value, expected(p->kind));
}

static bool put_integer(const PgParameter *p, int64_t v) {
        uint16_t small = htobe16((uint16_t) v);
        uint32_t middle = htobe32((uint32_t) v);
        uint64_t large = htobe64((uint64_t) v);

        switch (p->kind) {
        case PG_KIND_INT2:
                return v >= INT16_MIN && v <= INT16_MAX ? set_room(p, &small, sizeof small) : fail_integer(p, v);
        case PG_KIND_INT4:
                return v >= INT32_MIN && v <= INT32_MAX ? set_room(p, &middle, sizeof middle) : fail_integer(p, v);
        case PG_KIND_OID:
                return v >= 0 && v <= UINT32_MAX ? set_room(p, &middle, sizeof middle) : fail_integer(p, v);
        default:
                return set_room(p, &large, sizeof large);
        }
}

static bool put_double(const PgParameter *p, double v) {
        uint64_t word;

        memcpy(&word, &v, sizeof word);
        word = htobe64(word);
        return set_room(p, &word, sizeof word);
}

static bool is_never_number(PgKind kind) {
        switch (kind) {
        case PG_KIND_BYTEA:
        case PG_KIND_UUID:
        case PG_KIND_DATE:
        case PG_KIND_TIME:
        case PG_KIND_TIMESTAMP:
        case PG_KIND_TIMESTAMPTZ:
                return true;
        default:
                return false;
        }
}

static bool bind_integer(const PgParameter *p, int64_t v) {
        switch (p->kind) {
        case PG_KIND_BOOL:
                *p->room = (char) v;
                return v == 0 || v == 1 ? set(p, p->room, 1, true) : fail_integer(p, v);
        case PG_KIND_INT2:
        case PG_KIND_INT4:
        case PG_KIND_INT8:
        case PG_KIND_OID:
                return put_integer(p, v);
        case PG_KIND_FLOAT8:
                return v >= -EXACT_DOUBLE && v <= EXACT_DOUBLE ? put_double(p, (double) v) : fail_integer(p, v);
        case PG_KIND_FLOAT4:
                if (v < -EXACT_FLOAT || v > EXACT_FLOAT)
                        return fail_integer(p, v);
                break;
        default:
                if (is_never_number(p->kind))
                        return fail_integer(p, v);
        }
        return set(p, p->room, (size_t) snprintf(p->room, PG_NUMBER_SIZE, "%" PRId64, v), false);
}

static bool fail_real(const PgParameter *p, double v) {
        char value[PG_NUMBER_SIZE];

        (void) pg_number_write(v, false, value);
        return fail(p, value, expected(p->kind));
}

static bool bind_real(const PgParameter *p, double v) {
        switch (p->kind) {
        case PG_KIND_FLOAT8:
                return put_double(p, v);
        case PG_KIND_INT2:
        case PG_KIND_INT4:
        case PG_KIND_INT8:
        case PG_KIND_OID:
                if (v >= (double) -EXACT_DOUBLE && v <= (double) EXACT_DOUBLE && v == trunc(v))
                        return put_integer(p, (int64_t) v);
                return fail_real(p, v);
        case PG_KIND_BOOL:
                return fail_real(p, v);
        default:
                if (is_never_number(p->kind))
                        return fail_real(p, v);
                return set(p, p->room, pg_number_write(v, p->kind == PG_KIND_TEXT, p->room), false);
        }
}

/* The bytes of a page stay as they are until the statement has run, and a NUL follows them. */
static bool bind_text(const PgParameter *p, const PageValue *v) {
        if (memchr(v->bytes, 0, v->size))
                return fail(p, "a TEXT with a NUL in it", "one without");
        return set(p, v->bytes, v->size, p->kind == PG_KIND_TEXT);
}

static bool bind_blob(const PgParameter *p, const PageValue *v) {
        if (p->kind != PG_KIND_BYTEA)
                return fail(p, "a BLOB", "a value of another type than bytea");
        return set(p, v->bytes, v->size, true);
}

static bool bind_value(const PgParameter *p, const PageValue *v) {
        if (v->size > INT32_MAX)
                return sql_error_set(p->error, ERROR_ROW_TOO_LARGE, "parameter %u is too large", p->index + 1);
        switch (v->type) {
        case VALUE_INTEGER:
                return bind_integer(p, (int64_t) load_le64(v->bytes));
        case VALUE_REAL:
                return bind_real(p, load_le_double(v->bytes));
        case VALUE_TEXT:
                return bind_text(p, v);
        case VALUE_BLOB:
                return bind_blob(p, v);
        case VALUE_NULL:
                return set(p, NULL, 0, false);
        }
        return sql_error_set(p->error, ERROR_PARAMETER_TYPE, "parameter %u has no type", p->index + 1);
}

/* ---- rows ---- */

/* Room for the digits of each number. */
static bool begin(PgStatement *s, SqlError *error) {
        size_t size = (size_t) s->text.n_numbers * PG_NUMBER_SIZE;
        uint8_t *bytes;

        if (size <= s->bytes_capacity)
                return true;
        bytes = realloc(s->bytes, size);
        if (!bytes)
                return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
        s->bytes = bytes;
        s->bytes_capacity = size;
        return true;
}

/* A parameter that the statement skips, as ?1 in a statement with ?2 alone, is not sent. */
static bool bind_at(PgStatement *s, unsigned index, const PageValue *v, SqlError *error) {
        unsigned number = s->text.names[index].number;

        if (number == 0)
                return true;
        return bind_value(&(PgParameter) {
                .statement = s,
                .index = index,
                .number = number - 1,
                .kind = s->parameter_kinds[number - 1],
                .error = error,
                .room = (char *) s->bytes + (size_t) (number - 1) * PG_NUMBER_SIZE,
        }, v);
}

bool pg_bind_row(PgStatement *s, const PageDecoder *row, unsigned n, SqlError *error) {
        if (!begin(s, error))
                return false;
        for (unsigned i = 0; i < n; i++) {
                PageValue v = page_decoder_value(row, i);

                if (!bind_at(s, i, &v, error))
                        return false;
        }
        return true;
}

/* ---- names ---- */

/* The job's parameters as a decoded row. Only the fields that page_decoder_value() uses are set. */
static PageDecoder as_row(const JobSpec *spec, unsigned n) {
        return (PageDecoder) {
                .types = spec->parameters,
                .ends = spec->parameters + n,
                .data = spec->parameters + ROW_HEAD_SIZE(n),
        };
}

static bool bind_named(PgStatement *s, const char *name, const PageValue *v, bool *bound, SqlError *error) {
        int i = pg_text_find(&s->text, name);

        if (i == -ENOENT)
                return sql_error_set(error, ERROR_UNKNOWN_PARAMETER, "the statement has no parameter \"%s\"", name);
        if (i == -ENOTUNIQ)
                return sql_error_set(error, ERROR_UNKNOWN_PARAMETER,
                                     "\"%s\" names several parameters of the statement: write it with its prefix", name);
        if (bound[i])
                return sql_error_set(error, ERROR_PARAMETER_COUNT, "parameter %d (%s) has two values", i + 1, name);
        bound[i] = true;
        return bind_at(s, (unsigned) i, v, error);
}

static bool check_all_bound(const PgStatement *s, const bool *bound, SqlError *error) {
        for (unsigned i = 0; i < s->text.n_names; i++) {
                const char *name = s->text.names[i].name;

                if (!bound[i] && s->text.names[i].number > 0)
                        return sql_error_set(error, ERROR_PARAMETER_COUNT,
                                             "parameter %u%s%s%s has no value: give each of the %u parameters one", i + 1,
                                             name ? " (" : "", name ? name : "", name ? ")" : "", s->text.n_names);
        }
        return true;
}

static bool bind_all(PgStatement *s, const JobSpec *spec, bool *bound, SqlError *error) {
        unsigned n = spec->n_positional + 2 * spec->n_named;
        PageDecoder row = n > 0 ? as_row(spec, n) : (PageDecoder) {};

        for (unsigned i = 0; i < spec->n_positional; i++) {
                PageValue v = page_decoder_value(&row, i);

                if (!bind_at(s, i, &v, error))
                        return false;
                bound[i] = true;
        }
        for (unsigned i = spec->n_positional; i < n; i += 2) {
                PageValue name = page_decoder_value(&row, i), v = page_decoder_value(&row, i + 1);

                if (!bind_named(s, (const char *) name.bytes, &v, bound, error))
                        return false;
        }
        return check_all_bound(s, bound, error);
}

bool pg_bind(PgStatement *s, const JobSpec *spec, SqlError *error) {
        unsigned count = s->text.n_names;
        bool *bound, ok;

        s->deadline_usec = spec->deadline_usec;
        if (spec->n_positional > count)
                return sql_error_set(error, ERROR_PARAMETER_COUNT, "%u values for a statement with %u parameters",
                                     spec->n_positional, count);
        if (count == 0 && spec->n_named == 0)
                return true;
        if (!begin(s, error))
                return false;
        bound = calloc((size_t) count + 1, sizeof *bound);
        if (!bound)
                return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
        ok = bind_all(s, spec, bound, error);
        free(bound);
        return ok;
}
