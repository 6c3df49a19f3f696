/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. What the lock of a reader costs writers of a database in rollback mode (I6).
 *
 * A reader holds SHARED until its transaction ends. A writer that wants to commit takes PENDING and waits until no process
 * holds SHARED. PENDING keeps new readers out, but only those of other processes: within one process SQLite counts SHARED,
 * and takes the file's lock once for all connections. So runs of one worker that overlap could keep a writer waiting for
 * ever. Here a connection does not join the lock of another one while a writer waits: it is SQLITE_BUSY, as it would be in a
 * process of its own.
 *
 * In WAL mode a reader keeps no writer out, and nothing here applies.
 */
#ifndef READER_LOCK_H
#define READER_LOCK_H

#include <sqlite3.h>
#include <stdbool.h>

typedef struct ReaderLock {
        const sqlite3_io_methods *below;
        sqlite3_io_methods methods; /* those below, except for calls that take or give back a lock */
        int fd;                     /* SQLite's own, borrowed: another one must not be opened (I12) */
        bool held;
} ReaderLock;

/* `file` has just been opened by SQLite as `fd`. Its state lies `offset` bytes behind it, the same for all files of the
 * process, and is not initialised. Closing the file ends it. */
void reader_lock_attach(sqlite3_file *file, int offset, int fd);

/* The state of a file that it was attached to. */
const ReaderLock *reader_lock_of(sqlite3_file *file);

/* Whether a writer of another process waits for readers to finish. A system call. */
bool reader_lock_writer_waits(const ReaderLock *lock);

#endif
