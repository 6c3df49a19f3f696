/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Configuration: which values are accepted or refused, and that a message names the file, line and key. */
#include <errno.h>
#include <inttypes.h>

#include "daemon/configuration/configuration-database.h"
#include "daemon/configuration/configuration-limits.h"
#include "daemon/configuration/configuration-main.h"
#include "daemon/configuration/configuration-names.h"
#include "daemon/configuration/configuration-text.h"
#include "daemon/configuration/configuration.h"
#include "tests/unit/test.h"

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
                add(c, "# mine\n[Database]\nPath=/a b/c.sqlite\nDescription=Übersicht\nMode=read-only\nImmutable=yes\n"
                       "SecurityBarrier=yes\n");

        CHECK(d);
        CHECK_STRING(d->name, "x");
        CHECK_STRING(d->path, "/a b/c.sqlite");
        CHECK_STRING(d->description, "Übersicht");
        CHECK(d->immutable);
        CHECK(d->security_barrier);
        CHECK_INT(g_hash_table_size(c->broken), 0);
        CHECK_INT(c->warnings->len, 0);
}

static void test_database_defaults(void) {
        g_autoptr(Config) c = config_new();
        DatabaseConfig *d = add(c, "[Database]\nPath=/x\n");

        CHECK(d);
        CHECK_STRING(d->description, "");
        CHECK(!d->immutable);
        CHECK(!d->security_barrier);
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
        check_broken("[X-Other]\nPath=/x\n", "/etc/x.conf:1: there is no section [Database]");
        check_broken("\n[Database]\nDescription=d\n", "/etc/x.conf:2: [Database] has no Path=");
        check_broken("[Database]\n\nPath=x\n", "/etc/x.conf:3: Path=x is not absolute");
        check_broken("[Database]\nPath=/x\nMode=write\n",
                     "/etc/x.conf:3: Mode=write is not known: give read-only or read-write");
        check_broken("[Database]\nPath=/x\nImmutable=maybe\n", "/etc/x.conf:3: Immutable=maybe: give yes or no");
        check_broken("[Database]\nPath=/x\nwhat is this\n", "/etc/x.conf:3: ");
        check_broken("[Database\nPath=/x\n", "/etc/x.conf:1: ");
        check_broken("[Database]\nPath=/x\\q\n", "/etc/x.conf:2: Path=: ");
        check_broken("[Database]\nPath=/\xff\n", "/etc/x.conf: the file is no UTF-8");
        /* what sd-bus refuses would fail the whole list */
        check_broken("[Database]\nPath=/x\nDescription=\xef\xbf\xbe\n",
                     "/etc/x.conf: the file is no UTF-8, or holds noncharacters");
}

#define SERVER "[Database]\nEngine=postgresql\n"
#define RQLITE "[Database]\nEngine=rqlite\n"

static void test_server(void) {
        g_autoptr(Config) c = config_new();
        DatabaseConfig *d = add(c, SERVER "Connection=host=/run/postgresql dbname=a b user=c\nPasswordFile=/etc/a b\n"
                                          "ReplicaConnection=host=r\nConnectionsMax=3\nMode=read-write\nWriteUsers=*\n");

        CHECK(d);
        CHECK_INT(d->engine, ENGINE_KIND_POSTGRESQL);
        CHECK(database_config_is_server(d));
        CHECK_STRING(d->path, "");
        CHECK_STRING(d->connection, "host=/run/postgresql dbname=a b user=c");
        CHECK_STRING(d->replica_connection, "host=r");
        CHECK_STRING(d->password_file, "/etc/a b");
        CHECK_INT(d->connections_max, 3);
        CHECK_STRING(database_config_data(d), "postgresql host=/run/postgresql dbname=a b user=c");

        d = add(c, SERVER "Service=main_1.a-b\nPasswordFile=credential\n");
        CHECK(d);
        CHECK_STRING(d->connection, "service=main_1.a-b");
        CHECK_STRING(d->password_file, "credential");
        CHECK_INT(d->connections_max, 10);

        d = add(c, RQLITE "Connection=http://a:4001  https://b:4001\nConsistency=strong\n");
        CHECK(d);
        CHECK_INT(d->engine, ENGINE_KIND_RQLITE);
        CHECK_INT(d->consistency, CONSISTENCY_STRONG);
        CHECK_INT(add(c, "[Database]\nEngine=sqlite\nPath=/x\n")->engine, ENGINE_KIND_SQLITE);
        CHECK_STRING(database_config_data(add(c, "[Database]\nPath=/x\n")), "/x");
        CHECK_INT(g_hash_table_size(c->broken), 0);
}

static void test_server_broken(void) {
        static const char *const of_files[] = { "Path=/x", "Immutable=no", "Expose=a", "SecurityBarrier=no",
                                                "Synchronous=full", "ForeignKeys=yes", "DatabaseSizeMax=1G",
                                                "WalSizeMax=1M" };
        static const char *const of_servers[] = { "Service=a", "Connection=host=a", "ReplicaConnection=host=a",
                                                  "PasswordFile=a", "ConnectionsMax=1", "Consistency=weak" };

        for (size_t i = 0; i < G_N_ELEMENTS(of_files); i++) {
                g_autofree char *text = g_strdup_printf(SERVER "Connection=host=a\n%s\n", of_files[i]);
                g_autofree char *key = g_strndup(of_files[i], strcspn(of_files[i], "="));
                g_autofree char *expected = g_strdup_printf("/etc/x.conf:4: key %s= is for a database file, and "
                                                            "Engine=postgresql has none", key);
                check_broken(text, expected);
        }
        for (size_t i = 0; i < G_N_ELEMENTS(of_servers); i++) {
                g_autofree char *text = g_strdup_printf("[Database]\nPath=/x\n%s\n", of_servers[i]);
                g_autofree char *key = g_strndup(of_servers[i], strcspn(of_servers[i], "="));
                g_autofree char *expected = g_strdup_printf("/etc/x.conf:3: key %s= is for a server: give Engine=", key);
                check_broken(text, expected);
        }
        check_broken("[Database]\nEngine=oracle\n", "/etc/x.conf:2: Engine=oracle is not known: give sqlite, postgresql or");
        check_broken(SERVER, "/etc/x.conf:1: [Database] has Engine=postgresql, but no Service= or Connection=");
        check_broken(RQLITE, "/etc/x.conf:1: [Database] has Engine=rqlite, but no Connection=");
        check_broken(RQLITE "Connection=localhost:4001\n",
                     "/etc/x.conf:1: Engine=rqlite needs a Connection= of one or more URL");
        check_broken(RQLITE "Service=a\n", "/etc/x.conf:1: Engine=rqlite needs a Connection= of one or more URL");
        check_broken(RQLITE "Connection=http://a\nReplicaConnection=http://b\n",
                     "/etc/x.conf:1: ReplicaConnection= is for ");
        check_broken(SERVER "Connection=host=a\nConsistency=none\n", "/etc/x.conf:1: Consistency= is for Engine=rqlite");
        check_broken(SERVER "Connection=host=a\nService=b\n",
                     "/etc/x.conf:4: Service=: give either Service= or Connection=");
        check_broken(SERVER "Service=b\nConnection=host=a\n", "/etc/x.conf:4: Connection=: give either Service= or ");
        check_broken(SERVER "Service=a b\n", "/etc/x.conf:3: Service=a b is no name of a service");
        check_broken(SERVER "Connection=\n", "/etc/x.conf:3: Connection= is empty");
        check_broken(SERVER "ConnectionsMax=0\n", "/etc/x.conf:3: ConnectionsMax=0 is no number from 1 to 1000");
        check_broken(SERVER "PasswordFile=a/b\n", "/etc/x.conf:3: PasswordFile=a/b is neither an absolute path nor ");
        check_broken(SERVER "PasswordFile=..\n", "/etc/x.conf:3: PasswordFile=.. is neither an absolute path nor ");
        check_broken(SERVER "Connection=host=a\nMode=read-write\nWriteTables=a\n",
                     "/etc/x.conf:1: WriteTables= and Engine=postgresql: ");
}

/* The message must not have the password either. */
static void test_server_password(void) {
        static const char *const wrong[] = {
                "host=a password=geheim", "host=a PassWord = 'geheim'", "sslpassword=geheim", "postgresql://u:geheim@h/d",
                "postgres://h/d?password=geheim", "http://a http://u:geheim@b", "host=a user=b passfile=/geheim",
                "host=a PassFile = '/geheim'", "postgres://h/d?passfile=/geheim",
        };
        static const char *const right[] = { "host=a user=b", "postgresql://u@h:5432/d", "host=a dbname=password",
                                             "host=a dbname=passfile" };

        for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
                g_autofree char *text = g_strdup_printf(SERVER "Connection=%s\n", wrong[i]);
                g_autoptr(Config) c = config_new();

                CHECK(!add(c, text));
                CHECK(strstr(broken(c, "x"), "PasswordFile="));
                CHECK(!strstr(broken(c, "x"), "geheim"));
        }
        for (size_t i = 0; i < G_N_ELEMENTS(right); i++) {
                g_autofree char *text = g_strdup_printf(SERVER "Connection=%s\n", right[i]);
                g_autoptr(Config) c = config_new();

                CHECK(add(c, text));
        }
}

static void test_server_equal(void) {
        static const char *const texts[] = {
                SERVER "Connection=host=a\n", SERVER "Connection=host=b\n", SERVER "Service=a\n",
                RQLITE "Connection=http://a\n",
                SERVER "Connection=host=a\nConnectionsMax=2\n", SERVER "Connection=host=a\nPasswordFile=b\n",
                SERVER "Connection=host=a\nReplicaConnection=host=b\n", "[Database]\nPath=/x\n",
                RQLITE "Connection=http://a\nConsistency=none\n",
        };

        for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
                for (size_t j = 0; j < G_N_ELEMENTS(texts); j++) {
                        g_autoptr(Config) c = config_new(), other = config_new();
                        const DatabaseConfig *a = add(c, texts[i]), *b = add(other, texts[j]);

                        CHECK_INT(database_config_equal(a, b), i == j);
                        CHECK_INT(database_config_shows_same(a, b), strcmp(database_config_data(a),
                                                                           database_config_data(b)) == 0);
                }
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

static char *joined(char **list) {
        return g_strjoinv("|", list);
}

static char **list_of(const DatabaseConfig *d, const char *key) {
        const struct {
                const char *key;
                char **list;
        } lists[] = {
                { "AllowUsers", d->allow_users },   { "AllowGroups", d->allow_groups }, { "Expose", d->expose },
                { "WriteUsers", d->write_users },   { "WriteGroups", d->write_groups }, { "WriteTables", d->write_tables },
        };

        for (size_t i = 0; i < N_ELEMENTS(lists); i++)
                if (strcmp(lists[i].key, key) == 0)
                        return lists[i].list;
        CHECK(false);
        return NULL;
}

/* The list that `lines` of [Database] give: its words with | between, or the error. */
static void check_list(const char *key, const char *lines, const char *expected) {
        g_autofree char *text = g_strdup_printf("[Database]\nPath=/x\n%s\n", lines), *words = NULL;
        g_autoptr(Config) c = config_new();
        const DatabaseConfig *d = add(c, text);

        if (d)
                words = joined(list_of(d, key));
        CHECK_STRING(words ?: broken(c, "x"), expected);
        CHECK_INT(c->warnings->len, 0);
}

static void test_lists(void) {
        check_list("AllowUsers", "AllowUsers=alice  bob\t1000", "alice|bob|1000");
        check_list("AllowUsers", "AllowUsers=alice\nAllowUsers=* bob", "alice|*|bob");
        check_list("AllowUsers", "AllowUsers=alice\nAllowUsers=\nAllowUsers=bob", "bob");
        check_list("AllowUsers", "AllowUsers=alice\nAllowUsers=", "");
        check_list("AllowUsers", "AllowUsers=4294967294", "4294967294");
        check_list("AllowUsers", "AllowUsers=4294967295", "/etc/x.conf:3: AllowUsers=: 4294967295 is no id that a user has");
        check_list("AllowUsers", "AllowUsers=a 99999999999999999999",
                   "/etc/x.conf:3: AllowUsers=: 99999999999999999999 is no id that a user has");
        check_list("AllowUsers", "AllowUsers=\"\"", "/etc/x.conf:3: AllowUsers=: a name is empty");
        check_list("AllowGroups", "AllowGroups=staff 7", "staff|7");
        check_list("AllowGroups", "AllowGroups=*",
                   "/etc/x.conf:3: AllowGroups=: there is no * for groups: use AllowUsers=* for all users");
}

static void test_exposed(void) {
        g_autofree char *longest = g_strnfill(1024, 'n'), *too_long = g_strnfill(1025, 'n');
        g_autofree char *takes = g_strconcat("Expose=", longest, NULL), *refuses = g_strconcat("Expose=", too_long, NULL);

        check_list("Expose", "Expose=a \"b c\" 'd\"e' f\\ g \"h\\\"i\" j'k l'm", "a|b c|d\"e|f g|h\"i|jk lm");
        check_list("Expose", "Expose=Stücke ' '", "Stücke| ");
        check_list("Expose", "Expose=a\nExpose=\nExpose=b", "b");
        check_list("Expose", takes, longest);
        check_list("Expose", refuses, "/etc/x.conf:3: Expose=nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn...: no name of "
                                      "more than 1024 bytes is taken");
        check_list("Expose", "Expose=a\nExpose=b SQLite_x", "/etc/x.conf:4: Expose=SQLite_x: what begins with sqlite_ is "
                                                           "SQLite's own and is never exposed");
        check_list("Expose", "Expose=''", "/etc/x.conf:3: Expose=: a name is empty");
        for (const char *const *i = (const char *const[]) { "\"a", "'a", "a\\", "\"a\\\"", NULL }; *i; i++) {
                g_autofree char *line = g_strconcat("Expose=", *i, NULL);
                check_list("Expose", line, "/etc/x.conf:3: Expose=: a quote or backslash leads nowhere");
        }
}

/* ---- Writing ---- */

#define WRITABLE "[Database]\nPath=/x\nMode=read-write\n"

static void test_writing_defaults(void) {
        g_autoptr(Config) c = config_new();
        const DatabaseConfig *d = add(c, "[Database]\nPath=/x\n");

        CHECK_STRING(d->mode, "read-only");
        CHECK(!database_config_is_writable(d));
        d = add(c, WRITABLE);
        CHECK_STRING(d->mode, "read-write");
        CHECK(database_config_is_writable(d));
        CHECK(!*d->write_users && !*d->write_groups && !*d->write_tables);
        CHECK(!d->write_schema);
        CHECK(d->sync_full);
        CHECK(d->foreign_keys);
        CHECK(d->database_size_max == UINT64_MAX);
        CHECK_INT(d->wal_size_max, 64 << 20);
        CHECK_INT(c->warnings->len, 0);
}

static void test_writing(void) {
        g_autoptr(Config) c = config_new();
        const DatabaseConfig *d = add(c, WRITABLE "WriteSchema=yes\nSynchronous=normal\nForeignKeys=no\n"
                                                  "DatabaseSizeMax=64K\nWalSizeMax=1M\n");

        CHECK(d->write_schema);
        CHECK(!d->sync_full);
        CHECK(!d->foreign_keys);
        CHECK_INT(d->database_size_max, 65536);
        CHECK_INT(d->wal_size_max, 1 << 20);
        d = add(c, WRITABLE "WriteSchema=no\nSynchronous=full\nForeignKeys=yes\nDatabaseSizeMax=infinity\n");
        CHECK(!d->write_schema);
        CHECK(d->sync_full);
        CHECK(d->foreign_keys);
        CHECK(d->database_size_max == UINT64_MAX);
        CHECK_INT(c->warnings->len, 0);
}

static void test_writing_lists(void) {
        check_list("WriteUsers", "Mode=read-write\nWriteUsers=alice *\nWriteUsers=7", "alice|*|7");
        check_list("WriteUsers", "Mode=read-write\nWriteUsers=alice\nWriteUsers=", "");
        check_list("WriteUsers", "WriteUsers=4294967295",
                   "/etc/x.conf:3: WriteUsers=: 4294967295 is no id that a user has");
        check_list("WriteGroups", "Mode=read-write\nWriteGroups=staff 'domain users'", "staff|domain users");
        check_list("WriteGroups", "WriteGroups=*",
                   "/etc/x.conf:3: WriteGroups=: there is no * for groups: use WriteUsers=* for all users");
        check_list("WriteTables", "Mode=read-write\nWriteTables=a \"b c\"", "a|b c");
        check_list("WriteTables", "WriteTables=sqlite_sequence",
                   "/etc/x.conf:3: WriteTables=sqlite_sequence: what begins with sqlite_ is SQLite's own and is never "
                   "written by clients");
}

static void test_writing_broken(void) {
        check_broken(WRITABLE "WriteSchema=some\n", "/etc/x.conf:4: WriteSchema=some: give yes or no");
        check_broken(WRITABLE "Synchronous=off\n", "/etc/x.conf:4: Synchronous=off is not known: give full or normal");
        check_broken(WRITABLE "ForeignKeys=\n", "/etc/x.conf:4: ForeignKeys=: give yes or no");
        check_broken(WRITABLE "WalSizeMax=1048575\n", "/etc/x.conf:4: WalSizeMax=1048575 is not taken: give bytes");
        check_broken(WRITABLE "WalSizeMax=infinity\n", "/etc/x.conf:4: WalSizeMax=infinity is not taken");
        check_broken(WRITABLE "DatabaseSizeMax=1K\n",
                     "/etc/x.conf:4: DatabaseSizeMax=1K is not taken: give bytes, with K, M, G or T behind for a unit, from "
                     "64K to 256T, or infinity");
        check_broken(WRITABLE "Expose=t\n", "/etc/x.conf:1: Mode=read-write and Expose=: a database with Expose= is shared "
                                            "for reading only in this version");
        check_broken(WRITABLE "Immutable=yes\n", "/etc/x.conf:1: Mode=read-write and Immutable=yes: a file that requests "
                                                 "may change is not immutable");
}

/* Without Mode=read-write each of these keys does nothing, and the log says so, by the first one. */
static void test_writing_without_mode(void) {
        static const char *const keys[] = { "WriteUsers=a", "WriteGroups=a", "WriteTables=a", "WritePolkit=no",
                                            "WriteSchema=no", "Synchronous=full", "ForeignKeys=yes", "DatabaseSizeMax=1G" };

        for (size_t i = 0; i < N_ELEMENTS(keys); i++) {
                g_autofree char *text = g_strdup_printf("[Database]\nPath=/x\nExpose=t\n%s\nWriteUsers=b\n", keys[i]);
                g_autofree char *expected = g_strdup_printf("/etc/x.conf:4: key %.*s= does nothing without Mode=read-write",
                                                            (int) strcspn(keys[i], "="), keys[i]);
                g_autoptr(Config) c = config_new();

                CHECK(add(c, text));
                CHECK_INT(c->warnings->len, 1);
                CHECK_STRING(c->warnings->pdata[0], expected);
        }
        g_autoptr(Config) c = config_new();

        CHECK(add(c, "[Database]\nPath=/x\nWalSizeMax=64M\n")); /* readers obey it, too */
        CHECK_INT(c->warnings->len, 0);
}

static void test_long_lists(void) {
        g_autoptr(GString) lines = g_string_new("Expose="), words = g_string_new(NULL);

        for (unsigned i = 0; i < 1024; i++) {
                g_string_append_printf(lines, i == 500 ? "\nExpose=t%u " : "t%u ", i);
                g_string_append_printf(words, i == 0 ? "t%u" : "|t%u", i);
        }
        check_list("Expose", lines->str, words->str);
        g_string_append(lines, "\nExpose=t1024");
        check_list("Expose", lines->str, "/etc/x.conf:5: Expose=: more than 1024 names");
}

static void test_much_wrong(void) {
        g_autoptr(GString) lines = g_string_new("[Database]\nPath=/x\n");
        g_autofree char *value = g_strnfill(5000, 'v');
        g_autoptr(Config) c = config_new(), wordy = config_new();

        for (unsigned i = 0; i < 30000; i++)
                g_string_append(lines, "x\n");
        CHECK(!add(c, lines->str));
        CHECK(strstr(broken(c, "x"), "/etc/x.conf:22: \"x\" is no"));
        CHECK(!strstr(broken(c, "x"), "/etc/x.conf:23:"));
        CHECK_INT(c->warnings->len, 1);
        CHECK_STRING(c->warnings->pdata[0], "/etc/x.conf:23: what is wrong or odd from here on is not told");

        g_string_printf(lines, "[Database]\nPath=%s\n", value);
        CHECK(!add(wordy, lines->str));
        CHECK_INT(strlen(broken(wordy, "x")), strlen("/etc/x.conf:2: ") + 400);
}

static void test_exposed_twice(void) {
        g_autoptr(Config) c = config_new();
        DatabaseConfig *d = add(c, "[Database]\nPath=/x\nExpose=Track album\nExpose=TRACK\n");

        g_autofree char *words = joined(d->expose);
        CHECK_STRING(words, "Track|album");
        CHECK_INT(c->warnings->len, 1);
        CHECK_STRING(c->warnings->pdata[0], "/etc/x.conf:4: Expose=TRACK is in the list already");
}

static void test_syntax(void) {
        g_autoptr(Config) c = config_new();
        DatabaseConfig *d = add(c, "; mine\r\n  [Database]  \r\n\tPath =  /a\\sb\\\\c\\t \r\n"
                                   "Description=a = b # c\r\nPolkit=on");

        CHECK(d);
        CHECK_STRING(d->path, "/a b\\c\t");
        CHECK_STRING(d->description, "a = b # c");
        CHECK(d->polkit);
        check_broken("[Database]\nPath=/x\n=y\n", "/etc/x.conf:3: \"=y\" is no [SECTION], no KEY=VALUE and no # comment");
        check_broken("[Database] x\nPath=/x\n", "/etc/x.conf:1: \"[Database] x\" is no [SECTION]");
        check_broken("[]\n[Database]\nPath=/x\n", "/etc/x.conf:1: \"[]\" is no [SECTION]");
        check_broken("Path=/x\n[Database]\nPath=/x\n", "/etc/x.conf:1: Path= is before the first section");
        check_broken("[Database]\nPath=/x\nPolkit=ask\n", "/etc/x.conf:3: Polkit=ask: give yes or no");
        check_broken("[Database]\npath=/x\n", "/etc/x.conf:2: key path= is not known: perhaps Path= is meant");
        check_broken("[Database]\nPath=\n", "/etc/x.conf:2: Path= is not absolute");
}

static void test_twice(void) {
        g_autoptr(Config) c = config_new();
        DatabaseConfig *d = add(c, "[Database]\nPath=/x\nPolkit=no\n[Limits]\nRunsMax=1\n[Database]\nPath=/y\n"
                                   "AllowUsers=a\nAllowUsers=b\n[Limits]\nRunsMax=2\n");

        CHECK_STRING(d->path, "/y");
        CHECK_INT(d->limits.runs_max, 2);
        CHECK_INT(c->warnings->len, 4);
        CHECK_STRING(c->warnings->pdata[0],
                     "/etc/x.conf:6: section [Database] begins on line 1 already; the keys of both are used");
        CHECK_STRING(c->warnings->pdata[1], "/etc/x.conf:7: key Path= is on line 2 already; this one counts");
        CHECK_STRING(c->warnings->pdata[2],
                     "/etc/x.conf:10: section [Limits] begins on line 4 already; the keys of both are used");
        CHECK_STRING(c->warnings->pdata[3], "/etc/x.conf:11: key RunsMax= is on line 5 already; this one counts");
}

static void add_with_drop_in(Config *c, const char *text, const char *drop_in) {
        config_add_database(c, "x", (const ConfigText[]) { { "/usr/x.conf", text, strlen(text) },
                                                           { "/etc/x.conf.d/y.conf", drop_in, strlen(drop_in) } }, 2);
}

static void test_drop_ins(void) {
        g_autoptr(Config) c = config_new(), without = config_new(), wrong = config_new(), none = config_new();
        g_autoptr(Config) unknown = config_new();

        add_with_drop_in(c, "[Database]\nPath=/x\nAllowUsers=a\nExpose=t\nPolkit=yes\n[Limits]\nHeapMax=1M\n",
                         "[Database]\nAllowUsers=\nExpose=v\nPolkit=no\nX-What=1\n[Limits]\nHeapMax=2M\n");
        const DatabaseConfig *d = g_hash_table_lookup(c->databases, "x");
        CHECK_STRING(d->path, "/x");
        CHECK(!d->allow_users[0] && !d->allow_users_at[0]);
        g_autofree char *words = joined(d->expose);
        CHECK_STRING(words, "t|v");
        CHECK(!d->polkit);
        CHECK_INT(config_limits(c, d).heap_max, 2 << 20);
        CHECK_INT(c->warnings->len, 0); /* a drop-in may say again what the file says */

        add_with_drop_in(without, "# nothing\n", "[Database]\nDescription=d\n");
        CHECK_STRING(broken(without, "x"), "/etc/x.conf.d/y.conf:1: [Database] has no Path=");
        add_with_drop_in(wrong, "[Database]\nPath=/x\n", "[Database]\n\nPath=x\n");
        CHECK_STRING(broken(wrong, "x"), "/etc/x.conf.d/y.conf:3: Path=x is not absolute");
        add_with_drop_in(unknown, "[Database]\nPath=/x\n", "[Database]\nExpsoe=v\n");
        CHECK(!g_hash_table_lookup(unknown->databases, "x"));
        CHECK_STRING(broken(unknown, "x"), "/etc/x.conf.d/y.conf:2: key Expsoe= is not known: perhaps Expose= is meant");
        add_with_drop_in(none, "[Limits]\n", "[Limits]\n");
        CHECK_STRING(broken(none, "x"), "/usr/x.conf:1: there is no section [Database]");
}

static void test_limits_of_a_database(void) {
        g_autoptr(Config) c = config_new(), wrong = config_new();
        DatabaseConfig *d = add(c, "[Database]\nPath=/x\n[Limits]\nStatementsMax=9\nRunTimeoutSec=1.5\n"
                                   "ResultRowsMax=infinity\nTransactionTimeoutSec=7\n");

        add_limits(c, "[Limits]\nRunTimeoutSec=3\nResultRowsMax=10\nRowSizeMax=1K\nStatementsMax=100\n");
        const Limits l = config_limits(c, d);
        CHECK_INT(l.run_timeout_usec, 1500000);
        CHECK(l.result_rows_max == UINT64_MAX);
        CHECK_INT(l.row_size_max, 1024);
        CHECK_INT(l.statements_max, 100); /* of one uid, beside that of the database */
        CHECK_INT(d->limits.statements_max, 9);
        CHECK(d->limits.runs_max == UINT64_MAX && d->limits.workers_max == UINT64_MAX);
        CHECK_INT(l.exempt_root, 0);
        CHECK_INT(l.transactions_max, 256);
        CHECK_INT(l.transaction_timeout_usec, 7000000);
        CHECK_INT(c->warnings->len, 0);
        check_broken("[Database]\nPath=/x\n[Limits]\nPipePagesMax=7\nExemptRoot=yes\nTransactionsMax=2\n",
                     "/etc/x.conf:4: key PipePagesMax= belongs in sqlipcd.conf, not in the file of a database; "
                     "/etc/x.conf:5: key ExemptRoot= belongs in sqlipcd.conf, not in the file of a database; "
                     "/etc/x.conf:6: key TransactionsMax= belongs in sqlipcd.conf, not in the file of a database");

        CHECK(!add(wrong, "[Database]\nPath=/x\n[Limits]\nHeapMax=1K\nRunsMax=0\n"));
        CHECK_STRING(broken(wrong, "x"),
                     "/etc/x.conf:4: HeapMax=1K is not taken: give bytes, with K, M, G or T behind for a unit, from 1M to "
                     "1T; /etc/x.conf:5: RunsMax=0 is not taken: give a number from 1 to 1000000");
}

static void test_service(void) {
        g_autoptr(Config) c = config_new(), given = config_new(), wrong = config_new();

        CHECK_INT(c->service.idle_exit_usec, 60000000);
        CHECK(!c->service.idle_exit_given);
        CHECK_INT(c->service.slow_query_usec, 10000000);
        add_limits(given, "[Service]\nIdleExitSec=0.001\nSlowQuerySec=infinity\n[Limits]\nExemptRoot=yes\n");
        CHECK_INT(given->service.idle_exit_usec, 1000);
        CHECK(given->service.idle_exit_given);
        CHECK(given->service.slow_query_usec == UINT64_MAX);
        CHECK_INT(given->limits.exempt_root, 1);
        CHECK_INT(g_hash_table_size(given->broken), 0);
        add_limits(wrong, "[Service]\nIdleExitSec=0\nWhat=1\n[Database]\n");
        CHECK_STRING(broken(wrong, "sqlipcd.conf"),
                     "/etc/sqlipcd.conf:2: IdleExitSec=0 is not taken: give seconds, such as 10 or 0.5, from 0.001 to "
                     "31622400, or infinity; /etc/sqlipcd.conf:3: key What= is not known; /etc/sqlipcd.conf:4: section "
                     "[Database] is not known");
        CHECK(!wrong->service.idle_exit_given);
        CHECK_INT(wrong->service.idle_exit_usec, 60000000);
        CHECK_INT(wrong->warnings->len, 0);
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

/* The line may be a restriction that is misspelt. */
static void test_unknown_withholds(void) {
        g_autoptr(Config) c = config_new();

        check_broken("[Database]\nPath=/x\nExpsoe=Genre\n",
                     "/etc/x.conf:3: key Expsoe= is not known: perhaps Expose= is meant");
        check_broken("[Database]\nPath=/x\nColour=red\n[More]\na=b\n[More]\n",
                     "/etc/x.conf:3: key Colour= is not known; /etc/x.conf:4: section [More] is not known");
        check_broken("[Database]\nPath=/x\n[Limit]\nRunsMax=1\n",
                     "/etc/x.conf:3: section [Limit] is not known: perhaps [Limits] is meant");
        check_broken("[Database]\nPath=/x\n[Limits]\nExpose=Genre\nRunMax=1\n",
                     "/etc/x.conf:4: key Expose= belongs in the section [Database], not in [Limits]; "
                     "/etc/x.conf:5: key RunMax= is not known: perhaps RunsMax= is meant");
        check_broken("[Database]\nPath=/x\nRunsMax=1\n",
                     "/etc/x.conf:3: key RunsMax= belongs in the section [Limits], not in [Database]");
        check_broken("[Database]\nPath=/x\nAllowUserss=a\nallow_users=a\nxX-a=b\nx-a=b\n",
                     "/etc/x.conf:3: key AllowUserss= is not known: perhaps AllowUsers= is meant; "
                     "/etc/x.conf:4: key allow_users= is not known: perhaps AllowUsers= is meant; "
                     "/etc/x.conf:5: key xX-a= is not known; /etc/x.conf:6: key x-a= is not known");
        CHECK(add(c, "[Database]\nX-Colour=red\nPath=/x\n[X-More]\nPath=/y\n[Limits]\nX-RunsMax=1\n"));
        CHECK_INT(c->warnings->len, 0);
        add_limits(c, "[Limits]\nX-RunsMax=1\nRunsMax=7\n[X-Service]\nIdleExitSec=5\n");
        CHECK_INT(g_hash_table_size(c->broken), 0);
        CHECK_INT(c->limits.runs_max, 7);
        CHECK_INT(c->service.idle_exit_usec, 60000000);
        add_limits(c, "[Limits]\nHeepMax=1M\nStatementsMax=9\n[Service]\nRunsMax=1\n");
        CHECK_STRING(broken(c, "sqlipcd.conf"),
                     "/etc/sqlipcd.conf:2: key HeepMax= is not known: perhaps HeapMax= is meant; "
                     "/etc/sqlipcd.conf:5: key RunsMax= belongs in the section [Limits], not in [Service]");
        CHECK_INT(c->limits.statements_max, 9);
}

/* Words that are longer than any key, and keys of one letter, have no neighbour; each line has its message. */
static void test_unknown_of_any_length(void) {
        g_autofree char *word = g_strnfill(1000, 'E'), *text = g_strdup_printf("[Database]\nPath=/x\n%s=1\nE=1\n", word);
        g_autofree char *expected = g_strdup_printf("/etc/x.conf:3: key %.80s= is not known; /etc/x.conf:4: key E= is not "
                                                    "known", word);

        check_broken(text, expected);
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
        CHECK_INT(c->limits.channels_max, 1024);
        CHECK_INT(c->limits.park_timeout_rollback_usec, 5000000);
        CHECK_INT(c->limits.transactions_max, 256);
        CHECK_INT(c->limits.transaction_timeout_usec, 60000000);
        CHECK_INT(c->limits.transaction_idle_usec, 5000000);
        CHECK_INT(c->limits.result_size_max, INT64_C(1) << 40);
        add_limits(c, "[Limits]\nStatementsMax=7\nQueueTimeoutSec=0.25\nHeapMax=2M\nBusyTimeoutSec=0\n");
        add_limits(c, "[Limits]\nTransactionsMax=1\nTransactionTimeoutSec=0.5\nTransactionIdleSec=0.001\n");
        CHECK_INT(c->limits.transactions_max, 1);
        CHECK_INT(c->limits.transaction_timeout_usec, 500000);
        CHECK_INT(c->limits.transaction_idle_usec, 1000);
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
        check_limit_broken("RunTimeoutSec=infinity");
        check_limit_broken("StatementsMax=infinity");
        check_limit_broken("ExemptRoot=perhaps");
        check_limit_broken("SQLSizeMax=1000000001");
        check_limit_broken("VariablesMax=32767");
        check_limit_broken("HeapMax=1048575");
        check_limit_broken("TransactionsMax=0");
        check_limit_broken("TransactionTimeoutSec=0");
        check_limit_broken("TransactionIdleSec=infinity");
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
        check_seconds("infinity", 0, UINT64_MAX);
        check_seconds(".5", -EINVAL, 0);
        check_seconds("5.", -EINVAL, 0);
        check_seconds("5s", -EINVAL, 0);
}

/* By default all workers fit half of the machine's memory, from 2 to 32 of them. */
static void test_workers_total(void) {
        static const uint64_t gib = UINT64_C(1) << 30;
        const uint64_t heap_max = limits_default().heap_max;

        CHECK_INT(limits_default().workers_total_max, 0);
        for (uint64_t memory = gib; memory <= 64 * gib; memory += gib)
                CHECK(limits_workers_total(memory, heap_max) * heap_max <= memory / 2);
        CHECK_INT(limits_workers_total(2 * gib, heap_max), 4);
        CHECK_INT(limits_workers_total(gib / 4, heap_max), 2);
        CHECK_INT(limits_workers_total(1024 * gib, heap_max), 32);
        CHECK_INT(limits_workers_total(2 * gib, gib / 32), 32);
        CHECK_INT(limits_workers_total(2 * gib, 1024 * gib), 2);
}

static void test_equal(void) {
        g_autoptr(Config) a = config_new(), b = config_new(), c = config_new();
        DatabaseConfig *first = add(a, "[Database]\nPath=/x\n"),
                       *same = add(b, "[Database]\nMode=read-only\nPath=/x\nImmutable=no\n");

        CHECK(database_config_equal(first, same));
        for (const char *const *i = (const char *const[]) { "Immutable=yes", "Polkit=yes", "Description=d", "AllowUsers=a",
                                                            "AllowGroups=a", "Expose=a", "SecurityBarrier=yes",
                                                            "[Limits]\nRunsMax=1",
                                                            "[Limits]\nStatementsMax=1", "[Limits]\nWorkersMax=1",
                                                            "[Limits]\nChannelsMax=1", "[Limits]\nHeapMax=512M",
                                                            NULL }; *i; i++) {
                g_autofree char *text = g_strdup_printf("[Database]\nPath=/x\n%s\n", *i);
                CHECK(!database_config_equal(first, add(c, text)));
        }
        CHECK(!database_config_equal(first, add(c, "[Database]\nPath=/y\n")));
        CHECK(!database_config_equal(first, add(c, WRITABLE)));
        CHECK(!database_config_equal(add(a, "[Database]\nPath=/x\n[Limits]\nHeapMax=2M\n"),
                                     add(b, "[Database]\nPath=/x\n[Limits]\nHeapMax=3M\n")));
}

/* `differs`: a waiting run may no longer do what it could do. */
static void check_writing_differs(const char *line, bool differs) {
        g_autofree char *text = g_strconcat(WRITABLE, line, "\n", NULL);
        g_autoptr(Config) a = config_new(), b = config_new();
        const DatabaseConfig *first = add(a, WRITABLE), *second = add(b, text);

        CHECK(database_config_equal(second, second));
        CHECK(!database_config_equal(first, second));
        CHECK(database_config_shows_same(first, second) != differs);
}

static void test_writing_equal(void) {
        check_writing_differs("WriteUsers=a", false);
        check_writing_differs("WritePolkit=yes", false);
        check_writing_differs("WriteGroups=a", false);
        check_writing_differs("WriteTables=a", true);
        check_writing_differs("WriteSchema=yes", true);
        check_writing_differs("Mode=read-only", true);
        check_writing_differs("Synchronous=normal", false);
        check_writing_differs("ForeignKeys=no", false);
        check_writing_differs("DatabaseSizeMax=1G", false);
        check_writing_differs("WalSizeMax=1G", false);
}

static void test_writing_equal_ids(void) {
        static const char text[] = WRITABLE "WriteUsers=u\nWriteGroups=g\n";
        g_autoptr(Config) a = config_new(), b = config_new();
        const DatabaseConfig *first = add(a, text), *second = add(b, text);

        names_apply(a, "u u 1\ng g 2\n");
        names_apply(b, "u u 1\ng g 2\n");
        CHECK(database_config_equal(first, second));
        names_apply(b, "u u 3\ng g 2\n");
        CHECK(!database_config_equal(first, second));
        names_apply(b, "u u 1\ng g 3\n");
        CHECK(!database_config_equal(first, second));
}

/* The id of a name may change while the text stays. */
static void test_equal_ids(void) {
        g_autoptr(Config) a = config_new(), b = config_new();
        DatabaseConfig *first = add(a, "[Database]\nPath=/x\nAllowUsers=u\nAllowGroups=g\n"),
                       *second = add(b, "[Database]\n\nPath=/x\nAllowUsers=u\nAllowGroups=g\n");

        names_apply(a, "u u 1\ng g 2\n");
        names_apply(b, "u u 1\ng g 2\n");
        CHECK(database_config_equal(first, second));
        names_apply(b, "u u 3\ng g 2\n");
        CHECK(!database_config_equal(first, second));
        names_apply(b, "u u 1\ng g 3\n");
        CHECK(!database_config_equal(first, second));
        names_apply(b, "u u 1\n");
        CHECK(!database_config_equal(first, second));
}

int main(void) {
        static const Test tests[] = {
                TEST(test_database), TEST(test_database_defaults), TEST(test_database_broken),
                TEST(test_server), TEST(test_server_broken), TEST(test_server_password), TEST(test_server_equal),
                TEST(test_lists), TEST(test_exposed), TEST(test_long_lists), TEST(test_much_wrong), TEST(test_exposed_twice),
                TEST(test_syntax),
                TEST(test_twice), TEST(test_drop_ins), TEST(test_limits_of_a_database), TEST(test_service),
                TEST(test_equal_ids),
                TEST(test_last_of_two_keys_counts), TEST(test_nul_bytes), TEST(test_unknown_withholds),
                TEST(test_unknown_of_any_length), TEST(test_names),
                TEST(test_names_that_no_message_carries), TEST(test_every_wrong_limit_is_told),
                TEST(test_limits), TEST(test_limits_broken), TEST(test_sizes), TEST(test_seconds), TEST(test_workers_total),
                TEST(test_equal), TEST(test_writing_defaults), TEST(test_writing), TEST(test_writing_lists),
                TEST(test_writing_broken), TEST(test_writing_without_mode), TEST(test_writing_equal),
                TEST(test_writing_equal_ids),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
