/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The properties of a new run, and its creation: quotas, and the memory that counts for its user. Supervisor.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_SPEC_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_SPEC_H

#include "daemon/supervisor/runs/run.h"

typedef struct RunSpec {
        RunKind kind;
        Statement *statement;   /* PREPARE, FETCH */
        Database *database;
        GBytes *sql;            /* borrowed */
        Pipe *pipe;             /* borrowed */
        Parameters *parameters; /* taken; NULL: none */
        sd_bus_message *call;   /* borrowed; NULL: the reader has the call */
        RunStartedFunc on_started;
        uint64_t timeout_usec;
        uint32_t page_size;
        bool error_details;
} RunSpec;

/* Makes a run; run_submit() queues it for a worker. LIMITS_EXCEEDED. Call run_free() if something fails in between. */
int run_spec_make(Session *s, RunSpec spec, Run **ret, Refusal *refusal);

#endif
