/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Notes when SQLite passes the commit point: from then on the transaction may exist, even if COMMIT fails. An
 * error of COMMIT before that point means that nothing was written.
 *
 *   - In WAL mode it is the last byte of the frame that has the commit mark (its header has a size that is not 0). If the
 *     transaction has spilled pages and changed them again, the frames after the first of those have no checksums then, and
 *     the point is the mark's header when it is written once more with its checksum.
 *   - In rollback mode it is the end of the journal, by which SQLite deletes it, truncates it, or overwrites its header with
 *     zeros. A rollback ends in the same way, but first SQLite asks for the size of the journal, which a commit never does.
 *     VACUUM makes its journal while it commits: that begins with zeros, too, until it is synced for the first time; and if
 *     that fails, SQLite deletes the journal without that question. So only the end of a complete header counts.
 *
 * A call that failed may have had its effect all the same, or the bytes were there already. So the file is read then, and if
 * it cannot be read, the point counts as passed.
 *
 * SQLite needs 32 KiB more of the "-shm" after each 4,096 frames, and asks for them only after the commit point. They are
 * mapped here before the mark is written; without them the write of the mark fails.
 *
 * SQLite 3.40 loses commits if a savepoint is taken back in which pages were spilled and changed again: it writes no
 * checksums from then on. At the commit it computes them only from the first changed frame on, and takes for that one the
 * frame from before the savepoint was taken back. So the transaction, and all later ones, do not exist once the log is
 * recovered. The missing checksums are written here, with the mark's header as the last one.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_COMMIT_POINT_H
#define SQLIPC_DAEMON_WORKER_SQLITE_COMMIT_POINT_H

#include <sqlite3.h>
#include <stdbool.h>

/* That of a connection which writes. All zeros are valid. */
typedef struct CommitPoint {
        sqlite3_file *database;   /* borrowed: its "-shm" is mapped */
        /* Of a statement that commits by itself: called before the commit point. False: the call of the VFS fails without
         * effect. In rollback mode SQLite leaves the journal then, and the next look at the file plays it back. */
        bool (*may_commit)(void *userdata); /* NULL: none */
        void *userdata;                     /* borrowed */
        bool commits;             /* COMMIT is under way */
        bool rolls_back;          /* it has failed, and SQLite rolls back */
        bool has_journal;         /* the header of the journal is complete */
        bool passed;
        bool has_mark;            /* the header that was written last has the mark */
        int page_size;            /* of the log; 0: not known */
        sqlite3_int64 read_at;    /* the last call read the frame there from the log; 0: it was another call */
        sqlite3_int64 page_at;    /* the page goes there whose header was written last; 0: it was written, too */
        sqlite3_int64 changed_at; /* the first frame whose page was written again, even if it was taken back; 0: none */
        sqlite3_int64 bare_at;    /* the first frame without a checksum; 0: none */
} CommitPoint;

/* State that is allocated beside a log or journal. */
typedef struct CommitFile {
        const sqlite3_io_methods *below;
        sqlite3_io_methods methods; /* a copy of those below, except for the calls that are watched */
        CommitPoint *point;         /* borrowed */
} CommitFile;

/* The file was just opened by SQLite, for a connection that writes. Its CommitFile is `offset` bytes after the start of
 * `file`, the same offset for all files of the process, and need not be initialised. */
void commit_point_attach_log(sqlite3_file *file, int offset, CommitPoint *point);
void commit_point_attach_journal(sqlite3_file *file, int offset, CommitPoint *point);

/* xDelete of `vfs` for the journal. */
int commit_point_delete_journal(CommitPoint *point, sqlite3_vfs *vfs, const char *name, int sync_directory);

/* A transaction begins. */
void commit_point_begin(CommitPoint *point);

/* COMMIT begins; COMMIT has ended: true if it passed the commit point. */
void commit_point_expect(CommitPoint *point);
bool commit_point_was_passed(CommitPoint *point);

#endif
