/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes rows to a stream, in one of the modes below. Memory does not grow with the number of rows, nor with a value: a mode
 * writes each row at once, except for the grids (table, box, markdown, column), which hold rows back to measure them
 * together.
 *
 *      renderer_new ──> renderer_row ... (renderer_flush) ... ──> renderer_finish(complete) ──> renderer_free
 *
 * Output is buffered: a caller that waits for the next row must call renderer_flush() first. An error of the stream is
 * returned as a negative code, by the call that met it and by every later call.
 *
 * The modes are those of sqlite3's shell, and write the same bytes, unless these would lose or endanger something.
 *
 * For people (table, box, qbox, markdown, column, line, vertical); the output is safe to show, whatever the bytes are:
 *   - controls, invalid UTF-8 and characters that reorder a line are escaped as \x1b, \u202e; newline and tab keep their
 *     meaning within the cell. In line, the lines after a newline are indented, so that no value looks like the next column;
 *   - a BLOB is x'00ff'; sqlite3 writes its bytes, except in qbox;
 *   - grids flush numbers right, and also NULL in a column that has only numbers and NULL;
 *   - grids measure RENDER_GRID_BYTES of rows together, sqlite3 all of them. If later rows are wider, a new block begins
 *     with the names. A row that is larger is a block of its own, held in a file without a name;
 *   - only on a terminal, grids and vertical cut text after RENDER_VALUE_MAX bytes and a BLOB after FORMAT_BLOB_SHOWN_MAX,
 *     with an ellipsis and its length. Grids are also shrunk to the terminal's width: wider text is cut with an ellipsis,
 *     numbers never are. If the caller gives the width, text continues on the next line, as in sqlite3. In markdown a row
 *     has only one line: there such a width is a minimum;
 *   - flags, joined emoji, wide and combining characters count with their width on a terminal; sqlite3 counts characters.
 *     In grids, unassigned characters, whose width is not known, are written as \U0001fae8;
 *   - markdown writes | as \| and a newline as <br>, since a row must be one line;
 *   - qbox quotes text, and writes NULL as NULL; a line of more than 60 columns continues on the next line, as in sqlite3;
 *   - NULL is written as NULL by default. An empty result shows its names in grids.
 *
 * For programs (csv, tsv, list, html, insert, quote, json, jsonl); values are complete, so that readers get them unchanged:
 *   - REAL has the fewest digits, 15 or more, that read back as the same double; sqlite3 has 15 in csv, tsv, list and html.
 *     Infinities are 1e999 and -1e999. insert and quote write a REAL that sqlite3 would misread as a product, see
 *     sql-literal.h;
 *   - a BLOB is x'00ff' (json: {"base64": "AP8="}), text with a NUL is CAST(x'610062' AS TEXT), and so is invalid UTF-8 in
 *     insert and quote; sqlite3 writes the bytes, and stops at a NUL;
 *   - csv and tsv write names by default. NULL is empty there, an empty text is "". tsv quotes as csv does if a value
 *     contains a tab or a newline, or begins with a quote, and .import reads it; sqlite3 writes it verbatim;
 *   - json: an empty result is [], and every answer is valid JSON in UTF-8, see render-json.c.
 * ascii and tcl are the same as in sqlite3, REAL with 15 digits and BLOBs as bytes, except that no value ends at a NUL.
 *
 * On a terminal (RenderOptions.terminal) these modes, too, escape controls in text as \x1b, except newline and tab.
 */
#ifndef SQLIPC_TOOLS_CLI_RENDER_RENDER_H
#define SQLIPC_TOOLS_CLI_RENDER_RENDER_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "tools/terminal/value.h"

/* A grid holds this many bytes of rows back, to measure them together. */
#define RENDER_GRID_BYTES ((size_t) 2 * 1024 * 1024)
/* On a terminal, grids and vertical cut longer text, and append its size. */
#define RENDER_VALUE_MAX ((size_t) 2000)

typedef enum RenderMode {
        RENDER_TABLE,
        RENDER_BOX,
        RENDER_QBOX, /* box with SQL literals */
        RENDER_MARKDOWN,
        RENDER_COLUMN,
        RENDER_CSV,
        RENDER_TSV,
        RENDER_JSON,
        RENDER_JSONL,
        RENDER_LINE,
        RENDER_LIST,
        RENDER_HTML,
        RENDER_INSERT,
        RENDER_QUOTE,
        RENDER_VERTICAL,
        RENDER_ASCII,
        RENDER_TCL,
        _RENDER_MODE_MAX,
        _RENDER_MODE_INVALID = -EINVAL,
} RenderMode;

typedef enum RenderHeaders {
        RENDER_HEADERS_BY_MODE, /* off in insert, quote, ascii and tcl, else on */
        RENDER_HEADERS_ON,
        RENDER_HEADERS_OFF,
} RenderHeaders;

typedef struct RenderOptions {
        FILE *output;            /* borrowed */
        const char *null;        /* for NULL; NULL: the mode's default. JSON and SQL ignore it and write their own */
        RenderHeaders headers;   /* names of columns; line, vertical and JSON always write them */
        const int *widths;       /* of the first columns of a grid; negative: flushed right; 0: by the values. Copied */
        size_t n_widths;
        const char *separator;   /* of list; NULL: "|" */
        const char *table_name;  /* of insert, quoted if it must be; NULL: "table" */
        size_t terminal_width;   /* columns that a grid may use; 0: no limit */
        bool vertical_when_wide; /* a grid that is wider than the terminal is written as vertical */
        bool terminal;           /* shown on a terminal, maybe through a pager: no mode may send control characters */
        bool colors;             /* modes for people may show types by colour */
} RenderOptions;

typedef struct Renderer Renderer;

const char *render_mode_to_string(RenderMode mode);
/** Accepts "tabs" for tsv. Returns _RENDER_MODE_INVALID if `name` is not a mode. */
RenderMode render_mode_from_string(const char *name);

/** Returns true if the mode aligns columns, and so must know their widths. */
bool render_mode_is_grid(RenderMode mode);

/** Makes a renderer for rows of `n_columns` values. Copies the options and `names`, which may be any bytes. Writes nothing
 * yet. Returns -EINVAL: no such mode, or no column. */
int renderer_new(RenderMode mode, const RenderOptions *options, const char *const *names, size_t n_columns, Renderer **ret);
/** Writes a row, or holds it back. `values` are borrowed for the call. */
int renderer_row(Renderer *renderer, const Value *values);
/** Writes the rows that are held back, and flushes the stream: widths are then those of the rows so far. */
int renderer_flush(Renderer *renderer);
/** Does the same at the end. `complete`: the result is complete; otherwise all rows so far are written, and a JSON array
 * stays open, so that no parser takes it for the whole result. */
int renderer_finish(Renderer *renderer, bool complete);
/** NULL is allowed. Returns NULL. */
Renderer *renderer_free(Renderer *renderer);
void renderer_freep(Renderer **renderer);

#endif
