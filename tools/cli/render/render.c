/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The list of modes, and their common parts: names, the sink, sticky errors. See render.h. */
#include "tools/cli/render/render-private.h"

/* Large enough that the cost of a write() call is small compared to the data, small enough for a processor's cache. */
enum { BUFFER_SIZE = 64 * 1024 };

static const struct {
        const char *name;
        const RenderOps *ops;
} modes[_RENDER_MODE_MAX] = {
        [RENDER_TABLE] = { "table", &render_grid_ops },
        [RENDER_BOX] = { "box", &render_grid_ops },
        [RENDER_QBOX] = { "qbox", &render_grid_ops },
        [RENDER_MARKDOWN] = { "markdown", &render_grid_ops },
        [RENDER_COLUMN] = { "column", &render_grid_ops },
        [RENDER_CSV] = { "csv", &render_csv_ops },
        [RENDER_TSV] = { "tsv", &render_tsv_ops },
        [RENDER_JSON] = { "json", &render_json_ops },
        [RENDER_JSONL] = { "jsonl", &render_jsonl_ops },
        [RENDER_LINE] = { "line", &render_line_ops },
        [RENDER_LIST] = { "list", &render_list_ops },
        [RENDER_HTML] = { "html", &render_html_ops },
        [RENDER_INSERT] = { "insert", &render_insert_ops },
        [RENDER_QUOTE] = { "quote", &render_quote_ops },
        [RENDER_VERTICAL] = { "vertical", &render_vertical_ops },
        [RENDER_ASCII] = { "ascii", &render_ascii_ops },
        [RENDER_TCL] = { "tcl", &render_tcl_ops },
};

const char *render_mode_to_string(RenderMode mode) {
        return mode >= 0 && mode < _RENDER_MODE_MAX ? modes[mode].name : NULL;
}

RenderMode render_mode_from_string(const char *name) {
        if (g_str_equal(name, "tabs")) /* sqlite3's name for it */
                return RENDER_TSV;
        for (RenderMode mode = 0; mode < _RENDER_MODE_MAX; mode++)
                if (g_str_equal(modes[mode].name, name))
                        return mode;
        return _RENDER_MODE_INVALID;
}

bool render_mode_is_grid(RenderMode mode) {
        return mode >= 0 && mode < _RENDER_MODE_MAX && modes[mode].ops == &render_grid_ops;
}

static RenderOptions copy_options(const RenderOptions *options, const RenderOps *ops) {
        RenderOptions copy = *options;

        copy.null = g_strdup(options->null ? options->null : ops->null);
        copy.separator = g_strdup(options->separator ? options->separator : "|");
        copy.table_name = g_strdup(options->table_name ? options->table_name : "table");
        copy.widths = options->n_widths > 0 ? g_memdup2(options->widths, options->n_widths * sizeof(int)) : NULL;
        return copy;
}

int renderer_new(RenderMode mode, const RenderOptions *options, const char *const *names, size_t n_columns, Renderer **ret) {
        const RenderOps *ops;
        Renderer *renderer;

        if (mode < 0 || mode >= _RENDER_MODE_MAX || n_columns == 0)
                return -EINVAL;

        ops = modes[mode].ops;
        renderer = g_new(Renderer, 1);
        *renderer = (Renderer) {
                .ops = ops,
                .mode = mode,
                .options = copy_options(options, ops),
                .headers = options->headers == RENDER_HEADERS_BY_MODE ? ops->headers
                                                                      : options->headers == RENDER_HEADERS_ON,
                .names = g_new0(char *, n_columns + 1),
                .n_columns = n_columns,
                .sink = { .stream = options->output, .buffer = g_malloc(BUFFER_SIZE), .size = BUFFER_SIZE,
                          .harmless = options->terminal && !ops->harmless },
                .scratch = g_string_new(NULL),
        };
        for (size_t i = 0; i < n_columns; i++)
                renderer->names[i] = g_strdup(names[i]);
        *ret = renderer;
        return 0;
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

static void begin(Renderer *renderer) {
        if (renderer->begun)
                return;
        renderer->begun = true;
        if (renderer->ops->begin)
                renderer->ops->begin(renderer);
}

/* Keeps the first error of the stream. Its errno is only known directly after the failed write. */
static int settle(Renderer *renderer, int r) {
        if (r >= 0 && ferror(renderer->options.output))
                r = errno > 0 ? -errno : -EIO;
        if (r < 0 && renderer->error == 0)
                renderer->error = r;
        return renderer->error;
}

int renderer_row(Renderer *renderer, const Value *values) {
        if (renderer->error < 0)
                return renderer->error;
        begin(renderer);
        renderer->ops->row(renderer, values);
        renderer->n_rows++;
        return settle(renderer, 0);
}

static int flush_stream(Renderer *renderer) {
        sink_flush(&renderer->sink);
        return settle(renderer, fflush(renderer->options.output) == 0 ? 0 : -errno);
}

int renderer_flush(Renderer *renderer) {
        if (renderer->error < 0)
                return renderer->error;
        if (renderer->ops->flush)
                renderer->ops->flush(renderer);
        return flush_stream(renderer);
}

int renderer_finish(Renderer *renderer, bool complete) {
        if (renderer->error < 0)
                return renderer->error;
        if (complete)
                begin(renderer);
        if (renderer->ops->flush)
                renderer->ops->flush(renderer);
        if (renderer->ops->finish)
                renderer->ops->finish(renderer, complete);
        sink_finish(&renderer->sink);
        return flush_stream(renderer);
}

/* ---- Colours ------------------------------------------------------------------------------------------------------ */

const char *renderer_color(const Renderer *renderer, sqlipc_type type) {
        if (!renderer->options.colors)
                return "";
        switch (type) {
        case SQLIPC_INTEGER:
        case SQLIPC_REAL:
                return "\033[36m";
        case SQLIPC_BLOB:
                return "\033[35m";
        case SQLIPC_NULL:
                return "\033[2m";
        case SQLIPC_TEXT:
                break;
        }
        return "";
}

void renderer_write_colored(Renderer *renderer, const char *color, const char *text, size_t size) {
        sink_string(&renderer->sink, color);
        sink_write(&renderer->sink, text, size);
        if (*color)
                sink_string(&renderer->sink, RENDER_COLOR_OFF);
}

/* ---- The end ------------------------------------------------------------------------------------------------------ */

Renderer *renderer_free(Renderer *renderer) {
        if (!renderer)
                return NULL;
        if (renderer->ops->done)
                renderer->ops->done(renderer);
        g_string_free(renderer->scratch, TRUE);
        g_strfreev(renderer->names);
        g_free(renderer->sink.buffer);
        g_free((char *) renderer->options.null);
        g_free((char *) renderer->options.separator);
        g_free((char *) renderer->options.table_name);
        g_free((int *) renderer->options.widths);
        g_free(renderer);
        return NULL;
}

void renderer_freep(Renderer **renderer) {
        *renderer = renderer_free(*renderer);
}
