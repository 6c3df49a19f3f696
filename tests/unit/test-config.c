/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Configuration: what is taken, what is refused, and that a message names file, line and key. */
#include <errno.h>
#include <inttypes.h>

#include "configuration-text.h"
#include "configuration.h"
#include "test.h"

static const char *broken(Config *c, const char *name) {
        return g_hash_table_lookup(c->broken, name);
}

static DatabaseConfig *add(Config *c, const char *text) {
        config_add_database(c, "x", &(ConfigText) { "/etc/x.conf", text, strlen(text) }, 1);
        return g_hash_table_lookup(c->databases, "x");
}

static void add_limits(Config *c, const char *text) {
        config_add_main(c, &(ConfigText) { "/etc/sqlipcd.conf", text, strlen(text) }, 1);
}

static void test_database(void) {
        g_autoptr(Config) c = config_new();
        DatabaseConfig *d =
                add(c, "# mine\n[Database]\nPath=/a b/c.sqlite\nDescription=Übersicht\nMode=read-only\nImmutable=yes\n");

        CHECK(d);
        CHECK_STRING(d->name, "x");
        CHECK_STRING(d->path, "/a b/c.sqlite");
        CHECK_STRING(d->description, "Übersicht");
        CHECK(d->immutable);
        CHECK_INT(g_hash_table_size(c->broken), 0);
        CHECK_INT(c->warnings->len, 0);
}

static void test_database_defaults(void) {
        g_autoptr(Config) c = config_new();
        DatabaseConfig *d = add(c, "[Database]\nPath=/x\n");

        CHECK(d);
        CHECK_STRING(d->description, "");
        CHECK(!d->immutable);
}

static void check_broken(const char *text, const char *expected) {
        g_autoptr(Config) c = config_new();

        CHECK(!add(c, text));
        CHECK(broken(c, "x"));
        if (!g_str_has_prefix(broken(c, "x"), expected))
                CHECK_STRING(broken(c, "x"), expected);
}

static void test_database_broken(void) {
        check_broken("", "/etc/x.conf:1: there is no section [Database]");
        check_broken("Path=/x\n", "/etc/x.conf:1: ");
        check_broken("[Other]\nPath=/x\n", "/etc/x.conf:1: there is no section [Database]");
        check_broken("\n[Database]\nDescription=d\n", "/etc/x.conf:2: [Database] has no Path=");
        check_broken("[Database]\n\nPath=x\n", "/etc/x.conf:3: Path=x is not absolute");
        check_broken("[Database]\nPath=/x\nMode=write\n", "/etc/x.conf:3: Mode=write is not known");
        check_broken("[Database]\nPath=/x\nImmutable=maybe\n", "/etc/x.conf:3: Immutable=maybe: give yes or no");
        check_broken("[Database]\nPath=/x\nwhat is this\n", "/etc/x.conf:3: ");
        check_broken("[Database\nPath=/x\n", "/etc/x.conf:1: ");
        check_broken("[Database]\nPath=/x\\q\n", "/etc/x.conf:2: Path=: ");
        check_broken("[Database]\nPath=/\xff\n", "/etc/x.conf: the file is no UTF-8");
        /* what sd-bus refuses would fail the whole list */
        check_broken("[Database]\nPath=/x\nDescription=\xef\xbf\xbe\n",
                     "/etc/x.conf: the file is no UTF-8, or holds noncharacters");
}

static void test_names_that_no_message_carries(void) {
        g_autoptr(Config) c = config_new();

        config_add_database(c, "\xff\xef\xb7\x90", &(ConfigText) { "/etc/\xff\xef\xb7\x90.conf", "", 0 }, 1);
        CHECK_STRING(broken(c, "\xef\xbf\xbd\xef\xbf\xbd"),
                     "/etc/\xef\xbf\xbd\xef\xbf\xbd.conf: \"\xef\xbf\xbd\xef\xbf\xbd\" is no name for a database: "
                     "use up to 64 of A-Z a-z 0-9 _ -");
}

static void test_every_wrong_limit_is_told(void) {
        g_autoptr(Config) c = config_new();

        add_limits(c, "[Limits]\nRunsMax=many\nStatementsMax=7\nHeapMax=1\n");
        CHECK(strstr(broken(c, "sqlipcd.conf"), "/etc/sqlipcd.conf:2: RunsMax=many"));
        CHECK(strstr(broken(c, "sqlipcd.conf"), "; /etc/sqlipcd.conf:4: HeapMax=1"));
        CHECK(!strstr(broken(c, "sqlipcd.conf"), "StatementsMax"));
        CHECK_INT((int64_t) c->limits.statements_max, 7);
}

static void test_last_of_two_keys_counts(void) {
        /* the value that GKeyFile takes is the one whose line is told */
        check_broken("[Database]\nPath=/x\nPath=y\n[Other]\nPath=z\n", "/etc/x.conf:3: Path=y is not absolute");
}

static void test_nul_bytes(void) {
        g_autoptr(Config) c = config_new();
        static const char text[] = "[Database]\nPath=/x\0y\n";

        config_add_database(c, "x", &(ConfigText) { "/etc/x.conf", text, sizeof text - 1 }, 1);
        CHECK_STRING(broken(c, "x"), "/etc/x.conf: the file holds NUL bytes");
}

static void test_unknown_key_warns(void) {
        g_autoptr(Config) c = config_new();

        CHECK(add(c, "[Database]\nPath=/x\nColour=red\n[More]\n"));
        CHECK_INT(c->warnings->len, 2);
        CHECK_STRING(c->warnings->pdata[0], "/etc/x.conf:3: key Colour= is not known and does nothing");
        CHECK_STRING(c->warnings->pdata[1], "/etc/x.conf:4: section [More] is not known and does nothing");
}

static void test_names(void) {
        char name[DATABASE_NAME_SIZE_MAX + 2] = "";
        g_autoptr(Config) c = config_new();

        CHECK(database_name_is_valid("a-B_9"));
        CHECK(!database_name_is_valid(""));
        CHECK(!database_name_is_valid("a b"));
        CHECK(!database_name_is_valid("ä"));
        CHECK(!database_name_is_valid("a/b"));
        memset(name, 'n', DATABASE_NAME_SIZE_MAX);
        CHECK(database_name_is_valid(name));
        name[DATABASE_NAME_SIZE_MAX] = 'n';
        CHECK(!database_name_is_valid(name));

        config_add_database(c, "a b", &(ConfigText) { "/etc/a b.conf", "[Database]\nPath=/x\n", 19 }, 1);
        CHECK(broken(c, "a b"));
        CHECK_INT(g_hash_table_size(c->databases), 0);
}

static void test_limits(void) {
        g_autoptr(Config) c = config_new();

        CHECK_INT(c->limits.statements_max, 256);
        CHECK_INT(c->limits.park_timeout_rollback_usec, 5000000);
        CHECK_INT(c->limits.result_size_max, INT64_C(1) << 40);
        add_limits(c, "[Limits]\nStatementsMax=7\nQueueTimeoutSec=0.25\nHeapMax=2M\nBusyTimeoutSec=0\n");
        CHECK_INT(c->limits.statements_max, 7);
        CHECK_INT(c->limits.queue_timeout_usec, 250000);
        CHECK_INT(c->limits.heap_max, 2 << 20);
        CHECK_INT(c->limits.busy_timeout_usec, 0);
        CHECK_INT(c->limits.runs_max, 256);
        CHECK_INT(g_hash_table_size(c->broken), 0);
}

static void check_limit_broken(const char *line) {
        g_autoptr(Config) c = config_new();
        g_autofree char *text = g_strdup_printf("[Limits]\nWorkersMax=3\n%s\n", line);
        g_autofree char *expected = g_strdup_printf("/etc/sqlipcd.conf:3: %s is not taken", line);
        Limits before = c->limits;

        add_limits(c, text);
        CHECK(broken(c, "sqlipcd.conf"));
        if (!g_str_has_prefix(broken(c, "sqlipcd.conf"), expected))
                CHECK_STRING(broken(c, "sqlipcd.conf"), expected);
        CHECK_INT(c->limits.workers_max, 3);
        c->limits.workers_max = before.workers_max;
        CHECK(memcmp(&c->limits, &before, sizeof before) == 0);
}

static void test_limits_broken(void) {
        check_limit_broken("StatementsMax=0");
        check_limit_broken("StatementsMax=many");
        check_limit_broken("StatementsMax=");
        check_limit_broken("StatementsMax=-1");
        check_limit_broken("StatementsMax=1000001");
        check_limit_broken("RowSizeMax=2G");
        check_limit_broken("RowSizeMax=1KB");
        check_limit_broken("RunTimeoutSec=1e3");
        check_limit_broken("RunTimeoutSec=inf");
        check_limit_broken("RunTimeoutSec=0");
        check_limit_broken("ResultSizeMax=99999999999999999999");
}

static void check_size(const char *text, int r, uint64_t expected) {
        uint64_t size = 0;

        CHECK_INT(parse_size(text, &size), r);
        CHECK(size == expected);
}

static void test_sizes(void) {
        check_size("0", 0, 0);
        check_size("1K", 0, 1024);
        check_size("1T", 0, UINT64_C(1) << 40);
        check_size("18446744073709551615", 0, UINT64_MAX);
        check_size("18446744073709551616", -ERANGE, 0);
        check_size("16777215T", 0, UINT64_C(16777215) << 40);
        check_size("16777216T", -ERANGE, 0);
        check_size("K", -EINVAL, 0);
        check_size("1KK", -EINVAL, 0);
        check_size(" 1", -EINVAL, 0);
        check_size("+1", -EINVAL, 0);
}

static void check_seconds(const char *text, int r, uint64_t expected) {
        uint64_t usec = 0;

        CHECK_INT(parse_seconds(text, &usec), r);
        CHECK(usec == expected);
}

static void test_seconds(void) {
        check_seconds("600", 0, 600000000);
        check_seconds("0.5", 0, 500000);
        check_seconds("0.000001", 0, 1);
        check_seconds("0.0000019", 0, 1);
        check_seconds("18446744073709.551615", 0, UINT64_MAX);
        check_seconds("18446744073709.551616", -ERANGE, 0);
        check_seconds("18446744073710", -ERANGE, 0);
        check_seconds(".5", -EINVAL, 0);
        check_seconds("5.", -EINVAL, 0);
        check_seconds("5s", -EINVAL, 0);
}

static void test_equal(void) {
        g_autoptr(Config) a = config_new(), b = config_new(), c = config_new();
        DatabaseConfig *first = add(a, "[Database]\nPath=/x\n"),
                       *same = add(b, "[Database]\nMode=read-only\nPath=/x\nImmutable=no\n");

        CHECK(database_config_equal(first, same));
        CHECK(!database_config_equal(first, add(c, "[Database]\nPath=/x\nImmutable=yes\n")));
}

int main(void) {
        static const Test tests[] = {
                TEST(test_database), TEST(test_database_defaults), TEST(test_database_broken),
                TEST(test_last_of_two_keys_counts), TEST(test_nul_bytes), TEST(test_unknown_key_warns), TEST(test_names),
                TEST(test_names_that_no_message_carries), TEST(test_every_wrong_limit_is_told),
                TEST(test_limits), TEST(test_limits_broken), TEST(test_sizes), TEST(test_seconds), TEST(test_equal),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
