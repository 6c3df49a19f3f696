/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The statements of an ExecuteBatch: turns D-Bus a(sava{sv}) into the list that a worker gets (statement-list.h).
 * Supervisor.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_STATEMENT_ARRAY_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_STATEMENT_ARRAY_H

#include <glib.h>
#include <systemd/sd-bus.h>

#include "daemon/protocol/statement-list.h"
#include "daemon/supervisor/base/database.h"
#include "daemon/supervisor/base/refusal.h"
#include "daemon/supervisor/base/user.h"

/* Reads the array, which is next in `m`; at least one statement, each with the limits of a statement that comes alone.
 * Reading stops at the first statement past a limit; the bytes before are charged to the user. `*ret` is set only if
 * this succeeds; free it with statement_list_done(). The refusal names the statement: EMPTY_STATEMENT, LIMITS_EXCEEDED,
 * PARAMETER_TYPE, UNKNOWN_PARAMETER. -EBADMSG: the message cannot be read; -ENOMEM. */
int statement_array_read(sd_bus_message *m, User *u, const Database *d, StatementList *ret, Refusal *refusal);

/* Returns a copy of the first statement's SQL, for lists and the log; the caller owns it. NULL: no memory. */
GBytes *statement_array_first(const StatementList *list);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(StatementList, statement_list_done)

#endif
