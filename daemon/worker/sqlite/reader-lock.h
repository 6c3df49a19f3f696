/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Keeps the locks of readers from blocking writers of a database in rollback mode for ever (I6).
 *
 * A reader holds SHARED until its transaction ends. A writer that wants to commit takes PENDING and waits until no process
 * holds SHARED. PENDING keeps new readers out, but only those of other processes: within one process SQLite counts SHARED,
 * and takes the file's lock once for all connections. So runs of one worker that overlap could keep a writer waiting for
 * ever. Here a connection does not join the lock of another connection while a writer waits: it gets SQLITE_BUSY, as it
 * would in a process of its own.
 *
 * In WAL mode a reader keeps no writer out, and this module only notes its place in the log.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_READER_LOCK_H
#define SQLIPC_DAEMON_WORKER_SQLITE_READER_LOCK_H

#include <sqlite3.h>
#include <stdbool.h>

typedef struct ReaderLock {
        const sqlite3_io_methods *below;
        sqlite3_io_methods methods; /* a copy of those below, except for calls that take or release a lock */
        int fd;                     /* SQLite's own, borrowed: another one must not be opened (I12) */
        bool held;                  /* this file has a lock that keeps writers out */
        int mark;                   /* WAL: the mark in the index of the snapshot that is read; -1: none is read */
} ReaderLock;

/* `file` was just opened by SQLite as `fd`. Its state is `offset` bytes after the start of `file`, the same offset for all
 * files of the process, and need not be initialised. Closing the file ends it. */
void reader_lock_attach(sqlite3_file *file, int offset, int fd);

/* Returns the state of a file for which reader_lock_attach() was called. */
const ReaderLock *reader_lock_of(sqlite3_file *file);

/* True if another file of the worker has such a lock. */
bool reader_lock_others_hold(const ReaderLock *lock);

/* True if a writer of another process waits for readers to finish. Makes a system call. */
bool reader_lock_writer_waits(const ReaderLock *lock);

#endif
