/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cells of rows that a grid holds back (render-cell.h): any number of rows in memory, or one large row in a file without a
 * name. That file is mapped, so that the kernel can write its pages back instead of keeping them in memory.
 *
 *      held_rows_begin ──> write the cells into the sink ──> held_rows_end      for each row
 *      held_rows_cells ... held_rows_clear
 */
#ifndef SQLIPC_TOOLS_CLI_RENDER_HELD_ROWS_H
#define SQLIPC_TOOLS_CLI_RENDER_HELD_ROWS_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

#include "tools/terminal/sink.h"

typedef struct HeldRows {
        size_t n_rows;
        GString *memory;   /* owned */
        FILE *file;        /* owned; holds the large row while that is written */
        char *mapping;     /* owned; of that row; NULL: rows are in memory */
        size_t mapping_size;
        Sink sink;
        char buffer[4096]; /* of the sink */
} HeldRows;

HeldRows *held_rows_new(void);
/** NULL is allowed. Returns NULL. */
HeldRows *held_rows_free(HeldRows *held);

/** Begins a row; its cells are written into `*ret`. `large`: keep it in a file, which requires that no other row is held.
 * Returns -errno if the file cannot be created. */
int held_rows_begin(HeldRows *held, bool large, Sink **ret);
/** Ends the row. Returns 0, or -errno if a large row cannot be kept. */
int held_rows_end(HeldRows *held);

/** All cells, borrowed until the next call, and their size in bytes. */
const char *held_rows_cells(const HeldRows *held);
size_t held_rows_size(const HeldRows *held);

/** Drops all rows. */
void held_rows_clear(HeldRows *held);

#endif
