/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files of the configuration: precedence, drop-ins and masking, in real directories; and files that are not read. */
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "daemon/configuration/configuration-files.h"
#include "tests/unit/test.h"

/* ---- Three directories, the first wins ---- */

static char *root;

static char *path_of(const char *name) {
        return g_build_filename(root, name, NULL);
}

/* `name` with its directories; "etc/databases.d/x.conf" */
static char *make_room(const char *name) {
        char *path = path_of(name);
        g_autofree char *directory = g_path_get_dirname(path);

        CHECK_INT(g_mkdir_with_parents(directory, 0755), 0);
        return path;
}

static void write_file(const char *name, const char *text) {
        g_autofree char *path = make_room(name);

        CHECK(g_file_set_contents(path, text, -1, NULL));
}

static void write_link(const char *name, const char *target) {
        g_autofree char *path = make_room(name);

        CHECK_INT(symlink(target, path), 0);
}

static void remove_all(const char *path) {
        GDir *dir = g_dir_open(path, 0, NULL);
        const char *name;

        while (dir && (name = g_dir_read_name(dir))) {
                g_autofree char *inner = g_build_filename(path, name, NULL);

                if (g_unlink(inner) < 0)
                        remove_all(inner);
        }
        if (dir)
                g_dir_close(dir);
        (void) g_rmdir(path);
}

static void begin(void) {
        root = g_dir_make_tmp("sqlipc-test-XXXXXX", NULL);
        CHECK(root);
}

static void end(void) {
        remove_all(root);
        g_free(root);
}

static Config *load(void) {
        g_autofree char *etc = path_of("etc"), *run = path_of("run"), *usr = path_of("usr");

        return config_load((const char *const[]) { etc, run, usr, NULL });
}

static const DatabaseConfig *database(const Config *c, const char *name) {
        return g_hash_table_lookup(c->databases, name);
}

static const char *broken(const Config *c, const char *name) {
        return g_hash_table_lookup(c->broken, name);
}

/* ---- Tests ---- */

static void test_nothing(void) {
        begin();
        g_autoptr(Config) c = load();

        CHECK_INT(g_hash_table_size(c->databases), 0);
        CHECK_INT(g_hash_table_size(c->broken), 0);
        CHECK_INT(c->warnings->len, 0);
        end();
}

static void test_first_directory_wins(void) {
        begin();
        write_file("usr/databases.d/a.conf", "[Database]\nPath=/usr\nDescription=vendor's\n");
        write_file("run/databases.d/a.conf", "[Database]\nPath=/run\n");
        write_file("usr/databases.d/b.conf", "[Database]\nPath=/usr\n");
        write_file("etc/databases.d/b.conf", "[Database]\nPath=/etc\n");
        write_file("usr/databases.d/c.conf", "[Database]\nPath=/usr\n");
        write_file("usr/sqlipcd.conf", "[Limits]\nRunsMax=1\nStatementsMax=1\n");
        write_file("etc/sqlipcd.conf", "[Limits]\nRunsMax=3\n");
        g_autoptr(Config) c = load();

        CHECK_STRING(database(c, "a")->path, "/run");
        CHECK_STRING(database(c, "a")->description, ""); /* the file counts as a whole */
        CHECK_STRING(database(c, "b")->path, "/etc");
        CHECK_STRING(database(c, "c")->path, "/usr");
        CHECK_INT(c->limits.runs_max, 3);
        CHECK_INT(c->limits.statements_max, 256);
        end();
}

static void test_drop_ins(void) {
        begin();
        write_file("usr/databases.d/a.conf", "[Database]\nPath=/usr\nAllowUsers=1\n");
        write_file("etc/databases.d/a.conf.d/20-late.conf", "[Database]\nDescription=late\nAllowUsers=3\n");
        write_file("usr/databases.d/a.conf.d/10-early.conf",
                   "[Database]\nDescription=early\nAllowUsers=2\n[Limits]\nRunsMax=9\n");
        write_file("usr/databases.d/a.conf.d/20-late.conf", "[Database]\nDescription=not read\n");
        write_file("usr/databases.d/a.conf.d/30-no-configuration", "what");
        write_file("usr/sqlipcd.conf", "[Limits]\nRunsMax=1\nStatementsMax=1\n");
        write_file("run/sqlipcd.conf.d/x.conf", "[Limits]\nRunsMax=2\n");
        write_file("etc/sqlipcd.conf.d/y.conf", "[Limits]\nRunsMax=3\n[Service]\nIdleExitSec=7\n");
        g_autoptr(Config) c = load();

        const DatabaseConfig *d = database(c, "a");
        CHECK_STRING(d->description, "late");
        g_autofree char *users = g_strjoinv(" ", d->allow_users);
        CHECK_STRING(users, "1 2 3");
        CHECK(g_str_has_suffix(d->allow_users_at[2], "etc/databases.d/a.conf.d/20-late.conf:3"));
        CHECK_INT(d->limits.runs_max, 9);
        CHECK_INT(c->limits.runs_max, 3);
        CHECK_INT(c->limits.statements_max, 1);
        CHECK_INT(c->service.idle_exit_usec, 7000000);
        CHECK_INT(g_hash_table_size(c->broken), 0);
        end();
}

static void test_masking(void) {
        begin();
        write_file("usr/databases.d/empty.conf", "[Database]\nPath=/usr\n");
        write_file("etc/databases.d/empty.conf", "");
        write_file("usr/databases.d/empty.conf.d/x.conf", "[Database]\nnonsense\n");
        write_file("usr/databases.d/linked.conf", "[Database]\nPath=/usr\n");
        write_link("run/databases.d/linked.conf", "/dev/null");
        write_file("usr/databases.d/a.conf", "[Database]\nPath=/usr\n");
        write_file("usr/databases.d/a.conf.d/x.conf", "[Database]\nDescription=x\n");
        write_file("usr/databases.d/a.conf.d/y.conf", "[Database]\nImmutable=yes\n");
        write_link("etc/databases.d/a.conf.d/x.conf", "/dev/null");
        write_file("etc/databases.d/a.conf.d/y.conf", "");
        write_file("usr/sqlipcd.conf", "[Limits]\nRunsMax=1\n");
        write_file("etc/sqlipcd.conf", "");
        write_file("usr/sqlipcd.conf.d/x.conf", "[Limits]\nStatementsMax=5\n");
        g_autoptr(Config) c = load();

        CHECK_INT(g_hash_table_size(c->databases), 1);
        CHECK_INT(g_hash_table_size(c->broken), 0); /* what a masked database's drop-ins say is not even read */
        CHECK_STRING(database(c, "a")->description, "");
        CHECK(!database(c, "a")->immutable);
        CHECK_INT(c->limits.runs_max, 256);
        CHECK_INT(c->limits.statements_max, 5);
        end();
}

static void check_cannot_be_read(const Config *c, const char *name, const char *why) {
        g_autofree char *end_of_it = g_strdup_printf(".conf cannot be read: %s", why);

        CHECK(broken(c, name));
        if (!g_str_has_suffix(broken(c, name), end_of_it))
                CHECK_STRING(broken(c, name), end_of_it);
}

static void test_no_files(void) {
        g_autofree char *large = g_strnfill(65537, '#');

        begin();
        g_autofree char *directory = make_room("etc/databases.d/directory.conf"),
                        *fifo = make_room("etc/databases.d/fifo.conf");
        CHECK_INT(g_mkdir(directory, 0755), 0);
        CHECK_INT(mkfifo(fifo, 0644), 0);
        write_link("etc/databases.d/nowhere.conf", "/nonexistent");
        write_link("etc/databases.d/zero.conf", "/dev/zero");
        write_link("etc/databases.d/circle.conf", "circle.conf");
        write_file("etc/databases.d/large.conf", large);
        write_file("usr/databases.d/large.conf", "[Database]\nPath=/not-instead\n");
        write_file("etc/databases.d/good.conf", "[Database]\nPath=/good\n");
        write_file("etc/databases.d/.hidden.conf", "[Database]\nPath=/hidden\n");
        large[65536] = 0;
        write_file("etc/databases.d/just.conf", large);
        g_autoptr(Config) c = load();

        CHECK_INT(g_hash_table_size(c->databases), 1);
        CHECK(database(c, "good"));
        CHECK_INT(g_hash_table_size(c->broken), 7);
        check_cannot_be_read(c, "directory", "it is no regular file");
        check_cannot_be_read(c, "fifo", "it is no regular file");
        check_cannot_be_read(c, "zero", "it is no regular file");
        check_cannot_be_read(c, "nowhere", "it is a link that leads nowhere");
        check_cannot_be_read(c, "circle", "Too many levels of symbolic links");
        check_cannot_be_read(c, "large", "it is larger than 64 KiB");
        CHECK(g_str_has_suffix(broken(c, "just"), "just.conf:1: there is no section [Database]"));
        end();
}

static void test_links_to_files(void) {
        begin();
        write_file("elsewhere", "[Database]\nPath=/x\n");
        g_autofree char *elsewhere = path_of("elsewhere");
        write_link("etc/databases.d/linked.conf", elsewhere);
        g_autoptr(Config) c = load();

        CHECK_STRING(database(c, "linked")->path, "/x");
        end();
}

/* An unreadable drop-in may be a restriction, so without it the database is not published. */
static void test_bad_drop_ins(void) {
        begin();
        write_file("usr/databases.d/a.conf", "[Database]\nPath=/usr\n");
        g_autofree char *directory = make_room("etc/databases.d/a.conf.d/x.conf");
        CHECK_INT(g_mkdir(directory, 0755), 0);
        write_file("usr/databases.d/b.conf", "[Database]\nPath=/usr\n");
        write_file("etc/databases.d/b.conf.d/x.conf", "[Database]\n\nExpose=\"a\n");
        write_file("etc/databases.d/typo.conf.d/x.conf", "[Database]\nPath=/x\n");
        write_file("etc/databases.d/a b.conf.d/x.conf", "[Database]\nPath=/x\n");
        write_file("etc/sqlipcd.conf.d/x.conf", "[Limits]\n\nRunsMax=0\n");
        g_autoptr(Config) c = load();

        CHECK_INT(g_hash_table_size(c->databases), 0);
        check_cannot_be_read(c, "a", "it is no regular file");
        CHECK(g_str_has_suffix(broken(c, "b"), "b.conf.d/x.conf:3: Expose=: a quote or backslash leads nowhere"));
        CHECK(g_str_has_suffix(broken(c, "typo"), "typo.conf.d: there is no typo.conf to which this could add"));
        CHECK(broken(c, "a b"));
        CHECK(strstr(broken(c, "sqlipcd.conf"), "etc/sqlipcd.conf.d/x.conf:3: RunsMax=0 is not taken"));
        end();
}

static void test_unreadable_directory(void) {
        begin();
        write_file("usr/databases.d/a.conf", "[Database]\nPath=/usr\n");
        write_file("etc/databases.d", "a file");
        write_file("usr/databases.d/b.conf", "[Database]\nPath=/usr\n");
        write_file("usr/databases.d/b.conf.d", "a file");
        g_autoptr(Config) c = load();

        CHECK(database(c, "a"));
        CHECK(!database(c, "b")); /* drop-ins that cannot be read may be restrictions */
        CHECK(strstr(broken(c, "b"), "usr/databases.d/b.conf.d"));
        CHECK_INT(c->warnings->len, 1);
        CHECK(strstr(c->warnings->pdata[0], "etc/databases.d"));
        end();
}

static void check_default_directories(bool user, const char *expected) {
        g_auto(GStrv) directories = config_default_directories(user);
        g_autofree char *joined = g_strjoinv(":", directories);

        CHECK(g_str_has_prefix(joined, expected));
        CHECK_INT(g_str_has_suffix(joined, "/user"), user);
}

static void test_default_directories(void) {
        (void) setenv("HOME", "/home/u", 1);
        (void) setenv("XDG_CONFIG_HOME", "/c", 1);
        (void) setenv("XDG_RUNTIME_DIR", "/r", 1);
        check_default_directories(false, SQLIPC_CONFIG_DIR ":/run/sqlipc:/");
        check_default_directories(true, "/c/sqlipc:/r/sqlipc:" SQLIPC_CONFIG_DIR "/user:/");
        (void) setenv("XDG_CONFIG_HOME", "relative", 1);
        check_default_directories(true, "/home/u/.config/sqlipc:/r/sqlipc:" SQLIPC_CONFIG_DIR "/user:/");
        (void) unsetenv("XDG_CONFIG_HOME");
        check_default_directories(true, "/home/u/.config/sqlipc:/r/sqlipc:" SQLIPC_CONFIG_DIR "/user:/");
        (void) unsetenv("HOME");
        (void) unsetenv("XDG_RUNTIME_DIR");
        check_default_directories(true, SQLIPC_CONFIG_DIR "/user:/");
}

int main(void) {
        static const Test tests[] = {
                TEST(test_nothing), TEST(test_first_directory_wins), TEST(test_drop_ins), TEST(test_masking),
                TEST(test_no_files), TEST(test_links_to_files), TEST(test_bad_drop_ins), TEST(test_unreadable_directory),
                TEST(test_default_directories),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
