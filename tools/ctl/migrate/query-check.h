/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sqlipcctl check --queries=LOG: finds the statements of a log that a database does not accept. They are only prepared,
 * never run. The service logs no SQL, so programs and shells write LOG: statements that end with ";", as in a script, or in
 * the output of ".echo on" or of a trace; without any ";" each line is a statement.
 */
#ifndef SQLIPC_TOOLS_CTL_MIGRATE_QUERY_CHECK_H
#define SQLIPC_TOOLS_CTL_MIGRATE_QUERY_CHECK_H

#include "tools/ctl/context.h"

/** Checks the statements on `database`; or, if `to` is not NULL, on the database that this file describes. "-" is standard
 * input. Returns an exit code: CTL_FAILED also if a statement is not accepted. */
int query_check(Context *c, const char *database, const char *log, const char *to);

#endif
