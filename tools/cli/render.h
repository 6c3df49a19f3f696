/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows to a stream, in one of the modes below. Memory does not grow with the number of rows: each mode writes a row at
 * once, but the table, which holds back the first RENDER_TABLE_ROWS to see how wide its columns are.
 *
 *      renderer_new ──> renderer_row ... ──> renderer_finish(complete) ──> renderer_free
 *
 * Errors are the stream's: the first one is returned, negative, and by every call that follows.
 */
#ifndef CLI_RENDER_H
#define CLI_RENDER_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "value.h"

/* The table decides about widths once it has so many rows, or so many bytes. */
#define RENDER_TABLE_ROWS ((size_t) 200)
#define RENDER_TABLE_BYTES ((size_t) 1024 * 1024)
/* A longer value is cut in a table, and its size told. */
#define RENDER_TABLE_VALUE_MAX ((size_t) 2000)

typedef enum RenderMode {
        RENDER_TABLE,
        RENDER_CSV,
        RENDER_JSON,
        RENDER_JSONL,
        RENDER_LINE,
        RENDER_TABS,
        _RENDER_MODE_MAX,
        _RENDER_MODE_INVALID = -EINVAL,
} RenderMode;

typedef struct RenderOptions {
        FILE *output;          /* borrowed */
        const char *null;      /* what stands for NULL; NULL: what the mode has for it. JSON has its own and ignores it */
        size_t terminal_width; /* columns that a table may take; 0: any number */
        bool colors;           /* the table may use bold and dim */
} RenderOptions;

typedef struct Renderer Renderer;

const char *render_mode_to_string(RenderMode mode);
/** _RENDER_MODE_INVALID where `name` is none. */
RenderMode render_mode_from_string(const char *name);

/** Makes a renderer for rows of `n_columns` values. `names` are copied, and any bytes. Writes nothing yet. */
int renderer_new(RenderMode mode, const RenderOptions *options, const char *const *names, size_t n_columns, Renderer **ret);
/** Writes a row, or holds it back. `values` are the row's, borrowed for the call. */
int renderer_row(Renderer *renderer, const Value *values);
/** Writes what was held back, and flushes the stream. `complete`: the result ended; otherwise what was written is all
 * that came, and a JSON array stays open, so that no parser takes it for the whole. */
int renderer_finish(Renderer *renderer, bool complete);
/** NULL is allowed. Returns NULL. */
Renderer *renderer_free(Renderer *renderer);
void renderer_freep(Renderer **renderer);

#endif
