/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The effects of time on a run that waits (run.h): a parked run frees memory, and ends after a while; a run
 * that met a lock tries again; a deadline ends both; a run that drains goes to the supervisor.
 */
#include <malloc.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "daemon/worker/clock.h"
#include "daemon/worker/run-report.h"
#include "daemon/worker/run.h"

#define SETTLE_USEC (20 * USEC_PER_MSEC) /* parked for so long: the reader is slow, and not just a little late */
#define ASK_USEC (50 * USEC_PER_MSEC)    /* between two checks for waiting writers */
#define KERNEL_PAGE ((uintptr_t) 4096)

/* Returns memory to the kernel: the part of the page that was sent, SQLite's cache, and memory that a sorter freed when its
 * rows went to a file. */
static void trim(Run *run) {
        uintptr_t start = (uintptr_t) run->page, end = (start + run->writer.sent) & ~(KERNEL_PAGE - 1);

        if (end > start)
                (void) madvise(run->page, end - start, MADV_DONTNEED);
        if (run->connection) {
                (void) sqlite3_db_release_memory(run->connection->database.db);
                (void) sqlite3_db_release_memory(run->connection->database.file);
        }
        (void) malloc_trim(0);
}

static uint64_t park_usec(const Run *run) {
        const Setup *setup = run->context->setup;
        bool rollback = run->connection && database_keeps_writers_out(&run->connection->database);

        return rollback ? setup->park_rollback_usec : setup->park_usec;
}

/* Called once the run has been parked for a while: frees memory, and tells the supervisor. */
static void settle(Run *run) {
        if (run->parked_said)
                return;
        trim(run);
        run->park_until_usec = run->parked_usec + park_usec(run);
        run_report_parked(run, true);
}

static uint64_t earlier(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

void run_set_busy(Run *run, int code) {
        if (code == SQLITE_PROTOCOL) /* a log that cannot be read for so long was left so by a writer that died */
                (void) sql_error_set(&run->error, ERROR_NEEDS_OWNER,
                                     "the \"-wal\" and \"-shm\" files of this WAL database are in a state that only a "
                                     "writer can repair. Open the database once with a program that may write to it.");
        else
                (void) sql_error_set(&run->error, ERROR_BUSY,
                                     "a writer keeps the database locked (BusyTimeoutSec= passed): try again later");
        run->error.extended_code = code == SQLITE_PROTOCOL ? SQLITE_PROTOCOL : SQLITE_BUSY;
}

/* A writer that has given up and another one that has come since look the same. Both wait for this run. */
bool run_is_in_writers_way(Run *run, uint64_t now) {
        const uint64_t patience_usec = run->context->setup->park_rollback_usec;
        uint64_t pause_usec = patience_usec < ASK_USEC ? patience_usec : ASK_USEC;

        if (!run->connection || now < run->asked_usec + pause_usec)
                return false;
        run->asked_usec = now;
        if (!database_writer_waits(&run->connection->database)) {
                run->writer_usec = 0;
                return false;
        }
        if (run->writer_usec == 0)
                run->writer_usec = now;
        if (now - run->writer_usec < patience_usec)
                return false;
        (void) sql_error_set(&run->error, ERROR_TIMED_OUT,
                             "a writer has waited for the end of the query for ParkTimeoutRollbackSec=: make the query "
                             "cheaper, ask for less at a time, or put the database into WAL mode, in which readers are in "
                             "no writer's way");
        return true;
}

uint64_t run_next_usec(const Run *run) {
        switch (run->state) {
        case RUN_PARKED:
                return earlier(earlier(run->parked_said ? run->park_until_usec : run->parked_usec + SETTLE_USEC,
                                       run->job->deadline_usec),
                               run->again_usec > 0 ? run->again_usec : UINT64_MAX);
        case RUN_RETRY:
                return run->is_prepare ? run->retry_usec : earlier(run->retry_usec, run->job->deadline_usec);
        case RUN_READY:
                return 0;
        case RUN_DRAINING:
                return run->again_usec > 0 ? earlier(run->again_usec, run->drain_until_usec) : run->drain_until_usec;
        case RUN_OVER:
        case RUN_IDLE:
                return UINT64_MAX;
        }
        return UINT64_MAX;
}

/* The reader is slow, so the supervisor writes the rest: a run that only drains must not keep a worker. */
static void hand_over(Run *run) {
        uint8_t *bytes;
        size_t size;

        if (run_take_unread(run, &bytes, &size) < 0) {
                run->drain_until_usec = 0; /* there is no memory now: try again later */
                (void) run_drain(run);
                return;
        }
        run_report_unread(run, (Bytes) { .data = (const char *) bytes, .size = size });
        free(bytes);
        run->state = RUN_OVER;
}

void run_on_time(Run *run, uint64_t now) {
        bool again = run->again_usec > 0 && run->again_usec <= now;

        if (run->state == RUN_DRAINING && run->drain_until_usec <= now && !run->channel)
                hand_over(run);
        else if (run->state == RUN_DRAINING && again)
                run->state = RUN_READY;
        if (run->state != RUN_PARKED && run->state != RUN_RETRY)
                return;
        if (!run->is_prepare && run->job->deadline_usec <= now) {
                run_cancel(run, ERROR_TIMED_OUT, "the query ran past its time limit (RunTimeoutSec= or timeout-usec)");
                return;
        }
        if (run->state == RUN_RETRY) {
                if (run->retry_usec <= now)
                        run->state = RUN_READY;
                return;
        }
        if (run->parked_usec + SETTLE_USEC <= now)
                settle(run);
        if (run->parked_said && run->park_until_usec <= now)
                run_cancel(
                        run, ERROR_READER_TOO_SLOW,
                        "less than a page was read from the pipe in ParkTimeoutSec=: a waiting reader holds up writers");
        else if (again)
                run->state = RUN_READY;
}
