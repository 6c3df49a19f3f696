/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bulk loads of the benchmark: their rows are those of the dataset `study`, and a loader reads back what it has loaded. */
#include <glib/gstdio.h>

#include "tools/bench/core/baseline.h"
#include "tools/bench/workloads/load.h"

enum { N_ROWS = 23 };

static char *folder;

static uint64_t hash_and_free(Copy *copy) {
        uint64_t hash = copy_hash(copy);

        copy_done(copy);
        return hash;
}

static uint64_t hash_of_rows(int64_t n) {
        LoadRows rows;
        Copy copy = {};

        load_rows_init(&rows, n);
        load_rows_copy(&rows, &copy);
        g_assert_cmpint((int64_t) copy.n_rows, ==, n);
        g_assert_cmpint((int64_t) copy.n_bytes, ==, n * (8 + DATASET_STUDY_COLUMNS * DATASET_STUDY_LENGTH));
        load_rows_done(&rows);
        return hash_and_free(&copy);
}

static void test_rows(void) {
        g_autofree char *path = g_build_filename(folder, "study.sqlite", NULL);
        const Dataset dataset = { .kind = &dataset_kinds[0], .n_rows = N_ROWS, .seed = 1, .path = path };
        Baseline *baseline = NULL;
        Copy copy = {};

        g_assert_cmpstr(dataset_kinds[0].name, ==, "study");
        g_assert_cmpint(dataset_make(&dataset), ==, 0);
        g_assert_cmpint(baseline_open(path, &baseline), ==, 0);
        g_assert_cmpint(baseline_copy(baseline, "SELECT * FROM study ORDER BY id", BASELINE_USUAL, &copy), ==, 0);
        baseline_close(baseline);
        g_assert_cmpuint(hash_and_free(&copy), ==, hash_of_rows(N_ROWS));
        g_assert_cmpuint(hash_of_rows(N_ROWS - 1), !=, hash_of_rows(N_ROWS));
        g_assert_cmpint(g_unlink(path), ==, 0);
}

static uint64_t hash_of_table(void *loader, uint64_t *ret_n_rows) {
        Copy copy = {};

        g_assert_cmpint(load_direct.copy(loader, &copy), ==, 0);
        *ret_n_rows = copy.n_rows;
        return hash_and_free(&copy);
}

/* More rows than one statement deletes. */
static void test_direct(void) {
        g_autofree char *path = g_build_filename(folder, "direct.sqlite", NULL);
        const int64_t n = LOAD_DELETE_ROWS + 1;
        LoadRows rows;
        const LoadTask task = { .rows = &rows, .file = path };
        uint64_t n_rows;
        void *loader;

        load_rows_init(&rows, n);
        g_assert_cmpint(load_direct.open(&task, &loader), ==, 0);
        for (int i = 0; i < 2; i++) {
                g_assert_cmpint(load_direct.load(loader), ==, 0);
                g_assert_cmpuint(hash_of_table(loader, &n_rows), ==, hash_of_rows(n));
                g_assert_cmpint((int64_t) n_rows, ==, n);
                g_assert_cmpint(load_direct.clear(loader), ==, 0);
                (void) hash_of_table(loader, &n_rows);
                g_assert_cmpuint(n_rows, ==, 0);
        }
        load_direct.close(loader);
        load_rows_done(&rows);
        g_assert_cmpint(g_unlink(path), ==, 0);
}

int main(int argc, char **argv) {
        int r;

        g_test_init(&argc, &argv, NULL);
        folder = g_dir_make_tmp("test-bench-load.XXXXXX", NULL);
        g_assert_nonnull(folder);
        g_test_add_func("/bench-load/rows", test_rows);
        g_test_add_func("/bench-load/direct", test_direct);
        r = g_test_run();
        (void) g_rmdir(folder);
        g_free(folder);
        return r;
}
