/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Encodes data of a job into its page: rows from SQLite's memory, and payloads that are sent in parts. These
 * functions do not step, write or end the job; job.c acts on their results.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_JOB_ENCODE_H
#define SQLIPC_DAEMON_WORKER_CORE_JOB_ENCODE_H

#include "daemon/worker/core/job.h"

/* Encodes the row that SQLite holds into the page. 1: done; 0: no room; -EMSGSIZE: job->row_size is over the limit;
 * -ENOMEM: SQLite could not convert a value. */
int job_encode_row(Job *job);

/* True if the waiting row fits into no page at all, so that it may begin in the rest of this one. False also if a value
 * cannot be measured. */
bool job_row_is_big(Job *job);

/* Begins a BIG_ROW for the waiting row, which fits into no page: its head comes from job->payload, its data from SQLite's
 * memory. 1: begun; 0: the row, whose size is in *ret_size, is over the limit; -ENOMEM. */
int job_begin_big_row(Job *job, uint64_t *ret_size);

/* Encodes more of the payload under way into the page. 1: all of it is encoded; 0: the page is full; -ENOMEM. */
int job_encode_payload(Job *job);

#endif
