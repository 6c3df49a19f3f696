/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Values of parameters, and their encoding for the bus. Library.
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

/* Reads `n` elements of a program's array into `read`; names and bytes stay the program's. -EINVAL: a struct_size that no
 * release had, or that differs between elements; -EOPNOTSUPP: a field that this library does not know is set. */
int parameter_read(const sqlipc_parameter *parameters, size_t n, Parameter *read);

/* The same into new memory, which the caller frees. Also -EOVERFLOW (too many), -ENOMEM. */
int parameter_read_all(const sqlipc_parameter *parameters, size_t n, Parameter **ret);

/* Appends (av positional, a{sv} named) for `parameters`, padded with NULL to `n_positional_min` positional ones. -E2BIG
 * beyond PARAMETERS_SIZE_MAX, -EOVERFLOW for too many, -EINVAL for an invalid type or name. */
int parameter_append_all(sd_bus_message *m, const Parameter *parameters, size_t n_parameters, size_t n_positional_min);

/* True if `text` can be a D-Bus string for sd-bus: no NUL, valid UTF-8, no noncharacter. Otherwise `*ret_bad` (may be
 * NULL) is the offset of the first invalid byte. */
bool parameter_is_bus_string(const void *text, size_t size, size_t *ret_bad);

#endif
