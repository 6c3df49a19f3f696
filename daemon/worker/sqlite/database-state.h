/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Reads the state of a database file (file-state.h), without SQL and through SQLite's own descriptors (I12):
 * in WAL mode from the wal-index that SQLite has mapped, else from the header of the file.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_DATABASE_STATE_H
#define SQLIPC_DAEMON_WORKER_SQLITE_DATABASE_STATE_H

#include <sqlite3.h>
#include <stdbool.h>

#include "daemon/worker/core/engine.h"

typedef struct DatabaseState {
        const sqlite3_io_methods *below;
        sqlite3_io_methods methods;  /* a copy of those below, except for calls that map the wal-index */
        int fd;                      /* SQLite's own, borrowed: another one must not be opened (I12) */
        const volatile void *index;  /* SQLite's own map of the start of the wal-index; NULL: the file is not in WAL mode */
} DatabaseState;

/* `file` was just opened by SQLite as `fd`. Its state is `offset` bytes after the start of `file`, the same offset for
 * all files of the process, and need not be initialised. */
void database_state_attach(sqlite3_file *file, int offset, int fd);

/* Reads the state. In rollback mode a lock must keep writers from committing meanwhile, or a commit was just made: a state
 * that a writer changes meanwhile is none that the file ever has. It stays UNKNOWN if it cannot be read. */
void database_state_read(sqlite3_file *file, FileState *ret);

/* The header of a file, in rollback mode. */
typedef struct DatabaseHeader {
        bool wal;          /* SQLite must open the log */
        uint32_t schema;   /* PRAGMA schema_version */
} DatabaseHeader;

/* Reads the header of the file. False: it cannot be read. */
bool database_state_header(sqlite3_file *file, DatabaseHeader *ret);

/* True if SQLite has mapped the wal-index. */
bool database_state_is_wal(sqlite3_file *file);

/* Returns the bytes of the log that cannot be written back to the file because of a reader with this mark in the wal-index.
 * 0: something else is in the way, or a checkpoint has not come so far. */
uint64_t database_state_log_behind(sqlite3_file *file, int mark);

/* 1: another process is changing the file or, in WAL mode, writing to the log, whose "-shm" SQLite has open as
 * `log_index_fd`. 0: none is. An error of fcntl(2), also if that descriptor is -1: it is not known. */
int database_state_is_changing(sqlite3_file *file, int log_index_fd);

#endif
