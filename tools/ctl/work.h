/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Statements, runs, transactions, channels and watches, as the service lists them. */
#ifndef SQLIPC_TOOLS_CTL_WORK_H
#define SQLIPC_TOOLS_CTL_WORK_H

#include "tools/ctl/bus.h"
#include "tools/ctl/listing.h"

typedef enum Work { WORK_STATEMENTS, WORK_RUNS, WORK_TRANSACTIONS, WORK_CHANNELS, WORK_WATCHES } Work;

/** A dictionary for each: statement, run, transaction, channel or watch (t), database, client, and the service's other
 * data. The list is empty if the service does not run but could be started. Prints an error if it fails. Returns an exit
 * code. The caller unrefs. */
int work_list(Context *c, Work work, GVariant **ret);

/** Only the rows of `database`; the caller unrefs the result. */
GVariant *work_on_database(GVariant *rows, const char *database);

#endif
