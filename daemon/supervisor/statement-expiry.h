/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Statements that do not run, in the order in which StatementIdleSec= ends them. One timer serves thousands of them.
 * Supervisor.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_STATEMENT_EXPIRY_H
#define SQLIPC_DAEMON_SUPERVISOR_STATEMENT_EXPIRY_H

#include <glib.h>
#include <systemd/sd-event.h>

typedef struct Statement Statement;

/* Starts as all zeros. */
typedef struct StatementExpiry {
        GSequence *statements;  /* of Statement, by expires_usec */
        sd_event_source *timer; /* fires for the first of them */
} StatementExpiry;

/* statement_expiry_watch(): the statement is idle from now on. statement_expiry_forget(): it runs, or is freed; can be
 * called at any time. */
void statement_expiry_watch(Statement *s);
void statement_expiry_forget(Statement *s);

/* Frees the expiry; no statement is left. */
void statement_expiry_done(StatementExpiry *e);

#endif
