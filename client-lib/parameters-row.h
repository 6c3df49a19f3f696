/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parameters as a channel carries them (sqlipc-channel.h): one row with the positional values, followed by name and value of
 * each named parameter. Library.
 */
#ifndef SQLIPC_CLIENT_LIB_PARAMETERS_ROW_H
#define SQLIPC_CLIENT_LIB_PARAMETERS_ROW_H

#include "client-lib/parameters.h"
#include "dbus-interfaces/wire/sqlipc-page.h"

typedef struct ParametersRow {
        const Parameter *parameters; /* borrowed */
        size_t n_parameters;
        unsigned n_positional, n_named;     /* positional ones include padding */
        size_t size;                        /* of the row, 0 if there are no values */
} ParametersRow;

/* Measures a row of `parameters`, padded with NULL to `n_positional_min` positional ones. Returns -E2BIG, or -EINVAL in
 * the same cases as append_parameters(). */
int parameters_row_init(ParametersRow *row, const Parameter *parameters, size_t n_parameters,
                        size_t n_positional_min);

/* Writes the row, `size` bytes. */
void parameters_row_write(const ParametersRow *row, uint8_t *at);

/* Reads the parameters of a row that parameters_row_write() wrote, for append_parameters(). Names and bytes stay in the
 * row. The caller frees the array. -ENOMEM. */
int parameters_row_read(const uint8_t *row, unsigned n_positional, unsigned n_named, Parameter **ret);

#endif
