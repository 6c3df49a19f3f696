/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parameters as a channel carries them (sqlipc-channel.h): one row, the positional ones, then name and value in turn.
 * Library.
 */
#ifndef SQLIPC_PARAMETERS_ROW_H
#define SQLIPC_PARAMETERS_ROW_H

#include "sqlipc-page.h"
#include "parameters.h"

typedef struct ParametersRow {
        const Parameter *parameters; /* borrowed */
        size_t n_parameters;
        unsigned n_positional, n_named;     /* positional ones with those that are padded */
        size_t size;                        /* of the row, 0 where there is no value */
} ParametersRow;

/* Measures a row of `parameters`, padded with NULL to `n_positional_min` positional ones. -E2BIG, or -EINVAL as
 * append_parameters() says it. */
int parameters_row_init(ParametersRow *row, const Parameter *parameters, size_t n_parameters,
                        size_t n_positional_min);

/* Writes its `size` bytes. */
void parameters_row_write(const ParametersRow *row, uint8_t *at);

/* The parameters of a row that parameters_row_write() wrote, for append_parameters(); names and bytes stay in the row. The
 * caller frees the array. -ENOMEM. */
int parameters_row_read(const uint8_t *row, unsigned n_positional, unsigned n_named, Parameter **ret);

#endif
