/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The watch of a live query (live.h). Library.
 */
#ifndef SQLIPC_CLIENT_LIB_LIVE_WATCH_H
#define SQLIPC_CLIENT_LIB_LIVE_WATCH_H

#include "client-lib/live.h"

/* Begins to watch. */
int live_watch_open(sqlipc_live *l);

/* Looks for changes, each of which makes the statement due. 0; or the failure after which the live query is over, of which
 * the connection then has the details. */
int live_watch_look(sqlipc_live *l);

/* True if a run makes sense: changes after its snapshot will be noticed. */
bool live_watch_is_open(const sqlipc_live *l);

/* True if live_watch_look() has something to do although no change has come. */
bool live_watch_is_due(const sqlipc_live *l);

/* The watch that brings the next news. */
sqlipc_watch *live_watch_current(const sqlipc_live *l);

void live_watch_done(sqlipc_live *l);

#endif
