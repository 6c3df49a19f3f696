/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options that are set (bench-options.h). */
#include "tools/bench/core/bench-options.h"

#include <errno.h>

int bench_size_from_name(const char *name, BenchSize *ret) {
        static const char *const names[] = { "tiny", "normal", "full" };

        for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
                if (g_str_equal(name, names[i])) {
                        *ret = (BenchSize) i;
                        return 0;
                }
        return -EINVAL;
}

void bench_options_done(BenchOptions *options) {
        g_clear_pointer(&options->address, g_free);
        g_clear_pointer(&options->folder, g_free);
        g_clear_pointer(&options->database, g_free);
        g_clear_pointer(&options->file, g_free);
        g_clear_pointer(&options->sql, g_free);
        g_clear_pointer(&options->exposed, g_free);
        g_clear_pointer(&options->tasks, g_free);
        g_clear_pointer(&options->postgres, g_free);
        g_clear_pointer(&options->engine, g_free);
        g_clear_pointer(&options->mariadb, g_free);
        g_clear_pointer(&options->plot_folder, g_free);
        g_clear_pointer(&options->uids, g_free);
}

int bench_rounds(const BenchOptions *options) {
        return options->n_rounds > 0 ? options->n_rounds : (int) bench_amount(options, 1, 5, 5);
}

char *bench_dataset_file(const BenchOptions *options, const char *name) {
        return options->folder ? g_strdup_printf("%s/%s.sqlite", options->folder, name) : NULL;
}
