/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Clients of the benchmark: all start together, none leaves before all are done, and a client that fails is reported. */
#include <errno.h>
#include <glib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tools/bench/core/clients.h"

enum { N_CLIENTS = 4, N_EACH = 50, N_KEYS = 1000 };

/* Memory that all processes share. */
typedef struct Scene {
        atomic_uint n_opened, n_asking, n_answered, n_closed;
        unsigned number_that_fails; /* to open, from 1; 0: none */
        bool one_row_short;
        int64_t answer;             /* beside the key */
        atomic_uint early, left;    /* a client began before all were open; one closed before all had answered */
} Scene;

static Scene *scene;

static int open_client(void *userdata, void **ret_client) {
        unsigned number = atomic_fetch_add(&scene->n_opened, 1) + 1;

        g_assert_true(userdata == scene);
        if (number == scene->number_that_fails)
                return -EIO;
        g_usleep(number * 5000); /* so that they do not begin together by chance */
        *ret_client = scene;
        return 0;
}

/* The warm-up is whatever is not as long as the measured part. */
static int ask(void *client, const int64_t *keys, unsigned n, double *ret_usec, Copy *copy) {
        unsigned place = 0;

        if (n == N_EACH) {
                atomic_fetch_or(&scene->early, atomic_load(&scene->n_opened) < N_CLIENTS);
                place = atomic_fetch_add(&scene->n_asking, 1);
                g_usleep(place * 5000);
        }
        for (unsigned i = 0; i < n; i++) {
                g_assert_cmpint(keys[i], >=, 1);
                g_assert_cmpint(keys[i], <=, N_KEYS);
                copy_integer(copy, keys[i]);
                copy_integer(copy, scene->answer);
                copy->n_rows++;
                ret_usec[i] = place + 1;
        }
        if (scene->one_row_short)
                copy->n_rows--;
        if (n == N_EACH)
                atomic_fetch_add(&scene->n_answered, 1);
        return 0;
}

static void close_client(void *client) {
        atomic_fetch_or(&scene->left, atomic_load(&scene->n_answered) < N_CLIENTS);
        atomic_fetch_add(&scene->n_closed, 1);
}

static int run(ClientsFindings *ret) {
        const ClientKind kind = {
                .name = "test", .open = open_client, .ask = ask, .close = close_client, .userdata = scene,
                .answers_rows = true,
        };
        int r = clients_run(&kind, N_CLIENTS, N_EACH, N_KEYS, PLACEMENT_FREE, ret);

        /* in any case, no process is left */
        g_assert_cmpint(waitpid(-1, NULL, WNOHANG), ==, -1);
        g_assert_cmpint(errno, ==, ECHILD);
        return r;
}

static void test_together(void) {
        ClientsFindings findings;
        double sum = 0;

        *scene = (Scene) {};
        g_assert_cmpint(run(&findings), ==, 0);
        g_assert_cmpuint(scene->early, ==, 0);
        g_assert_cmpuint(scene->left, ==, 0);
        g_assert_cmpuint(scene->n_closed, ==, N_CLIENTS);
        g_assert_cmpuint(findings.usec->len, ==, N_CLIENTS * N_EACH);
        for (guint i = 0; i < findings.usec->len; i++)
                sum += g_array_index(findings.usec, double, i);
        g_assert_cmpfloat(sum, ==, (1 + 2 + 3 + 4) * N_EACH);
        g_assert_cmpfloat(findings.per_second, >, 0);
        clients_findings_done(&findings);
}

static uint64_t check_of(int64_t answer) {
        ClientsFindings findings;

        *scene = (Scene) { .answer = answer };
        g_assert_cmpint(run(&findings), ==, 0);
        clients_findings_done(&findings);
        return findings.check;
}

/* By which sides are compared. */
static void test_check(void) {
        uint64_t check = check_of(1);

        g_assert_cmpuint(check_of(1), ==, check);
        g_assert_cmpuint(check_of(2), !=, check);
}

static void test_failure(void) {
        ClientsFindings findings;

        for (unsigned number = 1; number <= N_CLIENTS; number++) {
                *scene = (Scene) { .number_that_fails = number };
                g_assert_cmpint(run(&findings), <, 0);
        }
        *scene = (Scene) { .one_row_short = true };
        g_assert_cmpint(run(&findings), <, 0);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        scene = mmap(NULL, sizeof *scene, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        g_assert_true(scene != MAP_FAILED);
        g_test_add_func("/bench-clients/together", test_together);
        g_test_add_func("/bench-clients/check", test_check);
        g_test_add_func("/bench-clients/failure", test_failure);
        return g_test_run();
}
