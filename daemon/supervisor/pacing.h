/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Large calls do not keep others waiting. Supervisor.
 *
 * One process reads all calls and writes all replies, and a megabyte of SQL, of parameters or of column names takes it
 * several milliseconds. So each large text is charged, to the user and to the service: until PACING_NSEC_PER_BYTE have
 * passed for each byte, further calls of this user are put aside. One of them goes on when the loop has nothing else to do,
 * or when the charge has been paid off. So a client that sends large calls has the supervisor to itself if nobody else needs
 * it, and less than half of it otherwise.
 *
 *      call --> put aside, in the order of its user's calls --> released: put back into the queue of the bus --> dispatched
 *
 * Users whose calls were put aside take turns, whatever number of calls each of them has made. Only calls with SQL,
 * parameters or rows are put aside: Cancel and Finalize end work, and go on at once.
 */
#ifndef SQLIPC_PACING_H
#define SQLIPC_PACING_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

typedef struct Manager Manager;
typedef struct Peer Peer;
typedef struct User User;

/* Texts below this are not charged: they cost no more than the call itself. */
#define PACING_SIZE_MIN ((size_t) 32 * 1024)

/* About three times what the supervisor needs for a byte that it reads, checks, copies and passes on. */
#define PACING_NSEC_PER_BYTE 20u

/* Of the Manager; all zero at first. */
typedef struct Pacing {
        uint64_t until_usec;        /* what was charged to all is paid off then */
        GQueue users;               /* of User that has calls put aside: the next one to be served comes first */
        sd_bus_message *released;   /* reference; put back into the queue of the bus, and not dispatched yet */
        sd_event_source *when_due, *when_idle;
} Pacing;

/* Of a User; all zero at first. */
typedef struct PacingAccount {
        uint64_t until_usec; /* what was charged to the user is paid off then; 0: nothing */
        GQueue calls;        /* of calls that were put aside */
        GList link;          /* in Pacing's `users`, while there are any */
} PacingAccount;

/* Starts to look at each call. Before manager_connect() adds what answers calls when the service stops, and after
 * held_call_watch(): of filters, the last one added runs first. */
int pacing_watch(Manager *m);

/* The supervisor reads or writes `size` bytes for `u`. */
void pacing_charge(User *u, size_t size);

bool pacing_is_busy(const Manager *m);

/* Frees the calls of a peer that vanished, unanswered. */
void pacing_forget(const Peer *p);

/* Answers all calls with ShuttingDown and `sentence`. */
void pacing_stop(Manager *m, const char *sentence);

/* Frees what the manager has. */
void pacing_done(Manager *m);

#endif
