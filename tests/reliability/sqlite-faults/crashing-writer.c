/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that writes to a database and dies in the middle: crashing-writer DATABASE JOURNAL-MODE CALL TORN
 *
 * Table t(id, version, filler) has the same version in all of its rows, and each transaction sets the next version. The
 * CALL-th call that changes a file (xWrite, xTruncate, xSync, xDelete) is the last action of this process. With TORN, half
 * of it is done if it is a write; otherwise it is not done at all. The program prints each version when it starts to write
 * it ("begin N") and when it is committed ("commit N"). Exit status: 0 if it survived, 9 if it died as planned, 1 for
 * anything else.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_VERSIONS 5
#define DIED 9

typedef struct DyingFile {
        const sqlite3_io_methods *real;
        sqlite3_io_methods methods;
} DyingFile;

static sqlite3_vfs *real_vfs;
static long n_left;
static int torn;

static const sqlite3_io_methods *real(sqlite3_file *file) {
        return ((DyingFile *) (void *) ((char *) file + real_vfs->szOsFile))->real;
}

static int file_write(sqlite3_file *file, const void *buffer, int size, sqlite3_int64 offset) {
        if (--n_left == 0) {
                if (torn)
                        (void) real(file)->xWrite(file, buffer, size / 2, offset);
                _exit(DIED);
        }
        return real(file)->xWrite(file, buffer, size, offset);
}

static void die_in_turn(void) {
        if (--n_left == 0)
                _exit(DIED);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size) {
        die_in_turn();
        return real(file)->xTruncate(file, size);
}

static int file_sync(sqlite3_file *file, int flags) {
        die_in_turn();
        return real(file)->xSync(file, flags);
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_directory) {
        (void) vfs;
        die_in_turn();
        return real_vfs->xDelete(real_vfs, name, sync_directory);
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags) {
        DyingFile *f = (DyingFile *) (void *) ((char *) file + real_vfs->szOsFile);
        int rc = real_vfs->xOpen(real_vfs, name, file, flags, ret_flags);

        (void) vfs;
        if (!file->pMethods)
                return rc;
        *f = (DyingFile) { .real = file->pMethods, .methods = *file->pMethods };
        f->methods.xWrite = file_write;
        f->methods.xTruncate = file_truncate;
        f->methods.xSync = file_sync;
        file->pMethods = &f->methods;
        return rc;
}

static int add_vfs(void) {
        static sqlite3_vfs vfs;

        real_vfs = sqlite3_vfs_find(NULL);
        vfs = *real_vfs;
        vfs.zName = "dying";
        vfs.szOsFile += (int) sizeof(DyingFile);
        vfs.xOpen = vfs_open;
        vfs.xDelete = vfs_delete;
        return sqlite3_vfs_register(&vfs, 1);
}

static void run(sqlite3 *db, const char *sql) {
        char *message = NULL;

        if (sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK)
                return;
        (void) fprintf(stderr, "crashing-writer: %s: %s\n", sql, message ?: "?");
        exit(1);
}

int main(int argc, char **argv) {
        char sql[256];
        sqlite3 *db;

        if (argc != 5 || add_vfs() != SQLITE_OK || sqlite3_open(argv[1], &db) != SQLITE_OK)
                return 1;
        (void) setvbuf(stdout, NULL, _IOLBF, 0);
        n_left = atol(argv[3]);
        torn = atoi(argv[4]);
        /* a small cache: pages of a transaction go into the file, or the log, before it is committed */
        run(db, "PRAGMA cache_size = 5");
        (void) snprintf(sql, sizeof sql, "PRAGMA journal_mode = %s", argv[2]);
        run(db, sql);
        run(db, "PRAGMA wal_autocheckpoint = 20");
        for (int version = 2; version <= N_VERSIONS; version++) {
                (void) printf("begin %d\n", version);
                (void) snprintf(sql, sizeof sql, "BEGIN; UPDATE t SET version = %d, filler = hex(zeroblob(%d)); COMMIT",
                                version, 400 + version);
                run(db, sql);
                (void) printf("commit %d\n", version);
        }
        return sqlite3_close(db) == SQLITE_OK ? 0 : 1;
}
