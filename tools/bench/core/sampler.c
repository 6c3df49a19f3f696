/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads time and memory of processes, see sampler.h. */
#include "tools/bench/core/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

double sampler_now_usec(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double) now.tv_sec * 1e6 + (double) now.tv_nsec / 1e3;
}

/* Reads the number of a line of a status file, such as "VmHWM:   1234 kB". */
static uint64_t status_number(const char *status, const char *field) {
        const char *line = strstr(status, field);

        return line ? g_ascii_strtoull(line + strlen(field) + strspn(line + strlen(field), " \t"), NULL, 10) : 0;
}

static double status_switches(const char *status) {
        return (double) status_number(status, "\nvoluntary_ctxt_switches:") +
               (double) status_number(status, "\nnonvoluntary_ctxt_switches:");
}

/* The status of a process has only the switches of its main thread. */
static double switches_of_threads(pid_t pid) {
        g_autofree char *folder = g_strdup_printf("/proc/%d/task", pid);
        g_autoptr(GDir) threads = g_dir_open(folder, 0, NULL);
        const char *name;
        double sum = 0;

        while (threads && (name = g_dir_read_name(threads))) { /* NULL: the process has ended */
                g_autofree char *path = g_strdup_printf("%s/%s/status", folder, name), *status = NULL;

                if (g_file_get_contents(path, &status, NULL, NULL))
                        sum += status_switches(status);
        }
        return sum;
}

static void add_memory_and_switches(pid_t pid, Usage *usage) {
        g_autofree char *path = g_strdup_printf("/proc/%d/status", pid), *status = NULL;

        if (!g_file_get_contents(path, &status, NULL, NULL))
                return;
        usage->anonymous_kib += status_number(status, "\nRssAnon:");
        usage->peak_kib += status_number(status, "\nVmHWM:");
        usage->switches += status_number(status, "\nThreads:") > 1 ? switches_of_threads(pid) : status_switches(status);
}

/* Includes all threads, also ended ones, in nanoseconds. /proc has only ticks of 10 ms, or (schedstat) a single thread. */
static double read_cpu_usec(pid_t pid) {
        struct timespec used;
        clockid_t clock;

        if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) < 0)
                return 0;
        return (double) used.tv_sec * 1e6 + (double) used.tv_nsec / 1e3;
}

void sampler_read_own(Usage *ret) {
        struct rusage usage;

        *ret = (Usage) {};
        add_memory_and_switches(getpid(), ret);
        getrusage(RUSAGE_SELF, &usage);
        ret->cpu_usec = (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
                        (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
        ret->switches = (double) (usage.ru_nvcsw + usage.ru_nivcsw);
}

int sampler_for_tree(pid_t pid, int (*act)(pid_t pid, void *userdata), void *userdata) {
        g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/children", pid, pid), *children = NULL;
        g_auto(GStrv) words = NULL;
        int r = act(pid, userdata);

        if (g_file_get_contents(path, &children, NULL, NULL))
                words = g_strsplit(children, " ", -1);
        for (char **word = words; r >= 0 && word && *word; word++)
                if (**word)
                        r = sampler_for_tree((pid_t) g_ascii_strtoll(*word, NULL, 10), act, userdata);
        return r;
}

static int add_process(pid_t pid, void *userdata) {
        Usage *usage = userdata;

        usage->cpu_usec += read_cpu_usec(pid);
        add_memory_and_switches(pid, usage);
        return 0;
}

void sampler_read_one(pid_t pid, Usage *ret) {
        *ret = (Usage) {};
        (void) add_process(pid, ret);
}

void sampler_read_tree(pid_t pid, Usage *ret) {
        *ret = (Usage) {};
        sampler_add_tree(pid, ret);
}

void sampler_add_tree(pid_t pid, Usage *usage) {
        (void) sampler_for_tree(pid, add_process, usage);
}

static int reset_peak(pid_t pid, void *userdata) {
        g_autofree char *path = g_strdup_printf("/proc/%d/clear_refs", pid);
        int fd = open(path, O_WRONLY | O_CLOEXEC), r;

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno; /* the process has ended */
        r = write(fd, "5", 1) == 1 ? 0 : -errno; /* proc(5): reset VmHWM to the present size */
        close(fd);
        return r;
}

int sampler_reset_peaks(pid_t pid) {
        return sampler_for_tree(pid, reset_peak, NULL);
}
