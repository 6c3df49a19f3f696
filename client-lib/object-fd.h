/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The descriptor of one watch or live query, for a program that polls it instead of the connection's descriptor. Library.
 *
 * It stays the same while the pipe below it comes and goes: it is an epoll descriptor, whose set contains the pipe or
 * channel that the object waits for, a timer, and, while the object waits for an answer, the bus. Everything in it is
 * level-triggered. It is made when the program asks for it; without that, all functions here do nothing.
 *
 * A process that was forked shares the set with its parent, and so only closes its descriptors.
 */
#ifndef SQLIPC_CLIENT_LIB_OBJECT_FD_H
#define SQLIPC_CLIENT_LIB_OBJECT_FD_H

#include <poll.h>

#include "client-lib/connection.h"
#include "client-lib/turns.h"

typedef struct ObjectFd {
        int epoll_fd;       /* -1: the program did not ask for it */
        int timer_fd;
        struct pollfd data; /* in the set; fd -1: none */
        bool has_bus;       /* the bus is in the set */
        uint64_t until;     /* the time of the timer; UINT64_MAX: it is off */
        Turns turns;        /* of the program's loop for this descriptor */
} ObjectFd;

#define OBJECT_FD_INIT { .epoll_fd = -1, .timer_fd = -1, .data.fd = -1, .until = UINT64_MAX }

/* The things that can wake the object. */
typedef struct ObjectNews {
        struct pollfd data; /* fd -1: none */
        bool bus;
        uint64_t until;     /* CLOCK_MONOTONIC in microseconds; 0: now; UINT64_MAX: no time does */
} ObjectNews;

/* Makes the descriptor, unless there is one. It then needs object_fd_update(). */
int object_fd_open(ObjectFd *o);

/* Sets what makes the descriptor readable. */
void object_fd_update(ObjectFd *o, sqlipc_connection *c, ObjectNews news);

/* The program called, and there was nothing new. Does the same as object_fd_update(), since the time of the timer may have
 * passed. 0; -ELOOP: the descriptor is readable all the same, again and again, which leads to nothing (turns.h). */
int object_fd_turn(ObjectFd *o, sqlipc_connection *c, ObjectNews news);

/* To be called before the descriptor `fd` is closed. */
void object_fd_forget(ObjectFd *o, sqlipc_connection *c, int fd);

void object_fd_done(ObjectFd *o);

#endif
