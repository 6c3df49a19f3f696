/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Statements, runs and channels, as the service lists them. */
#ifndef CTL_WORK_H
#define CTL_WORK_H

#include "bus.h"
#include "listing.h"

typedef enum Work { WORK_STATEMENTS, WORK_RUNS, WORK_CHANNELS } Work;

/** A dictionary for each: statement, run or channel (t), database, client, and what the service says beside. None where it
 * does not run but could be started. Says why it fails; returns an exit code. Caller unrefs. */
int work_list(Context *c, Work work, GVariant **ret);

/** Those of `database` alone; caller unrefs. */
GVariant *work_on_database(GVariant *rows, const char *database);

#endif
