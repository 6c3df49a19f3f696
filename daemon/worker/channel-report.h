/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. What the supervisor hears of a channel. Not each query: sums, at most twice a second, and the last when the
 * worker gives the channel away.
 */
#ifndef CHANNEL_REPORT_H
#define CHANNEL_REPORT_H

#include "channel.h"

/* A run of it ended. */
void channel_count_run(Channel *c);

/* CHANNEL_PROGRESS where it is due, or news: that nothing runs any more, or whether it is parked. */
void channel_report_progress(Channel *c, uint64_t now_coarse_usec);

/* When what was done and not said is due; UINT64_MAX: there is nothing. */
uint64_t channel_report_due(const Channel *c);

/* CHANNEL_RESTED with its state; `waiting` as in protocol.h. -errno: it stays here. */
int channel_report_rested(Channel *c, bool waiting, Bytes unread);

void channel_report_closed(Channel *c, Bytes unread);

/* CHANNEL_CLOSED of one that could not be taken up. -errno of the socket. */
int channel_report_refused(int control_fd, uint64_t number);

#endif
