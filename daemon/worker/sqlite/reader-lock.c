/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See reader-lock.h.
 */
#include "daemon/worker/sqlite/reader-lock.h"

#include <fcntl.h>
#include <unistd.h>

#define PENDING_BYTE 0x40000000 /* of SQLite's file format */
#define FIRST_READ_LOCK 3       /* of the wal-index; a reader has a shared lock of one of the marks from here on */

static int state_offset;
static unsigned n_held; /* by all files of the worker */

static ReaderLock *state_of(sqlite3_file *file) {
        return (ReaderLock *) (void *) ((char *) file + state_offset);
}

const ReaderLock *reader_lock_of(sqlite3_file *file) {
        return state_of(file);
}

static void set_held(ReaderLock *lock, bool held) {
        if (held != lock->held)
                n_held += held ? 1 : -1u;
        lock->held = held;
}

bool reader_lock_others_hold(const ReaderLock *lock) {
        return n_held > (lock->held ? 1 : 0);
}

/* Asks the kernel about a lock like that of a reader, which conflicts only with a writer's. */
bool reader_lock_writer_waits(const ReaderLock *lock) {
        struct flock pending = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = PENDING_BYTE, .l_len = 1 };

        return fcntl(lock->fd, F_GETLK, &pending) == 0 && pending.l_type == F_WRLCK;
}

static int take(sqlite3_file *file, int level) {
        ReaderLock *lock = state_of(file);
        int rc;

        if (!lock->held && n_held > 0 && reader_lock_writer_waits(lock))
                return SQLITE_BUSY;
        rc = lock->below->xLock(file, level);
        if (rc == SQLITE_OK)
                set_held(lock, true);
        return rc;
}

static int give_back(sqlite3_file *file, int level) {
        ReaderLock *lock = state_of(file);

        if (level == SQLITE_LOCK_NONE)
                set_held(lock, false);
        return lock->below->xUnlock(file, level);
}

/* The database is in WAL mode: SHARED is held as long as the connection, and keeps no writer out. */
static int lock_log(sqlite3_file *file, int first, int n, int flags) {
        ReaderLock *lock = state_of(file);
        int rc = lock->below->xShmLock(file, first, n, flags);

        set_held(lock, false);
        if (rc == SQLITE_OK && (flags & SQLITE_SHM_SHARED) && first >= FIRST_READ_LOCK)
                lock->mark = (flags & SQLITE_SHM_LOCK) ? first - FIRST_READ_LOCK : -1;
        return rc;
}

static int close_file(sqlite3_file *file) {
        ReaderLock *lock = state_of(file);

        set_held(lock, false);
        return lock->below->xClose(file);
}

void reader_lock_attach(sqlite3_file *file, int offset, int fd) {
        ReaderLock *lock;

        state_offset = offset;
        lock = state_of(file);
        *lock = (ReaderLock) { .below = file->pMethods, .methods = *file->pMethods, .fd = fd, .mark = -1 };
        lock->methods.xLock = take;
        lock->methods.xUnlock = give_back;
        lock->methods.xShmLock = lock_log;
        lock->methods.xClose = close_file;
        file->pMethods = &lock->methods;
}
