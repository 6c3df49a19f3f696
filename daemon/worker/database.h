/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. One connection to the one database of this worker: opened by the file rules (I12), limited, guarded.
 *
 * Only SQLite opens the file: a second open() and close() of ours would drop SQLite's POSIX locks (F_SETLK works per
 * process and inode), and a foreign write could then land under an open cursor. What must be known beforehand comes from
 * fstat() of an O_PATH descriptor (path.h), and SQLite opens that file and no other (file-names.h).
 */
#ifndef DATABASE_H
#define DATABASE_H

#include <stdbool.h>
#include <sys/types.h>

#include "access.h"
#include "exposed.h"
#include "file-names.h"
#include "reader-lock.h"
#include "sql-error.h"

typedef struct sqlite3_stmt sqlite3_stmt;

/* Which file a connection reads: a file put in its place is another. */
typedef struct FileIdentity {
        dev_t device;
        ino_t inode;
} FileIdentity;

static inline bool file_identity_equal(const FileIdentity *a, const FileIdentity *b) {
        return a->device == b->device && a->inode == b->inode;
}

typedef struct Database {
        sqlite3 *db;         /* what SQL of clients is compiled on: `file`, or what stands before it (exposed.h) */
        sqlite3 *file;       /* the connection to the file */
        bool opened;         /* the file itself, whatever became of those beside it */
        Exposed *exposed;    /* NULL: clients see all that the file has */
        sqlite3_stmt *probe; /* reads the schema's first row, and so its number */
        bool doubtful;       /* what cannot be right was read: some of it may be in SQLite's cache */
        bool held;           /* the probe stands on that row, and so keeps the read transaction */
        FilePlace place;     /* where SQLite finds the file, and those beside it */
        const ReaderLock *lock; /* of the file */
        FileIdentity identity;
        Access access;       /* of clients' SQL */
        Access file_access;  /* of ours, where clients have none on the file */
} Database;

/* Called by SQLite every 1,000 opcodes; non-zero interrupts the statement. */
typedef int (*ProgressHandler)(void *userdata);

/* Process-wide settings of SQLite; once, before anything else. Returns an SQLite result code. */
int database_setup_sqlite(const Setup *setup);

/* The file at setup->path now. This is cheap and follows links, so it can only tell that a connection is no longer to the
 * published file; which file to open is path_resolve()'s to find. False: FileMissing, CannotOpen. */
bool database_identify(const Setup *setup, FileIdentity *ret, SqlError *error);

/* Opens and reads the schema once, so that what is wrong with the files is known here and named: NeedsOwner, NeedsRecovery,
 * Corrupt, CannotOpen, FileMissing, Busy. `progress` is called with `userdata` from then on. */
bool database_open(Database *d, const Setup *setup, ProgressHandler progress, void *userdata, SqlError *error);

/* Closes; accepts one that did not open. Its statements must be finalized. */
void database_close(Database *d);

/* Before and after all that is done for one run. Where little is exposed, one transaction spans it, on a schema that is
 * the one known here: DATABASE_STALE if it is not, and this connection is of no use any more. */
typedef enum DatabaseBegin {
        DATABASE_BEGUN,
        DATABASE_STALE,
        DATABASE_FAILED, /* with an error, Busy for one */
} DatabaseBegin;
DatabaseBegin database_begin(Database *d, const Setup *setup, SqlError *error);
void database_end(Database *d);

/* One read transaction from here to database_let_go() or database_end(), for what follows. Where there can be none now each
 * statement has its own. One that is stepped meanwhile keeps it when it is let go. */
void database_hold(Database *d);
void database_let_go(Database *d);

/* Whether the schema is no longer the one that statements were compiled against, because another program changed it.
 * SQLite sees that when it steps a statement, but compiles, and describes, by what it knows. False where nothing can be
 * read now. The transaction in which it looked is held: a statement that is stepped next needs no other. */
bool database_schema_changed(Database *d);

/* Whether this connection now holds a lock that keeps writers out: it reads, and the database is in rollback mode. */
bool database_keeps_writers_out(const Database *d);

/* Whether a writer waits for that lock. A system call. */
bool database_writer_waits(const Database *d);

/* SQLite's failure `rc` on this database, with what this worker knows beyond the code: what the authorizer refused, why a
 * file could not be opened, whether temporary space ran out. Always false. */
bool database_fail(Database *d, const Setup *setup, int rc, size_t offset_base, SqlError *error);

#endif
