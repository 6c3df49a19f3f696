/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Makes a job of each request of a channel, one after the other. The channel owns that job: its answer, rows
 * or an error, goes into the channel's page, and the supervisor gets no report of the single job.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_CHANNEL_REQUEST_H
#define SQLIPC_DAEMON_WORKER_CORE_CHANNEL_REQUEST_H

#include "daemon/worker/core/served-channel.h"

/* The owner of the jobs of channels. */
extern const JobOwner channel_request_owner;

/* Tells the engine the requests that wait, if it wants to know. Called before the read transaction of the round begins.
 * False: it does not know all of them, so those of other channels do not matter to it. */
bool channel_request_foresee(ServedChannel *c);

/* Takes the next request, and begins its job or refuses it. False: there is no request now, or messages of the supervisor
 * must be read first. */
bool channel_request_begin_next(ServedChannel *c);

/* The job of the request is over: releases what only that needed. */
void channel_request_end(ServedChannel *c);

#endif
