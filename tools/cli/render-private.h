/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the modes share. A mode is a RenderOps; render.c lists them all, and checks the stream after each call, so
 * that a mode just writes.
 */
#ifndef CLI_RENDER_PRIVATE_H
#define CLI_RENDER_PRIVATE_H

#include <glib.h>

#include "render.h"

typedef struct RenderOps {
        const char *null; /* what stands for NULL where the user said nothing */
        int (*row)(Renderer *renderer, const Value *values);
        int (*finish)(Renderer *renderer, bool complete); /* may be NULL */
        void (*done)(Renderer *renderer);                 /* frees `state`; may be NULL */
} RenderOps;

struct Renderer {
        const RenderOps *ops;
        RenderOptions options; /* null is set */
        char **names;          /* owned, n_columns of them */
        size_t n_columns;
        uint64_t n_rows;       /* that renderer_row() took before this one */
        int error;             /* sticky, negative */
        GString *buffer;       /* scratch, empty between calls */
        void *state;           /* the mode's own */
};

extern const RenderOps render_table_ops, render_csv_ops, render_json_ops, render_jsonl_ops, render_line_ops, render_tabs_ops;

/** Writes the scratch buffer, and empties it. */
void renderer_write_buffer(Renderer *renderer);

#endif
