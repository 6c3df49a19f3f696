/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Restricts what SQLite can do with files: a thin layer over its own "unix" VFS.
 *
 *   - All temporary files together count against one total (temp-space.h). A write past it fails with SQLITE_FULL;
 *     vfs_temp_limit_was_hit() tells that from a full disk.
 *   - Beside a database that the worker's user does not own nothing is created, deleted or opened for writing (I12): a -shm
 *     of ours would lock the owner out. The "-wal" and the "-shm" are opened read-only. Only the connection that writes
 *     deletes files.
 *   - A database is a place that was checked, never a path (file-names.h).
 *   - SQLite never sleeps.
 *   - Sequential reads of a database are made in larger pieces (read-ahead.h).
 *   - The lock of a database is watched for waiting writers (reader-lock.h).
 *   - The log and the journal are watched for the moment from which on a transaction exists (commit-point.h).
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_VFS_H
#define SQLIPC_DAEMON_WORKER_SQLITE_VFS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/worker/core/engine.h"
#include "daemon/worker/sqlite/file-names.h"

#define VFS_NAME "sqlipc"

/* Registers the VFS. `temp_size_max`: bytes in all temporary files together. Must be called once, after
 * sqlite3_initialize(). Returns an SQLite result code. */
int vfs_register(uint64_t temp_size_max);

/* Finds the file of the name in ATTACH: writes its own name for SQLite (file-names.h). Returns an SQLite result code. */
typedef int (*VfsFindName)(const char *name, char ret[static FILE_NAME_SIZE], void *userdata);

/* From now on each name of a database is one for `find`, not one of file-names.h. NULL: none is. */
void vfs_set_find_name(VfsFindName find, void *userdata);

/* True if a write was refused because of the total since the last call. */
bool vfs_temp_limit_was_hit(void);

/* True if the disk of temporary files was full since the last call. */
bool vfs_temp_disk_was_full(void);

/* True if a temporary file could not be created since the last call. SQLite's code for that is the same as for an
 * unreadable database. */
bool vfs_temp_open_failed(void);

/* From now on `progress` is called before each read of a temporary file that is opened after this call. The read fails if
 * the result is not 0. NULL: none is called. */
void vfs_set_temp_progress(EngineProgress progress, void *userdata);

/* From now on until vfs_set_temp_progress(), writes to these files are dropped: they are not read again. */
void vfs_end_temp_writes(void);

#endif
