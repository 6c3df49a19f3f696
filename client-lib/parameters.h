/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is bound to parameters, and how it travels. Library.
 *
 * A set of bindings is shared by its statement and by the cursor that waits to be sent with it; binding again while such
 * a cursor waits goes into a copy, so a run has the values that were bound when it was asked for.
 */
#ifndef SQLIPC_PARAMETERS_H
#define SQLIPC_PARAMETERS_H

#include "sqlipc.h"
#include "util.h"

/* SQLite's own bound (SQLITE_MAX_VARIABLE_NUMBER). */
#define N_PARAMETERS_MAX 32766u

/* Bytes of text and blobs in one call. The daemon's bound is lower and its to tell; beyond this the bus itself might drop
 * us. */
#define PARAMETERS_SIZE_MAX ((size_t) 16 * 1024 * 1024)

/* A struct_size above this is not a size. */
#define PARAMETER_STRUCT_SIZE_MAX ((size_t) 4096)

/* A value for a parameter. Unlike the public struct it may change its layout. */
typedef struct Parameter {
        const char *name;  /* with or without prefix; NULL: by position */
        sqlipc_type type;
        int64_t integer;
        double real;
        const void *bytes; /* TEXT, BLOB */
        size_t size;       /* of bytes */
} Parameter;

/* Reads `n` elements of a program's array; names and bytes stay the program's. The caller frees `*ret`. -EINVAL: a
 * struct_size that no release had, or not the same in all; -EOPNOTSUPP: a field that this library does not know is set;
 * -E2BIG; -ENOMEM. */
int parameters_read(const sqlipc_parameter *parameters, size_t n, Parameter **ret);

typedef struct Bindings {
        unsigned n_ref;
        unsigned n_values;
        Parameter *values; /* by index - 1; names are NULL, bytes owned */
        unsigned n_named;
        Parameter *named;  /* bound by name before the names were known; names and bytes owned */
} Bindings;

Bindings *bindings_ref(Bindings *b);
/* Accepts NULL. Returns NULL. */
Bindings *bindings_unref(Bindings *b);
void bindings_unrefp(Bindings **b);

/* Binds a copy of `value` to its name, or where that is NULL to `index`, in `*b`, which is made (NULL) or copied (shared)
 * first. */
int bindings_set(Bindings **b, unsigned index, const Parameter *value);

/* Names that have meanwhile become known: `look_up` gives the index of a name, 0 for none. 0, or -ENXIO with `*ret_unknown`
 * (borrowed) the name that is not there. */
typedef unsigned (*name_look_up)(void *userdata, const char *name);
int bindings_resolve(Bindings *b, name_look_up look_up, void *userdata, const char **ret_unknown);

/* Appends (av positional, a{sv} named): `parameters`, padded with NULL to `n_positional_min` positional ones. -E2BIG past
 * PARAMETERS_SIZE_MAX, -EINVAL for a type or name that cannot be. */
int append_parameters(sd_bus_message *m, const Parameter *parameters, size_t n_parameters, size_t n_positional_min);

/* Whether `text` can be a D-Bus string as sd-bus sees it: no NUL, valid UTF-8, no noncharacter. `*ret_bad` (may be NULL)
 * is the offset of the first byte that cannot. */
bool is_bus_string(const void *text, size_t size, size_t *ret_bad);

#endif
