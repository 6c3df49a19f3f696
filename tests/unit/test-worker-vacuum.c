/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * VACUUM of a client, from the queue of the worker's writer to the file: it runs alone, in no transaction, and opens no
 * other file. The engine is that of SQLite, in the rig's worker; time is the test's (tests/rigs/writing-rig.h).
 */
#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/worker/core/temp-space.h"
#include "daemon/worker/sqlite/sqlite-engine.h"
#include "daemon/worker/sqlite/vfs.h"
#include "tests/rigs/writing-rig.h"

#define MSEC UINT64_C(1000)
#define SEC (1000 * MSEC)
#define LONG (60 * SEC)

/* VACUUM has pages to give back, tables of every kind to copy, and an index that must be as it was. */
static const char schema[] =
        "CREATE TABLE big(id INTEGER PRIMARY KEY, x);"
        "CREATE TABLE numbered(id INTEGER PRIMARY KEY AUTOINCREMENT, x UNIQUE, twice AS (x * 2) STORED);"
        "CREATE TABLE plain(x PRIMARY KEY CHECK(x <> 9), y) WITHOUT ROWID;"
        "CREATE TABLE vacuum_db(x);" /* the name that SQLite gives the copy */
        "CREATE VIEW broken AS SELECT * FROM nowhere;"
        "CREATE INDEX half ON big(length(x)) WHERE id % 2;"
        "CREATE TRIGGER note AFTER INSERT ON big BEGIN INSERT INTO numbered(x) VALUES(new.id); END;"
        "CREATE VIRTUAL TABLE words USING fts5(word);"
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 3200)"
        "INSERT INTO big SELECT n, zeroblob(3000) FROM c;"
        "INSERT INTO words VALUES('one'), ('two');"
        "INSERT INTO vacuum_db VALUES('kept');"
        "DELETE FROM big WHERE id % 4 > 0;"
        "PRAGMA user_version = 5;";

static const char *const modes[] = { "wal", "delete", "truncate", "persist" };

static char *folder, *path;

/* ---- the engine: time passes while a statement computes ---- */

static EngineProgress progress;
static unsigned n_progress, n_at; /* so many calls of it until now; at that call `at` is called, 0: at none */
static void (*at)(void);

static int on_progress(void *userdata) {
        g_assert_cmpuint(++n_progress, <, 100000);
        writing.clock_usec += MSEC;
        if (n_progress == n_at)
                at();
        return progress(userdata);
}

static int start(const Setup *setup, EngineProgress p, void *userdata, EnginePool **ret) {
        progress = p;
        return sqlite_engine.start(setup, on_progress, userdata, ret);
}

/* ---- a disk that fails ---- */

static bool fails_folder; /* the folder cannot be synced: the deletion of a journal is not known to last */

/* The other syncs have no effect that a test sees, and take time. */
int fsync(int fd) {
        struct stat st;

        if (fails_folder && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
                errno = EIO;
                return -1;
        }
        return 0;
}

int fdatasync(int fd) {
        return fsync(fd);
}

/* ---- the file, as another program sees it ---- */

static sqlite3 *foreign_open(const char *name) {
        sqlite3 *db;

        g_assert_cmpint(sqlite3_open(name, &db), ==, SQLITE_OK);
        return db;
}

/* Another program that reads a table, and has its first row. */
static sqlite3_stmt *foreign_reader(void) {
        sqlite3_stmt *reader;

        g_assert_cmpint(sqlite3_prepare_v2(foreign_open(path), "SELECT * FROM big", -1, &reader, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_step(reader), ==, SQLITE_ROW);
        return reader;
}

static void foreign_reader_done(sqlite3_stmt *reader) {
        sqlite3 *db = sqlite3_db_handle(reader);

        (void) sqlite3_finalize(reader);
        g_assert_cmpint(sqlite3_close(db), ==, SQLITE_OK);
}

static char *text_of(sqlite3 *db, const char *sql) {
        GString *text = g_string_new(NULL);
        sqlite3_stmt *stmt;

        g_assert_cmpint(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), ==, SQLITE_OK);
        while (sqlite3_step(stmt) == SQLITE_ROW)
                for (int i = 0; i < sqlite3_column_count(stmt); i++)
                        g_string_append_printf(text, "%s ", (const char *) sqlite3_column_text(stmt, i));
        g_assert_cmpint(sqlite3_finalize(stmt), ==, SQLITE_OK);
        return g_string_free(text, false);
}

/* The content of a file, without the places of its pages. */
static char *content(const char *name) {
        static const char *const queries[] = {
                "PRAGMA integrity_check", "SELECT type, name, sql FROM sqlite_schema ORDER BY name", "PRAGMA user_version",
                "SELECT id, hex(x) FROM big", "SELECT * FROM numbered", "SELECT * FROM sqlite_sequence",
                "SELECT * FROM plain", "SELECT * FROM vacuum_db", "SELECT count(*) FROM words('two')",
                "SELECT count(*) FROM big INDEXED BY half WHERE id % 2",
        };
        GString *all = g_string_new(NULL);
        sqlite3 *db = foreign_open(name);

        for (size_t i = 0; i < G_N_ELEMENTS(queries); i++) {
                g_autofree char *text = text_of(db, queries[i]);

                g_string_append(all, text);
        }
        g_assert_cmpint(sqlite3_close(db), ==, SQLITE_OK);
        return g_string_free(all, false);
}

static char *pages(const char *name) {
        sqlite3 *db = foreign_open(name);
        g_autofree char *free_pages = text_of(db, "PRAGMA freelist_count"), *all = text_of(db, "PRAGMA page_count");

        g_assert_cmpint(sqlite3_close(db), ==, SQLITE_OK);
        return g_strconcat(free_pages, all, NULL);
}

/* ---- life of a test ---- */

static char *before; /* the content */

static void begin_as(const char *journal_mode, bool writes, bool write_schema) {
        g_autofree char *sql = g_strdup_printf("PRAGMA journal_mode = %s; %s", journal_mode, schema);
        static Engine engine;
        Setup setup = wide;

        folder = g_dir_make_tmp("sqlipc-vacuum-XXXXXX", NULL);
        path = g_build_filename(folder, "a.sqlite", NULL);
        exec_sql(path, sql);
        before = content(path);
        setup.path = path;
        setup.database_size_max = UINT64_MAX;
        setup.writes = writes;
        setup.sync_full = true;
        setup.write_schema = write_schema;
        engine = sqlite_engine;
        engine.start = start;
        n_progress = n_at = 0;
        writing_begin_on(&engine, &setup);
}

static void begin(const char *journal_mode) {
        begin_as(journal_mode, true, true);
}

static void clean_up(void) {
        g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
        const char *name;

        while ((name = g_dir_read_name(dir))) {
                g_autofree char *file = g_build_filename(folder, name, NULL);

                g_assert_true(g_str_has_prefix(name, "a.sqlite")); /* nothing was attached, or written INTO */
                (void) g_unlink(file);
        }
        g_assert_cmpint(g_rmdir(folder), ==, 0);
        g_free(path);
        g_free(folder);
        g_free(before);
}

static void end(void) {
        writing_end();
        clean_up();
}

/* Jobs begin in the order in which they come only if each waits already when the next one comes. */
static uint64_t ask(const char *sql) {
        uint64_t number = writing_execute(sql);

        writing_settle();
        return number;
}

/* The worker has the lease. */
static void begin_with_lease(const char *journal_mode) {
        begin(journal_mode);
        (void) writing_execute("INSERT INTO plain VALUES(1, 1)");
        writing_expect("wanted; ");
        writing_say(MESSAGE_LEASE);
        writing_expect("committing 1; ended 1 wrote 1 0; ");
        g_free(before);
        before = content(path);
}

/* Nothing was lost, and nothing has changed except the places of pages. */
static void check_content(void) {
        g_autofree char *now = content(path);

        g_assert_cmpstr(now, ==, before);
}

/* Those of a copy that SQLite's VACUUM has made. */
static char *vacuumed_pages(void) {
        g_autofree char *copy = g_strconcat(path, ".copy", NULL), *sql = g_strdup_printf("VACUUM INTO '%s'", copy);
        char *result;

        exec_sql(path, sql);
        result = pages(copy);
        g_assert_cmpint(g_unlink(copy), ==, 0);
        return result;
}

static void check_vacuumed(void) {
        g_autofree char *now = pages(path), *expected = vacuumed_pages();

        g_assert_cmpstr(now, ==, expected);
        g_assert_true(g_str_has_prefix(now, "0 "));
        check_content();
}

static void check_not_vacuumed(void) {
        g_autofree char *now = pages(path);

        g_assert_false(g_str_has_prefix(now, "0 "));
        check_content();
}

/* ---- one VACUUM ---- */

/* It ends the batch of the statements before it, and those after it are the next one. */
static void test_alone(const void *journal_mode) {
        begin(journal_mode);
        (void) ask("UPDATE vacuum_db SET x = 'kept'");
        (void) ask("UPDATE vacuum_db SET x = x");
        (void) ask("; -- now\n/* and */ vacuum ;");
        (void) ask("UPDATE vacuum_db SET x = 'kept'");
        (void) ask("UPDATE vacuum_db SET x = x");
        writing_expect("wanted; ");
        check_not_vacuumed();
        writing_say(MESSAGE_LEASE);
        writing_expect("committing 1 2; ended 1 wrote 1 0; ended 2 wrote 1 0; committing 3; ended 3 wrote 0 0; "
                       "committing 4 5; ended 4 wrote 1 0; ended 5 wrote 1 0; ");
        check_vacuumed();
        end();
}

static void test_texts(void) {
        static const char *const texts[] = {
                "VACUUM", "VACUUM main", "vacuum \"MAIN\" -- all", "Vacuum/**/[main];;", "\xef\xbb\xbf VACUUM `main`",
        };
        static const char *const idle[] = { "VACUUM temp", "; vacuum TEMP INTO 'x'" };

        for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
                begin_with_lease("wal");
                (void) writing_execute(texts[i]);
                writing_expect("committing 2; ended 2 wrote 0 0; ");
                check_vacuumed();
                end();
        }
        begin("wal");
        for (size_t i = 0; i < G_N_ELEMENTS(idle); i++)
                (void) ask(idle[i]);
        writing_expect("ended 1; ended 2; "); /* without the lease */
        check_not_vacuumed();
        end();
}

/* Its client's numbers, which are those of the connection that others use, too, stay as they are. */
static void test_run(void) {
        uint64_t number;
        Outcome o;
        int fd;

        begin_with_lease("wal");
        number = writing_run("VACUUM", &fd);
        o = writing_read(fd, number);
        g_assert_cmpuint(o.error, ==, ERROR_NONE);
        g_assert_cmpuint(o.n_rows, ==, 0);
        writing_expect("started 2 to write; committing 2; ended 2 wrote 0 0; ");
        check_vacuumed();
        number = writing_run("EXPLAIN VACUUM", &fd);
        o = writing_read(fd, number);
        g_assert_cmpuint(o.error, ==, ERROR_NONE);
        g_assert_cmpuint(o.n_rows, >, 2);
        end();
}

/* Those who watch are told that the schema and any table may have changed. */
static void test_watch(const void *journal_mode) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        bool told = false;

        begin_with_lease(journal_mode);
        g_assert_cmpint(message_send(writing.rig.control_fd, &(Message) { .kind = MESSAGE_WATCH, .number = 1 }, -1), ==, 0);
        writing_settle();
        g_free(writing_reports());
        (void) ask("VACUUM");
        writing_settle();
        while (message_receive(writing.rig.control_fd, &m) > 0) {
                if (m.message.kind == MESSAGE_COMMITTED) {
                        g_assert_true(m.message.committed.schema);
                        g_assert_cmpuint(m.message.committed.tables.size, ==, 0);
                        g_assert_cmpint(m.message.committed.after.kind, !=, FILE_STATE_UNKNOWN);
                        told = true;
                }
                received_message_done(&m);
        }
        g_assert_true(told);
        end();
}

/* ---- transactions ---- */

static void test_transactions(void) {
        uint64_t t;

        begin_with_lease("wal");
        t = writing.transaction = writing_open(true, LONG);
        writing_expect("started 2 to write; ");
        (void) ask("INSERT INTO plain VALUES(2, 2)");
        (void) ask("VACUUM");
        (void) ask("VACUUM temp");
        writing_expect("ended 3 wrote 1 0; ended 4 error 11; ended 5; ");
        writing_cancel(t);
        writing_expect("ended 2 error 30; ");
        t = writing.transaction = writing_open_deferred(LONG);
        writing_settle();
        (void) ask("VACUUM");
        (void) ask("INSERT INTO plain VALUES(2, 2)");
        writing_expect("started 6 to write; ended 7 error 11; ended 8 wrote 1 0; ");
        writing_cancel(t);
        writing_expect("ended 6 error 30; ");
        writing.transaction = writing_open(false, LONG);
        writing_settle();
        (void) ask("VACUUM");
        writing_expect("started 9; ended 10 error 11; ");
        writing.transaction = 0;
        (void) writing_execute_batch("INSERT INTO plain VALUES(2, 2);VACUUM");
        writing_expect("ended 11 error 11; ");
        check_not_vacuumed();
        end();
}

/* A pin is not in its way, and keeps its TEMP tables. */
static void test_pin(void) {
        uint64_t t;

        begin_with_lease("wal");
        writing.pin = writing_open_pin(0);
        writing_settle();
        (void) ask("CREATE TEMP TABLE vacuum_db AS SELECT 1 AS a");
        (void) ask("CREATE TEMP VIEW vacuum_view AS SELECT * FROM main.vacuum_db");
        (void) ask("VACUUM");
        (void) ask("INSERT INTO vacuum_db VALUES(2)");
        writing_expect("started 2; ended 3 wrote 0 0; ended 4 wrote 0 0; committing 5; ended 5 wrote 0 0; "
                       "ended 6 wrote 1 2; ");
        check_vacuumed();
        t = writing.transaction = writing_open_deferred(LONG);
        writing_settle();
        (void) ask("VACUUM");
        writing_expect("started 7 to write; ended 8 error 11; ");
        writing_cancel(t);
        writing_expect("ended 7 error 30; ");
        t = writing.transaction = writing_open(false, LONG);
        writing_settle();
        (void) ask("VACUUM");
        writing_expect("started 9; ended 10 error 11; ");
        writing_cancel(t);
        writing_expect("ended 9 error 30; ");
        writing.transaction = 0;
        (void) ask("ATTACH '' AS vacuum_db");
        writing_expect("ended 11 error 16; ");
        end();
}

/* ---- no other file ---- */

static const char *const attacks[] = {
        "ATTACH '' AS vacuum_db",
        "ATTACH ':memory:' AS vacuum_db",
        "ATTACH 'stolen' AS vacuum_db",
        "ATTACH \"\" AS a",
        "ATTACH NULL AS vacuum_db",
        "ATTACH x'' AS vacuum_db",
        "DETACH vacuum_db",
        "VACUUM INTO 'stolen'",
        "VACUUM INTO ''",
        "VACUUM INTO NULL",
        "VACUUM main INTO 'stolen'",
        "VACUUM/**/main--\nINTO'stolen'",
        "; -- x\n/* VACUUM */ VACUUM INTO lower('stolen')",
        "\xef\xbb\xbfVACUUM INTO 'stolen'",
        " \vVACUUM INTO (SELECT x FROM vacuum_db)",
        "VACUUM INTO ?",
};

static const char *const nonsense[] = {
        "VACUUM vacuum_db", "VACUUM elsewhere INTO 'stolen'", "VACUUM INTO", "VACUUM main.big",
};

/* On a connection of its own a client may attach a database by its name (unit/worker-attach). */
static ErrorNumber refusal_of(const char *sql) {
        if (g_str_has_prefix(sql, "ATTACH"))
                return ERROR_NEEDS_PIN;
        return g_str_has_prefix(sql, "DETACH") ? ERROR_SQL : ERROR_NOT_ALLOWED;
}

static void refuse_all(uint64_t number) {
        for (size_t i = 0; i < G_N_ELEMENTS(attacks); i++) {
                g_autofree char *expected = g_strdup_printf("ended %" G_GUINT64_FORMAT " error %u; ", number++,
                                                            refusal_of(attacks[i]));

                (void) writing_execute(attacks[i]);
                writing_expect(expected);
        }
        for (size_t i = 0; i < G_N_ELEMENTS(nonsense); i++) {
                g_autofree char *expected = g_strdup_printf("ended %" G_GUINT64_FORMAT " error %u; ", number++, ERROR_SQL);

                (void) writing_execute(nonsense[i]);
                writing_expect(expected);
        }
}

#define N_ATTACKS (G_N_ELEMENTS(attacks) + G_N_ELEMENTS(nonsense))

/* Before it, after it, and after one that failed in its middle. */
static void attack(const char *journal_mode) {
        uint64_t number = 2;

        begin_with_lease(journal_mode);
        refuse_all(number);
        number += N_ATTACKS;
        (void) writing_execute("VACUUM; ATTACH '' AS a");
        (void) writing_execute("VACUUM; VACUUM INTO 'stolen'");
        writing_settle();
        g_free(writing_reports());
        number += 2;
        g_assert_cmpuint(writing_execute("VACUUM"), ==, number);
        writing_settle();
        g_free(writing_reports());
        check_vacuumed();
        refuse_all(++number);
        number += N_ATTACKS;
        exec_sql(path, "UPDATE big SET x = zeroblob(20); UPDATE big SET x = zeroblob(3000)");
        g_assert_cmpuint(writing_execute_until("VACUUM", 1 * MSEC), ==, number);
        writing_settle();
        g_free(writing_reports());
        refuse_all(++number);
        end();
}

static void test_attacks(void) {
        for (size_t i = 0; i < G_N_ELEMENTS(modes); i++)
                attack(modes[i]);
}

static void attach_now(void) {
        (void) writing_execute("ATTACH '' AS vacuum_db");
}

/* Jobs that come while it runs. */
static void test_attacks_meanwhile(void) {
        begin_with_lease("wal");
        n_at = n_progress + 2;
        at = attach_now;
        (void) ask("VACUUM");
        writing_expect("committing 2; ended 3 error 44; ended 2 wrote 0 0; ");
        check_vacuumed();
        end();
}

/* SQLite executes texts of the schema that begin like CREATE. Another program has put one of its own there. */
static void test_forged_schema(void) {
        begin_with_lease("delete");
        exec_sql(path, "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE vacuum_db(x DEFAULT "
                       "(load_extension(''x'')))' WHERE name = 'vacuum_db'");
        g_free(before);
        before = content(path);
        (void) ask("VACUUM");
        writing_settle();
        g_free(writing_reports());
        check_content();
        (void) ask("ATTACH '' AS vacuum_db");
        writing_expect("ended 3 error 44; ");
        end();
}

/* ---- rights ---- */

static void test_rights(void) {
        begin_as("wal", true, false);
        (void) ask("VACUUM");
        (void) ask("VACUUM INTO 'stolen'");
        writing_expect("ended 1 error 16; ended 2 error 16; ");
        check_not_vacuumed();
        end();
        begin_as("wal", false, false);
        (void) ask("VACUUM");
        (void) ask("VACUUM INTO 'stolen'");
        writing_expect("ended 1 error 15; ended 2 error 15; ");
        check_not_vacuumed();
        end();
}

/* ---- failures ---- */

/* The worker goes on: others write, and so does the next VACUUM. */
static void check_next(void) {
        check_not_vacuumed();
        (void) ask("UPDATE vacuum_db SET x = 'kept'");
        (void) ask("ATTACH '' AS vacuum_db");
        writing_settle();
        (void) ask("VACUUM");
        writing_settle();
        g_free(writing_reports());
        check_vacuumed();
}

/* A program that may not write reads the file: no journal is left. */
static void check_readable(void) {
        g_autofree char *name = g_strdup_printf("file:%s?mode=ro", path);
        sqlite3 *db;

        g_assert_cmpint(sqlite3_open_v2(name, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(db, "SELECT count(*) FROM big", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_close(db), ==, SQLITE_OK);
}

static void test_temporary_space(const void *journal_mode) {
        const uint64_t taken = wide.temp_size_max - 200000;

        begin_with_lease(journal_mode);
        g_assert_true(temp_space_take(taken, wide.temp_size_max));
        (void) ask("VACUUM");
        writing_expect("ended 2 error 23; ");
        temp_space_give(taken);
        check_next();
        end();
}

/* However little room there is, the outcome is known. */
static void test_little_temporary_space(const void *journal_mode) {
        const uint64_t max = wide.temp_size_max, step = 24 * 1024;
        bool fits = false;

        begin_with_lease(journal_mode);
        for (uint64_t room = 300000, number = 2; !fits; room += step, number++) {
                g_autofree char *no = g_strdup_printf("ended %" G_GUINT64_FORMAT " error 23; ", number), *reports = NULL;

                g_assert_cmpuint(room, <, 6000000);
                g_assert_true(temp_space_take(max - room, max));
                (void) ask("VACUUM");
                writing_settle();
                temp_space_give(max - room);
                reports = writing_reports();
                fits = g_str_has_suffix(reports, " wrote 0 0; ");
                if (!fits)
                        g_assert_cmpstr(reports, ==, no);
        }
        check_vacuumed();
        end();
}

static void cancel_it(void) {
        writing_cancel(2);
}

static void test_cancelled(const void *journal_mode) {
        begin_with_lease(journal_mode);
        n_at = n_progress + 2;
        at = cancel_it;
        (void) ask("VACUUM");
        writing_expect("ended 2 error 30; ");
        check_next();
        end();
}

static sqlite3 *other; /* another connection of the worker: its transaction has written pages to a temporary file */

static void use_temporary_file(void) {
        g_autofree char *text = NULL;

        cancel_it();
        g_assert_cmpint(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), ==, SQLITE_OK);
        text = text_of(other, "SELECT sum(n), (SELECT * FROM pragma_integrity_check) FROM t");
        g_assert_cmpstr(text, ==, "5050 ok ");
}

/* Only the temporary files of VACUUM can be read no more. */
static void test_cancelled_beside_temporary_file(void) {
        begin_with_lease("wal");
        g_assert_cmpint(sqlite3_open_v2("", &other, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, VFS_NAME), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(other,
                                     "PRAGMA cache_size = 5;"
                                     "CREATE TABLE t AS WITH c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100) "
                                     "SELECT n, zeroblob(3000) FROM c;"
                                     "BEGIN; UPDATE t SET n = 0",
                                     NULL, NULL, NULL), ==, SQLITE_OK);
        n_at = n_progress + 20;
        at = use_temporary_file;
        (void) ask("VACUUM");
        writing_expect("ended 2 error 30; ");
        g_assert_cmpint(sqlite3_close(other), ==, SQLITE_OK);
        check_next();
        end();
}

/* How often SQLite calls the progress handler during a VACUUM. */
static unsigned count_progress(const char *journal_mode) {
        unsigned n;

        begin_with_lease(journal_mode);
        n = n_progress;
        (void) ask("VACUUM");
        writing_expect("committing 2; ended 2 wrote 0 0; ");
        n = n_progress - n;
        end();
        return n;
}

static bool has_journal; /* at the cancellation: SQLite copies the new database over the old one */

static void cancel_late(void) {
        g_autofree char *journal = g_strconcat(path, "-journal", NULL);
        struct stat st;

        has_journal = stat(journal, &st) == 0 && st.st_size > 4096;
        writing_cancel(2);
}

static void test_cancelled_late(const void *journal_mode) {
        bool is_log = strcmp(journal_mode, "wal") == 0;
        unsigned n, n_copying = 0;

        n = count_progress(journal_mode);
        for (unsigned before_last = 10; before_last <= 310; before_last += 100) {
                begin_with_lease(journal_mode);
                n_at = n_progress + n - before_last;
                at = cancel_late;
                (void) ask("VACUUM");
                writing_expect("ended 2 error 30; ");
                n_copying += has_journal;
                check_readable();
                check_next();
                end();
        }
        g_assert_true(is_log || n_copying > 0);
}

static void lose_supervisor(void) {
        g_assert_cmpint(shutdown(writing.rig.control_fd, SHUT_RDWR), ==, 0);
}

/* COMMITTING cannot be sent, so it must not commit; and no journal is left for readers. */
static void test_supervisor_lost(const void *journal_mode) {
        unsigned n;

        n = count_progress(journal_mode);
        for (unsigned before_last = 0; before_last < 10; before_last += 3) {
                begin_with_lease(journal_mode);
                n_at = n_progress + n - before_last;
                at = lose_supervisor;
                (void) writing_execute("VACUUM");
                writing.until_usec = writing.clock_usec;
                g_assert_cmpint(worker_loop_run(&writing.loop), !=, -ETIME);
                check_readable();
                check_not_vacuumed();
                end();
        }
}

static void test_timed_out(void) {
        begin_with_lease("wal");
        (void) writing_execute_until("VACUUM", 2 * MSEC);
        writing_expect("ended 2 error 28; ");
        check_next();
        end();
}

/* The copy has room, and the log, the journal or the database has not. */
static void test_disk_limit(const void *journal_mode) {
        g_autofree char *expected = NULL;
        struct rlimit old, limit;

        begin_with_lease(journal_mode);
        g_assert_cmpint(getrlimit(RLIMIT_FSIZE, &old), ==, 0);
        limit = old;
        expected = vacuumed_pages();
        limit.rlim_cur = 4096 * (g_ascii_strtoull(expected + strlen("0 "), NULL, 10) + 1);
        g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &limit), ==, 0);
        (void) ask("VACUUM");
        writing_expect("ended 2 error 26; ");
        g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &old), ==, 0);
        check_next();
        end();
}

/* In rollback mode it exists when its journal is gone, even if SQLite cannot sync the folder. */
static void test_unknown_outcome(void) {
        begin_with_lease("delete");
        fails_folder = true;
        (void) ask("VACUUM");
        writing_expect("committing 2; ended 2 error 39; ");
        fails_folder = false;
        (void) ask("UPDATE vacuum_db SET x = 'kept'");
        writing_expect("committing 3; ended 3 wrote 1 0; ");
        check_vacuumed();
        end();
}

/* ---- locks ---- */

/* In rollback mode it waits for readers, as in SQLite, and others go before it. */
static void test_readers(void) {
        sqlite3_stmt *reader;

        begin_with_lease("delete");
        reader = foreign_reader();
        (void) ask("VACUUM");
        (void) ask("UPDATE vacuum_db SET x = 'kept'");
        writing_pass(100 * MSEC);
        (void) sqlite3_reset(reader);
        writing_pass(100 * MSEC);
        writing_settle();
        {
                g_autofree char *reports = writing_reports();

                g_assert_true(g_str_has_suffix(reports, "ended 2 wrote 0 0; "));
                g_assert_nonnull(strstr(reports, "ended 3 wrote 1 0; "));
        }
        check_vacuumed();
        g_assert_cmpint(sqlite3_step(reader), ==, SQLITE_ROW);
        (void) ask("VACUUM");
        writing_pass(wide.busy_usec / 2);
        g_free(writing_reports());
        writing_pass(wide.busy_usec);
        {
                g_autofree char *reports = writing_reports();

                g_assert_true(g_str_has_suffix(reports, "ended 4 error 27; "));
        }
        (void) ask("VACUUM");
        writing_pass(10 * MSEC);
        writing_cancel(5);
        writing_settle();
        {
                g_autofree char *reports = writing_reports();

                g_assert_true(g_str_has_suffix(reports, "ended 5 error 30; "));
        }
        foreign_reader_done(reader);
        end();
}

/* A reader of the same worker ends before VACUUM gives up. */
static void test_own_reader(void) {
        uint64_t number;
        Outcome o;
        int fd;

        begin_with_lease("delete");
        writing.setup->busy_usec = writing.setup->park_rollback_usec = 1000 * MSEC;
        number = writing_run("SELECT * FROM big", &fd);
        writing_settle();
        (void) ask("VACUUM");
        writing_expect("started 2; ");
        writing_pass(400 * MSEC);
        writing_expect("");
        writing_pass(500 * MSEC);
        writing_expect("ended 2 error 28; committing 3; ended 3 wrote 0 0; ");
        o = writing_read(fd, number);
        g_assert_cmpuint(o.error, ==, ERROR_TIMED_OUT);
        check_vacuumed();
        end();
}

/* Transactions begin while it waits for a reader: it has no turn before it can go on. */
static void test_transactions_meanwhile(void) {
        sqlite3_stmt *reader;
        uint64_t t;

        begin_with_lease("delete");
        reader = foreign_reader();
        (void) ask("VACUUM");
        writing_pass(500 * MSEC);
        g_free(writing_reports());
        for (unsigned i = 0; i < 20; i++) {
                g_autofree char *expected = NULL;

                t = writing_open(true, LONG);
                expected = g_strdup_printf("started %" G_GUINT64_FORMAT " to write; ended %" G_GUINT64_FORMAT " error 30; ",
                                           t, t);
                writing_settle();
                writing_cancel(t);
                writing_expect(expected);
        }
        foreign_reader_done(reader);
        writing_pass(SEC);
        writing_expect("committing 2; ended 2 wrote 0 0; ");
        check_vacuumed();
        end();
}

/* In WAL mode it waits for none, and a reader keeps what it reads. */
static void test_readers_of_log(void) {
        sqlite3_stmt *reader;
        unsigned n = 1;

        begin_with_lease("wal");
        reader = foreign_reader();
        (void) ask("VACUUM");
        writing_expect("committing 2; ended 2 wrote 0 0; ");
        while (sqlite3_step(reader) == SQLITE_ROW)
                n++;
        g_assert_cmpuint(n, ==, 800);
        foreign_reader_done(reader);
        check_vacuumed();
        end();
}

/* Another worker waits: it gets the lease before a VACUUM that waits for a reader tries again for long. */
static void test_lease(void) {
        sqlite3_stmt *reader;

        begin_with_lease("delete");
        reader = foreign_reader();
        (void) ask("VACUUM");
        writing_say(MESSAGE_LEASE_ASKED);
        writing_pass(50 * MSEC);
        {
                g_autofree char *reports = writing_reports();

                g_assert_true(g_str_has_suffix(reports, "returned; wanted; "));
        }
        foreign_reader_done(reader);
        writing_say(MESSAGE_LEASE);
        writing_expect("committing 2; ended 2 wrote 0 0; ");
        check_vacuumed();
        end();
}

int main(int argc, char **argv) {
        static const struct {
                const char *name;
                void (*function)(const void *journal_mode);
        } tests[] = {
                { "alone", test_alone }, { "watch", test_watch }, { "temporary-space", test_temporary_space },
                { "cancelled", test_cancelled }, { "cancelled-late", test_cancelled_late },
                { "disk-limit", test_disk_limit },
                { "little-temporary-space", test_little_temporary_space }, { "supervisor-lost", test_supervisor_lost },
        };

        g_test_init(&argc, &argv, NULL);
        (void) signal(SIGXFSZ, SIG_IGN);
        g_assert_cmpint(sqlite_engine.init(&wide), ==, 0);
        for (size_t i = 0; i < G_N_ELEMENTS(tests); i++)
                for (size_t m = 0; m < G_N_ELEMENTS(modes); m++) {
                        g_autofree char *name = g_strdup_printf("/worker/vacuum/%s/%s", tests[i].name, modes[m]);

                        g_test_add_data_func(name, modes[m], tests[i].function);
                }
        g_test_add_func("/worker/vacuum/texts", test_texts);
        g_test_add_func("/worker/vacuum/run", test_run);
        g_test_add_func("/worker/vacuum/transactions", test_transactions);
        g_test_add_func("/worker/vacuum/pin", test_pin);
        g_test_add_func("/worker/vacuum/attacks", test_attacks);
        g_test_add_func("/worker/vacuum/attacks-meanwhile", test_attacks_meanwhile);
        g_test_add_func("/worker/vacuum/forged-schema", test_forged_schema);
        g_test_add_func("/worker/vacuum/rights", test_rights);
        g_test_add_func("/worker/vacuum/timed-out", test_timed_out);
        g_test_add_func("/worker/vacuum/unknown-outcome", test_unknown_outcome);
        g_test_add_func("/worker/vacuum/readers", test_readers);
        g_test_add_func("/worker/vacuum/cancelled-beside-temporary-file", test_cancelled_beside_temporary_file);
        g_test_add_func("/worker/vacuum/own-reader", test_own_reader);
        g_test_add_func("/worker/vacuum/transactions-meanwhile", test_transactions_meanwhile);
        g_test_add_func("/worker/vacuum/readers-of-log", test_readers_of_log);
        g_test_add_func("/worker/vacuum/lease", test_lease);
        return g_test_run();
}
