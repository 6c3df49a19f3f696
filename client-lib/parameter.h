/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Values of parameters, and their encoding for the bus. Library.
 *
 * A statement shares its set of bindings with the cursor that waits to be sent with it. Binding again while such a cursor
 * waits changes a copy, so a run has the values that were bound when it was requested.
 */
#ifndef SQLIPC_CLIENT_LIB_PARAMETER_H
#define SQLIPC_CLIENT_LIB_PARAMETER_H

#include "client-lib/sqlipc.h"
#include "client-lib/util.h"

/* SQLite's own limit (SQLITE_MAX_VARIABLE_NUMBER). */
#define N_PARAMETERS_MAX 32766u

/* Limit of the bytes of text and blobs in one call. The daemon checks its own, lower limit; for larger calls the bus
 * itself might disconnect us. */
#define PARAMETERS_SIZE_MAX ((size_t) 16 * 1024 * 1024)

/* A struct_size above this is invalid. */
#define PARAMETER_STRUCT_SIZE_MAX ((size_t) 4096)

/* A value for a parameter. Unlike that of the public struct, its layout may change. */
typedef struct Parameter {
        const char *name;  /* with or without prefix; NULL: by position */
        sqlipc_type type;
        int64_t integer;
        double real;
        const void *bytes; /* TEXT, BLOB */
        size_t size;       /* of bytes */
} Parameter;

/* Reads `n` elements of a program's array; names and bytes stay the program's. The caller frees `*ret`. -EINVAL: a
 * struct_size that no release had, or that differs between elements; -EOPNOTSUPP: a field that this library does not know
 * is set; -E2BIG; -ENOMEM. */
int parameter_read_all(const sqlipc_parameter *parameters, size_t n, Parameter **ret);

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

/* Binds a copy of `value` in `*b` to its name, or to `index` if the name is NULL. If `*b` is NULL it is created first; if
 * it is shared it is replaced by a copy first. */
int bindings_set(Bindings **b, unsigned index, const Parameter *value);

/* Assigns values that were bound by name to indexes, now that the names are known: `look_up` returns the index of a name,
 * 0 for none. Returns 0, or -ENXIO and sets `*ret_unknown` (borrowed) to the name that does not exist. */
typedef unsigned (*name_look_up)(void *userdata, const char *name);
int bindings_resolve(Bindings *b, name_look_up look_up, void *userdata, const char **ret_unknown);

/* Appends (av positional, a{sv} named) for `parameters`, padded with NULL to `n_positional_min` positional ones. -E2BIG
 * beyond PARAMETERS_SIZE_MAX, -EINVAL for an invalid type or name. */
int parameter_append_all(sd_bus_message *m, const Parameter *parameters, size_t n_parameters, size_t n_positional_min);

/* True if `text` can be a D-Bus string for sd-bus: no NUL, valid UTF-8, no noncharacter. Otherwise `*ret_bad` (may be
 * NULL) is the offset of the first invalid byte. */
bool parameter_is_bus_string(const void *text, size_t size, size_t *ret_bad);

#endif
