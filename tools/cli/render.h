/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows to a stream, in one of the modes below. Memory does not grow with the number of rows, nor with a value: a mode
 * writes a row at once, except for the grids (table, box, markdown, column), which hold rows back to measure them together.
 *
 *      renderer_new ──> renderer_row ... (renderer_flush) ... ──> renderer_finish(complete) ──> renderer_free
 *
 * What is written stands in a buffer until that is full: who waits for the next row calls renderer_flush(). Errors are the
 * stream's: the first one is returned, negative, and by every call that follows.
 *
 * Modes are those of sqlite3's shell, and write what it writes, byte by byte, unless that loses or endangers something.
 *
 * For people (table, box, qbox, markdown, column, line, vertical), safe to show whatever the bytes are:
 *   - controls, invalid UTF-8 and what reorders a line stand as \x1b, \u202e; newline and tab do what they say within the
 *     cell. A newline in line is indented, so that no value looks like the next column;
 *   - a BLOB is x'00ff'; sqlite3 writes its bytes, except in qbox;
 *   - in grids numbers are flushed right, and so is NULL in a column that has nothing but numbers and NULL;
 *   - grids measure RENDER_GRID_BYTES of rows together, sqlite3 all of them. If later rows are wider, a new block begins
 *     with the names. A row that is larger is a block of its own, held in a file without a name;
 *   - on a terminal, and only there, grids and vertical cut text after RENDER_VALUE_MAX bytes and a BLOB after
 *     FORMAT_BLOB_SHOWN_MAX, with an ellipsis and its length; and grids are shrunk to the terminal's width: wider text is
 *     cut with an ellipsis, numbers never are. If the caller gives the width, text goes on in the line below, as sqlite3's,
 *     but not in markdown, where a row has one line: there the column is at least as wide;
 *   - flags, joined emoji, wide and combining characters take the columns that they take on a terminal; sqlite3 counts
 *     characters. In grids characters that are not assigned, whose width is not known, stand as \U0001fae8;
 *   - markdown has \| for | and <br> for a newline, since there a line is a row;
 *   - qbox has text in quotes, and NULL for NULL; a line of more than 60 columns goes on below, as sqlite3's;
 *   - NULL is NULL, where nothing else is said. An empty result shows its names in grids.
 *
 * For programs (csv, tsv, list, html, insert, quote, json, jsonl), whole, so that what reads them gets the same value:
 *   - REAL has the fewest digits, 15 or more, that read back as the same double; sqlite3 has 15 in csv, tsv, list and html.
 *     Infinities are 1e999 and -1e999, and insert and quote have what sqlite3 misreads as a product, see sql-literal.h;
 *   - a BLOB is x'00ff' (json: {"base64": "AP8="}), text with a NUL is CAST(x'610062' AS TEXT), in insert and quote invalid
 *     UTF-8, too; sqlite3 writes the bytes, and stops at a NUL;
 *   - csv and tsv have names where nothing else is said. NULL is empty there, an empty text is "". tsv quotes as csv does
 *     where a value has a tab or a newline, or a quote in front, and .import reads it; sqlite3 writes it as it stands;
 *   - json: an empty result is [], and every answer is valid JSON in UTF-8, see render-json.c.
 * ascii and tcl are sqlite3's in everything, REAL with 15 digits and BLOBs as bytes, except that no value ends at a NUL.
 *
 * On a terminal (RenderOptions.terminal) controls in text stand as \x1b there, too, but for newline and tab.
 */
#ifndef CLI_RENDER_H
#define CLI_RENDER_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "value.h"

/* A grid holds so many bytes of rows back, to measure them together. */
#define RENDER_GRID_BYTES ((size_t) 2 * 1024 * 1024)
/* On a terminal longer text is cut in grids and in vertical, and its size told. */
#define RENDER_VALUE_MAX ((size_t) 2000)

typedef enum RenderMode {
        RENDER_TABLE,
        RENDER_BOX,
        RENDER_QBOX, /* box with literals of SQL */
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
        const char *null;        /* for NULL; NULL: what the mode has for it. JSON and SQL have their own, and ignore it */
        RenderHeaders headers;   /* names; line, vertical and JSON have them always */
        const int *widths;       /* of the first columns of a grid; negative: flushed right; 0: by the values. Copied */
        size_t n_widths;
        const char *separator;   /* of list; NULL: "|" */
        const char *table_name;  /* of insert, quoted where it must be; NULL: "table" */
        size_t terminal_width;   /* columns that a grid may take; 0: any number */
        bool vertical_when_wide; /* a grid that is wider than the terminal is written as vertical */
        bool terminal;           /* somebody looks at it, perhaps through a pager: no mode may drive the terminal */
        bool colors;             /* modes for people may tell types by colour */
} RenderOptions;

typedef struct Renderer Renderer;

const char *render_mode_to_string(RenderMode mode);
/** "tabs" is tsv. _RENDER_MODE_INVALID where `name` is none. */
RenderMode render_mode_from_string(const char *name);

/** Whether the mode has columns below each other, whose widths it must know. */
bool render_mode_is_grid(RenderMode mode);

/** Makes a renderer for rows of `n_columns` values. Options and `names`, any bytes, are copied. Writes nothing yet. -EINVAL:
 * no such mode, or no column. */
int renderer_new(RenderMode mode, const RenderOptions *options, const char *const *names, size_t n_columns, Renderer **ret);
/** Writes a row, or holds it back. `values` are the row's, borrowed for the call. */
int renderer_row(Renderer *renderer, const Value *values);
/** Writes what was held back, and flushes the stream: widths are then those of the rows until now. */
int renderer_flush(Renderer *renderer);
/** The same at the end. `complete`: the result ended; otherwise what was written is all that came, and a JSON array stays
 * open, so that no parser takes it for the whole. */
int renderer_finish(Renderer *renderer, bool complete);
/** NULL is allowed. Returns NULL. */
Renderer *renderer_free(Renderer *renderer);
void renderer_freep(Renderer **renderer);

#endif
