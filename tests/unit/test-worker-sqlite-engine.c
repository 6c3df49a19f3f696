/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SQLite as an engine: the part of its interface that no job uses yet. */
#include <glib.h>
#include <glib/gstdio.h>
#include <sqlite3.h>

#include "daemon/worker/sqlite/sqlite-engine.h"

static const char schema[] =
        "CREATE TABLE album(id INTEGER PRIMARY KEY, title);"
        "CREATE TABLE track(id INTEGER PRIMARY KEY, album, name);"
        "CREATE TABLE hidden(x);"
        "CREATE VIEW pairs AS SELECT title, name FROM album JOIN track ON album.id = track.album;";

typedef struct Fixture {
        char *folder, *path;
        Setup setup;
        EnginePool *pool;
        EngineConnection *connection;
        SqlError error;
} Fixture;

static int go_on(void *userdata) {
        (void) userdata;
        return 0;
}

static void set_up(Fixture *f, Bytes *exposed, uint32_t n_exposed) {
        sqlite3 *db;

        *f = (Fixture) { .folder = g_dir_make_tmp("sqlipc-engine-XXXXXX", NULL), .error = SQL_ERROR_INIT };
        f->path = g_build_filename(f->folder, "music.sqlite", NULL);
        g_assert_cmpint(sqlite3_open(f->path, &db), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(db, schema, NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_close(db), ==, SQLITE_OK);
        f->setup = (Setup) {
                .path = f->path,
                .heap_size_max = 64 << 20,
                .temp_size_max = 64 << 20,
                .sql_size_max = 10000,
                .expression_depth_max = 100,
                .compound_selects_max = 10,
                .vdbe_ops_max = 100000,
                .variables_max = 100,
                .n_exposed = n_exposed,
                .exposed = exposed,
        };
        g_assert_cmpint(sqlite_engine.start(&f->setup, go_on, NULL, &f->pool), ==, 0);
        g_assert_true(sqlite_engine.connect(f->pool, "", 0, NULL, &f->connection, &f->error));
}

static void tear_down(Fixture *f) {
        sqlite_engine.disconnect(f->pool, f->connection);
        sqlite_engine.stop(f->pool);
        g_assert_cmpint(g_unlink(f->path), ==, 0);
        g_assert_cmpint(g_rmdir(f->folder), ==, 0);
        g_free(f->path);
        g_free(f->folder);
}

static int compare(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* The tables that `sql` reads, in alphabetical order, with a blank between them. */
static char *read_by(Fixture *f, const char *sql) {
        EngineTables read = {}, written = {};
        EngineStatement *statement;
        g_autoptr(GString) names = g_string_new(NULL);

        g_assert_true(sqlite_engine.compile(f->connection, sql, strlen(sql), false, NULL, &statement, &f->error));
        g_assert_true(sqlite_engine.tables(statement, &read, &written, &f->error));
        g_assert_cmpuint(written.n, ==, 0);
        if (read.n > 0)
                qsort(read.names, read.n, sizeof *read.names, compare);
        for (size_t i = 0; i < read.n; i++)
                g_string_append_printf(names, "%s%s", i > 0 ? " " : "", read.names[i]);
        engine_tables_done(&read);
        engine_tables_done(&written);
        sqlite_engine.release(statement);
        return g_string_free(g_steal_pointer(&names), FALSE);
}

static void expect(Fixture *f, const char *sql, const char *tables) {
        g_autofree char *got = read_by(f, sql);

        g_assert_cmpstr(got, ==, tables);
}

static void test_tables(void) {
        Fixture f;

        set_up(&f, NULL, 0);
        expect(&f, "SELECT 1", "");
        expect(&f, "SELECT count(*) FROM album", "album");
        expect(&f, "SELECT name FROM track WHERE album IN (SELECT id FROM album) AND name IN (SELECT name FROM track)",
               "album track");
        expect(&f, "WITH c AS (SELECT * FROM hidden) SELECT * FROM c", "hidden");
        expect(&f, "SELECT * FROM pairs", "album pairs track");
        tear_down(&f);
}

/* The tables below an exposed view stay hidden. */
static void test_exposed_tables(void) {
        Bytes exposed[] = { { "pairs", 5 } };
        Fixture f;

        set_up(&f, exposed, 1);
        expect(&f, "SELECT * FROM pairs", "pairs");
        tear_down(&f);
}

int main(int argc, char **argv) {
        const Setup limits = { .heap_size_max = 64 << 20, .temp_size_max = 64 << 20 };

        g_test_init(&argc, &argv, NULL);
        g_assert_cmpint(sqlite_engine.init(&limits), ==, 0);
        g_test_add_func("/worker/sqlite-engine/tables", test_tables);
        g_test_add_func("/worker/sqlite-engine/exposed-tables", test_exposed_tables);
        return g_test_run();
}
