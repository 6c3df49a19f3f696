/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. What SQLite may do with files here: a thin layer over its own "unix" VFS.
 *
 *   - Temporary files count, all together, against one total (RLIMIT_FSIZE is per file, and kills). Past it a write gives
 *     SQLITE_FULL, and vfs_temp_limit_was_hit() tells that from a full disk.
 *   - Beside a database that is not ours nothing is created, deleted or opened for writing (I12): a -shm of ours would lock
 *     the owner out. The "-wal" is opened read-only, "readonly_shm" sees to the "-shm" (database.c).
 *   - A database is a place that was checked, never a path (file-names.h).
 *   - SQLite never sleeps.
 *   - A database is read in larger pieces where SQLite reads it in a row (read-ahead.h).
 *   - Its lock is watched for writers that wait (reader-lock.h).
 */
#ifndef VFS_H
#define VFS_H

#include <stdbool.h>
#include <stdint.h>

#define VFS_NAME "sqlipc"

/* Registers the VFS. To be called once, after sqlite3_initialize(). An SQLite result code. */
int vfs_register(uint64_t temp_size_max);

/* Whether a write was refused on account of the total since the last call. */
bool vfs_temp_limit_was_hit(void);

/* Whether a temporary file could not be made since the last call: SQLite's code for that is the one of an unreadable
 * database. */
bool vfs_temp_open_failed(void);

#endif
