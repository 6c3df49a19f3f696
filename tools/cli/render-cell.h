/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A value as it is shown in a grid or beside its name, and rows of them while they wait: for each a byte for the type, the
 * text, a NUL; one behind the other.
 */
#ifndef CLI_RENDER_CELL_H
#define CLI_RENDER_CELL_H

#include "render-private.h"

/** Appends a column's name, safe to show, in one line; cut after RENDER_TABLE_VALUE_MAX bytes. */
void render_name(GString *output, const char *name);

/** Appends the value, safe to show; cut after RENDER_TABLE_VALUE_MAX bytes. Newlines and tabs are in it as they were. */
void render_cell(GString *output, const Value *value, const char *null);

/** The same with type and NUL. */
void render_cell_append(GString *cells, const Value *value, const char *null);

/** Writes a row that was held back; the renderer is in the mode vertical. Returns where the next one is. */
const char *render_vertical_cells(Renderer *renderer, const char *cells);

/** Makes the text from `start` on fit for a grid: tabs become blanks up to the next eighth column, a newline at the end
 * goes, and characters of which terminals disagree how wide they are become escapes. `markdown`: newlines are <br> and
 * | is \|, too. Returns the width of its widest line. */
size_t render_cell_fit(GString *cells, size_t start, bool markdown);

/** Columns of a line of text that fit into `width`; `*ret_size`: their bytes. */
size_t render_cell_prefix(const char *text, size_t width, size_t *ret_size);

#endif
