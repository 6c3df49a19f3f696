/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The C data interface and the C stream interface of Apache Arrow: the structs by which columns pass between libraries of
 * one process. Names and layouts are those of the specification (arrow.apache.org/docs/format/CDataInterface.html and
 * CStreamInterface.html). ADBC driver.
 *
 * A struct whose `release` is NULL is released: it owns nothing, and its other members have no meaning. A consumer calls
 * `release` once, or moves the struct by copying it and setting `release` of the source to NULL.
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_ARROW_ABI_H
#define SQLIPC_CLIENT_LIB_ADBC_ARROW_ABI_H

#include <stdint.h>

#define ARROW_FLAG_NULLABLE 2

/* The type of an array: a format string such as "l" for int64 or "u" for UTF-8, and the fields of nested types. */
struct ArrowSchema {
        const char *format;
        const char *name;
        const char *metadata;
        int64_t flags;
        int64_t n_children;
        struct ArrowSchema **children;
        struct ArrowSchema *dictionary;
        void (*release)(struct ArrowSchema *);
        void *private_data;
};

/* An array: buffers of values from `offset` on. buffers[0] has a bit for each value that is not NULL, or is NULL if none is.
 */
struct ArrowArray {
        int64_t length;
        int64_t null_count;
        int64_t offset;
        int64_t n_buffers;
        int64_t n_children;
        const void **buffers;
        struct ArrowArray **children;
        struct ArrowArray *dictionary;
        void (*release)(struct ArrowArray *);
        void *private_data;
};

/* A sequence of arrays of one type. The functions return 0 or an errno (positive). get_next() returns a released array at
 * the end. get_last_error() may be called only after a failure; its result is valid until the next call. */
struct ArrowArrayStream {
        int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *ret_schema);
        int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *ret_array);
        const char *(*get_last_error)(struct ArrowArrayStream *);
        void (*release)(struct ArrowArrayStream *);
        void *private_data;
};

#endif
