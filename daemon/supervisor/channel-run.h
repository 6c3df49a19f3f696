/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The supervisor's knowledge of the runs on a channel. Supervisor.
 *
 * The worker reports at most twice a second, and this is the only source. Sums are exact. Which run is under way, since
 * when, and if it was slow, is known only for runs that last.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_CHANNEL_RUN_H
#define SQLIPC_DAEMON_SUPERVISOR_CHANNEL_RUN_H

#include "daemon/supervisor/channel.h"

/* Adds the work that was done to the sums of channel, session and service, and logs a slow run that ended (one a minute for
 * each uid and database). A channel that did something counts as used now and as not waiting. Returns false if the run that
 * was known before goes on, else true. */
bool channel_run_note(Channel *c, const ChannelProgress *progress);

/* The state of the run under way, as ListRuns names it. */
const char *channel_run_state(const ChannelRun *run);

/* How long the run has lasted. */
uint64_t channel_run_usec(const ChannelRun *run);

/* Frees what `run` owns. */
void channel_run_done(ChannelRun *run);

#endif
