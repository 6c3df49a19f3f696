/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is known of the runs on a channel: only what its worker says twice a second. Supervisor.
 *
 * Sums are exact. Which run is under way, since when, and whether it was slow, is known of those that last.
 */
#ifndef SQLIPC_CHANNEL_RUN_H
#define SQLIPC_CHANNEL_RUN_H

#include "channel.h"

/* Counts what was done, for channel, session and service, and logs a slow run that ended: one a minute of each uid and
 * database. Whoever did something is no longer idle, and does not wait. True: the run that was known before is over. */
bool channel_run_note(Channel *c, const ChannelProgress *progress);

/* The state of the one that is running, as ListRuns names it. */
const char *channel_run_state(const ChannelRun *run);

/* How long it has lasted. */
uint64_t channel_run_usec(const ChannelRun *run);

/* Frees what is owned. */
void channel_run_done(ChannelRun *run);

#endif
