/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Repeats a short operation, see repeat.h. */
#include "tools/bench/core/repeat.h"

#include <stdio.h>

#include "tools/bench/core/sampler.h"

void repeat_init(Repeat *repeat, const char *name, int (*once)(void *userdata), void *userdata, double loop_usec) {
        *repeat = (Repeat) {
                .name = name, .once = once, .userdata = userdata, .loop_usec = loop_usec,
                .usec = g_array_new(FALSE, FALSE, sizeof(double)), .counts = g_array_new(FALSE, FALSE, sizeof(double)),
        };
}

void repeat_done(Repeat *repeat) {
        g_clear_pointer(&repeat->usec, g_array_unref);
        g_clear_pointer(&repeat->counts, g_array_unref);
}

int repeat_run(Repeat *repeat) {
        double start = sampler_now_usec(), usec, count = 0;

        do {
                int r = repeat->once(repeat->userdata);

                if (r < 0) {
                        fprintf(stderr, "sqlipc-bench: %s: %s\n", repeat->name, g_strerror(-r));
                        return r;
                }
                count++;
                usec = sampler_now_usec() - start;
        } while (usec < repeat->loop_usec);
        usec /= count;
        g_array_append_val(repeat->usec, usec);
        g_array_append_val(repeat->counts, count);
        return 0;
}

void repeat_clear(Repeat *repeat) {
        g_array_set_size(repeat->usec, 0);
        g_array_set_size(repeat->counts, 0);
}

void repeat_drop_warm_up(Repeat *repeat) {
        g_array_remove_index(repeat->usec, 0);
        g_array_remove_index(repeat->counts, 0);
}
