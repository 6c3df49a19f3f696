/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/output/pager: what a pager receives, and how a pager is handled that quits, does not exist, or reads slowly. */
#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "tools/cli/output/interrupt.h"
#include "tools/cli/output/pager.h"

#define BLOCK ((size_t) 65536)

static char *folder, *file, *go;

/* The text after `to` is the file's name. */
static Pager *start(const char *to, uint64_t max) {
        g_autofree char *command = g_strconcat(to, file, NULL);
        Pager *pager;

        g_assert_cmpint(pager_start(command, max, &pager), ==, 0);
        return pager;
}

/* One that reads nothing before let_go(). */
static Pager *start_waiting(uint64_t max) {
        g_autofree char *command = g_strdup_printf("until test -e %s; do sleep 0.01; done; cat >", go);

        return start(command, max);
}

static void let_go(void) {
        g_assert_true(g_file_set_contents(go, "", 0, NULL));
}

static char *got(gsize *ret_size) {
        char *contents;

        g_assert_true(g_file_get_contents(file, &contents, ret_size, NULL));
        (void) g_unlink(file);
        (void) g_unlink(go);
        return contents;
}

/* More than a pipe holds, to one that does not read: writing does not wait, the end does. */
static void test_all(void) {
        Pager *pager = start_waiting(64 << 20);
        g_autofree char *block = g_malloc(BLOCK), *contents = NULL;
        gsize size;

        for (int i = 0; i < 64; i++) {
                memset(block, 'a' + i % 26, BLOCK);
                g_assert_cmpint(pager_write(pager, block, BLOCK), ==, 0);
        }
        g_assert_cmpint(pager_pollfd(pager).events, ==, POLLOUT);
        let_go();
        g_assert_cmpint(pager_end(pager), ==, 0);
        pager_free(pager);
        contents = got(&size);
        g_assert_cmpuint(size, ==, 64 * BLOCK);
        for (size_t i = 0; i < 64; i++)
                g_assert_cmpint(contents[i * BLOCK], ==, 'a' + (int) (i % 26));
}

/* It reads a line, and leaves. */
static void test_quit(void) {
        Pager *pager = start("head -n 1 >", 64 << 20);
        g_autofree char *contents = NULL;
        struct pollfd fd;
        gsize size;

        g_assert_cmpint(pager_write(pager, "line\n", 5), ==, 0);
        fd = pager_pollfd(pager);
        g_assert_cmpint(poll(&fd, 1, 120000), ==, 1); /* nothing is written, and still it is heard of */
        g_assert_cmpint(pager_pump(pager), ==, -EPIPE);
        g_assert_cmpint(pager_write(pager, "more\n", 5), ==, -EPIPE);
        g_assert_cmpint(pager_end(pager), ==, -EPIPE);
        pager_free(pager);
        contents = got(&size);
        g_assert_cmpstr(contents, ==, "line\n");
}

static void test_not_there(void) {
        static const char *const commands[] = { "nosuchpager 2>", "/ 2>" }; /* not found, not executable */

        for (size_t i = 0; i < G_N_ELEMENTS(commands); i++) {
                Pager *pager = start(commands[i], 64 << 20);
                char buffer[16] = "";

                int r = pager_write(pager, "one ", 4);

                g_assert_true(r == 0 || r == -ENOEXEC); /* it may not have ended yet */
                g_assert_cmpint(pager_end(pager), ==, -ENOEXEC);
                g_assert_cmpint(pager_read_back(pager, 0, buffer, sizeof buffer), ==, 4);
                g_assert_cmpstr(buffer, ==, "one ");
                pager_free(pager);
                (void) g_unlink(file);
        }
}

/* Waiting bytes are bounded; accepted ones are read, and then the reason for the end. */
static void test_too_much(void) {
        static const char last[] = "\n[The query was ended here: 1 MiB wait for the pager.]\n";
        g_autofree char *block = g_malloc0(BLOCK), *contents = NULL;
        Pager *pager = start_waiting(1 << 20);
        size_t n = 0;
        gsize size;
        int r;

        while ((r = pager_write(pager, block, BLOCK)) == 0)
                n += BLOCK;
        g_assert_cmpint(r, ==, -EPIPE);
        g_assert_cmpuint(n, >=, 1 << 20);
        g_assert_cmpuint(n, <=, 3 << 20); /* a pipe is at most 1 MiB */
        let_go();
        g_assert_cmpint(pager_end(pager), ==, -EPIPE);
        pager_free(pager);
        contents = got(&size);
        g_assert_cmpuint(size, ==, n + strlen(last));
        g_assert_cmpmem(contents + n, strlen(last), last, strlen(last));
}

/* Where it has a choice. */
static void test_command(void) {
        g_setenv("TERM", "xterm", TRUE);
        g_unsetenv("PAGER");
        g_assert_cmpstr(pager_command(NULL), ==, "less -SR");
        g_assert_cmpstr(pager_command("more"), ==, "more");
        g_assert_null(pager_command(""));
        g_setenv("PAGER", "most -x", TRUE);
        g_assert_cmpstr(pager_command(NULL), ==, "most -x");
        g_assert_cmpstr(pager_command("more"), ==, "more");
        g_setenv("PAGER", "", TRUE);
        g_assert_null(pager_command(NULL));
        g_assert_cmpstr(pager_command("more"), ==, "more");
        g_setenv("TERM", "dumb", TRUE);
        g_assert_null(pager_command("more"));
}

int main(int argc, char **argv) {
        int r;

        g_test_init(&argc, &argv, NULL);
        (void) signal(SIGPIPE, SIG_IGN);
        g_assert_cmpint(interrupt_begin(), ==, 0);
        folder = g_dir_make_tmp("sqlipc-pager-XXXXXX", NULL);
        file = g_build_filename(folder, "read", NULL);
        go = g_build_filename(folder, "go", NULL);
        g_test_add_func("/pager/all", test_all);
        g_test_add_func("/pager/quit", test_quit);
        g_test_add_func("/pager/not-there", test_not_there);
        g_test_add_func("/pager/too-much", test_too_much);
        g_test_add_func("/pager/command", test_command);
        r = g_test_run();
        (void) g_rmdir(folder);
        g_free(go);
        g_free(file);
        g_free(folder);
        return r;
}
