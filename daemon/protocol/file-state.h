/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state that the last commit has left in a database file. Pure. Two states of one file tell if there was a commit
 * between them, no matter which program made it. A worker reads the state through SQLite's own descriptors; the supervisor
 * compares.
 *
 *      field      rollback journal (header of the database file)   WAL (header of the wal-index)
 *      counter    file change counter                              iChange: commits since the index was made
 *      epoch      version-valid-for                                aSalt[0]: grows by one each time the log starts again
 *      size       pages of the database                            mxFrame: frames of the log
 *      content    0                                                aFrameCksum: depends on all frames
 *
 * A server has one, too: `content` is a hash of the transactions that a new reader would see (pg-snapshot.h). That of
 * rqlite is like that of a rollback journal: counter and content are the index of the cluster's log.
 */
#ifndef SQLIPC_DAEMON_PROTOCOL_FILE_STATE_H
#define SQLIPC_DAEMON_PROTOCOL_FILE_STATE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum FileStateKind {
        FILE_STATE_UNKNOWN, /* it could not be read */
        FILE_STATE_ROLLBACK,
        FILE_STATE_WAL,
        FILE_STATE_SERVER,
} FileStateKind;

typedef struct FileState {
        uint32_t kind;      /* FileStateKind */
        uint32_t counter, epoch, size;
        uint64_t content;
} FileState;

/* A checkpoint starts the log again, often more than once before the next look. */
#define FILE_STATE_RESTARTS_MAX 65536u

/* True if no commit lies between the two states. A checkpoint is none. False if one of them is not known. */
static inline bool file_state_same(const FileState *before, const FileState *after) {
        if (before->kind == FILE_STATE_UNKNOWN || before->kind != after->kind || before->counter != after->counter)
                return false;
        if (before->epoch == after->epoch && before->size == after->size && before->content == after->content)
                return true;
        return after->kind == FILE_STATE_WAL && after->size == 0 &&
               after->epoch - before->epoch - 1 < FILE_STATE_RESTARTS_MAX;
}

#endif
