/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Formats amounts as text (human.h). Pure. */
#include "tools/cli/render/human.h"

#include <glib.h>
#include <inttypes.h>
#include <string.h>

#define SECOND ((uint64_t) 1000 * 1000)

char *human_rows(uint64_t n) {
        GString *text = g_string_new(NULL);

        g_string_printf(text, "%" PRIu64, n);
        for (gssize i = (gssize) text->len - 3; i > 0; i -= 3)
                g_string_insert_c(text, i, ',');
        g_string_append(text, n == 1 ? " row" : " rows");
        return g_string_free(text, FALSE);
}

char *human_size(uint64_t n_bytes) {
        static const char *const units[] = { "kB", "MB", "GB", "TB", "PB", "EB" };
        uint64_t unit = 1000;
        size_t i = 0;

        if (n_bytes < 1000)
                return g_strdup_printf("%" PRIu64 " B", n_bytes);
        for (; i + 1 < G_N_ELEMENTS(units) && n_bytes >= unit / 20 * 19999; i++) /* 999.95 of the unit, exactly */
                unit *= 1000;
        return g_strdup_printf("%.1f %s", (double) n_bytes / (double) unit, units[i]);
}

char *human_configured_size(uint64_t n_bytes) {
        static const char units[] = "KMGT";
        size_t n = 0;

        while (n_bytes > 0 && n_bytes % 1024 == 0 && n < strlen(units)) {
                n_bytes /= 1024;
                n++;
        }
        return g_strdup_printf("%" PRIu64 "%.*s", n_bytes, n > 0, n > 0 ? units + n - 1 : "");
}

char *human_time(uint64_t usec) {
        uint64_t seconds = (usec + SECOND / 2) / SECOND;

        if (usec < 999950) /* never "1000.0 ms" */
                return g_strdup_printf("%.1f ms", (double) usec / 1000);
        if (usec < 59995000)
                return g_strdup_printf("%.2f s", (double) usec / SECOND);
        return g_strdup_printf("%" PRIu64 ":%02" PRIu64 " min", seconds / 60, seconds % 60);
}

/* Appends a part if it still fits. */
static void append_part(GString *line, const char *part, size_t width) {
        const char *between = line->len > 0 ? ", " : "";

        if (line->len + strlen(between) + strlen(part) <= width)
                g_string_append_printf(line, "%s%s", between, part);
}

char *human_progress(uint64_t n_rows, uint64_t n_bytes, uint64_t usec, size_t width) {
        double seconds = (double) usec / SECOND;
        g_autofree char *rows = human_rows(n_rows), *bytes = human_size(n_bytes);
        g_autofree char *speed = human_size(usec > 0 ? (uint64_t) ((double) n_bytes / seconds) : 0);
        g_autofree char *rate = g_strconcat(speed, "/s", NULL);
        g_autofree char *time = g_strdup_printf("%" PRIu64 ":%02" PRIu64, usec / SECOND / 60, usec / SECOND % 60);
        GString *line = g_string_new(NULL);

        append_part(line, rows, width);
        if (n_bytes > 0) {
                append_part(line, bytes, width);
                append_part(line, rate, width);
        }
        append_part(line, time, width);
        return g_string_free(line, FALSE);
}
