/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Records what this process does to a database, its journal and its log: every write, truncation, creation, deletion and
 * sync, between SQLite and the C library. Syncs are recorded and then skipped, so a test does not wait for the disk. Or it
 * has one of these calls fail. Tests only.
 */
#ifndef SQLIPC_TESTS_RELIABILITY_POWER_RECORDER_H
#define SQLIPC_TESTS_RELIABILITY_POWER_RECORDER_H

#include <glib.h>
#include <stdint.h>

/* The names that matter after a power failure. SQLite makes a new "-shm" whenever the last process has ended. */
typedef enum DiskName {
        DISK_DATABASE,
        DISK_JOURNAL,
        DISK_WAL,
        DISK_N_NAMES,
} DiskName;

typedef enum DiskAction {
        DISK_WRITE,
        DISK_TRUNCATE,
        DISK_SYNC,        /* of one file */
        DISK_CREATE,
        DISK_DELETE,
        DISK_SYNC_FOLDER, /* of creations and deletions */
} DiskAction;

typedef struct DiskEvent {
        DiskAction action;
        DiskName name;
        uint64_t offset;  /* the new size, of a truncation */
        GBytes *bytes;    /* of a write; owned by the recorder */
} DiskEvent;

extern const char *const disk_suffixes[DISK_N_NAMES];

/* Starts to record what happens to this database. It must exist; its journal and log must not. */
void recorder_start(const char *database);
void recorder_stop(void);

/* Sets the socket whose messages recorder_sent() counts; -1: none. */
void recorder_set_socket(int fd);

/* All events since recorder_start(). */
const GArray *recorder_events(void);

/* The number of events before each message that was sent to the socket: uint64_t. */
const GArray *recorder_sent(void);

/* Frees the events. */
void recorder_done(void);

/* ---- calls that fail ---- */

/* Calls that change a file of the database, map its "-shm", or make a change durable. */
typedef enum CallKind {
        CALL_WRITE,
        CALL_TRUNCATE,
        CALL_SYNC,
        CALL_UNLINK,
        CALL_MAP,
} CallKind;

typedef enum CallManner {
        CALL_UNDONE,  /* it has no effect */
        CALL_HALF,    /* half of the bytes are written; the call for the rest fails */
        CALL_DONE,    /* it has its effect, and an error all the same */
} CallManner;

typedef struct FileCall {
        CallKind kind;
        char file;    /* 'd'atabase, its 'j'ournal, 'l'og, log 'i'ndex, or 'f'older */
        size_t size;  /* of a write */
} FileCall;

/* From now on the calls for this database are counted. The `n`th, if there are so many, fails once with `error`; then
 * `on_failure` is called, before SQLite learns of it. 0: none fails. */
void recorder_fail(const char *database, uint64_t n, int error, CallManner manner, void (*on_failure)(void));

/* The calls are counted no more. */
void recorder_fail_stop(void);

/* All calls that were counted: FileCall. */
const GArray *recorder_calls(void);

/* Frees them. */
void recorder_fail_done(void);

#endif
