/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The list of modes, and what they share: names, scratch buffer, sticky errors. See render.h. */
#include "render-private.h"

static const struct {
        const char *name;
        const RenderOps *ops;
} modes[_RENDER_MODE_MAX] = {
        [RENDER_TABLE] = { "table", &render_table_ops },
        [RENDER_CSV] = { "csv", &render_csv_ops },
        [RENDER_JSON] = { "json", &render_json_ops },
        [RENDER_JSONL] = { "jsonl", &render_jsonl_ops },
        [RENDER_LINE] = { "line", &render_line_ops },
        [RENDER_TSV] = { "tsv", &render_tabs_ops },
};

const char *render_mode_to_string(RenderMode mode) {
        return mode >= 0 && mode < _RENDER_MODE_MAX ? modes[mode].name : NULL;
}

RenderMode render_mode_from_string(const char *name) {
        for (RenderMode mode = 0; mode < _RENDER_MODE_MAX; mode++)
                if (modes[mode].name && g_str_equal(modes[mode].name, name))
                        return mode;
        return _RENDER_MODE_INVALID;
}

int renderer_new(RenderMode mode, const RenderOptions *options, const char *const *names, size_t n_columns, Renderer **ret) {
        Renderer *renderer;

        if (mode < 0 || mode >= _RENDER_MODE_MAX || !modes[mode].ops || n_columns == 0)
                return -EINVAL;

        renderer = g_new(Renderer, 1);
        *renderer = (Renderer) {
                .ops = modes[mode].ops,
                .options = *options,
                .names = g_new0(char *, n_columns + 1),
                .n_columns = n_columns,
                .buffer = g_string_new(NULL),
        };
        for (size_t i = 0; i < n_columns; i++)
                renderer->names[i] = g_strdup(names[i]);
        if (!renderer->options.null)
                renderer->options.null = renderer->ops->null;
        *ret = renderer;
        return 0;
}

void renderer_write_buffer(Renderer *renderer) {
        /* ferror() is asked later. */
        (void) fwrite(renderer->buffer->str, 1, renderer->buffer->len, renderer->options.output);
        g_string_truncate(renderer->buffer, 0);
}

/* Keeps the first failure: the mode's, or the stream's, whose errno is only known right after the write that met it. */
static int settle(Renderer *renderer, int r) {
        if (r >= 0 && ferror(renderer->options.output))
                r = errno > 0 ? -errno : -EIO;
        if (r < 0)
                renderer->error = r;
        return renderer->error;
}

int renderer_row(Renderer *renderer, const Value *values) {
        int r;

        if (renderer->error < 0)
                return renderer->error;
        r = settle(renderer, renderer->ops->row(renderer, values));
        renderer->n_rows++;
        return r;
}

int renderer_finish(Renderer *renderer, bool complete) {
        int r = 0;

        if (renderer->error < 0)
                return renderer->error;
        if (renderer->ops->finish)
                r = renderer->ops->finish(renderer, complete);
        if (r >= 0 && fflush(renderer->options.output) != 0)
                r = -errno;
        return settle(renderer, r);
}

Renderer *renderer_free(Renderer *renderer) {
        if (!renderer)
                return NULL;
        if (renderer->ops->done)
                renderer->ops->done(renderer);
        g_string_free(renderer->buffer, TRUE);
        g_strfreev(renderer->names);
        g_free(renderer);
        return NULL;
}

void renderer_freep(Renderer **renderer) {
        *renderer = renderer_free(*renderer);
}

int renderer_flush(Renderer *renderer) {
        return renderer->error;
}
