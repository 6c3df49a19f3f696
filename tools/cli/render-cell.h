/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A value as it is shown in a grid or beside its name. A row of a grid is held back as cells, one after the other: a byte
 * for the type, the text, a NUL.
 */
#ifndef CLI_RENDER_CELL_H
#define CLI_RENDER_CELL_H

#include "render-private.h"

/** Bytes after which a value or a name is cut: only a terminal has such a limit, elsewhere SIZE_MAX. */
size_t render_value_max(const Renderer *renderer);

/** Appends a column's name, safe to show, in one line; cut after `max` bytes. */
void render_name(GString *output, const char *name, size_t max);

/** Takes a piece of a value, safe to show; `last`: the value ends with it. Returns the bytes that it took: the rest comes
 * again, in front of the next piece; of the last piece all. */
typedef size_t (*RenderPiece)(void *userdata, const char *text, size_t size, bool last);

/** Gives the value to `piece`, in pieces whose size does not depend on the value; newlines and tabs as they are. The value
 * is cut after `max` bytes, and its size told. */
void render_cell(const Renderer *renderer, const Value *value, size_t max, RenderPiece piece, void *userdata);

typedef struct CellSize {
        size_t width;   /* columns of the widest line */
        size_t cluster; /* of the widest character: no line can be narrower */
} CellSize;

/** Writes the value so that it fits a grid: tabs become blanks up to the next eighth column, a newline at the end goes, and
 * characters that the C library does not know, so that their width is not known either, become escapes. `one_line`: for
 * markdown, newlines are <br> and | is \|, too. */
CellSize render_cell_fit(const Renderer *renderer, const Value *value, bool one_line, Sink *sink);

/** The same for a name that was made ready by render_name(). Appends to `output`. */
CellSize render_name_fit(GString *output, const char *name, bool one_line);

/** Writes a row that was held back; the renderer is in the mode vertical. Returns where the next one is. */
const char *render_vertical_cells(Renderer *renderer, const char *cells);

/** Columns of a line of text that fit into `width`; `*ret_size`: their bytes. */
size_t render_cell_prefix(const char *text, size_t width, size_t *ret_size);

#endif
