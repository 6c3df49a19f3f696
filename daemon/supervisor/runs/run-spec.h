/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The properties of a new run, and its creation: quotas, and the memory that counts for its user. Supervisor.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_SPEC_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_SPEC_H

#include "daemon/supervisor/runs/run.h"

typedef struct RunSpec {
        RunKind kind;
        Statement *statement;   /* PREPARE, FETCH: borrowed */
        Database *database;     /* borrowed */
        GBytes *sql;            /* borrowed; NULL: TRANSACTION */
        Pipe *pipe;             /* borrowed */
        Parameters *parameters; /* taken if the run is made; NULL: none */
        StatementList *list;    /* ExecuteBatch, whose `sql` is that of its first statement. Taken as `parameters` are */
        ArgumentFile *file;     /* it has parameters, and SQL unless that is above; taken as `parameters` are; NULL, or
                                 * without a descriptor: none */
        bool is_batch;          /* ExecuteBatch, also with a file */
        sd_bus_message *call;   /* borrowed; NULL: the reader has the call */
        RunStartedFunc on_started;
        RunEndedFunc on_ended;
        uint64_t timeout_usec;  /* from now on; UINT64_MAX: only RunTimeoutSec= holds */
        uint64_t lock_wait_usec; /* as in Begin and JobSpec */
        ForeignKeys foreign_keys; /* the client's setting */
        const char *time_zone;  /* the client's, borrowed; "" and NULL: the service's own */
        uint32_t page_size;
        const Run *transaction; /* borrowed: the run belongs to it; NULL: to none */
        const Run *pin;         /* borrowed: it runs on it, or is on it; NULL: on none */
        bool writes, deferred, is_pin; /* TRANSACTION: see Run */
        bool finds_tables, names; /* EXECUTE: see Run */
        bool error_details;
        bool answers_at_once;     /* QUERY: see Run */
} RunSpec;

/* Makes a run; run_submit() queues it for a worker. Call run_free() if something fails in between. The run belongs to its
 * session and to the context's table. LIMITS_EXCEEDED; -errno. */
int run_spec_make(Session *s, RunSpec spec, Run **ret, Refusal *refusal);

#endif
