/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a workload found, see report.h. Both forms are made as facts and figures come, and one of them is printed. */
#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "config.h"

struct Report {
        const char *title;
        GString *text;
        GString *json_facts, *json_figures; /* members of an object each, without its braces */
};

static void append_json_string(GString *json, const char *string) {
        g_string_append_c(json, '"');
        for (const char *p = string; *p; p++)
                if (*p == '"' || *p == '\\')
                        g_string_append_printf(json, "\\%c", *p);
                else if ((unsigned char) *p < 0x20)
                        g_string_append_printf(json, "\\u%04x", (unsigned) (unsigned char) *p);
                else
                        g_string_append_c(json, *p);
        g_string_append_c(json, '"');
}

static void append_json_number(GString *json, double value) {
        char number[G_ASCII_DTOSTR_BUF_SIZE];

        g_string_append(json, isfinite(value) ? g_ascii_formatd(number, sizeof number, "%.6g", value) : "null");
}

static void begin_json_member(GString *json, const char *name) {
        if (json->len > 0)
                g_string_append(json, ", ");
        append_json_string(json, name);
        g_string_append(json, ": ");
}

void report_fact(Report *report, const char *name, const char *format, ...) {
        g_autofree char *fact = NULL;
        va_list arguments;

        va_start(arguments, format);
        fact = g_strdup_vprintf(format, arguments);
        va_end(arguments);
        g_string_append_printf(report->text, "%-32s %s\n", name, fact);
        begin_json_member(report->json_facts, name);
        append_json_string(report->json_facts, fact);
}

static char *processor(void) {
        g_autofree char *cpuinfo = NULL;
        const char *model;

        if (!g_file_get_contents("/proc/cpuinfo", &cpuinfo, NULL, NULL))
                return g_strdup("unknown processor");
        model = strstr(cpuinfo, "model name");
        model = model ? strchr(model, ':') : NULL;
        return model ? g_strstrip(g_strndup(model + 1, strcspn(model + 1, "\n"))) : g_strdup("unknown processor");
}

Report *report_new(const char *title) {
        Report *report = g_new(Report, 1);
        g_autofree char *model = processor();
        struct utsname system;

        *report = (Report) {
                .title = title,
                .text = g_string_new(NULL),
                .json_facts = g_string_new(NULL),
                .json_figures = g_string_new(NULL),
        };
        (void) uname(&system);
        report_fact(report, "machine", "%ld x %s, %s %s", sysconf(_SC_NPROCESSORS_ONLN), model, system.sysname,
                    system.release);
        report_fact(report, "sqlipc", "%s", SQLIPC_VERSION);
        return report;
}

Report *report_free(Report *report) {
        if (!report)
                return NULL;
        g_string_free(report->text, TRUE);
        g_string_free(report->json_facts, TRUE);
        g_string_free(report->json_figures, TRUE);
        g_free(report);
        return NULL;
}

void report_freep(Report **report) {
        *report = report_free(*report);
}

static int compare_doubles(gconstpointer a, gconstpointer b) {
        double x = *(const double *) a, y = *(const double *) b;

        return x < y ? -1 : x > y;
}

static GArray *sorted(const GArray *values) {
        GArray *copy = g_array_copy((GArray *) values);

        g_array_sort(copy, compare_doubles);
        return copy;
}

static double middle(const GArray *in_order) {
        guint n = in_order->len;

        return (g_array_index(in_order, double, (n - 1) / 2) + g_array_index(in_order, double, n / 2)) / 2;
}

double report_median(const GArray *values) {
        g_autoptr(GArray) in_order = sorted(values);

        return middle(in_order);
}

void report_figure(Report *report, const char *name, const char *unit, const GArray *values) {
        g_autoptr(GArray) in_order = sorted(values);
        double median = middle(in_order), least = g_array_index(in_order, double, 0);
        double most = g_array_index(in_order, double, in_order->len - 1);
        g_autofree char *label = *unit ? g_strdup_printf("%s, %s", name, unit) : g_strdup(name);
        int decimals = median >= 1000 ? 0 : median >= 10 ? 1 : 3;

        g_string_append_printf(report->text, "%-32s %10.*f", label, decimals, median);
        if (values->len > 1)
                g_string_append_printf(report->text, "   (%.*f ... %.*f, median of %u)", decimals, least, decimals, most,
                                       values->len);
        g_string_append_c(report->text, '\n');

        begin_json_member(report->json_figures, name);
        g_string_append(report->json_figures, "{\"unit\": ");
        append_json_string(report->json_figures, unit);
        g_string_append(report->json_figures, ", \"median\": ");
        append_json_number(report->json_figures, median);
        g_string_append(report->json_figures, ", \"values\": [");
        for (guint i = 0; i < values->len; i++) {
                g_string_append(report->json_figures, i > 0 ? ", " : "");
                append_json_number(report->json_figures, g_array_index(values, double, i));
        }
        g_string_append(report->json_figures, "]}");
}

void report_single(Report *report, const char *name, const char *unit, double value) {
        g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(double));

        g_array_append_val(values, value);
        report_figure(report, name, unit, values);
}

int report_print(const Report *report, bool json) {
        if (json)
                printf("{\"workload\": \"%s\", \"facts\": {%s}, \"figures\": {%s}}\n", report->title,
                       report->json_facts->str, report->json_figures->str);
        else
                printf("%s\n\n%s", report->title, report->text->str);
        if (fflush(stdout) != 0) {
                fprintf(stderr, "sqlipc-bench: cannot write: %s\n", g_strerror(errno));
                return -EIO;
        }
        return 0;
}
