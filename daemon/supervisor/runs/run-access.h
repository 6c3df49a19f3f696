/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The runs that a call or an event is about: by number, by the rights of their clients, by their pipe. Supervisor.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_ACCESS_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_RUN_ACCESS_H

#include "daemon/supervisor/runs/run.h"

/* Finds the run of this number if it belongs to the peer's session and is still known. UNKNOWN_RUN. */
int run_access_find(Context *context, const Peer *p, const Database *d, uint64_t number, Run **ret, Refusal *refusal);

/* The same for the run whose method call has this serial, and is not answered; or for the run that a call with this serial
 * has begun, if its client may not have read the answer. */
int run_access_find_call(Context *context, const Peer *p, const Database *d, uint32_t serial, Run **ret, Refusal *refusal);

/* The same as run_access_find() for a transaction that is open. TRANSACTION_ENDED. */
int run_access_find_transaction(Context *context, const Peer *p, const Database *d, uint64_t number, Run **ret,
                                Refusal *refusal);

/* The same for a pin. PIN_LOST. */
int run_access_find_pin(Context *context, const Peer *p, const Database *d, uint64_t number, Run **ret, Refusal *refusal);

/* Rights changed: each run that has not started fails at once if its client lost the right to the data that it would use. A
 * run that has started and reads is not affected, because its transaction is older than the change. One that writes may have
 * started and still wait for its turn, so it is cancelled, as is an open transaction; unless the worker is about to commit
 * it. */
void run_access_on_rights_changed(Context *context);

/* The client grew this pipe: ends the run that uses it, and frees the statement that has it. */
void run_access_on_pipe_grown(Context *context, Pipe *p);

#endif
