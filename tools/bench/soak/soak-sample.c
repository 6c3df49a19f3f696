/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the service holds, see soak.h: from its own properties and from /proc. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "tools/bench/core/sampler.h"
#include "tools/bench/soak/soak.h"

/* Returns the number of descriptors of a process; NAN if this user may not see them. */
static double count_descriptors(pid_t pid) {
        g_autofree char *path = g_strdup_printf("/proc/%d/fd", pid);
        GDir *folder = g_dir_open(path, 0, NULL);
        double n = 0;

        if (!folder)
                return NAN;
        while (g_dir_read_name(folder))
                n++;
        g_dir_close(folder);
        return n;
}

typedef struct Family {
        pid_t supervisor;
        SoakSample *sample;
} Family;

/* Adds the supervisor or one of its workers. A worker may have ended since it was listed. */
static int add_process(pid_t pid, void *userdata) {
        Family *family = userdata;
        Usage usage;

        sampler_read_one(pid, &usage);
        family->sample->n_processes++;
        if (pid == family->supervisor)
                family->sample->supervisor_kib = (double) usage.anonymous_kib;
        else {
                family->sample->workers_kib += (double) usage.anonymous_kib;
                family->sample->n_workers++;
        }
        return 0;
}

int soak_sample(Service *service, SoakSample *ret) {
        SoakSample sample = { .n_descriptors = count_descriptors(service->pid) };
        const struct { const char *property; uint64_t *count; } counts[] = {
                { "NStatements", &sample.n_statements },
                { "NRuns", &sample.n_runs },
                { "NChannels", &sample.n_channels },
                { "NParked", &sample.n_parked },
        };
        Family family = { service->pid, &sample };

        (void) sampler_for_tree(service->pid, add_process, &family);
        for (size_t i = 0; i < G_N_ELEMENTS(counts); i++) {
                int r = bench_service_get_count(service, counts[i].property, counts[i].count);

                if (r < 0) {
                        fprintf(stderr, "sqlipc-bench: the service does not say its %s: %s\n", counts[i].property,
                                g_strerror(-r));
                        return r;
                }
        }
        *ret = sample;
        return 0;
}
