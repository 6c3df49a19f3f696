/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. SQLite asks for a file page by page, a system call for each 4 KiB, and a scan or a long value asks for one
 * page behind the other. Here such a series is read in larger pieces, from which SQLite's reads are served. What does not go
 * on where the last read ended, or soon behind, is read as it is asked for.
 *
 * A piece is believed only as long as SQLite holds the locks under which it was read: a writer changes no page that a reader
 * may still ask the file for. In rollback mode the lock is that of the file; in WAL mode those of the "-shm", under which a
 * checkpoint writes only pages that the reader takes out of the log. So each call that takes or gives back one forgets it.
 *
 * There is one buffer for all files of the worker: runs take turns by the page of a result, so what it costs to lose it is
 * small, and memory does not grow with connections.
 */
#ifndef READ_AHEAD_H
#define READ_AHEAD_H

#include <sqlite3.h>

#define READ_AHEAD_SIZE_MAX 65536 /* the largest piece: more gained nothing */

typedef struct ReadAhead {
        const sqlite3_io_methods *real;
        sqlite3_io_methods methods; /* the real ones, but for those that are looked at */
        sqlite3_int64 next;         /* where a series would go on; -1: nowhere */
        int piece;                  /* how much it would read then */
} ReadAhead;

/* `file`, just opened, is read through `state` from now on, which lies `offset` bytes behind it, the same for all files of
 * the process, and is not initialised. Closing the file ends it. */
void read_ahead_attach(sqlite3_file *file, int offset);

#endif
