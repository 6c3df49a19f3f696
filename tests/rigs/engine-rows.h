/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows of an engine, and parameters for it, as text. A value is "i:5", "r:0.5", "t:text", "b:" with bytes in hex, or "null";
 * "|" is between values, a newline between rows. Tests only.
 */
#ifndef SQLIPC_TESTS_RIGS_ENGINE_ROWS_H
#define SQLIPC_TESTS_RIGS_ENGINE_ROWS_H

#include <glib.h>

#include "daemon/worker/core/row-source.h"

/* Steps a statement to its end, and returns its rows; NULL: *error says why not. No row may be larger than 64 kB. The caller
 * frees it. */
char *engine_rows_read(const Engine *engine, EngineStatement *statement, SqlError *error);

/* Returns JobSpec's positional parameters. */
GByteArray *engine_rows_parameters(const char *const *values, unsigned n);

/* Sets the values of row `i`. */
typedef void (*EngineRowFor)(void *userdata, unsigned i, const char **values);

/* Encodes rows as the client of a load does, and hands them to the source's decoder, which the caller ends. Together they
 * may have 1 MB. */
void engine_rows_feed(RowSource *source, unsigned n_rows, unsigned n_columns, EngineRowFor row_for, void *userdata);

#endif
