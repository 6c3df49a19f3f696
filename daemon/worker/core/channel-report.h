/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Reports a channel to the supervisor. It does not report each query, but sums: at most twice a second, and a
 * last time when it hands the channel back.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_CHANNEL_REPORT_H
#define SQLIPC_DAEMON_WORKER_CORE_CHANNEL_REPORT_H

#include "daemon/worker/core/served-channel.h"

/* Adds the channel's job, which has just ended, to the sums. */
void channel_report_count(ServedChannel *c);

/* Sends CHANNEL_PROGRESS if it is due, or if the supervisor believes that a job is under way and none is any more. */
void channel_report_progress(ServedChannel *c, uint64_t now_coarse_usec);

/* Sends CHANNEL_PROGRESS without the pause between two reports, because the state has changed. */
void channel_report_now(ServedChannel *c);

/* When what the supervisor was not told yet is due; UINT64_MAX: it knows everything. */
uint64_t channel_report_due(const ServedChannel *c);

/* Sends CHANNEL_RESTED with the channel's state; `waiting` as in protocol.h. -errno: the channel stays with this worker. */
int channel_report_rested(ServedChannel *c, bool waiting, Bytes unread);

/* Sends CHANNEL_CLOSED. If that fails, the worker ends (report_error in JobContext). */
void channel_report_closed(ServedChannel *c, Bytes unread);

/* Sends CHANNEL_CLOSED for a channel that could not be set up. -errno of the socket. */
int channel_report_refused(int control_fd, uint64_t number);

#endif
