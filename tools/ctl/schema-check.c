/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compiles the objects of a schema, see schema-check.h.
 *
 * A statement compiles everything that it would run: an INSERT also the CHECKs, generated columns, indexes and triggers of
 * its table, and the triggers that those would fire. To name the one object that fails, each is compiled by itself as well:
 *
 *      view, virtual table     SELECT * FROM it
 *      table                   the same, INSERT and DELETE, without triggers; the collation of each column; and for CHECKs
 *                              its CREATE TABLE in a database in memory, since SQLite drops those of a file that it only
 *                              reads
 *      index                   REINDEX
 *      trigger                 a TEMP trigger with its text, while all others are off, and the statement that fires it
 */
#include "tools/ctl/schema-check.h"

#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "daemon/worker/sqlite/sqlite-compile.h"
#include "daemon/worker/sqlite/sqlite-connection.h"
#include "daemon/worker/sqlite/sqlite-error.h"
#include "daemon/worker/sqlite/vfs.h"
#include "tools/ctl/service-child.h"

enum {
        FINDINGS_MAX = 100,
        FINDING_SIZE_MAX = 2000,   /* names may have megabytes */
        CPU_SECONDS_MAX = 10,      /* 20,000 objects take two; a few views can be made that compile for hours */
        REPORT_SIZE_MAX = 1 << 20, /* of a child that a hostile file may have taken over */
        ATTEMPTS = 3,              /* while other programs change the schema */
        LOCK_POLL_USEC = 20000,
        LOCK_POLLS = 50,           /* in all */
};

/* With a WHERE, so that SQLite deletes row by row, and not all pages of the table. */
#define DELETE "DELETE FROM main.\"%w\" WHERE 1"

/* ---- The child: findings ------------------------------------------------------------------------------------------ */

typedef struct Object {
        char *type, *name, *table, *sql;
        bool has_failed;
} Object;

typedef struct Check {
        const DatabaseConfig *d;
        Setup setup;
        SqliteConnection connection;
        sqlite3 *memory;
        Access memory_access;
        GPtrArray *objects;
        GHashTable *triggers;   /* a table or view, in lower case -> a GPtrArray of its Objects, borrowed */
        GHashTable *indexes;    /* a table, in lower case -> the failure of an index of it */
        GHashTable *collations; /* name -> the failure, or "" */
        GHashTable *failures;   /* a set of the failures of statements for which a trigger was named */
        guint n_findings;
        unsigned n_polls;       /* for a lock of other programs */
        bool locked;            /* they kept it for too long: something was not checked */
        int fd;                 /* where findings go: 'e' or 'w', text, NUL */
} Check;

static void report(Check *check, char severity, const char *format, ...) G_GNUC_PRINTF(3, 4);

static void report(Check *check, char severity, const char *format, ...) {
        g_autofree char *text = NULL, *record = NULL;
        va_list arguments;

        if (check->n_findings++ >= FINDINGS_MAX)
                return;
        va_start(arguments, format);
        text = g_strdup_vprintf(format, arguments);
        va_end(arguments);
        record = g_strdup_printf("%c%.*s", severity, FINDING_SIZE_MAX, text);
        (void) !write(check->fd, record, strlen(record) + 1);
}

/* The end of a finding: what to do. */
static const char *advice(ErrorNumber error, const char *message, const char *kind) {
        if (error == ERROR_MISSING_FUNCTION || g_str_has_prefix(message, "unknown function: "))
                return "the service has only the functions of SQLite itself";
        if (error == ERROR_MISSING_MODULE)
                return "the service has only the virtual tables of SQLite itself";
        if (strstr(message, "tokenizer"))
                return "the service has only the tokenizers of SQLite itself";
        if (error == ERROR_MISSING_COLLATION)
                return "the service has only the collations of SQLite itself";
        if (error == ERROR_NOT_ALLOWED || g_str_has_prefix(message, "unsafe use of "))
                return "the service lets no schema use this, because any program may have made it";
        if (g_str_has_prefix(message, "foreign key mismatch"))
                return "give the columns that the key refers to a UNIQUE index, or set ForeignKeys=no";
        if (error == ERROR_LIMITS_EXCEEDED)
                return strstr(message, "Max=") ? "raise that limit for this database, or make it simpler"
                                               : "make it simpler";
        return g_str_equal(kind, "table") ? "correct it" : "correct it, or drop it if it is not needed";
}

/* `what`: what fails, with the object's name. */
static void report_failure(Check *check, const char *kind, const char *what, ErrorNumber error, const char *message) {
        report(check, 'w', "%s (%s): %s", what, message, advice(error, message, kind));
}

/* ---- The child: locks of other programs ---------------------------------------------------------------------------- */

/* In rollback mode a commit of another program locks out readers. False: no more attempts. */
static bool wait_for_lock(Check *check) {
        if (check->n_polls++ >= LOCK_POLLS)
                return false;
        g_usleep(LOCK_POLL_USEC);
        return true;
}

/* The lock is taken by the first step. */
static int step_first(Check *check, sqlite3_stmt *stmt) {
        int rc;

        do {
                rc = sqlite3_step(stmt);
                if ((rc & 0xff) != SQLITE_BUSY)
                        return rc;
                (void) sqlite3_reset(stmt);
        } while (wait_for_lock(check));
        check->locked = true;
        return rc;
}

/* ---- The child: compiling ----------------------------------------------------------------------------------------- */

typedef struct CompileFailure {
        ErrorNumber error;
        char *message;
} CompileFailure;

static void compile_failure_done(CompileFailure *failure) {
        g_free(failure->message);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CompileFailure, compile_failure_done)

/* The statement of a reader that writes is refused after its compile. */
static bool is_compiled(const SqlError *error) {
        if (error->error == ERROR_READ_ONLY)
                return true;
        /* shadow tables, and virtual tables that only read */
        return error->error == ERROR_SQL && error->message && g_str_has_suffix(error->message, " may not be modified");
}

/* True if the statement compiles. Otherwise *ret says why not, and the caller frees it. While the file is locked, no
 * statement can be said to fail: the lock may hide a newer schema, and a virtual table reads its own tables. */
static bool compiles(Check *check, const char *sql, CompileFailure *ret) {
        SqlError error = SQL_ERROR_INIT;
        bool ok, locked;

        do {
                CompiledStatement compiled = {};

                sql_error_done(&error);
                ok = sqlite_compile(&check->connection, sql, strlen(sql), &compiled, &error);
                (void) sqlite3_finalize(compiled.stmt);
                locked = !ok && error.error == ERROR_BUSY;
        } while (locked && wait_for_lock(check));
        check->locked = check->locked || locked;
        ok = ok || locked || is_compiled(&error);
        if (!ok)
                *ret = (CompileFailure) { .error = error.error, .message = g_strdup(sql_error_as_failure(&error).message) };
        sql_error_done(&error);
        return ok;
}

/* The same, of a statement on the database in memory. */
static bool compiles_in_memory(Check *check, const char *sql, CompileFailure *ret) {
        SqlError error = SQL_ERROR_INIT;
        sqlite3_stmt *stmt = NULL;
        int rc = sqlite3_prepare_v2(check->memory, sql, -1, &stmt, NULL);

        (void) sqlite3_finalize(stmt);
        if (rc != SQLITE_OK) {
                (void) sqlite_error_take(&error, check->memory, rc, 0);
                *ret = (CompileFailure) { .error = error.error, .message = g_strdup(sql_error_as_failure(&error).message) };
        }
        sql_error_done(&error);
        return rc == SQLITE_OK;
}

static char *sql_of(const char *format, ...) {
        va_list arguments;
        char *sql, *copy;

        va_start(arguments, format);
        sql = sqlite3_vmprintf(format, arguments);
        va_end(arguments);
        copy = g_strdup(sql);
        sqlite3_free(sql);
        if (!copy)
                g_error("no memory");
        return copy;
}

static void set_triggers(Check *check, bool on) {
        (void) sqlite3_db_config(check->connection.file, SQLITE_DBCONFIG_ENABLE_TRIGGER, on, NULL);
}

static bool is_view(const Object *o) {
        return g_str_equal(o->type, "view");
}

static bool is_virtual(const Object *o) {
        return g_str_equal(o->type, "table") && o->sql && g_ascii_strncasecmp(o->sql, "CREATE VIRTUAL", 14) == 0;
}

/* It may only be the name of a column, for example. */
static bool has_check(const Object *o) {
        return o->sql && strcasestr(o->sql, "CHECK");
}

static bool is_own(const Object *o) {
        return sqlite3_strnicmp(o->name, "sqlite_", 7) == 0;
}

/* ---- The child: tables, views and indexes -------------------------------------------------------------------------- */

/* Compiles a statement about `o`, or its own CREATE TABLE. `fails`: what fails with it. */
static bool check_statement(Check *check, Object *o, const char *kind, const char *fails, const char *sql) {
        bool in_memory = sql == o->sql;
        g_auto(CompileFailure) failure = {};
        g_autofree char *text = NULL, *key = NULL;

        if (in_memory ? compiles_in_memory(check, sql, &failure) : compiles(check, sql, &failure))
                return true;
        o->has_failed = true;
        key = g_ascii_strdown(o->name, -1);
        if (g_strcmp0(g_hash_table_lookup(check->indexes, key), failure.message) == 0)
                return false; /* the index has its finding */
        text = g_strdup_printf("the %s \"%s\" %s", kind, o->name, fails);
        report_failure(check, o->type, text, failure.error, failure.message);
        return false;
}

/* A column with a collation that is missing can be read, but not compared. */
static bool check_collation(Check *check, Object *o, const char *column, const char *collation) {
        const char *known = g_hash_table_lookup(check->collations, collation);
        g_autofree char *what = NULL;

        if (!known) {
                g_autofree char *sql = sql_of("SELECT 'a' = 'b' COLLATE \"%w\"", collation);
                g_auto(CompileFailure) failure = {};
                bool ok = compiles(check, sql, &failure);

                known = ok ? "" : failure.message;
                (void) g_hash_table_insert(check->collations, g_strdup(collation), g_strdup(known));
                known = g_hash_table_lookup(check->collations, collation);
        }
        if (!*known)
                return true;
        o->has_failed = true;
        what = g_strdup_printf("comparing and sorting the column \"%s\" of the table \"%s\" fails", column, o->name);
        report_failure(check, o->type, what, ERROR_MISSING_COLLATION, known);
        return false;
}

static bool check_collations(Check *check, Object *o) {
        sqlite3 *db = check->connection.file;
        g_autofree char *sql = sql_of("SELECT * FROM main.\"%w\"", o->name);
        sqlite3_stmt *stmt = NULL;
        bool ok = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK;

        for (int i = 0; ok && i < sqlite3_column_count(stmt); i++) {
                const char *collation = NULL, *column = sqlite3_column_name(stmt, i);

                if (sqlite3_table_column_metadata(db, "main", o->name, column, NULL, &collation, NULL, NULL, NULL) ==
                            SQLITE_OK && collation)
                        ok = check_collation(check, o, column, collation);
        }
        (void) sqlite3_finalize(stmt);
        return ok;
}

static void check_table(Check *check, Object *o) {
        g_autofree char *read = sql_of("SELECT * FROM main.\"%w\"", o->name);
        g_autofree char *insert = sql_of("INSERT INTO main.\"%w\" DEFAULT VALUES", o->name);
        g_autofree char *delete = sql_of(DELETE, o->name);

        if (is_view(o))
                (void) check_statement(check, o, "view", "fails", read);
        else if (is_virtual(o))
                (void) check_statement(check, o, "virtual table", "fails", read);
        else if (check_statement(check, o, "table", "cannot be read", read) && check_collations(check, o) &&
                 !*check->d->expose &&
                 check_statement(check, o, "table", "cannot be inserted into", insert) &&
                 (!has_check(o) || check_statement(check, o, "table", "cannot be inserted into", o->sql)))
                (void) check_statement(check, o, "table", "cannot be deleted from", delete);
}

static void check_index(Check *check, Object *o) {
        g_autofree char *sql = sql_of("REINDEX main.\"%w\"", o->name);
        g_auto(CompileFailure) failure = {};
        g_autofree char *what = NULL;

        if (compiles(check, sql, &failure))
                return;
        what = g_strdup_printf("the index \"%s\" fails, and so does writing to the table \"%s\"", o->name, o->table);
        report_failure(check, o->type, what, failure.error, failure.message);
        (void) g_hash_table_insert(check->indexes, g_ascii_strdown(o->table, -1), g_steal_pointer(&failure.message));
}

/* ---- The child: triggers ------------------------------------------------------------------------------------------- */

/* "UPDATE t SET a = a, ..." with all columns, because a trigger may be for some only. */
static char *update_of(Check *check, const char *table) {
        g_autofree char *sql = sql_of("SELECT name FROM pragma_table_xinfo(%Q, 'main') WHERE hidden = 0", table);
        g_autofree char *start = sql_of("UPDATE main.\"%w\" SET ", table);
        GString *update = g_string_new(start);
        sqlite3_stmt *stmt = NULL;
        bool some = false;
        int rc = sqlite3_prepare_v2(check->connection.file, sql, -1, &stmt, NULL);

        for (rc = rc == SQLITE_OK ? step_first(check, stmt) : rc; rc == SQLITE_ROW; rc = sqlite3_step(stmt)) {
                g_autofree char *set = sql_of("%s\"%w\"=\"%w\"", some ? "," : "", sqlite3_column_text(stmt, 0),
                                              sqlite3_column_text(stmt, 0));

                g_string_append(update, set);
                some = true;
        }
        (void) sqlite3_finalize(stmt);
        return g_string_free(update, FALSE);
}

/* Runs one statement. */
static bool run(sqlite3 *db, const char *sql) {
        sqlite3_stmt *stmt = NULL;
        bool ok = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK && stmt && sqlite3_step(stmt) == SQLITE_DONE;

        (void) sqlite3_finalize(stmt);
        return ok;
}

static bool is_of_no_event(const CompileFailure *failure) {
        return g_str_has_prefix(failure->message, "cannot modify ");
}

/* Compiles the trigger as a TEMP trigger: SQLite has a switch for all others. */
static bool check_trigger(Check *check, Object *o, const char *event, const char *fires) {
        static const char prefix[] = "CREATE TRIGGER ";
        sqlite3 *db = check->connection.file;
        g_autofree char *make = NULL, *drop = sql_of("DROP TRIGGER temp.\"%w\"", o->name), *what = NULL;
        g_auto(CompileFailure) failure = {};
        bool ok;

        if (o->has_failed || !o->sql || !g_str_has_prefix(o->sql, prefix))
                return !o->has_failed;
        make = g_strconcat("CREATE TEMP TRIGGER ", o->sql + strlen(prefix), NULL);
        if (!run(db, make))
                return true;
        ok = compiles(check, fires, &failure) || is_of_no_event(&failure);
        (void) run(db, drop);
        if (ok)
                return true;
        o->has_failed = true;
        what = g_strdup_printf("the trigger \"%s\" of \"%s\" fails, and so does each %s that fires it", o->name, o->table,
                               event);
        report_failure(check, o->type, what, failure.error, failure.message);
        return false;
}

typedef struct Unnamed {
        char *what, *message;
        ErrorNumber error;
} Unnamed;

static void unnamed_free(void *data) {
        Unnamed *unnamed = data;

        g_free(unnamed->what);
        g_free(unnamed->message);
        g_free(unnamed);
}

static Unnamed *unnamed_new(const GPtrArray *triggers, const char *event, CompileFailure *failure) {
        const char *table = ((const Object *) triggers->pdata[0])->table;
        g_autoptr(GString) names = g_string_new(NULL);
        Unnamed *unnamed = g_new(Unnamed, 1);

        for (guint i = 0; i < triggers->len; i++)
                g_string_append_printf(names, "%s\"%s\"", i == 0 ? "" : ", ", ((const Object *) triggers->pdata[i])->name);
        *unnamed = (Unnamed) {
                .what = g_strdup_printf("each %s of \"%s\" fails in one of its triggers (%s)", event, table, names->str),
                .message = g_steal_pointer(&failure->message),
                .error = failure->error,
        };
        return unnamed;
}

/* The triggers of one event of a table or view. A failure for which no trigger can be named goes to `unnamed`: it may be one
 * of a trigger of another table, which these fire. */
static void check_event(Check *check, GPtrArray *triggers, const char *event, const char *fires, GPtrArray *unnamed) {
        g_auto(CompileFailure) failure = {}, without = {};
        bool named = false, alone;

        if (compiles(check, fires, &failure) || is_of_no_event(&failure))
                return;
        set_triggers(check, false);
        alone = compiles(check, fires, &without) || is_of_no_event(&without);
        for (guint i = 0; alone && i < triggers->len; i++)
                named = !check_trigger(check, triggers->pdata[i], event, fires) || named;
        set_triggers(check, true);
        if (named)
                (void) g_hash_table_add(check->failures, g_steal_pointer(&failure.message));
        else if (alone) /* otherwise the table has its finding */
                g_ptr_array_add(unnamed, unnamed_new(triggers, event, &failure));
}

static void check_triggers(Check *check, GPtrArray *triggers, GPtrArray *unnamed) {
        const char *table = ((const Object *) triggers->pdata[0])->table;
        g_autofree char *insert = sql_of("INSERT INTO main.\"%w\" DEFAULT VALUES", table);
        g_autofree char *update = update_of(check, table), *delete = sql_of(DELETE, table);

        check_event(check, triggers, "INSERT", insert, unnamed);
        check_event(check, triggers, "UPDATE", update, unnamed);
        check_event(check, triggers, "DELETE", delete, unnamed);
}

static void check_all_triggers(Check *check) {
        g_autoptr(GPtrArray) unnamed = g_ptr_array_new_with_free_func(unnamed_free);

        for (guint i = 0; i < check->objects->len; i++) {
                Object *o = check->objects->pdata[i];
                g_autofree char *key = g_str_equal(o->type, "trigger") ? g_ascii_strdown(o->table, -1) : NULL;
                GPtrArray *triggers = key ? g_hash_table_lookup(check->triggers, key) : NULL;

                if (triggers && triggers->pdata[0] == o)
                        check_triggers(check, triggers, unnamed);
        }
        for (guint i = 0; i < unnamed->len; i++) {
                const Unnamed *one = unnamed->pdata[i];

                if (!g_hash_table_contains(check->failures, one->message))
                        report_failure(check, "trigger", one->what, one->error, one->message);
        }
}

/* ---- The child: the schema ------------------------------------------------------------------------------------------ */

static void object_free(void *data) {
        Object *o = data;

        g_free(o->type);
        g_free(o->name);
        g_free(o->table);
        g_free(o->sql);
        g_free(o);
}

static char *text_of(sqlite3_stmt *stmt, int column) {
        return g_strdup((const char *) sqlite3_column_text(stmt, column));
}

static void add_object(Check *check, sqlite3_stmt *row) {
        Object *o = g_new(Object, 1);
        g_autofree char *key = NULL;
        GPtrArray *triggers;

        *o = (Object) { .type = text_of(row, 0), .name = text_of(row, 1), .table = text_of(row, 2), .sql = text_of(row, 3) };
        if (!o->type || !o->name || !o->table) {
                object_free(o);
                return;
        }
        g_ptr_array_add(check->objects, o);
        if (!g_str_equal(o->type, "trigger"))
                return;
        key = g_ascii_strdown(o->table, -1);
        triggers = g_hash_table_lookup(check->triggers, key);
        if (!triggers) {
                triggers = g_ptr_array_new();
                (void) g_hash_table_insert(check->triggers, g_steal_pointer(&key), triggers);
        }
        g_ptr_array_add(triggers, o);
}

static bool list_objects(Check *check) {
        sqlite3_stmt *stmt = NULL;
        int rc = sqlite3_prepare_v2(check->connection.file, "SELECT type, name, tbl_name, sql FROM main.sqlite_schema", -1,
                                    &stmt, NULL);

        for (rc = rc == SQLITE_OK ? step_first(check, stmt) : rc; rc == SQLITE_ROW; rc = sqlite3_step(stmt))
                add_object(check, stmt);
        (void) sqlite3_finalize(stmt);
        if (rc != SQLITE_DONE && !check->locked)
                report(check, 'w', "its schema was not checked: %s", sqlite3_errstr(rc));
        return rc == SQLITE_DONE;
}

static int schema_version(Check *check) {
        sqlite3_stmt *stmt = NULL;
        int version = -1;

        if (sqlite3_prepare_v2(check->connection.file, "PRAGMA main.schema_version", -1, &stmt, NULL) == SQLITE_OK &&
            step_first(check, stmt) == SQLITE_ROW)
                version = sqlite3_column_int(stmt, 0);
        (void) sqlite3_finalize(stmt);
        return version;
}

static Object *find_table(Check *check, const char *name) {
        for (guint i = 0; i < check->objects->len; i++) {
                Object *o = check->objects->pdata[i];

                if ((g_str_equal(o->type, "table") || is_view(o)) && sqlite3_stricmp(o->name, name) == 0)
                        return o;
        }
        return NULL;
}

static void check_exposed(Check *check) {
        for (char **name = check->d->expose; *name; name++) {
                Object *o = find_table(check, *name);

                if (o)
                        check_table(check, o);
                else
                        report(check, 'w', "Expose=%s: the database has no table or view of this name, so it is left out",
                               *name);
        }
}

/* Indexes come first, because an INSERT compiles them, too. */
static void check_all(Check *check) {
        for (guint i = 0; i < check->objects->len; i++) {
                Object *o = check->objects->pdata[i];

                if (g_str_equal(o->type, "index"))
                        check_index(check, o);
        }
        set_triggers(check, false);
        for (guint i = 0; i < check->objects->len; i++) {
                Object *o = check->objects->pdata[i];

                if ((g_str_equal(o->type, "table") || is_view(o)) && !is_own(o))
                        check_table(check, o);
        }
        set_triggers(check, true);
        check_all_triggers(check);
}

static void forget_findings(Check *check) {
        (void) !ftruncate(check->fd, 0);
        (void) lseek(check->fd, 0, SEEK_SET);
        check->n_findings = 0;
}

static bool has_changed(Check *check, int version) {
        return !check->locked && schema_version(check) != version && !check->locked;
}

/* Once, or again if another program has changed the schema meanwhile. */
static void check_schema(Check *check) {
        bool listed = false;

        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
                int version = schema_version(check);

                check->objects = g_ptr_array_new_with_free_func(object_free);
                check->triggers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify) g_ptr_array_unref);
                check->collations = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
                check->failures = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
                check->indexes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
                forget_findings(check);
                listed = list_objects(check);
                if (listed && *check->d->expose)
                        check_exposed(check);
                else if (listed)
                        check_all(check);
                g_hash_table_unref(check->failures);
                g_hash_table_unref(check->collations);
                g_hash_table_unref(check->indexes);
                g_hash_table_unref(check->triggers);
                g_ptr_array_unref(check->objects);
                if (!has_changed(check, version))
                        break;
        }
        if (check->n_findings > FINDINGS_MAX) {
                guint more = check->n_findings - FINDINGS_MAX;

                check->n_findings = 0;
                report(check, 'w', "%u more objects fail", more);
        }
        if (check->locked) {
                check->n_findings = 0;
                report(check, 'w', "%s checked, because other programs kept the file locked: try again",
                       listed ? "not all of its schema was" : "its schema was not");
        }
}

static bool open_connection(Check *check, SqlError *error) {
        bool ok;

        do {
                sql_error_done(error);
                ok = sqlite_connection_open(&check->connection, &check->setup, NULL, NULL, error);
        } while (!ok && error->error == ERROR_BUSY && wait_for_lock(check));
        return ok;
}

static int open_memory(Check *check) {
        int rc = sqlite3_open_v2(":memory:", &check->memory,
                                 SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, VFS_NAME);

        if (rc == SQLITE_OK) /* as SQLite does when it reads a schema */
                rc = sqlite3_db_config(check->memory, SQLITE_DBCONFIG_DQS_DDL, 1, NULL);
        return rc == SQLITE_OK ? access_install(check->memory, &check->setup, &check->memory_access) : rc;
}

static void check_file(Check *check) {
        SqlError error = SQL_ERROR_INIT;

        if (sqlite3_initialize() != SQLITE_OK || vfs_register(check->setup.temp_size_max) != SQLITE_OK)
                report(check, 'w', "its schema was not checked: SQLite cannot be set up");
        else if (open_connection(check, &error)) {
                /* as on a connection that writes */
                (void) sqlite3_db_config(check->connection.file, SQLITE_DBCONFIG_ENABLE_FKEY,
                                         database_config_is_writable(check->d) && check->d->foreign_keys, NULL);
                if (open_memory(check) == SQLITE_OK)
                        check_schema(check);
                else
                        report(check, 'w', "its schema was not checked: SQLite cannot be set up");
                (void) sqlite3_close(check->memory);
                sqlite_connection_close(&check->connection);
        } else if (error.error == ERROR_CORRUPT || error.error == ERROR_SQL)
                report(check, 'e', "no statement can be compiled, because SQLite cannot read the schema: %s: correct or "
                       "drop that object with the program that made it", sql_error_as_failure(&error).message);
        else
                report(check, 'w', "its schema was not checked: %s", sql_error_as_failure(&error).message);
        sql_error_done(&error);
}

static int be_child(void *userdata) {
        Check *check = userdata;
        const struct itimerval limit = { .it_value = { .tv_sec = CPU_SECONDS_MAX } };

        (void) setitimer(ITIMER_PROF, &limit, NULL); /* whose signal ends the process */
        check_file(check);
        return 0;
}

/* ---- The caller ----------------------------------------------------------------------------------------------------- */

static void take_report(int fd, const char *subject, GPtrArray *findings) {
        g_autofree char *text = g_malloc(REPORT_SIZE_MAX);
        ssize_t size = pread(fd, text, REPORT_SIZE_MAX, 0);

        for (char *at = text, *end; size > 0 && at < text + size; at = end + 1) {
                end = memchr(at, 0, (size_t) (text + size - at));
                if (!end) /* it was cut off */
                        break;
                if (*at)
                        findings_add(findings, *at == 'e' ? FINDING_ERROR : FINDING_WARNING, subject, "%s", at + 1);
        }
}

void schema_check(const DatabaseConfig *d, const Limits *limits, bool at_rest, const ServiceUser *user,
                  GPtrArray *findings) {
        Check check = {
                .d = d,
                .setup = {
                        .path = d->path,
                        .immutable = d->immutable || at_rest,
                        .heap_size_max = limits->heap_max,
                        .temp_size_max = limits->temp_size_max / limits->workers_max,
                        .wal_size_max = d->wal_size_max,
                        .sql_size_max = (uint32_t) limits->sql_size_max,
                        .expression_depth_max = (uint32_t) limits->expression_depth_max,
                        .compound_selects_max = (uint32_t) limits->compound_selects_max,
                        .vdbe_ops_max = (uint32_t) limits->vdbe_ops_max,
                        .variables_max = (uint32_t) limits->variables_max,
                },
                .fd = memfd_create("findings", MFD_CLOEXEC),
        };
        ServiceChild child = { .user = user, .kept_fd = check.fd, .heap_max = limits->heap_max };
        int r = check.fd < 0 ? -errno : service_child_run(&child, be_child, &check);

        if (r == -EINTR)
                (void) raise(SIGINT);
        if (check.fd >= 0)
                take_report(check.fd, d->name, findings);
        if (r != 0)
                findings_add(findings, FINDING_WARNING, d->name, "not all of its schema was checked: the process that does "
                             "so ended, which it also does after %d s of processor time", CPU_SECONDS_MAX);
        if (check.fd >= 0)
                (void) close(check.fd);
}
