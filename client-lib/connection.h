/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One bus and the daemon behind it: owns the bus connection, the descriptors to wait on, the list of statements and
 * cursors, and the details of the last failure. Library.
 *
 * The rest of the library never waits: it answers -EAGAIN, and only the loops of the blocking calls (and the program's
 * own loop) go through connection_wait() or sqlipc_process().
 */
#ifndef SQLIPC_CONNECTION_H
#define SQLIPC_CONNECTION_H

#include <poll.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "error.h"

/* Whether the bus passes descriptors. */
typedef enum Descriptors {
        DESCRIPTORS_UNKNOWN, /* as long as a bus of the caller's is not ready */
        DESCRIPTORS_PASS,
        DESCRIPTORS_NONE,
} Descriptors;

struct sqlipc_connection {
        atomic_uint n_ref;         /* the program's, and one for each statement and cursor */
        bool closed;               /* by sqlipc_close(): no bus, no channels; what is left waits to be freed */
        sd_bus *bus;               /* owned, or a reference on the caller's */
        int (*open_bus)(sd_bus **ret, const char *address); /* opens another after a loss; NULL: the bus is the caller's */
        char *address;             /* for open_bus, may be NULL */
        bool bus_was_ready;        /* ours has said Hello: before, no request leaves */
        bool bus_loss_told;        /* a call has failed since ours was lost */
        uint64_t bus_generation;   /* counts the buses that were opened after a loss */
        Descriptors descriptors;   /* connection_descriptors() */
        bool blocking;
        bool delivering;           /* sqlipc_process() calls the program back */
        bool dispatching;          /* connection_process() has the bus call handlers */
        uint64_t timeout_usec;     /* of one blocking call, UINT64_MAX: none */
        bool allow_interactive_authorization;
        uint64_t run_timeout_usec; /* of runs that start from now on, by the service; UINT64_MAX: none but its own */
        size_t row_memory_max;     /* larger rows are kept in a file */
        atomic_uint n_interrupts;  /* set by any thread: what began at a lower count is to end */
        int wake_fd;               /* eventfd: a cursor was cancelled, or the caller's loop brought news */
        int epoll_fd;              /* for the program's loop; -1 until one is asked for */
        int polled_bus_fd;         /* what stands in epoll_fd for the bus, -1: nothing */
        uint32_t polled_bus_events;
        LIST_HEAD(, sqlipc_statement) statements;
        TAILQ_HEAD(, sqlipc_cursor) cursors; /* the oldest first */
        LIST_HEAD(, Channel) channels; /* one for each database that was asked */
        sqlipc_transport transport;
        bool patient;              /* a blocking call waits: the next read of a channel may, for a moment */
        uint64_t n_turns;          /* of connection_process() */
        unsigned n_quiet;          /* runs since the bus was looked at */
        unsigned forks;            /* connection_is_foreign() */
        sqlipc_cursor *spare_cursor; /* memory of the last one closed, for the next */
        Error error;               /* of the last call that failed */
};

/* Whether a program may still ask something of it. 0, -EINVAL (NULL), or -ENOTCONN, which it then has as its error: closed.
 * */
int connection_check(sqlipc_connection *c);

/* A usable bus: opens another one if ours was lost. Statements of the lost one are then to be compiled again. */
int connection_ensure_bus(sqlipc_connection *c);

/* For open_bus. An sd-bus error. */
int open_system_bus(sd_bus **ret, const char *address);
int open_user_bus(sd_bus **ret, const char *address);
int open_address_bus(sd_bus **ret, const char *address);

/* It leads through what carries bytes alone, no descriptors. */
bool is_relayed_address(const char *address);

/* Once the connection has its bus: what its address alone tells of descriptors. */
void connection_look_at_address(sqlipc_connection *c);

/* UNKNOWN only in a call that waits: it shall wait until the bus is ready, and ask again. */
Descriptors connection_descriptors(sqlipc_connection *c);

/* True if a program in place of the bus (ssh) ended before the bus answered, and no call has failed with that yet. */
bool connection_must_tell_loss(sqlipc_connection *c);

/* True if a call failed to be sent, with `r`, because the bus was lost, and may be sent once more on another bus. */
bool connection_may_send_again(sqlipc_connection *c, int r);

/* Whether the bus is still there. */
bool connection_is_open(sqlipc_connection *c);

/* A call to METHOD of the database object `path`. `destination`: NULL for whoever owns the name, started if need be; else
 * that daemon instance alone. */
int connection_new_call(sqlipc_connection *c, sd_bus_message **ret, const char *destination, const char *path,
                        const char *method);

/* Dispatches what came and takes every waiting cursor as far as it goes. 1: something was done. */
int connection_process(sqlipc_connection *c);

/* The `deadline` to begin with of a call that waits for an answer of the service, for which a user may have to be asked. */
uint64_t connection_answer_deadline(const sqlipc_connection *c);

/* Waits for bus, cancellation or `data`, a pipe or channel (CONNECTION_NO_DATA: none), and processes the first two.
 * `*deadline`: 0 before the first wait of a blocking call, which sets it; UINT64_MAX: none. 1: `data` has news; 0: look
 * again; -ETIMEDOUT. */
int connection_wait(sqlipc_connection *c, struct pollfd data, uint64_t *deadline);

#define CONNECTION_NO_DATA ((struct pollfd) { .fd = -1 })

/* A blocking call is about to read: from a channel it may wait by itself for a moment. */
void connection_be_patient(sqlipc_connection *c);

/* Blocking calls that had all they needed from a channel: now and then the bus is read all the same, or it would fill. */
void connection_look_at_bus(sqlipc_connection *c);

/* Keeps epoll_fd in step with what the bus waits for. */
void connection_update_events(sqlipc_connection *c);

/* The next moment of `data` wakes the program's loop, once, for the run or channel `whose`. connection_disarm() before the
 * descriptor is closed. */
int connection_arm(sqlipc_connection *c, struct pollfd data, const void *whose);
void connection_disarm(sqlipc_connection *c, int fd);

/* What begins keeps this count: it is interrupted once the count has changed. */
unsigned connection_interrupts(const sqlipc_connection *c);

/* Has the program's loop look at our descriptor. */
void connection_wake(sqlipc_connection *c);

/* More can be done at once: the next wait ends immediately, be it the library's or the program's loop. */
void connection_come_back(sqlipc_connection *c);

/* The program's own loop dispatches this reply: have it look at our descriptor too. */
void connection_wake_if_idle(sqlipc_connection *c);

/* This process forked after the connection was opened. It shares the descriptors with its parent, and may only close them:
 * any other use would take bytes, events and wake-ups from the parent. */
bool connection_is_foreign(const sqlipc_connection *c);

#endif
