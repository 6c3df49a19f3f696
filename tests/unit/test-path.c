/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Resolves Path=: links of root and of our own uid are followed, links that another user could change are not. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <unistd.h>

#include "daemon/worker/sqlite/path.h"

#define STRANGER ((uid_t) 65533)

/* A folder of ours with real/file in it, open/ (0777) and sticky/ (01777). */
typedef struct Tree {
        char *root;
} Tree;

static char *under(const Tree *t, const char *name) {
        return g_build_filename(t->root, name, NULL);
}

static void make_folder(const Tree *t, const char *name, mode_t mode) {
        g_autofree char *path = under(t, name);

        g_assert_cmpint(g_mkdir(path, 0700), ==, 0);
        g_assert_cmpint(chmod(path, mode), ==, 0);
}

static void make_link(const Tree *t, const char *target, const char *name) {
        g_autofree char *path = under(t, name);

        g_assert_cmpint(symlink(target, path), ==, 0);
}

static void give_away(const Tree *t, const char *name) {
        g_autofree char *path = under(t, name);

        g_assert_cmpint(lchown(path, STRANGER, STRANGER), ==, 0);
}

static void tree_init(Tree *t) {
        g_autofree char *made = g_dir_make_tmp("sqlipc-path-XXXXXX", NULL), *file = NULL;

        t->root = realpath(made, NULL);
        make_folder(t, "real", 0755);
        make_folder(t, "open", 0777);
        make_folder(t, "sticky", 01777);
        file = under(t, "real/file");
        g_assert_true(g_file_set_contents(file, "x", 1, NULL));
}

static void tree_done(Tree *t) {
        g_autofree char *command = g_strdup_printf("rm -rf '%s'", t->root);

        g_assert_cmpint(system(command), ==, 0);
        free(t->root);
}

static void expect_path(const char *path, const char *expected) {
        SqlError error = SQL_ERROR_INIT;
        g_autofree char *name = g_path_get_basename(expected);
        struct stat there, by_name;
        FoundFile found;

        if (!path_resolve(path, &found, &error))
                g_error("%s: %s", path, error.message);
        g_assert_true(S_ISREG(found.st.st_mode));
        g_assert_cmpstr(found.name, ==, name);
        g_assert_cmpint(fstatat(found.folder_fd, found.name, &there, AT_SYMLINK_NOFOLLOW), ==, 0);
        g_assert_cmpint(lstat(expected, &by_name), ==, 0);
        g_assert_true(there.st_ino == found.st.st_ino && there.st_dev == found.st.st_dev);
        g_assert_true(there.st_ino == by_name.st_ino && there.st_dev == by_name.st_dev);
        found_file_done(&found);
}

static void expect_file(const Tree *t, const char *name) {
        g_autofree char *path = under(t, name), *expected = under(t, "real/file");

        expect_path(path, expected);
}

static void expect_error(const char *path, ErrorNumber number, const char *part) {
        SqlError error = SQL_ERROR_INIT;
        FoundFile found = FOUND_FILE_INIT;

        g_assert_false(path_resolve(path, &found, &error));
        g_assert_cmpint(found.folder_fd, ==, -1);
        g_test_message("%s: %s", path, error.message);
        g_assert_cmpint(error.error, ==, number);
        g_assert_nonnull(strstr(error.message, part));
        g_assert_null(strstr(error.message, "/")); /* clients read it, and are told no path */
        sql_error_done(&error);
}

static void refuse_file(const Tree *t, const char *name, ErrorNumber number, const char *part) {
        g_autofree char *path = under(t, name);

        expect_error(path, number, part);
}

static void test_no_links(void) {
        Tree t;

        tree_init(&t);
        expect_file(&t, "real/file");
        expect_file(&t, "real//.//file");
        expect_file(&t, "open/../real/file");
        expect_file(&t, "open/../real/file");
        tree_done(&t);
}

static void test_links_that_are_followed(void) {
        g_autofree char *target = NULL;
        Tree t;

        tree_init(&t);
        target = under(&t, "real/file");
        make_link(&t, target, "absolute");
        make_link(&t, "real/../real", "folder");
        make_link(&t, "folder/file", "chain");
        make_link(&t, "../real/file", "sticky/link");
        expect_file(&t, "absolute");
        expect_file(&t, "folder/file");
        expect_file(&t, "folder/../folder/file");
        expect_file(&t, "chain");
        expect_file(&t, "sticky/link");
        tree_done(&t);
}

/* More ".." than there are folders stay at the root, as with the kernel. */
static void test_above_the_root(void) {
        g_autofree char *path = NULL, *expected = NULL;
        Tree t;

        tree_init(&t);
        expected = under(&t, "real/file");
        path = g_strconcat("/../../..", expected, NULL);
        expect_path(path, expected);
        tree_done(&t);
}

static void test_too_many_links(void) {
        Tree t;

        tree_init(&t);
        make_link(&t, "loop", "loop");
        refuse_file(&t, "loop", ERROR_CANNOT_OPEN, "40 symbolic links");
        make_link(&t, "real/file", "link1");
        for (unsigned i = 2; i <= 41; i++) {
                g_autofree char *target = g_strdup_printf("link%u", i - 1), *name = g_strdup_printf("link%u", i);
                make_link(&t, target, name);
        }
        expect_file(&t, "link40");
        refuse_file(&t, "link41", ERROR_CANNOT_OPEN, "40 symbolic links");
        tree_done(&t);
}

static void test_link_in_a_shared_folder(void) {
        Tree t;

        tree_init(&t);
        make_link(&t, "../real/file", "open/link");
        refuse_file(&t, "open/link", ERROR_CANNOT_OPEN, "a symbolic link in a directory that other users can write to");
        make_folder(&t, "group", 0775);
        make_link(&t, "../real/file", "group/link");
        refuse_file(&t, "group/link", ERROR_CANNOT_OPEN, "other users can write to");
        /* no link: whoever may write there decides what is published, as the administrator wanted */
        make_link(&t, "open", "way");
        expect_file(&t, "way/../real/file");
        tree_done(&t);
}

static void test_links_of_a_stranger(void) {
        Tree t;

        if (geteuid() != 0) {
                g_test_skip("needs root, to give files away");
                return;
        }
        tree_init(&t);
        make_link(&t, "real/file", "his-link");
        give_away(&t, "his-link");
        refuse_file(&t, "his-link", ERROR_CANNOT_OPEN, "a symbolic link that a user other than root can change");
        make_link(&t, "../real/file", "sticky/link");
        give_away(&t, "sticky/link");
        refuse_file(&t, "sticky/link", ERROR_CANNOT_OPEN, "other than root");
        make_folder(&t, "his", 0755);
        make_link(&t, "../real/file", "his/link");
        make_link(&t, "his", "way");
        give_away(&t, "his");
        refuse_file(&t, "his/link", ERROR_CANNOT_OPEN, "other than root");
        refuse_file(&t, "way/link", ERROR_CANNOT_OPEN, "other than root");
        /* the user may publish these files, if the administrator names them */
        give_away(&t, "real");
        give_away(&t, "real/file");
        expect_file(&t, "real/file");
        tree_done(&t);
}

static void test_what_is_no_file(void) {
        g_autofree char *fifo = NULL;
        Tree t;

        tree_init(&t);
        refuse_file(&t, "real", ERROR_CANNOT_OPEN, "no regular file");
        expect_error("/", ERROR_CANNOT_OPEN, "no regular file");
        fifo = under(&t, "fifo");
        g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
        refuse_file(&t, "fifo", ERROR_CANNOT_OPEN, "no regular file");
        expect_error("/dev/null", ERROR_CANNOT_OPEN, "no regular file");
        refuse_file(&t, "nothing", ERROR_FILE_MISSING, "not there");
        refuse_file(&t, "nowhere/file", ERROR_FILE_MISSING, "not there");
        refuse_file(&t, "real/file/below", ERROR_FILE_MISSING, "not there");
        make_link(&t, "nothing", "dangling");
        refuse_file(&t, "dangling", ERROR_FILE_MISSING, "not there");
        expect_error("/proc/self/status", ERROR_CANNOT_OPEN, "kernel");
        expect_error("/proc/version", ERROR_CANNOT_OPEN, "kernel");
        if (g_access("/sys/kernel/notes", F_OK) == 0)
                expect_error("/sys/kernel/notes", ERROR_CANNOT_OPEN, "kernel");
        tree_done(&t);
}

static void test_long_names(void) {
        g_autofree char *name = g_strnfill(256, 'x'), *path = g_strconcat("/tmp/", name, NULL);

        expect_error(path, ERROR_CANNOT_OPEN, "cannot be reached");
}

/* The error of a mount that is gone, which no test can arrange everywhere. */
static void test_sentences(void) {
        SqlError error = SQL_ERROR_INIT;
        const int gone[] = { EIO, ENOTCONN, ESTALE };

        for (size_t i = 0; i < G_N_ELEMENTS(gone); i++) {
                g_assert_false(path_fail(gone[i], &error));
                g_assert_cmpint(error.error, ==, ERROR_CANNOT_OPEN);
                g_assert_nonnull(strstr(error.message, "mount it again"));
        }
        g_assert_false(path_fail(EACCES, &error));
        g_assert_nonnull(strstr(error.message, "give the service's user access"));
        sql_error_done(&error);
}

/* Nothing is left open, however the walk ended. */
static void test_descriptors(void) {
        SqlError error = SQL_ERROR_INIT;
        FoundFile found = FOUND_FILE_INIT;
        int before = open("/dev/null", O_RDONLY | O_CLOEXEC), after;

        close(before);
        (void) path_resolve("/proc/self/fd/0/../..", &found, &error);
        (void) path_resolve("/dev/nothing", &found, &error);
        (void) path_resolve("/usr/bin/env", &found, &error);
        found_file_done(&found);
        after = open("/dev/null", O_RDONLY | O_CLOEXEC);
        g_assert_cmpint(after, ==, before);
        close(after);
        sql_error_done(&error);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/path/no-links", test_no_links);
        g_test_add_func("/path/links-that-are-followed", test_links_that_are_followed);
        g_test_add_func("/path/above-the-root", test_above_the_root);
        g_test_add_func("/path/too-many-links", test_too_many_links);
        g_test_add_func("/path/link-in-a-shared-folder", test_link_in_a_shared_folder);
        g_test_add_func("/path/links-of-a-stranger", test_links_of_a_stranger);
        g_test_add_func("/path/what-is-no-file", test_what_is_no_file);
        g_test_add_func("/path/long-names", test_long_names);
        g_test_add_func("/path/sentences", test_sentences);
        g_test_add_func("/path/descriptors", test_descriptors);
        return g_test_run();
}
