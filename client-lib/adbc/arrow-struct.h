/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the structs of Arrow's C data interface so that they own what they point to. Pure. ADBC driver.
 *
 * A consumer may move a child out of its parent and release both in any order: memory of a child is its own.
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_ARROW_STRUCT_H
#define SQLIPC_CLIENT_LIB_ADBC_ARROW_STRUCT_H

#include <stddef.h>

#include "client-lib/adbc/arrow-abi.h"

#define ARROW_STRUCT_BUFFERS_MAX 3

/* Makes a schema with copies of `format` and `name`, whose invalid UTF-8 is replaced, and with `n_children` released
 * children, which the caller fills. Returns 0 or -ENOMEM. */
int arrow_struct_schema(struct ArrowSchema *ret_schema, const char *format, const char *name, int64_t flags,
                        size_t n_children);

/* Makes an array of `n_buffers` buffers, which it takes and later gives to free(), and with `n_children` released children,
 * which the caller fills. Returns 0; or -ENOMEM, and takes nothing. */
int arrow_struct_array(struct ArrowArray *ret_array, int64_t length, int64_t null_count, void *const *buffers,
                       size_t n_buffers, size_t n_children);

/* Makes a stream with the given schema and at most one array, both of which it takes and marks as released. Returns 0; or
 * -ENOMEM, and takes nothing. */
int arrow_struct_stream(struct ArrowArrayStream *ret_stream, struct ArrowSchema *schema, struct ArrowArray *array);

/* For cleanup attributes: releases the struct unless that was done. */
void arrow_struct_release_schema(struct ArrowSchema *schema);
void arrow_struct_release_array(struct ArrowArray *array);
void arrow_struct_release_stream(struct ArrowArrayStream *stream);

/* Copies a schema with its children and its dictionary. Returns 0 or -ENOMEM. */
int arrow_struct_copy_schema(struct ArrowSchema *ret_schema, const struct ArrowSchema *schema);

#endif
