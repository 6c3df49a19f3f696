/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any SQL, with any parameters, through a worker's whole server side (worker-side.h): limits, authorizer, the file or its
 * exposed part, bind, step, pages, and decoded again. Besides the checks of worker-side.h, the database must be
 * unchanged, and no result may contain hidden data.
 *
 * An input is SQL, and after a first NUL, if there is one: flags, page size, limits, how the pipe is read, parameters. So
 * a file of SQL is an input. Bytes alone get no further than the tokenizer: sql-mutator.c changes words.
 *
 * About: daemon/worker/sqlite/access.c daemon/worker/sqlite/bind.c daemon/worker/sqlite/sqlite-connection.c
 * About: daemon/worker/core/statement-frames.c daemon/worker/exposed/exposed*.c daemon/worker/core/page-writer.c
 * About: daemon/worker/sqlite/pool.c daemon/worker/core/job*.c
 * About: daemon/worker/core/supervisor-job.c daemon/worker/core/sql-error.c daemon/worker/sqlite/vfs.c
 * About: daemon/worker/sqlite/describe-statement.c daemon/worker/sqlite/sqlite-compile.c
 * About: daemon/worker/sqlite/sqlite-error.c daemon/worker/sqlite/sqlite-rows.c
 */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "dbus-interfaces/wire/sqlipc-page.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/replay.h"
#include "tests/rigs/worker-side.h"

#define BOUND_MAX 12u

enum {
        FLAG_EXPOSED = 1,
        FLAG_WAL = 2,
        FLAG_DESCRIBE = 4,
        FLAG_SMALL_PIPE = 8,
        FLAG_SLOW_READER = 16,
        FLAG_READER_LEAVES = 32,
        FLAG_CANCEL = 64,
        FLAG_NUL = 128, /* the SQL is all of the input */
};

typedef struct Case {
        uint8_t flags;
        JobSpec job;
        WorkerSideReader reader;
        uint8_t parameters[8192];
} Case;

static char path[2][128];          /* without and with WAL */
static struct stat as_made[2];
static char hidden[32];            /* only in hidden data: another text each time */

static const char schema[] =
        "CREATE TABLE album(id INTEGER PRIMARY KEY, title TEXT COLLATE NOCASE, price REAL, cover BLOB, n NUMERIC);"
        "CREATE TABLE track(album INT, no INT, name TEXT, len INT AS (length(name)), PRIMARY KEY(album, no)) WITHOUT ROWID;"
        "CREATE INDEX by_title ON album(title, price);"
        "CREATE INDEX partial ON album(price) WHERE price > 5;"
        "CREATE VIEW cheap AS SELECT id, title FROM album WHERE price < 5;"
        "CREATE VIEW sums AS SELECT album, count(*) AS n, group_concat(name) AS names FROM track GROUP BY album;"
        "CREATE VIRTUAL TABLE words USING fts5(body);"
        "CREATE VIRTUAL TABLE box USING rtree(id, x0, x1);"
        "CREATE TABLE secret(password TEXT, title TEXT);"
        "CREATE TRIGGER no_more BEFORE INSERT ON album BEGIN SELECT raise(ABORT, 'no'); END;";

static const char rows[] =
        "DROP TRIGGER no_more;"
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 40)"
        " INSERT INTO album SELECT x, 'Title ' || x, x * 0.75, CASE x % 3 WHEN 0 THEN zeroblob(x * 50) END,"
        " CASE x % 4 WHEN 0 THEN -9223372036854775808 WHEN 1 THEN '12' WHEN 2 THEN NULL ELSE 1e308 END FROM c;"
        "INSERT INTO album VALUES(100, CAST(x'41004280ff' AS TEXT), -0.0, x'', 9e999), (101, '', NULL, zeroblob(9000), 'x');"
        "INSERT INTO track(album, no, name) SELECT a.id, b.id, 'track ' || b.title FROM album a, album b"
        " WHERE a.id < 8 AND b.id < 6;"
        "INSERT INTO words SELECT title || ' one two' FROM album; INSERT INTO box SELECT id, id, id + 2 FROM album;";

static void hide(sqlite3 *db) {
        char sql[128];

        snprintf(sql, sizeof sql, "INSERT INTO secret VALUES('%s', 'Title 3')", hidden);
        demand(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
}

static void execute(sqlite3 *db, const char *sql) {
        demand(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
}

/* The one in WAL mode keeps a log, as after a writer that was killed. */
static void make_database(const char *folder, unsigned i) {
        sqlite3 *db;

        snprintf(path[i], sizeof path[i], "%s/%s.db", folder, i == 0 ? "plain" : "wal");
        demand(sqlite3_open(path[i], &db) == SQLITE_OK);
        if (i == 1)
                execute(db, "PRAGMA journal_mode = WAL");
        execute(db, schema);
        execute(db, rows);
        hide(db);
        demand(sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL) == SQLITE_OK);
        demand(sqlite3_close(db) == SQLITE_OK);
        demand(stat(path[i], &as_made[i]) == 0);
}

static void set_up(void) {
        static bool done;
        sqlite3_uint64 number;

        if (done)
                return;
        done = true;
        const char *folder = worker_side_init();
        sqlite3_randomness(sizeof number, &number);
        snprintf(hidden, sizeof hidden, "%016llx-hidden", (unsigned long long) number);
        make_database(folder, 0);
        make_database(folder, 1);
}

/* ---- parameters: a row of bytes, in the page format ---- */

typedef struct Row {
        uint8_t types[BOUND_MAX], data[4096];
        uint32_t ends[BOUND_MAX];
        unsigned n;
        uint32_t fill;
} Row;

static void add_bytes(Row *row, ValueType type, const void *bytes, size_t size) {
        memcpy(row->data + row->fill, bytes, size);
        row->fill += (uint32_t) size;
        if (type == VALUE_TEXT)
                row->data[row->fill++] = 0;
        row->types[row->n] = (uint8_t) type;
        row->ends[row->n++] = row->fill;
}

static void add_value(Row *row, Input *in, bool is_name) {
        uint8_t kind = input_byte(in);
        const uint8_t *bytes;
        uint8_t number[8] = {};
        size_t size;

        if (is_name) {
                bytes = input_bytes(in, kind % 16, &size);
                add_bytes(row, VALUE_TEXT, bytes, size);
                return;
        }
        switch (kind % 5) {
        case 0:
                add_bytes(row, VALUE_NULL, number, 0);
                return;
        case 1:
        case 2:
                bytes = input_bytes(in, 8, &size);
                if (size > 0)
                        memcpy(number, bytes, size);
                add_bytes(row, kind % 5 == 1 ? VALUE_INTEGER : VALUE_REAL, number, 8);
                return;
        default:
                bytes = input_bytes(in, kind / 5, &size);
                add_bytes(row, kind % 5 == 3 ? VALUE_TEXT : VALUE_BLOB, bytes, size);
        }
}

static void set_parameters(Case *c, Input *in) {
        uint8_t counts = input_byte(in);
        uint8_t *at = c->parameters;
        Row row = {};

        c->job.n_positional = counts % 8;
        c->job.n_named = counts / 8 % 3;
        while (row.n < c->job.n_positional + 2 * c->job.n_named)
                add_value(&row, in, row.n >= c->job.n_positional && (row.n - c->job.n_positional) % 2 == 0);
        memcpy(at, row.types, row.n);
        at += row.n;
        for (unsigned i = 0; i < row.n; i++, at += 4)
                store_le32(at, row.ends[i]);
        memcpy(at, row.data, row.fill);
        c->job.parameters = c->parameters;
        c->job.parameters_size = row.n > 0 ? (size_t) (at - c->parameters) + row.fill : 0;
}

/* ---- a case ---- */

static void read_case(Case *c, const uint8_t *bytes, size_t size) {
        static const uint64_t row_sizes[] = { 64 << 20, 100, 5000, 20000 }, row_counts[] = { UINT64_MAX, 0, 3, 100 },
                              result_sizes[] = { UINT64_C(1) << 40, 1, 4096, 70000 };
        const uint8_t *end = size > 0 ? memchr(bytes, 0, size) : NULL;
        size_t sql_size = end ? (size_t) (end - bytes) : size;
        Input in = { .bytes = bytes + sql_size, .size = size - sql_size };
        uint8_t limits;

        (void) input_byte(&in);
        *c = (Case) { .flags = input_byte(&in) };
        c->job = (JobSpec) {
                .sql = (const char *) bytes,
                .sql_size = c->flags & FLAG_NUL ? size : sql_size,
                .describe = c->flags & FLAG_DESCRIBE,
                .page_size = UINT32_C(4096) << input_byte(&in) % 9,
        };
        limits = input_byte(&in);
        c->job.row_size_max = row_sizes[limits % 4];
        c->job.result_rows_max = row_counts[limits / 4 % 4];
        c->job.result_size_max = result_sizes[limits / 16 % 4];
        c->reader = (WorkerSideReader) {
                .pipe_size = c->flags & FLAG_SMALL_PIPE ? 4096 : 0,
                .at_once = c->flags & FLAG_SLOW_READER ? 61 + 16 * (size_t) input_byte(&in) : 0, /* fewer: minutes */
                .leaves_after = c->flags & FLAG_READER_LEAVES ? 1 + 64 * (size_t) input_byte(&in) : 0,
                .cancel_after = c->flags & FLAG_CANCEL ? 1 + input_byte(&in) % 8u : 0,
        };
        set_parameters(c, &in);
}

static void check_unchanged(unsigned i) {
        struct stat now;

        demand(stat(path[i], &now) == 0);
        demand(now.st_size == as_made[i].st_size && now.st_mtim.tv_sec == as_made[i].st_mtim.tv_sec &&
               now.st_mtim.tv_nsec == as_made[i].st_mtim.tv_nsec);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
        static const char *const names[] = { "album", "TRACK", "cheap", "sums", "words", "missing" };
        Bytes exposed[sizeof names / sizeof *names];
        WorkerSideOutcome first, second;
        Case c;

        set_up();
        read_case(&c, bytes, size);
        const unsigned which = c.flags & FLAG_WAL ? 1 : 0;
        Setup setup = worker_side_setup(path[which]);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                exposed[i] = (Bytes) { .data = names[i], .size = strlen(names[i]) };
        if (c.flags & FLAG_EXPOSED) {
                setup.exposed = exposed;
                setup.n_exposed = sizeof names / sizeof *names;
                worker_side_forbid(hidden);
        } else
                worker_side_forbid(NULL);
        worker_side_open(&setup);
        first = worker_side_prepare(&c.job);
        second = worker_side_run(&c.job, &c.reader);
        demand(first.error == ERROR_NONE || second.error != ERROR_NONE); /* what does not compile does not run */
        (void) worker_side_run(&c.job, &c.reader); /* compiled already, on a connection that was used */
        worker_side_close();
        check_unchanged(which);
        return 0;
}
