/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/output/output: output that is not read, when a time limit passes, and when the answer was interrupted. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/output/output.h"

enum { PIPE_SIZE = 4096, ANSWER_SIZE = 5 * PIPE_SIZE };

typedef struct Fixture {
        char *folder, *path;
        int reader;
        Output *output;
} Fixture;

static void set_up(Fixture *fixture, const void *data) {
        g_autofree char *message = NULL;

        (void) data;
        fixture->folder = g_dir_make_tmp("sqlipc-output-XXXXXX", NULL);
        g_assert_nonnull(fixture->folder);
        fixture->path = g_build_filename(fixture->folder, "fifo", NULL);
        g_assert_cmpint(mkfifo(fixture->path, 0600), ==, 0);
        fixture->reader = open(fixture->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        g_assert_cmpint(fixture->reader, >=, 0);
        g_assert_cmpint(fcntl(fixture->reader, F_SETPIPE_SZ, PIPE_SIZE), ==, PIPE_SIZE);
        fixture->output = output_new();
        g_assert_cmpint(output_redirect(fixture->output, fixture->path, false, &message), ==, 0);
}

static void tear_down(Fixture *fixture, const void *data) {
        (void) data;
        output_free(fixture->output);
        (void) close(fixture->reader);
        g_assert_cmpint(g_unlink(fixture->path), ==, 0);
        g_assert_cmpint(g_rmdir(fixture->folder), ==, 0);
        g_free(fixture->path);
        g_free(fixture->folder);
}

/* More than the pipe holds stands in the stream when it is broken off. */
static void break_off(Fixture *fixture) {
        const OutputOptions options = {};
        FILE *file;

        g_assert_cmpint(output_begin(fixture->output, &options, &file), ==, 0);
        for (int i = 0; i < ANSWER_SIZE; i++)
                g_assert_cmpint(putc('a' + i % 26, file), !=, EOF);
        output_hurry(fixture->output);
}

static size_t take(const Fixture *fixture) {
        char buffer[ANSWER_SIZE];
        ssize_t n = read(fixture->reader, buffer, sizeof buffer);

        return n > 0 ? (size_t) n : 0;
}

/* It ends, with the bytes for which there was room. */
static void test_nobody_reads(Fixture *fixture, const void *data) {
        (void) data;
        break_off(fixture);
        g_assert_cmpint(output_end(fixture->output), ==, -ECANCELED);
        g_assert_cmpuint(take(fixture), ==, PIPE_SIZE);
        g_assert_cmpuint(take(fixture), ==, 0);
}

typedef struct Rung {
        Fixture *fixture;
        unsigned times;
        size_t size; /* bytes that had been written */
} Rung;

/* Makes the room for which the write waits. */
static void ring(void *userdata) {
        Rung *rung = userdata;

        rung->times++;
        rung->size = take(rung->fixture);
}

/* The alarm rings once, as soon as a write waits at its time; the write goes on. */
static void test_alarm(Fixture *fixture, const void *data) {
        const OutputOptions options = {};
        Rung rung = { .fixture = fixture };
        FILE *file;

        (void) data;
        g_assert_cmpint(output_begin(fixture->output, &options, &file), ==, 0);
        output_set_alarm(fixture->output, g_get_monotonic_time() - 1, ring, &rung);
        for (int i = 0; i < PIPE_SIZE; i++)
                g_assert_cmpint(putc('a', file), !=, EOF);
        g_assert_cmpint(fflush(file), ==, 0);
        g_assert_cmpuint(rung.times, ==, 0); /* there was room */
        for (int i = 0; i < PIPE_SIZE; i++)
                g_assert_cmpint(putc('b', file), !=, EOF);
        g_assert_cmpint(output_end(fixture->output), ==, 0);
        g_assert_cmpuint(rung.times, ==, 1);
        g_assert_cmpuint(rung.size, ==, PIPE_SIZE);
        g_assert_cmpuint(take(fixture), ==, PIPE_SIZE);
}

static void *read_all(void *userdata) {
        const Fixture *fixture = userdata;
        size_t size = 0;

        while (size < ANSWER_SIZE) {
                size += take(fixture);
                g_usleep(1000);
        }
        return GSIZE_TO_POINTER(size);
}

/* A reader gets all bytes. */
static void test_somebody_reads(Fixture *fixture, const void *data) {
        GThread *reader = g_thread_new("reader", read_all, fixture);

        (void) data;
        break_off(fixture);
        g_assert_cmpint(output_end(fixture->output), ==, 0);
        g_assert_cmpuint(GPOINTER_TO_SIZE(g_thread_join(reader)), ==, ANSWER_SIZE);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add("/cli-output/alarm", Fixture, NULL, set_up, test_alarm, tear_down);
        g_test_add("/cli-output/broken-off/nobody-reads", Fixture, NULL, set_up, test_nobody_reads, tear_down);
        g_test_add("/cli-output/broken-off/somebody-reads", Fixture, NULL, set_up, test_somebody_reads, tear_down);
        return g_test_run();
}
