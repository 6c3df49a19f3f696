/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The databases that the client of a pin has attached: published ones, by their names, to be read.
 *
 * The name in ATTACH may be an expression, which only SQLite evaluates. So while the statement runs, each name that SQLite
 * opens is one that the client wrote (vfs_set_find_name()), and the supervisor says which file it means, if the client may
 * read it. It is asked when the statement has met a name without an answer. The statement is Busy then, and runs again.
 *
 * The files are opened by the file rules (path.h, file-names.h), and never to be written.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_ATTACHED_H
#define SQLIPC_DAEMON_WORKER_SQLITE_ATTACHED_H

#include <stdbool.h>

#include "daemon/worker/core/engine.h"
#include "daemon/worker/sqlite/access.h"
#include "daemon/worker/sqlite/file-names.h"

#define ATTACHED_MAX 10 /* SQLITE_MAX_ATTACHED */

typedef struct AttachedFile AttachedFile;

/* Of a connection; zero: nothing is attached. */
typedef struct AttachedSet {
        AttachedFile *files;    /* owned; the newest is the first */
        bool has_opened;        /* the last step has opened that one */
        char wanted[ATTACH_NAME_SIZE_MAX + 1]; /* the name that the last ATTACH has met without an answer; empty: none */
        char *name;             /* owned: of the database of the answer; NULL: there is none */
        char *path;             /* owned: of its file; NULL: `refusal` says why the client may not attach it */
        bool never_changes;     /* Immutable= */
        SqlError refusal;
        bool is_stuck;          /* a database that must not be there could not be detached: the connection must be closed */
} AttachedSet;

/* Keeps the answer if it is for the wanted name. Without memory it is forgotten, and asked for again. */
void attached_answer(AttachedSet *set, const Attach *answer);

/* Steps ATTACH or DETACH. Returns SQLite's result code. `error` is set if the reason is not SQLite's: Busy without a code,
 * if the supervisor must be asked; what it has refused; FileMissing, CannotOpen. attached_settle() must follow. */
int attached_step(AttachedSet *set, sqlite3 *db, Access *access, sqlite3_stmt *stmt, SqlError *error);

/* Where the file is that the last step has opened, also if it has failed after that. NULL: it has opened none. */
const FilePlace *attached_opened(const AttachedSet *set);

/* Forgets the files that SQLite has closed. */
void attached_settle(AttachedSet *set, sqlite3 *db);

/* Has SQLite read the schemas again that other programs have changed, under its own limits. */
void attached_look(const AttachedSet *set, sqlite3 *db);

/* True if none of the files was replaced by another one. */
bool attached_are_current(const AttachedSet *set);

/* As those of sqlite-connection.h, for any of the files. */
bool attached_keep_writers_out(const AttachedSet *set);
bool attached_keep_log(const AttachedSet *set);
bool attached_writer_waits(const AttachedSet *set, uint64_t log_size_max);

/* The connection is closed. */
void attached_done(AttachedSet *set);

#endif
