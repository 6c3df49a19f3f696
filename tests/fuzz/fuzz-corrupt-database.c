/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A database file with wrong bytes, read through a worker's whole server side (worker-side.h): rows or an error, nothing
 * else. The database is not written to, whatever its bytes make SQLite believe.
 *
 * An input is a kind of database, flags, and changes to its file, its log, or its journal:
 *
 *      kind, flags, then for each change: file, three bytes of offset, size, as many bytes
 *
 * A change at the file's end makes it longer; one of the file TRUNCATE cuts the database or its log. With FLAG_WHOLE what
 * follows the flags is the database file itself. With FLAG_SUMS the log's checksums are those of its changed frames:
 * else all that a change does to a log is to end it there.
 *
 * About: daemon/worker/sqlite/sqlite-connection.c daemon/worker/exposed/exposed*.c daemon/worker/sqlite/path.c
 * About: daemon/worker/sqlite/pool.c daemon/worker/sqlite/read-ahead.c daemon/worker/core/job*.c
 * About: daemon/worker/sqlite/sqlite-error.c daemon/worker/sqlite/vfs.c
 * About: daemon/worker/sqlite/sqlite-rows.c
 */
#include <endian.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dbus-interfaces/wire/sqlipc-page.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/replay.h"
#include "tests/rigs/worker-side.h"

#define N_ELEMENTS(array) (sizeof(array) / sizeof *(array))
#define FILE_MAX ((size_t) 512 * 1024)
#define BEHIND_MAX 64 /* a change begins so far behind the file's end at most */
#define LOG_HEADER_SIZE ((size_t) 32)
#define LOG_FRAME_SIZE ((size_t) 24)
#define FOREIGN 65534 /* the user nobody, whose files the worker may read, but not write */

enum {
        FLAG_WHOLE = 1,
        FLAG_EXPOSED = 2,
        FLAG_IMMUTABLE = 4,
        FLAG_FOREIGN = 8, /* the files are another user's */
        FLAG_NO_LOG = 16, /* -wal is missing */
        FLAG_SUMS = 32,
};

enum { DATABASE_FILE, LOG_FILE, JOURNAL_FILE, TRUNCATE, N_FILES };

typedef struct Image {
        uint8_t *bytes;
        size_t size;
} Image;

/* Page size, and other properties. */
static const struct {
        const char *pragmas;
        bool wal;
} kinds[] = {
        { "PRAGMA page_size = 512", false },
        { "PRAGMA page_size = 1024; PRAGMA encoding = 'UTF-16le'", false },
        { "PRAGMA page_size = 4096; PRAGMA auto_vacuum = FULL", false },
        { "PRAGMA page_size = 8192", false },
        { "PRAGMA page_size = 512; PRAGMA journal_mode = WAL", true },
        { "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL", true },
};

static const char schema[] =
        "CREATE TABLE t(i INTEGER PRIMARY KEY, a TEXT COLLATE NOCASE, b, c REAL);"
        "CREATE TABLE w(a TEXT, b INT, c BLOB, PRIMARY KEY(b, a)) WITHOUT ROWID;"
        "CREATE INDEX by_a ON t(a, b); CREATE INDEX by_c ON t(c) WHERE c > 1; CREATE UNIQUE INDEX by_expression ON t(i + 1);"
        "CREATE VIEW v AS SELECT t.a, w.c FROM t JOIN w ON w.b = t.i;"
        "CREATE VIRTUAL TABLE f USING fts5(body); CREATE VIRTUAL TABLE r USING rtree(id, x0, x1);"
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 30) INSERT INTO t"
        " SELECT x, 'text ' || x, CASE x % 3 WHEN 0 THEN zeroblob(x * 40) WHEN 1 THEN x ELSE NULL END, x / 3.0 FROM n;"
        "INSERT INTO w SELECT a, i, b FROM t; INSERT INTO f SELECT a || ' one two' FROM t;"
        "INSERT INTO r SELECT i, i, i + 1 FROM t;"
        "DELETE FROM t WHERE i % 7 = 0;";

/* Possible queries of a client: each way through a b-tree, and integrity checks. */
static const char *const queries[] = {
        "SELECT * FROM t",
        "SELECT * FROM w ORDER BY b DESC",
        "SELECT a, b FROM t INDEXED BY by_a WHERE a > 'text 2'",
        "SELECT i, c FROM t WHERE c > 1 ORDER BY c",
        "SELECT * FROM t WHERE i IN (3, 9, 29, -1, 9223372036854775807)",
        "SELECT * FROM w WHERE b = 5 AND a = 'text 5'",
        "SELECT * FROM v",
        "SELECT max(i), count(*), group_concat(a), total(c), max(length(b)) FROM t",
        "SELECT count(*) FROM w",
        "SELECT * FROM f WHERE f MATCH 'text AND 1*' ORDER BY rank",
        "SELECT * FROM f",
        "SELECT * FROM r WHERE x0 > 3 AND x1 < 20",
        "SELECT * FROM sqlite_schema",
        "PRAGMA integrity_check",
        "PRAGMA table_info(t)",
};

static char path[128];
static Image databases[N_ELEMENTS(kinds)], logs[N_ELEMENTS(kinds)];

static const char *name_of(unsigned file) {
        static const char *const suffixes[] = { "", "-wal", "-journal", "-shm" };
        static char name[160];

        snprintf(name, sizeof name, "%s%s", path, suffixes[file]);
        return name;
}

static void read_image(Image *ret, unsigned which) {
        int fd = open(name_of(which), O_RDONLY | O_CLOEXEC);
        struct stat st;

        demand(fd >= 0 && fstat(fd, &st) == 0);
        ret->size = (size_t) st.st_size;
        ret->bytes = malloc(ret->size);
        demand(ret->bytes && read(fd, ret->bytes, ret->size) == (ssize_t) ret->size);
        close(fd);
}

static void remove_files(void) {
        for (unsigned i = 0; i < N_FILES; i++)
                (void) unlink(name_of(i)); /* not all of them are there */
}

static void make_database(size_t kind) {
        sqlite3 *db;

        demand(sqlite3_open(path, &db) == SQLITE_OK);
        demand(sqlite3_exec(db, kinds[kind].pragmas, NULL, NULL, NULL) == SQLITE_OK);
        demand(sqlite3_exec(db, schema, NULL, NULL, NULL) == SQLITE_OK);
        if (kinds[kind].wal)
                read_image(&logs[kind], LOG_FILE);
        demand(sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL) == SQLITE_OK);
        demand(sqlite3_close(db) == SQLITE_OK);
        read_image(&databases[kind], DATABASE_FILE);
        remove_files();
}

static void set_up(void) {
        if (path[0])
                return;
        snprintf(path, sizeof path, "%s/corrupt.db", worker_side_init());
        for (size_t i = 0; i < N_ELEMENTS(kinds); i++)
                make_database(i);
}

/* ---- the files of an input ---- */

typedef struct Files {
        struct {
                uint8_t bytes[FILE_MAX];
                size_t size;
                bool there;
        } files[TRUNCATE];
} Files;

static void put(Files *f, unsigned file, size_t offset, const uint8_t *bytes, size_t size) {
        if (size > FILE_MAX || offset > FILE_MAX - size)
                return;
        if (f->files[file].size < offset)
                memset(f->files[file].bytes + f->files[file].size, 0, offset - f->files[file].size);
        if (size > 0)
                memcpy(f->files[file].bytes + offset, bytes, size);
        if (f->files[file].size < offset + size)
                f->files[file].size = offset + size;
        f->files[file].there = true;
}

static void change(Files *f, Input *in) {
        uint8_t which = input_byte(in) % N_FILES;
        size_t offset = (size_t) input_number(in, 3), size = input_byte(in), cut = size % 2;
        const uint8_t *bytes = input_bytes(in, size, &size);

        if (which != TRUNCATE)
                put(f, which, offset % (f->files[which].size + BEHIND_MAX), bytes, size);
        else
                f->files[cut].size = offset % (f->files[cut].size + 1);
}

/* As SQLite's file format has it: pairs of 32-bit numbers, added up in turn. */
static void add_up(uint32_t sums[2], const uint8_t *bytes, size_t size, bool big_endian) {
        for (size_t i = 0; i + 8 <= size; i += 8) {
                uint32_t x[2];

                memcpy(x, bytes + i, sizeof x);
                sums[0] += (big_endian ? be32toh(x[0]) : le32toh(x[0])) + sums[1];
                sums[1] += (big_endian ? be32toh(x[1]) : le32toh(x[1])) + sums[0];
        }
}

static void store_sums(uint8_t *at, const uint32_t sums[2]) {
        const uint32_t stored[2] = { htobe32(sums[0]), htobe32(sums[1]) };

        memcpy(at, stored, sizeof stored);
}

static void correct_log(uint8_t *log, size_t size) {
        uint32_t sums[2] = {}, page_size;

        if (size < LOG_HEADER_SIZE)
                return;
        memcpy(&page_size, log + 8, sizeof page_size);
        page_size = be32toh(page_size);
        if (page_size < 512 || page_size > 65536)
                return;
        const bool big_endian = log[3] & 1;
        const size_t frame_size = LOG_FRAME_SIZE + page_size;
        add_up(sums, log, 24, big_endian);
        store_sums(log + 24, sums);
        for (size_t at = LOG_HEADER_SIZE; size - at >= frame_size; at += frame_size) {
                memcpy(log + at + 8, log + 16, 8); /* the salt */
                add_up(sums, log + at, 8, big_endian);
                add_up(sums, log + at + LOG_FRAME_SIZE, page_size, big_endian);
                store_sums(log + at + 16, sums);
        }
}

static void read_files(Files *f, size_t kind, uint8_t flags, Input *in) {
        for (unsigned i = 0; i < TRUNCATE; i++) {
                f->files[i].size = 0;
                f->files[i].there = false;
        }
        if (flags & FLAG_WHOLE) {
                put(f, DATABASE_FILE, 0, in->bytes, in->size);
                return;
        }
        put(f, DATABASE_FILE, 0, databases[kind].bytes, databases[kind].size);
        if (kinds[kind].wal && !(flags & FLAG_NO_LOG))
                put(f, LOG_FILE, 0, logs[kind].bytes, logs[kind].size);
        while (in->size > 0)
                change(f, in);
        if (flags & FLAG_SUMS)
                correct_log(f->files[LOG_FILE].bytes, f->files[LOG_FILE].size);
}

static void write_files(const Files *f, bool foreign) {
        for (unsigned i = 0; i < TRUNCATE; i++) {
                int fd;

                if (!f->files[i].there)
                        continue;
                fd = open(name_of(i), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
                demand(fd >= 0 && write(fd, f->files[i].bytes, f->files[i].size) == (ssize_t) f->files[i].size);
                demand(!foreign || fchown(fd, FOREIGN, FOREIGN) == 0);
                close(fd);
        }
}

static void check_unchanged(const Files *f) {
        static uint8_t now[FILE_MAX];
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        demand(fd >= 0 && read(fd, now, sizeof now) == (ssize_t) f->files[DATABASE_FILE].size);
        demand(memcmp(now, f->files[DATABASE_FILE].bytes, f->files[DATABASE_FILE].size) == 0);
        close(fd);
}

/* ---- queries ---- */

static void ask(void) {
        for (size_t i = 0; i < N_ELEMENTS(queries); i++) {
                const JobSpec job = {
                        .sql = queries[i],
                        .sql_size = strlen(queries[i]),
                        .describe = i % 2,
                        .page_size = SQLIPC_PAGE_SIZE_MIN,
                        .row_size_max = 1 << 20,
                        .result_rows_max = 1000,
                        .result_size_max = 1 << 20,
                };

                (void) worker_side_run(&job, &(WorkerSideReader) {});
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
        static const char *const names[] = { "t", "w", "v", "f", "sqlite_schema" };
        static Files files;
        Input in = { .bytes = bytes, .size = size };
        Bytes exposed[N_ELEMENTS(names)];

        set_up();
        const size_t kind = input_byte(&in) % N_ELEMENTS(kinds);
        const uint8_t flags = input_byte(&in);
        const bool foreign = (flags & FLAG_FOREIGN) && geteuid() == 0;
        Setup setup = worker_side_setup(path);
        setup.immutable = flags & FLAG_IMMUTABLE;
        for (size_t i = 0; i < N_ELEMENTS(names); i++)
                exposed[i] = (Bytes) { .data = names[i], .size = strlen(names[i]) };
        if (flags & FLAG_EXPOSED) {
                setup.exposed = exposed;
                setup.n_exposed = N_ELEMENTS(names);
        }
        read_files(&files, kind, flags, &in);
        write_files(&files, foreign);
        worker_side_open(&setup);
        ask();
        worker_side_close();
        check_unchanged(&files);
        remove_files();
        return 0;
}

#ifdef WITH_FUZZING_ENGINE
/* One more change, mostly at an effective place: heads of pages, of the database's pages of 512 bytes and more, with a
 * number that has a meaning. The engine's own mutations do the rest. */
static size_t add_change(uint8_t *bytes, size_t size, size_t size_max, uint32_t random) {
        static const uint8_t numbers[] = { 0, 1, 2, 5, 10, 13, 0x7f, 0x80, 0xfe, 0xff };
        const uint32_t offset = (random >> 3) % 256 * 512 + (random >> 11) % 24;
        const uint8_t value = numbers[(random >> 16) % N_ELEMENTS(numbers)];
        const uint8_t more[] = { random % 8 < 5 ? DATABASE_FILE : LOG_FILE, (uint8_t) (offset >> 16),
                                 (uint8_t) (offset >> 8), (uint8_t) offset, 2, value,
                                 numbers[(random >> 20) % N_ELEMENTS(numbers)] };

        if (size < 2 || size_max - size < sizeof more || (bytes[1] & FLAG_WHOLE))
                return LLVMFuzzerMutate(bytes, size, size_max);
        memcpy(bytes + size, more, sizeof more);
        return size + sizeof more;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t size_max, unsigned seed) {
        const uint32_t random = (uint32_t) (seed * UINT64_C(2654435761) >> 8);

        return seed % 3 == 0 ? add_change(bytes, size, size_max, random) : LLVMFuzzerMutate(bytes, size, size_max);
}
#endif
