/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The names by which SQLite opens the files of a database.
 *
 * SQLite opens the database, its "-wal", "-shm" and "-journal" by name, at moments of its own choice. Between a check of the
 * path and such a call, and between any two of these calls, the owner of a directory on the way can exchange that directory
 * for a symbolic link (renameat2() with RENAME_EXCHANGE) and so have another file opened. SQLite therefore never learns the
 * path. It gets a name that exists nowhere, and each system call with that name becomes one relative to the directory
 * descriptor that was checked (path.h), with a single component that is not followed if it is a link.
 *
 * open() never waits here: not for the other end of a FIFO, and not for the holder of a lease (fcntl(2), F_SETLEASE) to give
 * it back. Only regular files are opened.
 *
 * SQLite's "unix" VFS asks for these system calls through a table that xSetSystemCall() changes. That table belongs to the
 * process, and so does the state here.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_FILE_NAMES_H
#define SQLIPC_DAEMON_WORKER_SQLITE_FILE_NAMES_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/worker/sqlite/commit-point.h"
#include "daemon/worker/sqlite/path.h"

#define FILE_NAME_SIZE 48 /* size of the longest name for SQLite, including the NUL */

/* A database's files, while SQLite may name them. */
typedef struct FilePlace {
        struct FilePlace *next;
        uint64_t number;
        FoundFile found;
        bool own;    /* the worker's user owns the database file */
        bool writes; /* the connection that writes has this place; set by the caller, as the next two */
        bool never_changes; /* Immutable= */
        bool is_attached; /* beside the database of a connection, which may write; this one is only read */
        CommitPoint commit; /* if it writes */
        int log_index_fd; /* SQLite's own of the "-shm", borrowed; 0: it has opened none for this place */
} FilePlace;

/* Why SQLite could not open a file, or write to it. SQLite has one code for all reasons why it cannot open, and another one
 * for all reasons why it cannot write. */
typedef enum FileTrouble {
        FILE_TROUBLE_NONE,
        FILE_TROUBLE_IRREGULAR, /* it is not a regular file: a FIFO, a link or a directory, for example */
        FILE_TROUBLE_LEASED,    /* another program has a lease on it */
        FILE_TROUBLE_REPLACED,  /* it is not the file that was checked */
        FILE_TROUBLE_READ_ONLY, /* its file system is mounted read-only */
        FILE_TROUBLE_TOO_LARGE, /* it has reached RLIMIT_FSIZE, or the largest size of its file system */
} FileTrouble;

/* Replaces the system calls of SQLite's VFS with those of this module. Must be called once. Returns an SQLite result
 * code. */
int file_names_install(sqlite3_vfs *unix_vfs);

/* Takes `found` over, and writes the name for SQLite. The place must not move in memory until file_place_remove(). */
void file_place_add(FilePlace *place, FoundFile found, char ret_name[static FILE_NAME_SIZE]);

/* Accepts a place that was never added, if it is zero. */
void file_place_remove(FilePlace *place);

/* Finds the place of a name that SQLite passes on. NULL: it is no such name. */
FilePlace *file_place_find(const char *name);

/* True if a name that SQLite passes on is that of a journal. */
bool file_name_is_journal(const char *name);

/* True if the worker's user owns the database file and the folder that it is in. Otherwise the files that a writer makes
 * beside it could lock its owner out (I12). */
bool file_place_may_be_written(const FilePlace *place);

/* True if the service may read the database (`suffix` "") or a file beside it ("-wal"). */
bool file_place_readable(const FilePlace *place, const char *suffix);

/* Returns the descriptor that the VFS has just opened for a database, and tells if it is the file that was checked. Must be
 * called right after xOpen, before SQLite takes a lock. */
int file_names_opened(const FilePlace *place, bool *ret_is_checked);

/* Returns and clears the first trouble since the last call. SQLite can do without some files if their file system is
 * read-only, so other trouble counts more. */
FileTrouble file_names_trouble(void);

/* Notes why the kernel refused a call for a database file or a file beside it. Those that are replaced need not be noted. */
void file_names_note_errno(int error);

/* True if a disk, or the quota of the worker's user on it, was full since the last call. SQLite has the same code for that
 * and for the size that a database may have, and others if it cannot create a file. */
bool file_names_disk_was_full(void);

#endif
