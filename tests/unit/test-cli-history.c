/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/prompt/history-file: entries are read back unchanged, from several writers, and only from a file of ours. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cli/prompt/history-file.h"

static char *folder;

static char *path_of(const char *name) {
        return g_build_filename(folder, "made", "by us", name, NULL);
}

static void check(const char *path, size_t max, const char *expected) {
        g_auto(GStrv) entries = NULL;

        g_assert_cmpint(history_file_read(path, max, &entries), ==, 0);
        g_autofree char *all = g_strjoinv("|", entries);
        g_assert_cmpstr(all, ==, expected);
}

static unsigned count_lines(const char *path) {
        g_autofree char *text = NULL;
        unsigned n = 0;

        g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
        for (const char *p = text; *p; p++)
                n += *p == '\n';
        return n;
}

static void test_entries(void) {
        g_autofree char *path = path_of("entries");
        struct stat status;

        check(path, 10, "");
        g_assert_cmpint(history_file_append(path, "SELECT 1;"), ==, 0);
        g_assert_cmpint(history_file_append(path, "SELECT 'a\n\\n\\';\n"), ==, 0);
        g_assert_cmpint(history_file_append(path, "#1 \303\244"), ==, 0);
        check(path, 10, "SELECT 1;|SELECT 'a\n\\n\\';\n|#1 \303\244");
        g_assert_cmpint(history_file_append(path, "SELECT 1;"), ==, 0);
        check(path, 10, "SELECT 'a\n\\n\\';\n|#1 \303\244|SELECT 1;");
        check(path, 2, "#1 \303\244|SELECT 1;");
        g_assert_cmpint(stat(path, &status), ==, 0);
        g_assert_cmpuint(status.st_mode & 0777, ==, 0600);
}

/* Rewritten once it is twice as long as it may be; a writer that has it open meanwhile finds the new one. */
static void test_bounded(void) {
        g_autofree char *path = path_of("bounded");

        for (int i = 0; i < 21; i++) {
                g_autofree char *entry = g_strdup_printf("%d", i);

                g_assert_cmpint(history_file_append(path, entry), ==, 0);
        }
        g_assert_cmpuint(count_lines(path), ==, 21);
        check(path, 10, "11|12|13|14|15|16|17|18|19|20");
        g_assert_cmpuint(count_lines(path), ==, 10);
        g_assert_cmpint(history_file_append(path, "new"), ==, 0);
        check(path, 3, "19|20|new");
        g_assert_cmpuint(count_lines(path), ==, 3);
}

/* Writers and readers that rewrite, all at once: no entry is lost that is not too old. */
static void *write_many(void *userdata) {
        g_autofree char *path = path_of("shared");

        for (int i = 0; i < 200; i++) {
                g_autofree char *entry = g_strdup_printf("%s %d", (char *) userdata, i);
                g_auto(GStrv) entries = NULL;

                g_assert_cmpint(history_file_append(path, entry), ==, 0);
                if (i % 10 == 0)
                        g_assert_cmpint(history_file_read(path, 50, &entries), ==, 0);
        }
        return NULL;
}

static void test_shared(void) {
        g_autofree char *path = path_of("shared");
        GThread *threads[4];
        static char names[4][2] = { "a", "b", "c", "d" };
        g_auto(GStrv) entries = NULL;

        for (int i = 0; i < 4; i++)
                threads[i] = g_thread_new("writer", write_many, names[i]);
        for (int i = 0; i < 4; i++)
                g_thread_join(threads[i]);
        g_assert_cmpint(history_file_read(path, 50, &entries), ==, 0);
        g_assert_cmpuint(g_strv_length(entries), ==, 50);
        g_assert_cmpuint(count_lines(path), <=, 100);
        /* The one who finished last wrote its last entries last. */
        g_assert_true(g_str_has_suffix(entries[49], " 199"));
}

static void test_foreign(void) {
        g_autofree char *path = path_of("foreign"), *link = path_of("link"), *fifo = path_of("fifo");
        g_auto(GStrv) entries = NULL;
        struct stat status;

        /* Bytes that cannot be typed, an unknown escape, a last line that was cut off. */
        g_assert_true(g_file_set_contents(path, "one\n\377\n\na\\x\ntwo\\\n\\\\\ncut", -1, NULL));
        g_assert_cmpint(chmod(path, 0644), ==, 0);
        check(path, 10, "one|\\");
        g_assert_cmpint(stat(path, &status), ==, 0);
        g_assert_cmpuint(status.st_mode & 0777, ==, 0600);

        g_assert_cmpint(symlink(path, link), ==, 0);
        g_assert_cmpint(history_file_append(link, "x"), ==, -ELOOP);
        g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
        g_assert_cmpint(history_file_append(fifo, "x"), ==, -EINVAL);
        g_assert_cmpint(history_file_read(folder, 10, &entries), ==, -EISDIR);
}

static int handled[2];

static void on_signal(int signal) {
        (void) signal;
        g_assert_cmpint(write(handled[1], "", 1), ==, 1);
}

/* `lock` is its parent's alone. */
static void append_under_signals(const char *path, int lock) {
        const struct sigaction action = { .sa_handler = on_signal };

        close(lock);
        _exit(sigaction(SIGUSR1, &action, NULL) < 0 || history_file_append(path, "second") < 0);
}

/* A lock is all that it ever waits for. False: it ended. */
static bool waits_for_lock(pid_t pid) {
        g_autofree char *path = g_strdup_printf("/proc/%d/stat", (int) pid);

        while (waitpid(pid, NULL, WNOHANG) != pid) {
                g_autofree char *text = NULL;

                g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
                if (strstr(text, ") S "))
                        return true;
                g_usleep(1000);
        }
        return false;
}

/* A signal, as of a window that is resized, does not break the lock. */
static void test_signal(void) {
        g_autofree char *path = path_of("signal");
        int fd, status;
        char byte;
        pid_t pid;

        g_assert_cmpint(history_file_append(path, "first"), ==, 0);
        g_assert_cmpint(pipe(handled), ==, 0);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        g_assert_cmpint(flock(fd, LOCK_EX), ==, 0);
        pid = fork();
        if (pid == 0)
                append_under_signals(path, fd);
        g_assert_true(waits_for_lock(pid));
        g_assert_cmpint(kill(pid, SIGUSR1), ==, 0);
        g_assert_cmpint(read(handled[0], &byte, 1), ==, 1);
        g_assert_true(waits_for_lock(pid));
        g_assert_cmpuint(count_lines(path), ==, 1);
        close(fd);
        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        g_assert_cmpint(status, ==, 0);
        check(path, 10, "first|second");
        close(handled[0]);
        close(handled[1]);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        folder = g_dir_make_tmp("sqlipc-history-XXXXXX", NULL);
        g_assert_nonnull(folder);
        g_test_add_func("/history/entries", test_entries);
        g_test_add_func("/history/bounded", test_bounded);
        g_test_add_func("/history/shared", test_shared);
        g_test_add_func("/history/foreign", test_foreign);
        g_test_add_func("/history/signal", test_signal);
        int r = g_test_run();
        g_autofree char *command = g_strdup_printf("rm -r '%s'", folder);
        g_assert_cmpint(g_spawn_command_line_sync(command, NULL, NULL, NULL, NULL), ==, TRUE);
        g_free(folder);
        return r;
}
