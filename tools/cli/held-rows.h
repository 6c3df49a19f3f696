/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cells of rows that a grid holds back (render-cell.h): any number of rows in memory, or one large row in a file without a
 * name, which is mapped, so that it takes no memory that could not be written back.
 *
 *      held_rows_begin ──> write the cells into the sink ──> held_rows_end      for each row
 *      held_rows_cells ... held_rows_clear
 */
#ifndef CLI_HELD_ROWS_H
#define CLI_HELD_ROWS_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

#include "sink.h"

typedef struct HeldRows {
        size_t n_rows;
        GString *memory;   /* owned */
        FILE *file;        /* owned; the large row's, while it is written */
        char *mapping;     /* owned; of that row; NULL: rows are in memory */
        size_t mapping_size;
        Sink sink;
        char buffer[4096]; /* the sink's */
} HeldRows;

HeldRows *held_rows_new(void);
/** NULL is allowed. Returns NULL. */
HeldRows *held_rows_free(HeldRows *held);

/** Where the next row's cells are written. `large`: it is kept in a file; no other row must be held then. -errno of making
 * the file. */
int held_rows_begin(HeldRows *held, bool large, Sink **ret);
/** The row is complete. 0, or -errno of keeping a large one. */
int held_rows_end(HeldRows *held);

/** All cells, borrowed until the next call, and their bytes. */
const char *held_rows_cells(const HeldRows *held);
size_t held_rows_size(const HeldRows *held);

/** Drops all rows. */
void held_rows_clear(HeldRows *held);

#endif
