/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parameters of a run. Supervisor. */
#include <errno.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/supervisor/calls/parameters.h"
#include "dbus-interfaces/wire/sqlipc-page.h"

/* A row under construction. Heads and data grow separately and are joined at the end, since the head's size depends on the
 * number of values. */
typedef struct Builder {
        uint8_t *types;
        uint32_t *ends;      /* in native byte order */
        size_t n, n_allocated;
        uint8_t *data;
        size_t size, allocated;
        uint32_t n_parameters;
        Refusal *refusal;
} Builder;

static void builder_done(Builder *b) {
        free(b->types);
        free(b->ends);
        free(b->data);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Builder, builder_done)

static int grow_head(Builder *b) {
        size_t n = b->n_allocated ? 2 * b->n_allocated : 16;

        if (b->n < b->n_allocated)
                return 0;
        uint8_t *types = realloc(b->types, n);
        if (!types)
                return -ENOMEM;
        b->types = types;
        uint32_t *ends = realloc(b->ends, n * sizeof *ends);
        if (!ends)
                return -ENOMEM;
        b->ends = ends;
        b->n_allocated = n;
        return 0;
}

static int grow_data(Builder *b, size_t size) {
        size_t allocated = b->allocated ?: 256;

        if (b->data && size <= b->allocated - b->size)
                return 0;
        while (size > allocated - b->size)
                allocated *= 2;
        uint8_t *data = realloc(b->data, allocated);
        if (!data)
                return -ENOMEM;
        b->data = data;
        b->allocated = allocated;
        return 0;
}

/* Adds a value. The caller writes its bytes to *ret. */
static int add(Builder *b, ValueType type, size_t size, uint8_t **ret) {
        size_t used = ROW_HEAD_SIZE(b->n + 1) + b->size;

        if (used > PARAMETERS_SIZE_MAX || size > PARAMETERS_SIZE_MAX - used)
                return refuse(b->refusal, ERROR_LIMITS_EXCEEDED,
                              "The parameters take more than %zu bytes: pass less, or in several runs.",
                              PARAMETERS_SIZE_MAX);
        int r = grow_head(b);
        if (r < 0)
                return r;
        r = grow_data(b, size);
        if (r < 0)
                return r;
        *ret = b->data + b->size;
        b->size += size;
        b->types[b->n] = (uint8_t) type;
        b->ends[b->n] = (uint32_t) b->size;
        b->n++;
        return 0;
}

static int add_null(Builder *b) {
        uint8_t *at;

        return add(b, VALUE_NULL, 0, &at);
}

static int add_integer(Builder *b, int64_t value) {
        uint8_t *at;
        int r = add(b, VALUE_INTEGER, 8, &at);

        if (r >= 0)
                store_le64(at, (uint64_t) value);
        return r;
}

static int add_real(Builder *b, double value) {
        uint8_t *at;
        int r = add(b, VALUE_REAL, 8, &at);

        if (r >= 0)
                store_le_double(at, value);
        return r;
}

/* TEXT is followed by a NUL, BLOB is not. */
static int add_bytes(Builder *b, ValueType type, const void *bytes, size_t size) {
        uint8_t *at;

        if (size > PARAMETERS_SIZE_MAX) /* before the NUL is added */
                size = PARAMETERS_SIZE_MAX;
        int r = add(b, type, size + (type == VALUE_TEXT), &at);
        if (r < 0)
                return r;
        if (size > 0)
                memcpy(at, bytes, size);
        if (type == VALUE_TEXT)
                at[size] = 0;
        return 0;
}

static int refuse_type(Builder *b, const char *contents) {
        return refuse(b->refusal, ERROR_PARAMETER_TYPE,
                      "Parameter %u has D-Bus type \"%.50s\", which no SQL value has: give an integer, "
                      "d, s, ay, or a{sv} as the interface describes it.", b->n_parameters, contents);
}

static int read_integer(sd_bus_message *m, Builder *b, char type) {
        union { uint8_t y; int b; int16_t n; uint16_t q; int32_t i; uint32_t u; int64_t x; uint64_t t; } v = {};
        int r = sd_bus_message_read_basic(m, type, &v);

        if (r < 0)
                return r;
        switch (type) {
        case 'y': return add_integer(b, v.y);
        case 'b': return add_integer(b, v.b);
        case 'n': return add_integer(b, v.n);
        case 'q': return add_integer(b, v.q);
        case 'i': return add_integer(b, v.i);
        case 'u': return add_integer(b, v.u);
        case 'x': return add_integer(b, v.x);
        }
        if (v.t > INT64_MAX)
                return refuse(b->refusal, ERROR_PARAMETER_TYPE, "Parameter %u is %" PRIu64 ": SQL integers end at 2^63-1.",
                              b->n_parameters, v.t);
        return add_integer(b, (int64_t) v.t);
}

static int read_string(sd_bus_message *m, Builder *b, char type) {
        const char *text;
        int r = sd_bus_message_read_basic(m, type, &text);

        if (r < 0)
                return r;
        if (type == 'g' && text[0] == 0)
                return add_null(b);
        return add_bytes(b, VALUE_TEXT, text, strlen(text));
}

static int read_bytes(sd_bus_message *m, Builder *b, ValueType type) {
        const void *bytes;
        size_t size;
        int r = sd_bus_message_read_array(m, 'y', &bytes, &size);

        return r < 0 ? r : add_bytes(b, type, bytes, size);
}

/* {} is NULL, {"text": ay} is TEXT. */
static int read_special(sd_bus_message *m, Builder *b) {
        const char *key, *contents;
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        if (r < 0)
                return r;
        r = sd_bus_message_enter_container(m, 'e', "sv");
        if (r < 0)
                return r;
        if (r == 0) {
                r = add_null(b);
                return r < 0 ? r : sd_bus_message_exit_container(m);
        }
        r = sd_bus_message_read_basic(m, 's', &key);
        if (r < 0)
                return r;
        r = sd_bus_message_peek_type(m, NULL, &contents);
        if (r < 0)
                return r;
        if (strcmp(key, "text") != 0 || strcmp(contents, "ay") != 0)
                return refuse(b->refusal, ERROR_PARAMETER_TYPE,
                              "Parameter %u is a dictionary with \"%.50s\" of type \"%.50s\": only \"text\" of "
                              "type \"ay\" is known.", b->n_parameters, key, contents);
        r = sd_bus_message_enter_container(m, 'v', "ay");
        if (r < 0)
                return r;
        r = read_bytes(m, b, VALUE_TEXT);
        for (int i = 0; i < 2 && r >= 0; i++) /* leave the variant, then its entry */
                r = sd_bus_message_exit_container(m);
        if (r < 0)
                return r;
        r = sd_bus_message_at_end(m, false);
        if (r < 0)
                return r;
        if (r == 0)
                return refuse(b->refusal, ERROR_PARAMETER_TYPE, "Parameter %u is a dictionary with several entries.",
                              b->n_parameters);
        return sd_bus_message_exit_container(m);
}

static int read_variant(sd_bus_message *m, Builder *b) {
        const char *contents;

        if (b->n_parameters >= PARAMETERS_MAX)
                return refuse(b->refusal, ERROR_LIMITS_EXCEEDED,
                              "There are more than the %u parameters that the largest VariablesMax= allows: pass fewer "
                              "values at a time.", PARAMETERS_MAX);
        b->n_parameters++;

        int r = sd_bus_message_peek_type(m, NULL, &contents);
        if (r < 0)
                return r;
        r = sd_bus_message_enter_container(m, 'v', contents);
        if (r < 0)
                return r;
        if (strcmp(contents, "ay") == 0)
                r = read_bytes(m, b, VALUE_BLOB);
        else if (strcmp(contents, "a{sv}") == 0)
                r = read_special(m, b);
        else if (contents[1] != 0)
                r = refuse_type(b, contents);
        else if (strchr("ybnqiuxt", contents[0]))
                r = read_integer(m, b, contents[0]);
        else if (strchr("sog", contents[0]))
                r = read_string(m, b, contents[0]);
        else if (contents[0] == 'd') {
                double d;
                r = sd_bus_message_read_basic(m, 'd', &d);
                if (r >= 0)
                        r = add_real(b, d);
        } else
                r = refuse_type(b, contents);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_positional(sd_bus_message *m, Builder *b, uint32_t *ret) {
        int r = sd_bus_message_enter_container(m, 'a', "v");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_at_end(m, false)) == 0) {
                r = read_variant(m, b);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        *ret = b->n_parameters;
        return sd_bus_message_exit_container(m);
}

static int read_named_entry(sd_bus_message *m, Builder *b) {
        const char *name;
        int r = sd_bus_message_read_basic(m, 's', &name);

        if (r < 0)
                return r;
        if (name[0] == 0)
                return refuse(b->refusal, ERROR_UNKNOWN_PARAMETER, "A named parameter has an empty name.");
        r = add_bytes(b, VALUE_TEXT, name, strlen(name));
        return r < 0 ? r : read_variant(m, b);
}

static int read_named(sd_bus_message *m, Builder *b, uint32_t *ret) {
        uint32_t before = b->n_parameters;
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_named_entry(m, b);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        *ret = b->n_parameters - before;
        return sd_bus_message_exit_container(m);
}

static int join(const Builder *b, Parameters *ret) {
        size_t head = ROW_HEAD_SIZE(b->n), size = head + b->size;
        uint8_t *row = malloc(size ?: 1);

        if (!row)
                return -ENOMEM;
        if (b->n > 0)
                memcpy(row, b->types, b->n);
        for (size_t i = 0; i < b->n; i++)
                store_le32(row + b->n + 4 * i, b->ends[i]);
        if (b->size > 0)
                memcpy(row + head, b->data, b->size);
        ret->row = row;
        ret->row_size = size;
        return 0;
}

int parameters_read(sd_bus_message *m, Parameters *ret, Refusal *refusal) {
        g_auto(Builder) b = { .refusal = refusal };
        Parameters p = PARAMETERS_INIT;
        int r = read_positional(m, &b, &p.n_positional);

        if (r < 0)
                return r;
        r = read_named(m, &b, &p.n_named);
        if (r < 0)
                return r;
        r = join(&b, &p);
        if (r < 0)
                return r;
        *ret = p;
        return 0;
}

void parameters_done(Parameters *p) {
        free(p->row);
        *p = PARAMETERS_INIT;
}
