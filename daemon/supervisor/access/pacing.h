/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeps large calls from delaying the calls of other users. Supervisor.
 *
 * One process reads all calls and writes all replies, and a megabyte of SQL, of parameters or of column names takes it
 * several milliseconds. So each large text is charged to its user and to the service: until PACING_NSEC_PER_BYTE have passed
 * for each byte, further calls of this user are put aside. One of them goes on when the loop has nothing else to do, or when
 * the charge has been paid off. So a client that sends large calls can use the whole supervisor if no other client needs it,
 * and less than half of it otherwise.
 *
 *      call --> put aside, in the order of its user's calls --> released: put back into the queue of the bus --> dispatched
 *
 * Users whose calls were put aside take turns, no matter how many calls each has made. Only calls with SQL, parameters or
 * rows are put aside. Cancel and Finalize end work, so they are never delayed.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_ACCESS_PACING_H
#define SQLIPC_DAEMON_SUPERVISOR_ACCESS_PACING_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

typedef struct Context Context;
typedef struct Peer Peer;
typedef struct User User;

/* Smaller texts are not charged: they cost no more than the call itself. */
#define PACING_SIZE_MIN ((size_t) 32 * 1024)

/* About three times the time that the supervisor needs to read, check, copy and pass on a byte. */
#define PACING_NSEC_PER_BYTE 20u

/* The state of this module, in the context; starts as all zeros. */
typedef struct Pacing {
        uint64_t until_usec;        /* when the charge to the service is paid off */
        GQueue users;               /* of User that has calls put aside, in the order in which they are served */
        sd_bus_message *released;   /* reference; put back into the queue of the bus, and not dispatched yet */
        sd_event_source *when_due, *when_idle;
} Pacing;

/* Starts to filter calls. Must run after held_call_watch(), and before manager_connect() adds the filter that answers calls
 * when the service stops: the filter that was added last runs first. -errno. */
int pacing_watch(Context *context);

/* The supervisor reads or writes `size` bytes for `u`. Texts below PACING_SIZE_MIN cost nothing. */
void pacing_charge(User *u, size_t size);

bool pacing_is_busy(const Context *context);

/* Frees the calls of a peer that vanished, without a reply. */
void pacing_forget(const Peer *p);

/* Answers all calls with ShuttingDown and `sentence`. */
void pacing_stop(Context *context, const char *sentence);

/* Frees the state of this module. */
void pacing_done(Pacing *p);

#endif
