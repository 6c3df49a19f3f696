/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the modes share. A mode is a RenderOps; render.c lists them all, and checks the stream after each call, so
 * that a mode just writes into the sink.
 */
#ifndef CLI_RENDER_PRIVATE_H
#define CLI_RENDER_PRIVATE_H

#include <glib.h>

#include "render.h"
#include "sink.h"

typedef struct RenderOps {
        const char *null;                                 /* what stands for NULL where the user said nothing */
        bool headers;                                     /* whether names are written where the user said nothing */
        bool harmless;                                    /* for people: makes values harmless itself */
        void (*begin)(Renderer *renderer);                /* before the first row, or the end; may be NULL */
        void (*row)(Renderer *renderer, const Value *values);
        void (*flush)(Renderer *renderer);                /* of what is held back; may be NULL */
        void (*finish)(Renderer *renderer, bool complete); /* may be NULL */
        void (*done)(Renderer *renderer);                 /* frees `state`; may be NULL */
} RenderOps;

struct Renderer {
        const RenderOps *ops;
        RenderMode mode;
        RenderOptions options; /* its strings owned: null, separator and table_name are set */
        bool headers;
        char **names;          /* owned, n_columns of them */
        size_t n_columns;
        uint64_t n_rows;       /* that renderer_row() took before this one */
        bool begun;
        int error;             /* sticky, negative */
        Sink sink;
        GString *scratch;      /* empty between calls */
        void *state;           /* the mode's own */
};

extern const RenderOps render_grid_ops, render_csv_ops, render_tsv_ops, render_list_ops, render_html_ops, render_json_ops,
        render_jsonl_ops, render_insert_ops, render_quote_ops, render_line_ops, render_vertical_ops,
        render_ascii_ops, render_tcl_ops;

/** Whether text stands in quotes, and NULL is always NULL. */
static inline bool renderer_quotes(const Renderer *renderer) {
        return renderer->mode == RENDER_QBOX; /* also after it became vertical */
}

/* ---- Colours, for people ------------------------------------------------------------------------------------------ */

#define RENDER_COLOR_NAME "\033[1m"
#define RENDER_COLOR_OFF "\033[0m"

/** The sequence that colours a value of this type, "" for none or where colours are off. */
const char *renderer_color(const Renderer *renderer, sqlipc_type type);

/** Writes text in that colour. */
void renderer_write_colored(Renderer *renderer, const char *color, const char *text, size_t size);

#endif
