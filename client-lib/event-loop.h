/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The interface for a program with an event loop of its own: one epoll descriptor, a timeout and callbacks. Library.
 *
 * The epoll set contains the bus (level-triggered, with the events that sd-bus asks for), wake_fd (level-triggered), and
 * each pipe or channel that a cursor or watch found empty, or a load full (one-shot, so that a cursor that is not read
 * wakes the program no more than once).
 */
#ifndef SQLIPC_CLIENT_LIB_EVENT_LOOP_H
#define SQLIPC_CLIENT_LIB_EVENT_LOOP_H

#include <poll.h>

#include "client-lib/connection.h"

/* Updates both epoll sets to the events that the bus waits for. */
void event_loop_update(sqlipc_connection *c);

/* Returns the epoll set that contains the bus alone, and makes it first if need be. */
int event_loop_get_bus_set(sqlipc_connection *c);

/* Closes both sets. */
void event_loop_close(sqlipc_connection *c);

/* Lets the next event of `data` wake the program's loop, once, for the run, load, watch or channel `whose`. Call
 * event_loop_disarm() before the descriptor is closed. */
int event_loop_arm(sqlipc_connection *c, struct pollfd data, const void *whose);
void event_loop_disarm(sqlipc_connection *c, int fd);

/* Wakes the program's loop so that it polls our descriptor. */
void event_loop_wake(sqlipc_connection *c);

/* More can be done at once: the next wait, of the library or of the program's loop, ends immediately. */
void event_loop_come_back(sqlipc_connection *c);

/* For a reply that the program's own loop dispatches: that loop must poll our descriptor, too. */
void event_loop_wake_if_idle(sqlipc_connection *c);

#endif
