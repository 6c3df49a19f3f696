/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Charts of text (chart-draw.h). Pure. */
#include "tools/cli/render/chart-draw.h"

#include <math.h>
#include <string.h>

#include "tools/terminal/format.h"

enum { DOTS = 2, BARS_WIDTH_MIN = 10 }; /* DOTS: per character, in each direction */

/* The blocks of the series, in the order of columns. */
static const char *const blocks[] = { "█", "▒", "▞", "░", "▓", "▚", "▀", "▐" };

static size_t width_of(const char *text) {
        return format_shown_width(text, strlen(text));
}

static void append_times(GString *text, const char *what, size_t n) {
        for (; n > 0; n--)
                g_string_append(text, what);
}

void chart_draw_legend(GString *text, const char *const *names, size_t n_series, size_t width) {
        size_t used = 0;

        for (size_t i = 0; i < n_series; i++) {
                size_t needed = 2 + width_of(names[i]);

                if (used > 0 && used + 3 + needed > width) {
                        g_string_append_c(text, '\n');
                        used = 0;
                }
                g_string_append_printf(text, "%s%s %s", used > 0 ? "   " : "", blocks[i], names[i]);
                used += needed + (used > 0 ? 3 : 0);
        }
        g_string_append_c(text, '\n');
}

/* ---- Bars --------------------------------------------------------------------------------------------------------- */

typedef struct BarScale {
        double least, most;     /* including 0 */
        size_t label_width, left, right; /* left, right: characters on both sides of zero */
} BarScale;

static char *make_number(double value) {
        return g_strdup_printf("%.10g", value == 0 ? 0 : value);
}

static BarScale bar_scale(const ChartBars *bars) {
        BarScale scale = {};
        size_t number_width = 0, room;
        double share;

        for (size_t i = 0; i < bars->n_rows * bars->n_series; i++)
                if (!isnan(bars->values[i])) {
                        g_autofree char *number = make_number(bars->values[i]);

                        scale.least = MIN(scale.least, bars->values[i]);
                        scale.most = MAX(scale.most, bars->values[i]);
                        number_width = MAX(number_width, strlen(number));
                }
        for (size_t i = 0; i < bars->n_rows; i++)
                scale.label_width = MAX(scale.label_width, width_of(bars->labels[i]));
        room = scale.label_width + number_width + 3; /* the blanks and the axis */
        room = bars->width > room + BARS_WIDTH_MIN ? bars->width - room : BARS_WIDTH_MIN;
        share = scale.least < 0 ? -scale.least / 2 / (scale.most / 2 - scale.least / 2) : 0;
        scale.left = (size_t) ceil(share * (double) room);
        scale.right = room - scale.left;
        return scale;
}

/* Appends a bar to the right of zero. Only the bars of the first series, made of full blocks, can end with a part of a
 * character. */
static void append_right(GString *text, const BarScale *scale, double value, size_t series) {
        static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
        double length = scale->most > 0 ? value / scale->most * (double) scale->right : 0;
        size_t n = (size_t) (series == 0 ? length * 8 + 0.5 : round(length) * 8);

        append_times(text, blocks[series], n / 8);
        g_string_append(text, eighths[n % 8]);
}

static void append_bar(GString *text, const BarScale *scale, double value, size_t series) {
        size_t n = value < 0 ? (size_t) round(value / scale->least * (double) scale->left) : 0;
        g_autofree char *number = make_number(value);

        g_string_append_printf(text, "%*s", (int) (scale->left - n), "");
        append_times(text, blocks[series], n);
        g_string_append(text, "│");
        if (isnan(value))
                return;
        if (value > 0)
                append_right(text, scale, value, series);
        g_string_append_printf(text, " %s", number);
}

void chart_draw_bars(GString *text, const ChartBars *bars) {
        const BarScale scale = bar_scale(bars);

        for (size_t row = 0; row < bars->n_rows; row++)
                for (size_t series = 0; series < bars->n_series; series++) {
                        const char *label = series == 0 ? bars->labels[row] : "";

                        g_string_append(text, label);
                        g_string_append_printf(text, "%*s", (int) (scale.label_width - width_of(label) + 1), "");
                        append_bar(text, &scale, bars->values[row * bars->n_series + series], series);
                        g_string_append_c(text, '\n');
                }
}

/* ---- Lines -------------------------------------------------------------------------------------------------------- */

/* A single line has four dots in each character; of several lines each has its own block. */
struct ChartCanvas {
        size_t width, height, n_series;
        uint8_t *cells; /* a bit for each dot of a single line; otherwise the series + 1 */
};

ChartCanvas *chart_canvas_new(size_t width, size_t height, size_t n_series) {
        ChartCanvas *canvas = g_new(ChartCanvas, 1);

        *canvas = (ChartCanvas) {
                .width = width, .height = height, .n_series = n_series, .cells = g_malloc0(width * height),
        };
        return canvas;
}

ChartCanvas *chart_canvas_free(ChartCanvas *canvas) {
        if (canvas)
                g_free(canvas->cells);
        g_free(canvas);
        return NULL;
}

static void put_dot(ChartCanvas *canvas, size_t series, size_t x, size_t y) {
        uint8_t *cell = &canvas->cells[y / DOTS * canvas->width + x / DOTS];

        if (canvas->n_series > 1)
                *cell = (uint8_t) (series + 1);
        else
                *cell |= (uint8_t) (1u << (y % DOTS * DOTS + x % DOTS));
}

void chart_canvas_line(ChartCanvas *canvas, size_t series, double x0, double y0, double x1, double y1) {
        double right = (double) (canvas->width * DOTS - 1), bottom = (double) (canvas->height * DOTS - 1);
        double dx = (x1 - x0) * right, dy = (y1 - y0) * bottom;
        size_t n = (size_t) ceil(MAX(fabs(dx), fabs(dy)));

        for (size_t i = 0; i <= n; i++) {
                double part = n > 0 ? (double) i / (double) n : 0;

                put_dot(canvas, series, (size_t) round(x0 * right + part * dx),
                        (size_t) round((1 - y0) * bottom - part * dy));
        }
}

static void append_cells(const ChartCanvas *canvas, GString *text, size_t line) {
        static const char *const quadrants[] = {
                " ", "▘", "▝", "▀", "▖", "▌", "▞", "▛", "▗", "▚", "▐", "▜", "▄", "▙", "▟", "█",
        };
        size_t end = canvas->width;
        const uint8_t *cells = canvas->cells + line * canvas->width;

        while (end > 0 && cells[end - 1] == 0)
                end--;
        for (size_t i = 0; i < end; i++)
                if (canvas->n_series == 1)
                        g_string_append(text, quadrants[cells[i]]);
                else
                        g_string_append(text, cells[i] > 0 ? blocks[cells[i] - 1] : " ");
}

void chart_draw_x_labels(GString *text, size_t margin, size_t width, const double *at, const char *const *labels, size_t n) {
        size_t used = 0;

        g_string_append_printf(text, "%*s", (int) margin, "");
        for (size_t i = 0; i < n; i++) {
                size_t size = width_of(labels[i]), middle = (size_t) round(at[i] * (double) (width - 1)), start;

                start = middle > size / 2 ? middle - size / 2 : 0;
                start = start + size > width ? (width > size ? width - size : 0) : start;
                if (used > 0 && start < used + 1)
                        continue;
                g_string_append_printf(text, "%*s%s", (int) (start - used), "", labels[i]);
                used = start + size;
        }
        g_string_append_c(text, '\n');
}

static const char *label_at(const ChartCanvas *canvas, size_t line, const ChartTick *ticks, size_t n) {
        for (size_t i = 0; i < n; i++)
                if ((size_t) round((1 - ticks[i].at) * (double) (canvas->height - 1)) == line)
                        return ticks[i].label;
        return NULL;
}

void chart_canvas_append(const ChartCanvas *canvas, GString *text, const ChartTick *y, size_t n_y, size_t margin,
                         const ChartTick *x, size_t n_x) {
        const char *labels[CHART_TICKS_MAX];
        double at[CHART_TICKS_MAX];

        for (size_t line = 0; line < canvas->height; line++) {
                const char *label = label_at(canvas, line, y, n_y);

                g_string_append_printf(text, "%*s %s", (int) margin, label ?: "", label ? "┤" : "│");
                append_cells(canvas, text, line);
                g_string_append_c(text, '\n');
        }
        g_string_append_printf(text, "%*s └", (int) margin, "");
        append_times(text, "─", canvas->width);
        g_string_append_c(text, '\n');
        for (size_t i = 0; i < n_x; i++) {
                labels[i] = x[i].label;
                at[i] = x[i].at;
        }
        if (n_x > 0)
                chart_draw_x_labels(text, margin + 2, canvas->width, at, labels, n_x);
}
