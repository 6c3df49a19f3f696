/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See result.h. */
#include "tests/reliability/differential/result.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_SIZE (1 + sizeof(uint32_t)) /* of a value: type and size */
#define NOT_THERE 0                      /* the type of a name that there is not */
#define SHOWN_SIZE 48                    /* bytes of a value that a report shows */

void result_init(Result *r) {
        result_done(r);
        *r = (Result) {
                .names = g_byte_array_new(),
                .values = g_byte_array_new(),
                .rows = g_array_new(FALSE, FALSE, sizeof(size_t)),
        };
}

void result_done(Result *r) {
        g_clear_pointer(&r->names, g_byte_array_unref);
        g_clear_pointer(&r->values, g_byte_array_unref);
        g_clear_pointer(&r->rows, g_array_unref);
        g_clear_pointer(&r->trouble, g_free);
}

static void append(GByteArray *to, int type, const void *bytes, size_t size) {
        uint8_t head[HEAD_SIZE] = { (uint8_t) type };
        uint32_t n = (uint32_t) size;

        memcpy(head + 1, &n, sizeof n);
        g_byte_array_append(to, head, sizeof head);
        if (size > 0)
                g_byte_array_append(to, bytes, (guint) size);
}

void result_add_name(Result *r, const char *text) {
        r->has_columns = true;
        append(r->names, text ? SQLITE_TEXT : NOT_THERE, text, text ? strlen(text) : 0);
}

void result_begin_row(Result *r) {
        size_t at = r->values->len;

        g_array_append_val(r->rows, at);
}

void result_add_value(Result *r, int type, const void *bytes, size_t size) {
        append(r->values, type, bytes, size);
}

void result_add_int64(Result *r, int64_t value) {
        append(r->values, SQLITE_INTEGER, &value, sizeof value);
}

void result_add_double(Result *r, double value) {
        append(r->values, SQLITE_FLOAT, &value, sizeof value);
}

void result_fail(Result *r, int code) {
        r->failed = true;
        r->code = code;
}

void result_trouble(Result *r, const char *format, ...) {
        va_list ap;

        if (r->trouble)
                return;
        va_start(ap, format);
        r->trouble = g_strdup_vprintf(format, ap);
        va_end(ap);
}

/* ---- Comparison --------------------------------------------------------------------------------------------------- */

typedef struct Value {
        int type;
        const uint8_t *bytes;
        uint32_t size;
} Value;

/* The value at `*at`, which is moved behind it. */
static Value take(const uint8_t **at) {
        Value v = { .type = **at, .bytes = *at + HEAD_SIZE };

        memcpy(&v.size, *at + 1, sizeof v.size);
        *at = v.bytes + v.size;
        return v;
}

static char *show(const Value *v) {
        static const char *const types[] = { "nothing", "INTEGER", "REAL", "TEXT", "BLOB", "NULL" };
        GString *s = g_string_new(v->type < (int) G_N_ELEMENTS(types) ? types[v->type] : "a type that there is not");
        int64_t integer;
        double real;

        memcpy(&integer, v->bytes, v->size == sizeof integer ? sizeof integer : 0);
        memcpy(&real, v->bytes, v->size == sizeof real ? sizeof real : 0);
        if (v->type == SQLITE_INTEGER && v->size == sizeof integer)
                g_string_append_printf(s, " %" G_GINT64_FORMAT, integer);
        else if (v->type == SQLITE_FLOAT && v->size == sizeof real)
                g_string_append_printf(s, " %.17g", real);
        else if (v->size > 0) {
                g_string_append_printf(s, " of %u bytes: x'", v->size);
                for (uint32_t i = 0; i < MIN(v->size, SHOWN_SIZE); i++)
                        g_string_append_printf(s, "%02x", v->bytes[i]);
                g_string_append(s, v->size > SHOWN_SIZE ? "...'" : "'");
        }
        return g_string_free(s, FALSE);
}

static bool equal(const Value *a, const Value *b) {
        return a->type == b->type && a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

/* The first of `n` values that is not the same. */
static char *first_difference(const uint8_t *expected, const uint8_t *got, unsigned n, const char *what) {
        for (unsigned i = 0; i < n; i++) {
                Value mine = take(&expected), theirs = take(&got);
                g_autofree char *a = NULL, *b = NULL;

                if (equal(&mine, &theirs))
                        continue;
                a = show(&mine);
                b = show(&theirs);
                return g_strdup_printf("%s %u: got %s, expected %s", what, i, b, a);
        }
        return NULL;
}

static const uint8_t *row_at(const Result *r, guint i) {
        return r->values->data + g_array_index(r->rows, size_t, i);
}

static size_t row_size(const Result *r, guint i) {
        size_t end = i + 1 < r->rows->len ? g_array_index(r->rows, size_t, i + 1) : r->values->len;

        return end - g_array_index(r->rows, size_t, i);
}

static char *differing_row(const Result *expected, const Result *got) {
        for (guint i = 0; i < expected->rows->len && i < got->rows->len; i++) {
                g_autofree char *what = g_strdup_printf("row %u, column", i);
                char *difference;

                difference = first_difference(row_at(expected, i), row_at(got, i), expected->n_columns, what);
                if (difference)
                        return difference;
        }
        return g_strdup_printf("%u rows instead of %u", got->rows->len, expected->rows->len);
}

static int compare_rows(const void *a, const void *b, void *userdata) {
        const Result *r = userdata;
        guint i = *(const guint *) a, j = *(const guint *) b;
        size_t m = row_size(r, i), n = row_size(r, j);
        int order = memcmp(row_at(r, i), row_at(r, j), MIN(m, n));

        return order != 0 ? order : (m > n) - (m < n);
}

/* A copy of the rows, sorted by their bytes. */
static void sort_rows(const Result *r, Result *ret) {
        g_autofree guint *order = g_new(guint, r->rows->len + 1);

        result_init(ret);
        ret->n_columns = r->n_columns;
        for (guint i = 0; i < r->rows->len; i++)
                order[i] = i;
        qsort_r(order, r->rows->len, sizeof *order, compare_rows, (void *) r);
        for (guint i = 0; i < r->rows->len; i++) {
                result_begin_row(ret);
                g_byte_array_append(ret->values, row_at(r, order[i]), (guint) row_size(r, order[i]));
        }
}

static bool same_bytes(const GByteArray *a, const GByteArray *b) {
        return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static char *difference_of_rows(const Result *expected, const Result *got, bool as_set) {
        char *difference;

        if (as_set) {
                Result a = { .names = NULL }, b = { .names = NULL };

                sort_rows(expected, &a);
                sort_rows(got, &b);
                difference = difference_of_rows(&a, &b, false);
                result_done(&a);
                result_done(&b);
                return difference;
        }
        if (expected->rows->len == got->rows->len && same_bytes(expected->values, got->values))
                return NULL;
        return differing_row(expected, got);
}

static char *difference_of_columns(const Result *expected, const Result *got) {
        if (!expected->has_columns || !got->has_columns) /* an error came first */
                return NULL;
        if (expected->n_columns != got->n_columns)
                return g_strdup_printf("%u columns instead of %u", got->n_columns, expected->n_columns);
        if (same_bytes(expected->names, got->names))
                return NULL;
        return first_difference(expected->names->data, got->names->data, 2 * expected->n_columns,
                                "name (even) or declared type (odd)");
}

char *result_difference(const Result *expected, const Result *got, bool as_set) {
        char *difference;

        if (got->trouble)
                return g_strdup(got->trouble);
        if (expected->failed != got->failed)
                return g_strdup_printf("%s, of code %d, instead of %s, of code %d", got->failed ? "an error" : "success",
                                       got->code, expected->failed ? "an error" : "success", expected->code);
        if (expected->code != got->code)
                return g_strdup_printf("error code %d instead of %d", got->code, expected->code);
        if (!expected->failed && !got->has_columns)
                return g_strdup("no columns");
        difference = difference_of_columns(expected, got);
        return difference ?: difference_of_rows(expected, got, as_set);
}

/* ---- Falsification ------------------------------------------------------------------------------------------------ */

const char *const result_spoils[] = { "bit", "type", "order", "row", "name", "code", NULL };

/* The first REAL of all values, NULL if there is none. */
static uint8_t *find_real(Result *r) {
        const uint8_t *at = r->values->data, *end = r->values->len > 0 ? at + r->values->len : at; /* NULL without values */

        while (at < end) {
                const uint8_t *start = at;

                if (take(&at).type == SQLITE_FLOAT)
                        return (uint8_t *) start;
        }
        return NULL;
}

static void swap_last_rows(Result *r) {
        guint n = r->rows->len;
        g_autofree uint8_t *last = NULL;
        size_t before, size;

        if (n < 2)
                return;
        before = row_size(r, n - 2);
        size = row_size(r, n - 1);
        last = g_memdup2(row_at(r, n - 1), size);
        memmove((uint8_t *) row_at(r, n - 2) + size, row_at(r, n - 2), before);
        memcpy((uint8_t *) row_at(r, n - 2), last, size);
        g_array_index(r->rows, size_t, n - 1) = g_array_index(r->rows, size_t, n - 2) + size;
}

void result_spoil(Result *r, const char *what) {
        uint8_t *real = find_real(r);

        if (strcmp(what, "bit") == 0 && real)
                real[HEAD_SIZE] ^= 1;
        else if (strcmp(what, "type") == 0 && real)
                real[0] = SQLITE_INTEGER;
        else if (strcmp(what, "order") == 0)
                swap_last_rows(r);
        else if (strcmp(what, "row") == 0 && r->rows->len > 0) {
                g_byte_array_set_size(r->values, (guint) g_array_index(r->rows, size_t, r->rows->len - 1));
                g_array_set_size(r->rows, r->rows->len - 1);
        } else if (strcmp(what, "name") == 0 && r->names->len > HEAD_SIZE)
                r->names->data[HEAD_SIZE] ^= 1;
        else if (strcmp(what, "code") == 0 && r->failed)
                r->code ^= 0x100;
}
