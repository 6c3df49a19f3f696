/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/ctl/file-check: decides from owners, modes, links and the header of a file if the service can read it. */
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/test.h"
#include "tools/ctl/file-check.h"

enum { SERVICE = 4123, OTHER = 4124, GROUP = 4125 }; /* unused ids, for the service's user and another one */

static char *folder;
static gid_t gids[] = { SERVICE, GROUP };
static const ServiceUser service = { .name = (char *) "service", .uid = SERVICE, .gids = gids, .n_gids = 2 };

static char *path_of(const char *name) {
        return g_build_filename(folder, name, NULL);
}

/* A file of root's that holds `size` bytes of `header`. */
static void make(const char *name, const void *header, size_t size, mode_t mode) {
        g_autofree char *path = path_of(name);

        CHECK(g_file_set_contents(path, header, (gssize) size, NULL));
        CHECK_INT(chmod(path, mode), 0);
}

static void make_database(const char *name, bool wal, mode_t mode) {
        char header[512] = "SQLite format 3";

        header[18] = header[19] = wal ? 2 : 1;
        make(name, header, sizeof header, mode);
}

static void own(const char *name, uid_t uid, gid_t gid) {
        g_autofree char *path = path_of(name);

        CHECK_INT(lchown(path, uid, gid), 0);
}

static GPtrArray *check_full(const char *name, FileUse use) {
        g_autofree char *path = path_of(name);
        GPtrArray *findings = findings_new();

        file_check(path, use, &service, findings, "x");
        return findings;
}

/* One finding, of this severity, that says this; NULL: none. */
static void check(const char *name, FileUse use, Severity severity, const char *text) {
        g_autoptr(GPtrArray) findings = check_full(name, use);
        const Finding *first = findings->len > 0 ? findings->pdata[0] : NULL;

        if (!text) {
                CHECK_STRING(first ? first->text : "nothing", "nothing");
                return;
        }
        CHECK_INT(findings->len, 1);
        CHECK_INT(first->severity, severity);
        if (!strstr(first->text, text))
                CHECK_STRING(first->text, text);
}

static void test_readable(void) {
        make_database("plain", false, 0644);
        check("plain", FILE_READ, 0, NULL);
        check("./../../nothing/../plain", FILE_READ, FINDING_ERROR, "is not there");
        check(".//plain", FILE_READ, 0, NULL);
}

static void test_modes(void) {
        make_database("closed", false, 0640);
        check("closed", FILE_READ, FINDING_ERROR, "may not read");
        own("closed", 0, GROUP);
        check("closed", FILE_READ, 0, NULL);
        own("closed", SERVICE, 0);
        check("closed", FILE_READ, 0, NULL);
        make_database("own-but-closed", false, 0044); /* the owner's bits count for the owner */
        own("own-but-closed", SERVICE, 0);
        check("own-but-closed", FILE_READ, FINDING_ERROR, "may not read");
}

static void test_folders(void) {
        g_autofree char *closed = path_of("folder");

        CHECK_INT(g_mkdir(closed, 0700), 0);
        make_database("folder/a", false, 0644);
        check("folder/a", FILE_READ, FINDING_ERROR, "may not pass the folder");
        CHECK_INT(chmod(closed, 0711), 0);
        check("folder/a", FILE_READ, 0, NULL);
        check("folder", FILE_READ, FINDING_ERROR, "is a folder, no file");
        check("plain/a", FILE_READ, FINDING_ERROR, "is not there");
}

static void test_no_database(void) {
        g_autofree char *fifo = path_of("fifo");

        make("text", "this is no database, and it has more than a hundred bytes, so that its length cannot be what tells "
                     "that it is none", 110, 0644);
        check("text", FILE_READ, FINDING_ERROR, "no SQLite database");
        make("short", "SQLite format 3", 16, 0644);
        check("short", FILE_READ, FINDING_ERROR, "no SQLite database");
        make("empty", "", 0, 0644);
        check("empty", FILE_READ, FINDING_WARNING, "is empty");
        CHECK_INT(mkfifo(fifo, 0644), 0);
        check("fifo", FILE_READ, FINDING_ERROR, "is a FIFO, no file");
        check("absent", FILE_READ, FINDING_ERROR, "is not there");
}

static void make_link(const char *name, const char *target, uid_t uid) {
        g_autofree char *path = path_of(name);

        CHECK_INT(symlink(target, path), 0);
        own(name, uid, 0);
}

static void test_links(void) {
        g_autofree char *open_folder = path_of("open");

        make_link("link", "plain", 0);
        check("link", FILE_READ, 0, NULL);
        make_link("link-of-service", "plain", SERVICE);
        check("link-of-service", FILE_READ, 0, NULL);
        make_link("link-of-other", "plain", OTHER);
        check("link-of-other", FILE_READ, FINDING_ERROR, "symbolic link that others than root could point elsewhere");
        CHECK_INT(g_mkdir(open_folder, 0755), 0);
        CHECK_INT(chmod(open_folder, 0777), 0);
        make_link("open/link", "../plain", 0);
        check("open/link", FILE_READ, FINDING_ERROR, "symbolic link");
        CHECK_INT(chmod(open_folder, 01777), 0);
        check("open/link", FILE_READ, 0, NULL);
        make_link("loop", "loop", 0);
        check("loop", FILE_READ, FINDING_ERROR, "Too many levels");
        make_link("dangling", "absent", 0);
        check("dangling", FILE_READ, FINDING_ERROR, "is not there");
}

static void test_wal(void) {
        make_database("wal", true, 0644);
        check("wal", FILE_READ, FINDING_WARNING, "its -wal is not there now");
        check("wal", FILE_READ_IMMUTABLE, 0, NULL);
        make("wal-wal", "x", 1, 0644);
        check("wal", FILE_READ, FINDING_WARNING, "its -shm is not there now");
        make("wal-shm", "x", 1, 0600);
        check("wal", FILE_READ, FINDING_WARNING, "its -shm cannot be read");
        make("wal-shm", "x", 1, 0644);
        check("wal", FILE_READ, 0, NULL);
        check("wal", FILE_READ_IMMUTABLE, FINDING_WARNING, "Immutable=yes, but");
}

/* The service itself makes the missing files of its own database, in a folder that it may write to. */
static void test_own_wal(void) {
        g_autofree char *own_folder = path_of("state");

        CHECK_INT(g_mkdir(own_folder, 0755), 0);
        make_database("state/wal", true, 0600);
        own("state/wal", SERVICE, SERVICE);
        check("state/wal", FILE_READ, FINDING_WARNING, "its -wal is not there now");
        own("state", SERVICE, SERVICE);
        check("state/wal", FILE_READ, 0, NULL);
}

/* A database at rest can be read without its log, which would leave a file beside it. */
static void test_at_rest(void) {
        g_autofree char *path = path_of("rest"), *log = path_of("rest-wal");
        g_autoptr(GPtrArray) findings = findings_new();

#define CONTENTS() file_check(path, FILE_READ, &service, findings, "x")
        make_database("rest", false, 0644);
        CHECK_INT(CONTENTS(), FILE_DATABASE);
        make_database("rest", true, 0644);
        CHECK_INT(CONTENTS(), FILE_DATABASE_AT_REST);
        make("rest-wal", "x", 1, 0644);
        CHECK_INT(CONTENTS(), FILE_DATABASE);
        make("rest-wal", "", 0, 0644);
        CHECK_INT(CONTENTS(), FILE_DATABASE_AT_REST);
        make("rest-shm", "", 0, 0644);
        CHECK_INT(CONTENTS(), FILE_DATABASE);
        CHECK_INT(unlink(log), 0);
        CHECK_INT(CONTENTS(), FILE_DATABASE_AT_REST);
        make_link("rest-wal", "absent", 0);
        CHECK_INT(CONTENTS(), FILE_DATABASE);
#undef CONTENTS
}

static void test_hot_journal(void) {
        make_database("hot", false, 0644);
        make("hot-journal", "", 0, 0644);
        check("hot", FILE_READ, 0, NULL);
        make("hot-journal", "x", 1, 0644);
        check("hot", FILE_READ, FINDING_WARNING, "hot-journal is there");
}

/* The service writes only to its own file in its own folder. */
static void test_writable(void) {
        g_autofree char *own_folder = path_of("writable");

        CHECK_INT(g_mkdir(own_folder, 0755), 0);
        own("writable", SERVICE, SERVICE);
        make_database("writable/a", true, 0666);
        check("writable/a", FILE_WRITE, FINDING_ERROR, "a belongs to root: the service writes only to files");
        own("writable/a", SERVICE, SERVICE);
        check("writable/a", FILE_WRITE, 0, NULL);
        make_database("writable/a", true, 0444);
        own("writable/a", SERVICE, SERVICE);
        check("writable/a", FILE_WRITE, FINDING_ERROR, "may not write to");
        make_database("writable/rollback", false, 0600);
        own("writable/rollback", SERVICE, SERVICE);
        check("writable/rollback", FILE_WRITE, FINDING_WARNING, "is in rollback mode");
        make("writable/rollback-journal", "x", 1, 0600); /* of the service's own transaction, or recovered by it */
        check("writable/rollback", FILE_WRITE, FINDING_WARNING, "is in rollback mode");
        check("writable/rollback", FILE_READ, FINDING_WARNING, "journal is there");
}

/* Others could open neither database nor log if the folder were not the service's own. */
static void test_folder_of_a_writable_one(void) {
        g_autofree char *other_folder = path_of("others");

        CHECK_INT(g_mkdir(other_folder, 0777), 0);
        CHECK_INT(chmod(other_folder, 0777), 0);
        make_database("others/a", true, 0600);
        own("others/a", SERVICE, SERVICE);
        check("others/a", FILE_WRITE, FINDING_ERROR, "others belongs to root (mode 0777)");
        own("others", SERVICE, SERVICE);
        check("others/a", FILE_WRITE, 0, NULL);
        CHECK_INT(chmod(other_folder, 0555), 0);
        check("others/a", FILE_WRITE, FINDING_ERROR, "(mode 0555): the user service must own it");
}

static int remove_all(void) {
        const char *command[] = { "rm", "-rf", folder, NULL };

        return g_spawn_sync(NULL, (char **) command, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL, NULL) ? 0 : 1;
}

int main(void) {
        static const Test tests[] = {
                TEST(test_readable), TEST(test_modes), TEST(test_folders), TEST(test_no_database), TEST(test_links),
                TEST(test_wal), TEST(test_own_wal), TEST(test_at_rest), TEST(test_hot_journal),
                TEST(test_writable), TEST(test_folder_of_a_writable_one),
        };
        int r;

        if (geteuid() != 0) {
                puts("1..0 # SKIP only root may make files of other users");
                return EXIT_SUCCESS;
        }
        umask(0);
        folder = g_dir_make_tmp("sqlipc-file-check-XXXXXX", NULL);
        CHECK(folder);
        CHECK_INT(chmod(folder, 0755), 0);
        r = test_main(tests, N_ELEMENTS(tests));
        return remove_all() == 0 ? r : EXIT_FAILURE;
}
