/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reading ahead: which parts of a file are requested, and that a piece that is out of date is never used. The file is in
 * memory, and counts the requests.
 */
#include <stdbool.h>
#include <stddef.h>

#include "daemon/worker/sqlite/read-ahead.h"
#include "tests/unit/test.h"

#define PAGE 4096
#define N_PAGES 256

typedef struct File {
        sqlite3_file base;
        unsigned char *bytes;
        sqlite3_int64 size;
        unsigned n_reads, n_closed, n_locked;
        int largest; /* of the reads */
        bool fail_large;
        ReadAhead ahead;
} File;

static int file_read(sqlite3_file *base, void *bytes, int amount, sqlite3_int64 offset) {
        File *f = (File *) base;
        sqlite3_int64 left = offset < f->size ? f->size - offset : 0;

        f->n_reads++;
        f->largest = amount > f->largest ? amount : f->largest;
        if (f->fail_large && amount > PAGE)
                return SQLITE_IOERR_READ;
        memset(bytes, 0, (size_t) amount);
        memcpy(bytes, f->bytes + offset, (size_t) (left < amount ? left : amount));
        return left < amount ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static int file_close(sqlite3_file *base) {
        ((File *) base)->n_closed++;
        return SQLITE_OK;
}

static int file_lock(sqlite3_file *base, int level) {
        (void) level;
        ((File *) base)->n_locked++;
        return SQLITE_OK;
}

static int file_shm_lock(sqlite3_file *base, int first, int n, int flags) {
        (void) first;
        (void) n;
        (void) flags;
        ((File *) base)->n_locked++;
        return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
        .iVersion = 2,
        .xClose = file_close,
        .xRead = file_read,
        .xLock = file_lock,
        .xUnlock = file_lock,
        .xShmLock = file_shm_lock,
};

/* Page `i` is full of `i` and `seed`. */
static void write_page(File *f, int i, unsigned char seed) {
        memset(f->bytes + (size_t) i * PAGE, (unsigned char) i ^ seed, PAGE);
}

static void file_open(File *f, unsigned char seed) {
        *f = (File) { .base.pMethods = &methods, .bytes = malloc(N_PAGES * PAGE), .size = N_PAGES * PAGE };
        CHECK(f->bytes);
        for (int i = 0; i < N_PAGES; i++)
                write_page(f, i, seed);
        read_ahead_attach(&f->base, offsetof(File, ahead));
}

static void file_done(File *f) {
        unsigned n_closed = f->n_closed;

        CHECK_INT(f->base.pMethods->xClose(&f->base), SQLITE_OK);
        CHECK_INT(f->n_closed, n_closed + 1);
        free(f->bytes);
}

static void expect_page(File *f, int i, unsigned char seed) {
        unsigned char page[PAGE];

        CHECK_INT(f->base.pMethods->xRead(&f->base, page, PAGE, (sqlite3_int64) i * PAGE), SQLITE_OK);
        for (int k = 0; k < PAGE; k++)
                CHECK_INT(page[k], (unsigned char) i ^ seed);
}

static void test_series(void) {
        File f;

        file_open(&f, 0);
        for (int i = 0; i < N_PAGES; i++)
                if (i % 50 != 7) /* a page of something else between */
                        expect_page(&f, i, 0);
        CHECK(f.n_reads < N_PAGES / 8);
        CHECK_INT(f.largest, READ_AHEAD_SIZE_MAX);
        file_done(&f);
}

/* A look-up reads what it needs, and a short scan not much more. */
static void test_no_series(void) {
        File f;

        file_open(&f, 0);
        for (int i = 0; i < 40; i++)
                expect_page(&f, i * 97 % N_PAGES, 0);
        CHECK_INT(f.n_reads, 40);
        CHECK_INT(f.largest, PAGE);
        for (int i = 100; i < 104; i++)
                expect_page(&f, i, 0);
        CHECK(f.largest <= 4 * PAGE);
        file_done(&f);
}

typedef int (*Forget)(sqlite3_file *file);

static int call_lock(sqlite3_file *file) { return file->pMethods->xLock(file, SQLITE_LOCK_SHARED); }
static int call_unlock(sqlite3_file *file) { return file->pMethods->xUnlock(file, SQLITE_LOCK_NONE); }
static int call_shm_lock(sqlite3_file *file) { return file->pMethods->xShmLock(file, 3, 1, SQLITE_SHM_UNLOCK); }

/* After a lock was taken or released, another program may have written. */
static void test_locks_forget(void) {
        static const Forget calls[] = { call_lock, call_unlock, call_shm_lock };

        for (size_t i = 0; i < N_ELEMENTS(calls); i++) {
                File f;

                file_open(&f, 0);
                for (int k = 0; k < 20; k++)
                        expect_page(&f, k, 0);
                CHECK(f.largest > PAGE);
                for (int k = 0; k < N_PAGES; k++)
                        write_page(&f, k, 0x55);
                expect_page(&f, 20, 0); /* it was read ahead: else this test shows nothing */
                CHECK_INT(calls[i](&f.base), SQLITE_OK);
                CHECK_INT(f.n_locked, 1);
                for (int k = 20; k < 40; k++)
                        expect_page(&f, k, 0x55);
                file_done(&f);
        }
}

/* The header of a file is looked at to see whether it changed. */
static void test_header(void) {
        unsigned char header[16];
        File f;

        file_open(&f, 0);
        for (int k = 0; k < 20; k++)
                expect_page(&f, k, 0);
        write_page(&f, 20, 0x55);
        CHECK_INT(f.base.pMethods->xRead(&f.base, header, sizeof header, 20 * PAGE + 24), SQLITE_OK);
        CHECK_INT(header[0], 20 ^ 0x55);
        expect_page(&f, 21, 0);
        file_done(&f);
}

/* Reads past the end of the file fail as without reading ahead, and an incomplete page is no page. */
static void test_end(void) {
        unsigned char page[PAGE];
        File f;

        file_open(&f, 0);
        f.size -= PAGE / 2;
        for (int i = 0; i < N_PAGES - 1; i++)
                expect_page(&f, i, 0);
        CHECK_INT(f.base.pMethods->xRead(&f.base, page, PAGE, f.size - PAGE / 2), SQLITE_CORRUPT);
        CHECK_INT(f.base.pMethods->xRead(&f.base, page, PAGE, f.size + PAGE / 2), SQLITE_CORRUPT);
        file_done(&f);
}

/* SQLite learns the page size from the first page: zeros follow a shorter one, but nothing is missing. */
static void test_first_page(void) {
        unsigned char page[PAGE];
        File f;

        file_open(&f, 0);
        f.size = 1024;
        f.bytes[16] = 1024 >> 8;
        CHECK_INT(f.base.pMethods->xRead(&f.base, page, PAGE, 0), SQLITE_IOERR_SHORT_READ);
        CHECK_INT(page[16], 1024 >> 8);
        CHECK_INT(page[1024], 0);
        f.bytes[16] = PAGE >> 8; /* of any file that is no database: SQLite says SQLITE_NOTADB */
        CHECK_INT(f.base.pMethods->xRead(&f.base, page, PAGE, 0), SQLITE_IOERR_SHORT_READ);
        memcpy(f.bytes, "SQLite format 3", 16);
        CHECK_INT(f.base.pMethods->xRead(&f.base, page, PAGE, 0), SQLITE_CORRUPT);
        f.size = 0;
        CHECK_INT(f.base.pMethods->xRead(&f.base, page, PAGE, 0), SQLITE_IOERR_SHORT_READ);
        file_done(&f);
}

static void test_failure(void) {
        File f;

        file_open(&f, 0);
        f.fail_large = true;
        for (int i = 0; i < N_PAGES; i++)
                expect_page(&f, i, 0);
        CHECK(f.largest > PAGE); /* it was tried */
        file_done(&f);
}

/* The buffer is one for all. */
static void test_two_files(void) {
        File a, b;

        file_open(&a, 0);
        file_open(&b, 0x33);
        for (int i = 0; i < N_PAGES; i++) {
                expect_page(&a, i, 0);
                if (i % 16 < 8)
                        expect_page(&b, i / 2, 0x33);
        }
        file_done(&b);
        for (int i = 0; i < N_PAGES; i++)
                expect_page(&a, i, 0);
        file_done(&a);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_series), TEST(test_no_series), TEST(test_locks_forget), TEST(test_header),
                TEST(test_end),    TEST(test_first_page), TEST(test_failure), TEST(test_two_files),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
