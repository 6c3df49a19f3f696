/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker's server side in this process: a job as it comes from the supervisor, through protocol, pool, compiler, run and
 * page encoder, into a pipe that is read with the page decoder. No process, no loop, no sandbox, so that an input takes a
 * millisecond. For fuzz targets.
 *
 * For any input, this demands (and aborts otherwise):
 *   - the reports are those of protocol.h, in its order: [STARTED,] ENDED once, DRAINED once at most and after it;
 *   - what is in the pipe decodes, is of the run's number, and ends in END or ERROR, which say what ENDED said; before
 *     STARTED nothing goes down the pipe;
 *   - nothing is opened but the database, what belongs beside it, and temporary files; nothing is written but temporary
 *     files and, if the worker owns the database, its -wal and -shm;
 *   - no descriptor stays open.
 *
 * Time is bound by opcodes, not by a clock, so that an input is the same each time; memory by SQLite's heap limit.
 */
#ifndef SQLIPC_TESTS_RIGS_WORKER_SIDE_H
#define SQLIPC_TESTS_RIGS_WORKER_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/protocol/protocol.h"
#include "dbus-interfaces/sqlipc-errors.h"

/* How the reader of the pipe behaves. */
typedef struct WorkerSideReader {
        size_t pipe_size;      /* 0: as the kernel makes it */
        size_t at_once;        /* what it reads each time the pipe is full; 0: all */
        size_t leaves_after;   /* bytes, then it closes the pipe; 0: never */
        unsigned cancel_after; /* turns, then the run is cancelled; 0: never */
} WorkerSideReader;

typedef struct WorkerSideOutcome {
        ErrorNumber error;
        uint64_t n_rows, n_bytes;
        uint64_t sum;          /* over all columns and values */
} WorkerSideOutcome;

/* Once: sets SQLite up, with a folder for databases that goes when the program ends. Returns the folder. */
const char *worker_side_init(void);

/* The limits that hold, on the database at `path`. */
Setup worker_side_setup(const char *path);

/* From here to worker_side_close() there is one pool of connections. `setup` is borrowed until then. */
void worker_side_open(const Setup *setup);
void worker_side_close(void);

/* From now on, no value and no message may hold this text; NULL: any may. */
void worker_side_forbid(const char *text);

/* Compiles the job, or runs it into a pipe. */
WorkerSideOutcome worker_side_prepare(const JobSpec *spec);
WorkerSideOutcome worker_side_run(const JobSpec *spec, const WorkerSideReader *reader);

#endif
