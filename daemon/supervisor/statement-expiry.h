/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Statements that do not run, in the order in which StatementIdleSec= ends them: thousands of them at one timer. Supervisor.
 */
#ifndef SQLIPC_STATEMENT_EXPIRY_H
#define SQLIPC_STATEMENT_EXPIRY_H

#include <glib.h>
#include <systemd/sd-event.h>

typedef struct Statement Statement;

/* All zero at first. */
typedef struct StatementExpiry {
        GSequence *statements;  /* of Statement, by expires_usec */
        sd_event_source *timer; /* for the first of them */
} StatementExpiry;

/* It is idle from now on; it runs, or dies. The second is allowed at any time. */
void statement_expiry_watch(Statement *s);
void statement_expiry_forget(Statement *s);

/* No statement is left. */
void statement_expiry_done(StatementExpiry *e);

#endif
