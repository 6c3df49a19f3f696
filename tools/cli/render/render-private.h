/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the modes. A mode is a RenderOps; render.c lists them all, and checks the stream after each call, so that a mode
 * can write into the sink without checks.
 */
#ifndef SQLIPC_TOOLS_CLI_RENDER_RENDER_PRIVATE_H
#define SQLIPC_TOOLS_CLI_RENDER_RENDER_PRIVATE_H

#include <glib.h>

#include "tools/cli/render/render.h"
#include "tools/terminal/sink.h"

typedef struct RenderOps {
        const char *null;                                 /* what NULL is written as by default */
        bool headers;                                     /* names are written by default */
        bool harmless;                                    /* for people: the mode escapes values itself */
        void (*begin)(Renderer *renderer);                /* before the first row, or before the end; may be NULL */
        void (*row)(Renderer *renderer, const Value *values);
        void (*flush)(Renderer *renderer);                /* writes what is held back; may be NULL */
        void (*finish)(Renderer *renderer, bool complete); /* may be NULL */
        void (*done)(Renderer *renderer);                 /* frees `state`; may be NULL */
} RenderOps;

struct Renderer {
        const RenderOps *ops;
        RenderMode mode;
        RenderOptions options; /* strings are owned; null, separator and table_name are set */
        bool headers;
        char **names;          /* owned, n_columns of them */
        size_t n_columns;
        uint64_t n_rows;       /* number of rows before this one */
        bool begun;
        int error;             /* sticky, negative */
        Sink sink;
        GString *scratch;      /* empty between calls */
        void *state;           /* the mode's own */
};

extern const RenderOps render_grid_ops, render_csv_ops, render_tsv_ops, render_list_ops, render_html_ops, render_json_ops,
        render_jsonl_ops, render_insert_ops, render_quote_ops, render_line_ops, render_vertical_ops,
        render_ascii_ops, render_tcl_ops;

/** True if text is quoted and NULL is always written as NULL. */
static inline bool renderer_quotes(const Renderer *renderer) {
        return renderer->mode == RENDER_QBOX; /* also after the grid has become vertical */
}

/* ---- Colours, for people ------------------------------------------------------------------------------------------ */

#define RENDER_COLOR_NAME "\033[1m"
#define RENDER_COLOR_OFF "\033[0m"

/** The sequence that colours a value of this type; "" if it has no colour or colours are off. */
const char *renderer_color(const Renderer *renderer, sqlipc_type type);

/** Writes text in the given colour. */
void renderer_write_colored(Renderer *renderer, const char *color, const char *text, size_t size);

#endif
