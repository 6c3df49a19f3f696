/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The rows of bulk loads, see load.h. */
#include "tools/bench/workloads/load.h"

enum { ROW_LETTERS = DATASET_STUDY_COLUMNS * DATASET_STUDY_LENGTH, SEED = 1 };

/* As `study` does it, row by row: each row begins with a new random number. */
void load_rows_init(LoadRows *rows, int64_t n) {
        Random random;

        *rows = (LoadRows) { .n = n, .letters = g_malloc((size_t) n * ROW_LETTERS) };
        random_init(&random, SEED);
        for (int64_t row = 0; row < n; row++)
                random_letters(&random, rows->letters + row * ROW_LETTERS, ROW_LETTERS);
}

void load_rows_done(LoadRows *rows) {
        g_clear_pointer(&rows->letters, g_free);
}

void load_rows_copy(const LoadRows *rows, Copy *copy) {
        for (int64_t row = 0; row < rows->n; row++) {
                copy_integer(copy, row + 1);
                for (int i = 0; i < DATASET_STUDY_COLUMNS; i++)
                        copy_bytes(copy, SQLIPC_TEXT, load_rows_text(rows, row, i), DATASET_STUDY_LENGTH);
                copy->n_rows++;
        }
}
