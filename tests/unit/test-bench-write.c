/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writers of the benchmark: failures are counted, and rows that are missing, or exist twice, are reported. */
#include <errno.h>
#include <glib.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "tools/bench/workloads/write.h"

enum { N_WRITERS = 3, RUN_USEC = 5000, FAILS_EACH = 10, ROWS_MAX = 4096 };

/* Memory that all processes share: the table, and its errors. */
typedef struct Scene {
        atomic_uint n_rows, n_failed, n_cleared, n_open;
        bool fails, keeps_rows_that_failed;
        unsigned n_missing, n_twice;
        int64_t numbers[ROWS_MAX]; /* of the rows */
} Scene;

static Scene *scene;

static int clear(const WriteTarget *target) {
        g_assert_true((const void *) target == scene);
        atomic_store(&scene->n_rows, 0);
        atomic_fetch_add(&scene->n_cleared, 1);
        return 0;
}

static int count(const WriteTarget *target, WriteCount *ret) {
        g_assert_true((const void *) target == scene);
        ret->n_rows = (int64_t) atomic_load(&scene->n_rows) - scene->n_missing;
        ret->n_different = ret->n_rows - scene->n_twice;
        return 0;
}

static int open_writer(const WriteTarget *target, void **ret_writer) {
        g_assert_true((const void *) target == scene);
        atomic_fetch_add(&scene->n_open, 1);
        *ret_writer = g_new0(unsigned, 1);
        return 0;
}

static int write_row(void *writer, int64_t number, const char **ret_message) {
        unsigned *n = writer;

        g_assert_cmpint(number, >=, 0);
        if (!scene->fails || ++*n % FAILS_EACH != 0) {
                unsigned row = atomic_fetch_add(&scene->n_rows, 1);

                g_assert_cmpuint(row, <, ROWS_MAX);
                scene->numbers[row] = number;
                return 0;
        }
        if (scene->keeps_rows_that_failed)
                atomic_fetch_add(&scene->n_rows, 1);
        atomic_fetch_add(&scene->n_failed, 1);
        *ret_message = "it failed";
        return -EIO;
}

static void close_writer(void *writer) {
        atomic_fetch_sub(&scene->n_open, 1);
        g_free(writer);
}

static int run(const Scene *what, WriteFindings *ret) {
        const WriterKind kind = {
                .name = "test", .clear = clear, .count = count, .open = open_writer, .write = write_row,
                .close = close_writer, .target = (const void *) scene,
        };
        int r;

        *scene = *what;
        r = write_run(&kind, N_WRITERS, RUN_USEC, ret);
        g_assert_cmpuint(atomic_load(&scene->n_cleared), ==, 1);
        g_assert_cmpuint(atomic_load(&scene->n_open), ==, 0);
        return r;
}

static int compare(const void *a, const void *b) {
        const int64_t *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

static void test_rows(void) {
        WriteFindings findings;
        unsigned n;

        g_assert_cmpint(run(&(Scene) {}, &findings), ==, 0);
        g_assert_cmpuint(findings.n_failed, ==, 0);
        g_assert_null(findings.failure);
        g_assert_cmpfloat(findings.per_second, >, 0);
        g_assert_cmpuint(findings.usec->len, >=, N_WRITERS);
        write_findings_done(&findings);
        n = atomic_load(&scene->n_rows);
        qsort(scene->numbers, n, sizeof scene->numbers[0], compare);
        for (unsigned i = 1; i < n; i++)
                g_assert_cmpint(scene->numbers[i - 1], !=, scene->numbers[i]);
}

static void test_failures(void) {
        WriteFindings findings;

        for (unsigned kept = 0; kept < 2; kept++) {
                g_assert_cmpint(run(&(Scene) { .fails = true, .keeps_rows_that_failed = kept > 0 }, &findings), ==, 0);
                g_assert_cmpuint(findings.n_failed, >, 0);
                g_assert_cmpuint(findings.n_failed, ==, atomic_load(&scene->n_failed));
                g_assert_cmpstr(findings.failure, ==, "it failed");
                write_findings_done(&findings);
        }
}

static int see_writers(void *userdata) {
        unsigned *n_open = userdata;

        *n_open = atomic_load(&scene->n_open);
        return *n_open == N_WRITERS ? 0 : -EINVAL;
}

static int fail(void *userdata) {
        (void) userdata;
        return -EIO;
}

/* The parent works while all writers are connected; its failure ends the run. */
static void test_beside(void) {
        const WriterKind kind = {
                .name = "test", .clear = clear, .count = count, .open = open_writer, .write = write_row,
                .close = close_writer, .target = (const void *) scene,
        };
        WriteFindings findings;
        unsigned n_open = 0;

        *scene = (Scene) {};
        g_assert_cmpint(write_run_beside(&kind, N_WRITERS, RUN_USEC, see_writers, &n_open, &findings), ==, 0);
        g_assert_cmpuint(n_open, ==, N_WRITERS);
        write_findings_done(&findings);
        *scene = (Scene) {};
        g_assert_cmpint(write_run_beside(&kind, N_WRITERS, RUN_USEC, fail, NULL, &findings), ==, -EIO);
        g_assert_cmpuint(atomic_load(&scene->n_open), ==, 0);
}

static void test_wrong_tables(void) {
        WriteFindings findings;

        g_assert_cmpint(run(&(Scene) { .n_missing = 1 }, &findings), ==, -EBADMSG);
        g_assert_cmpint(run(&(Scene) { .n_twice = 1 }, &findings), ==, -EBADMSG);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        scene = mmap(NULL, sizeof *scene, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        g_assert_true(scene != MAP_FAILED);
        g_test_add_func("/bench-write/rows", test_rows);
        g_test_add_func("/bench-write/failures", test_failures);
        g_test_add_func("/bench-write/beside", test_beside);
        g_test_add_func("/bench-write/wrong-tables", test_wrong_tables);
        return g_test_run();
}
