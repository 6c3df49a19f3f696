/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a run costs, see sampler.h. */
#include "sampler.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

double sampler_now_usec(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double) now.tv_sec * 1e6 + (double) now.tv_nsec / 1e3;
}

double sampler_own_cpu_usec(void) {
        struct rusage usage;

        getrusage(RUSAGE_SELF, &usage);
        return (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
               (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* A line of a status file, "VmHWM:   1234 kB". */
static uint64_t read_status_kib(const char *path, const char *field) {
        g_autofree char *status = NULL;
        const char *line;

        if (!g_file_get_contents(path, &status, NULL, NULL))
                return 0;
        line = strstr(status, field);
        return line ? g_ascii_strtoull(line + strlen(field) + strspn(line + strlen(field), " \t"), NULL, 10) : 0;
}

/* schedstat counts nanoseconds; stat would count ticks of 10 ms. */
static double read_cpu_usec(pid_t pid) {
        g_autofree char *path = g_strdup_printf("/proc/%d/schedstat", pid), *text = NULL;

        return g_file_get_contents(path, &text, NULL, NULL) ? (double) g_ascii_strtoull(text, NULL, 10) / 1e3 : 0;
}

static void add_process(pid_t pid, double *cpu_usec, uint64_t *anonymous_kib) {
        g_autofree char *path = g_strdup_printf("/proc/%d/status", pid);

        *cpu_usec += read_cpu_usec(pid);
        *anonymous_kib += read_status_kib(path, "RssAnon:");
}

void sampler_read_tree(pid_t pid, double *ret_cpu_usec, uint64_t *ret_anonymous_kib) {
        g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/children", pid, pid), *children = NULL;
        g_auto(GStrv) words = NULL;
        double cpu_usec = 0;
        uint64_t anonymous_kib = 0;

        add_process(pid, &cpu_usec, &anonymous_kib);
        if (g_file_get_contents(path, &children, NULL, NULL))
                words = g_strsplit(children, " ", -1);
        for (char **word = words; word && *word; word++)
                if (**word)
                        add_process((pid_t) g_ascii_strtoll(*word, NULL, 10), &cpu_usec, &anonymous_kib);
        if (ret_cpu_usec)
                *ret_cpu_usec = cpu_usec;
        if (ret_anonymous_kib)
                *ret_anonymous_kib = anonymous_kib;
}

void sampler_reset_peak(void) {
        FILE *file = fopen("/proc/self/clear_refs", "we");

        if (!file)
                return;
        (void) fputs("5", file); /* proc(5): reset VmHWM to the present size */
        (void) fclose(file);
}

uint64_t sampler_peak_kib(void) {
        return read_status_kib("/proc/self/status", "VmHWM:");
}
