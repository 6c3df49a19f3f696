/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Encodes into a job's page what is sent in parts: COLUMNS and STATEMENT, and rows that fit into no page, from
 * the engine's memory. (All other rows are encoded by the engine.) These functions do not step, write or end the job;
 * job-slice.c acts on their results.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_JOB_ENCODE_H
#define SQLIPC_DAEMON_WORKER_CORE_JOB_ENCODE_H

#include "daemon/worker/core/job.h"

/* True if the waiting row fits into no page at all, so that it may begin in the rest of this one. False also if a value
 * cannot be measured. */
bool job_row_is_big(Job *job);

/* Begins a BIG_ROW for the waiting row, which fits into no page: its head comes from job->payload.bytes, its data from the
 * engine's memory. 1: begun; 0: the row, whose size is in *ret_size, is over the limit; -ENOMEM: with job->error. */
int job_begin_big_row(Job *job, uint64_t *ret_size);

/* Encodes more of the payload under way into the page. 1: all of it is encoded; 0: the page is full; -ENOMEM: with
 * job->error. */
int job_encode_payload(Job *job);

#endif
