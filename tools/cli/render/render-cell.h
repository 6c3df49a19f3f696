/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes a value ready to be shown in a grid or beside its name. A grid holds each row back as consecutive cells: a byte for
 * the type, the text, a NUL.
 */
#ifndef SQLIPC_TOOLS_CLI_RENDER_RENDER_CELL_H
#define SQLIPC_TOOLS_CLI_RENDER_RENDER_CELL_H

#include "tools/cli/render/render-private.h"

/** The number of bytes after which a value or a name is cut: limited only on a terminal, else SIZE_MAX. */
size_t render_value_max(const Renderer *renderer);

/** Appends a column's name in one line, safe to show; cut after `max` bytes. */
void render_name(GString *output, const char *name, size_t max);

/** Takes a piece of a value, safe to show; `last`: it is the end of the value. Returns how many bytes it consumed; the rest
 * comes again at the start of the next piece. It must consume the last piece completely. */
typedef size_t (*RenderPiece)(void *userdata, const char *text, size_t size, bool last);

/** Passes the value to `piece`, in pieces whose size does not depend on the value; newlines and tabs are kept. A value is
 * cut after `max` bytes, followed by its size. */
void render_cell(const Renderer *renderer, const Value *value, size_t max, RenderPiece piece, void *userdata);

typedef struct CellSize {
        size_t width;   /* columns of the widest line */
        size_t cluster; /* columns of the widest character: no line can be narrower */
} CellSize;

/** Writes the value in the form that a grid needs: tabs become blanks up to the next eighth column, a newline at the end is
 * dropped, and characters that the C library does not know become escapes, because their width is not known. `one_line`: for
 * markdown, newlines become <br> and | becomes \|. */
CellSize render_cell_fit(const Renderer *renderer, const Value *value, bool one_line, Sink *sink);

/** Does the same for a name from render_name(). Appends to `output`. */
CellSize render_name_fit(GString *output, const char *name, bool one_line);

/** Writes a row that was held back; the renderer must be in the mode vertical. Returns the position of the next row. */
const char *render_vertical_cells(Renderer *renderer, const char *cells);

/** Returns how many columns of a line of text fit into `width`; `*ret_size`: their bytes. */
size_t render_cell_prefix(const char *text, size_t width, size_t *ret_size);

#endif
