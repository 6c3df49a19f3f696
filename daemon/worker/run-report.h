/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. What a run says to the supervisor of itself: each thing once, in the order of protocol.h. What cannot be
 * said is left in context->report_error, of which the worker ends. Of a channel's runs the sums are reported instead
 * (channel-report.h).
 */
#ifndef RUN_REPORT_H
#define RUN_REPORT_H

#include "run.h"

/* STARTED, described where the job asks for it. False: it cannot be described, LimitsExceeded or OutOfMemory. */
bool run_report_started(Run *run, SqlError *error);

/* PARKED, where that is news. */
void run_report_parked(Run *run, bool parked);

/* FILLING: a larger pipe would be used. */
void run_report_filling(Run *run);

/* PROGRESS, at most twice a second. Where a page went out, and so no oftener than there is something new to say. */
void run_report_progress(Run *run);

/* ENDED at the first call, DRAINED at a later one that says so. */
void run_report_end(Run *run, bool drained);

/* DRAINED: nothing is left to be written but `unread`, which the supervisor writes (size 0: none). */
void run_report_unread(Run *run, Bytes unread);

#endif
