/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The outcome of a run that writes, as far as it is known before its worker has reported the end. Supervisor.
 *
 * A client may repeat a statement that was not committed, and must not repeat one that may have been. So a call of such a
 * run is not answered with an error before its worker has reported the end, or is dead. Before a worker commits, it names
 * the runs in COMMITTING. A run whose worker dies before that has written nothing. If the worker dies later and without
 * ENDED, the run ends with OutcomeUnknown.
 *
 * Rows of a statement that writes are sent after its commit, so the run has no byte in its pipe before COMMITTING.
 * Therefore a lost run that was not committed gets an ERROR frame from the supervisor. If the reader finds the end of the
 * file instead, the outcome is unknown.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_OUTCOME_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/supervisor/base/refusal.h"

/* The facts about a run. */
typedef struct RunOutcome {
        bool writes;       /* its statement writes */
        bool may_write;    /* the same, or it is not known yet what its statement does */
        bool committing;   /* its worker was about to commit it */
        bool ended;        /* its worker has reported the end */
        bool unheard;      /* its worker is not known or not dead, or not all of its messages were read */
} RunOutcome;

/* Sets `end` to the error for a run whose worker is lost. If the run was told to end before, and was not committed, that
 * error stays. */
void run_outcome_lose(const RunOutcome *o, Refusal *end);

/* Writes the error into the pipe `fd` (-1: none) of run `number`. False: the reader has not got it, because the kernel has
 * no memory for the pipe, or the pipe has no room. */
bool run_outcome_write(int fd, uint64_t number, const Failure *f);

/* Writes the error into the pipe `fd` (-1: none) of run `number`, unless the pipe may hold rows of the run. Does nothing if
 * the pipe has no room: then its reader finds the end of the file, and has to assume less. */
void run_outcome_tell_reader(const RunOutcome *o, int fd, uint64_t number, const Refusal *end);

#endif
