/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. SQLite reads a file page by page, with a system call for each 4 KiB, although a scan or a long value needs
 * many pages in sequence. This module reads such a sequence in larger pieces, and serves SQLite's reads from them. A read
 * that does not begin where the last one ended, or a little later, is passed on unchanged.
 *
 * A piece is valid only while SQLite holds the locks under which it was read: a writer changes no page that a reader may
 * still read from the file. In rollback mode the lock is that of the file. In WAL mode the locks are those of the "-shm",
 * under which a checkpoint writes only pages that the reader takes from the log. So each call that takes or releases a lock
 * drops the piece.
 *
 * There is one buffer for all files of the worker. Runs take turns by pages of their results, so to lose the buffer costs
 * little, and memory does not grow with the number of connections.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_READ_AHEAD_H
#define SQLIPC_DAEMON_WORKER_SQLITE_READ_AHEAD_H

#include <sqlite3.h>

#define READ_AHEAD_SIZE_MAX 65536 /* the largest piece: larger ones gained nothing */

typedef struct ReadAhead {
        const sqlite3_io_methods *real;
        sqlite3_io_methods methods; /* a copy of the real methods, in which some are replaced */
        sqlite3_int64 next;         /* offset at which a sequence would continue; -1: none */
        int piece;                  /* size of the last piece */
} ReadAhead;

/* From now on `file`, which was just opened, is read through its state. The state is `offset` bytes after the start of
 * `file`, the same offset for all files of the process, and need not be initialised. Closing the file ends it. */
void read_ahead_attach(sqlite3_file *file, int offset);

#endif
