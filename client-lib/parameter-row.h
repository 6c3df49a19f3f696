/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parameters as a channel carries them (sqlipc-channel.h): one row with the positional values, followed by name and value of
 * each named parameter. Library.
 */
#ifndef SQLIPC_CLIENT_LIB_PARAMETER_ROW_H
#define SQLIPC_CLIENT_LIB_PARAMETER_ROW_H

#include "client-lib/parameter.h"
#include "dbus-interfaces/wire/sqlipc-channel.h"
#include "dbus-interfaces/wire/sqlipc-page.h"

_Static_assert(CHANNEL_FETCH_HEAD_SIZE == CHANNEL_QUERY_HEAD_SIZE, "a row has the same room in both requests");

typedef struct ParameterRow {
        const Parameter *parameters; /* borrowed */
        size_t n_parameters;
        unsigned n_positional, n_named;     /* positional ones include padding */
        size_t size;                        /* of the row, 0 if there are no values */
} ParameterRow;

/* The room for a row in a request on a channel. */
#define PARAMETER_ROW_SIZE_MAX (CHANNEL_REQUEST_SIZE_MAX - CHANNEL_FETCH_HEAD_SIZE)

/* Measures a row of `parameters`, padded with NULL to `n_positional_min` positional ones. Returns -E2BIG (larger than
 * `size_max`), -EOVERFLOW (too many), or -EINVAL in the same cases as parameter_append_all(). */
int parameter_row_init(ParameterRow *row, const Parameter *parameters, size_t n_parameters, size_t n_positional_min,
                       size_t size_max);

/* Writes the row, `size` bytes. */
void parameter_row_write(const ParameterRow *row, uint8_t *at);

/* Reads the parameters of a row that parameter_row_write() wrote, for parameter_append_all(). Names and bytes stay in the
 * row. The caller frees the array. -ENOMEM. */
int parameter_row_read(const uint8_t *row, unsigned n_positional, unsigned n_named, Parameter **ret);

#endif
