/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bound values (bindings.h). Library. */
#include <string.h>

#include "client-lib/bindings.h"

static void clear_values(Parameter *values, unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                free((void *) values[i].name);
                free((void *) values[i].bytes);
        }
        free(values);
}

Bindings *bindings_ref(Bindings *b) {
        if (b)
                b->n_ref++;
        return b;
}

Bindings *bindings_unref(Bindings *b) {
        if (!b || --b->n_ref > 0)
                return NULL;
        clear_values(b->values, b->n_values);
        clear_values(b->named, b->n_named);
        free(b);
        return NULL;
}

void bindings_unrefp(Bindings **b) {
        (void) bindings_unref(*b);
}

static int copy_value(Parameter *ret, const Parameter *value) {
        _cleanup_free_ char *name = NULL;
        void *bytes = NULL;

        if (value->name && !(name = strdup(value->name)))
                return -ENOMEM;
        if (value->type == SQLIPC_TEXT || value->type == SQLIPC_BLOB) {
                bytes = malloc(value->size > 0 ? value->size : 1);
                if (!bytes)
                        return -ENOMEM;
                if (value->size > 0)
                        memcpy(bytes, value->bytes, value->size);
        }
        *ret = *value;
        ret->name = steal(name);
        ret->bytes = bytes;
        return 0;
}

static int grow_values(Bindings *b, unsigned n) {
        Parameter *values;

        if (n <= b->n_values)
                return 0;
        values = reallocarray(b->values, n, sizeof *values);
        if (!values)
                return -ENOMEM;
        for (unsigned i = b->n_values; i < n; i++)
                values[i] = (Parameter) { .type = SQLIPC_NULL };
        b->values = values;
        b->n_values = n;
        return 0;
}

static int set_by_index(Bindings *b, unsigned index, const Parameter *value) {
        Parameter copy;
        int r;

        r = grow_values(b, index);
        if (r < 0)
                return r;
        r = copy_value(&copy, value);
        if (r < 0)
                return r;
        free((void *) b->values[index - 1].bytes);
        b->values[index - 1] = copy;
        return 0;
}

static int set_by_name(Bindings *b, const Parameter *value) {
        Parameter copy, *named;
        unsigned i = 0;
        int r;

        while (i < b->n_named && strcmp(b->named[i].name, value->name) != 0)
                i++;
        if (i == N_PARAMETERS_MAX)
                return -ERANGE;
        if (i == b->n_named) {
                named = reallocarray(b->named, i + 1, sizeof *named);
                if (!named)
                        return -ENOMEM;
                named[i] = (Parameter) { .type = SQLIPC_NULL };
                b->named = named;
        }
        r = copy_value(&copy, value);
        if (r < 0)
                return r;
        if (i < b->n_named) {
                free((void *) b->named[i].name);
                free((void *) b->named[i].bytes);
        } else
                b->n_named++;
        b->named[i] = copy;
        return 0;
}

static int bindings_copy(Bindings **ret, const Bindings *from) {
        _cleanup_(bindings_unrefp) Bindings *b = calloc(1, sizeof *b);
        int r = 0;

        if (!b)
                return -ENOMEM;
        b->n_ref = 1;
        if (from)
                r = grow_values(b, from->n_values);
        for (unsigned i = 0; r >= 0 && from && i < from->n_values; i++)
                r = set_by_index(b, i + 1, &from->values[i]);
        for (unsigned i = 0; r >= 0 && from && i < from->n_named; i++)
                r = set_by_name(b, &from->named[i]);
        if (r < 0)
                return r;
        *ret = steal(b);
        return 0;
}

int bindings_set(Bindings **b, unsigned index, const Parameter *value) {
        int r;

        if (!*b || (*b)->n_ref > 1) {
                Bindings *copy;

                r = bindings_copy(&copy, *b);
                if (r < 0)
                        return r;
                (void) bindings_unref(*b);
                *b = copy;
        }
        return value->name ? set_by_name(*b, value) : set_by_index(*b, index, value);
}

int bindings_resolve(Bindings *b, NameLookUp look_up, void *userdata, const char **ret_unknown) {
        int r;

        while (b && b->n_named > 0) {
                Parameter *named = &b->named[0]; /* the oldest first: a later one may set the same parameter */
                unsigned index = look_up(userdata, named->name);

                if (index == 0) {
                        *ret_unknown = named->name;
                        return -ENXIO;
                }
                r = grow_values(b, index);
                if (r < 0)
                        return r;
                free((void *) b->values[index - 1].bytes);
                free((void *) named->name);
                named->name = NULL;
                b->values[index - 1] = *named; /* takes its bytes */
                b->n_named--;
                memmove(named, named + 1, b->n_named * sizeof *named);
        }
        return 0;
}
