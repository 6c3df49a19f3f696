/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One bus connection and the daemon on that bus. Owns the bus connection, the descriptors to wait on, the list of statements
 * and cursors, and the details of the last failure. Library.
 *
 * The rest of the library never waits: it returns -EAGAIN. Only the loops of the blocking calls go through
 * connection_wait(), and the program's own loop through sqlipc_process().
 */
#ifndef SQLIPC_CLIENT_LIB_CONNECTION_H
#define SQLIPC_CLIENT_LIB_CONNECTION_H

#include <poll.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "client-lib/error.h"

/* Tells if the bus passes descriptors. */
typedef enum Descriptors {
        DESCRIPTORS_UNKNOWN, /* while a bus of the caller is not ready */
        DESCRIPTORS_PASS,
        DESCRIPTORS_NONE,
} Descriptors;

/* The state of an object on which a program waits because of -EAGAIN (a row) or 0 (a statement that is being compiled). */
typedef struct Waiting {
        bool waits;            /* the program waits, and was not called back since */
        bool notify;           /* there is news, so the callback is due */
} Waiting;

struct sqlipc_connection {
        atomic_uint n_ref;         /* the program's, and one for each statement and cursor */
        bool closed;               /* by sqlipc_close(): no bus, no channels; waits for its objects to be freed */
        sd_bus *bus;               /* owned, or a reference on the caller's */
        int (*open_bus)(sd_bus **ret, const char *address); /* opens another after a loss; NULL: the bus is the caller's */
        char *address;             /* for open_bus, may be NULL */
        bool bus_was_ready;        /* our bus has said Hello: before that, no request is sent */
        bool bus_loss_told;        /* a call has failed since our bus was lost */
        uint64_t bus_generation;   /* counts the buses that were opened after a loss */
        Descriptors descriptors;   /* connection_descriptors() */
        bool blocking;
        bool delivering;           /* sqlipc_process() is calling callbacks of the program */
        bool dispatching;          /* connection_process() is processing the bus, which calls handlers */
        uint64_t timeout_usec;     /* of one blocking call, UINT64_MAX: none */
        bool allow_interactive_authorization;
        uint64_t run_timeout_usec; /* limit of the service for new runs; UINT64_MAX: only its own */
        size_t row_memory_max;     /* larger rows are kept in a file */
        atomic_uint n_interrupts;  /* set by any thread; what began at a lower count must end */
        int wake_fd;               /* eventfd: a cursor was cancelled, or the caller's loop received a reply */
        int epoll_fd;              /* for the program's loop; -1 until it asks for one */
        int polled_bus_fd;         /* the bus's descriptor in epoll_fd, -1: none */
        uint32_t polled_bus_events;
        LIST_HEAD(, sqlipc_statement) statements;
        TAILQ_HEAD(, sqlipc_cursor) cursors; /* the oldest first */
        LIST_HEAD(, ChannelLink) channels; /* one for each database that was used */
        sqlipc_transport transport;
        bool patient;              /* a blocking call is running: the next read of a channel may wait for a moment */
        uint64_t n_turns;          /* of connection_process() */
        unsigned n_quiet;          /* runs since the bus was last processed */
        unsigned forks;            /* connection_is_foreign() */
        sqlipc_cursor *spare_cursor; /* memory of the last closed cursor, for the next one */
        Error error;               /* of the last call that failed */
};

/* Checks if a program may still use the connection. 0; -EINVAL (NULL); -ENOTCONN (closed) or -ECHILD (forked), of which
 * the connection then has the details. */
int connection_check(sqlipc_connection *c);

/* Ensures a usable bus: opens another one if ours was lost. Statements of the lost bus must then be compiled again. */
int connection_ensure_bus(sqlipc_connection *c);

/* Functions for open_bus. They return an sd-bus error. */
int open_system_bus(sd_bus **ret, const char *address);
int open_user_bus(sd_bus **ret, const char *address);
int open_address_bus(sd_bus **ret, const char *address);

/* True if the path to the bus carries only bytes, no descriptors. */
bool is_relayed_address(const char *address);

/* To be called once, when the connection has its bus: finds out from the address if the bus cannot pass descriptors. */
void connection_look_at_address(sqlipc_connection *c);

/* UNKNOWN only in a blocking call, which must wait until the bus is ready and ask again. */
Descriptors connection_descriptors(sqlipc_connection *c);

/* True if a relay (ssh) ended before the bus answered, and no call has failed because of that yet. */
bool connection_must_tell_loss(sqlipc_connection *c);

/* True if a call could not be sent, with `r`, because the bus was lost, and may be sent once more on another bus. */
bool connection_may_send_again(sqlipc_connection *c, int r);

/* True if the bus connection is still there. */
bool connection_is_open(sqlipc_connection *c);

/* Creates a call to METHOD of the database object `path`. `destination`: NULL for the owner of the service's name, which
 * is started if need be; else only that daemon instance. */
int connection_new_call(sqlipc_connection *c, sd_bus_message **ret, const char *destination, const char *path,
                        const char *method);

/* Processes the messages that came, and advances every waiting cursor as far as possible. 1: something was done. */
int connection_process(sqlipc_connection *c);

/* The initial `deadline` of a call that waits for the service's answer, for which a user may have to be asked. */
uint64_t connection_answer_deadline(const sqlipc_connection *c);

/* Waits for the bus, cancellation or `data`, a pipe or channel (CONNECTION_NO_DATA: none), and processes the first two.
 * `*deadline`: 0 before the first wait of a blocking call, which sets it; UINT64_MAX: none. 1: `data` has news; 0: look
 * again; -ETIMEDOUT. */
int connection_wait(sqlipc_connection *c, struct pollfd data, uint64_t *deadline);

#define CONNECTION_NO_DATA ((struct pollfd) { .fd = -1 })

/* A blocking call is about to read: a read from a channel may then wait for a moment. */
void connection_be_patient(sqlipc_connection *c);

/* Called by blocking calls that got everything from a channel. Processes the bus now and then, because its queue would
 * fill otherwise. */
void connection_look_at_bus(sqlipc_connection *c);

/* Updates epoll_fd to the events that the bus waits for. */
void connection_update_events(sqlipc_connection *c);

/* Lets the next event of `data` wake the program's loop, once, for the run or channel `whose`. Call connection_disarm()
 * before the descriptor is closed. */
int connection_arm(sqlipc_connection *c, struct pollfd data, const void *whose);
void connection_disarm(sqlipc_connection *c, int fd);

/* The current count of interrupts. An operation stores it when it begins, and is interrupted when the count has changed. */
unsigned connection_interrupts(const sqlipc_connection *c);

/* Wakes the program's loop so that it polls our descriptor. */
void connection_wake(sqlipc_connection *c);

/* More can be done at once: the next wait, of the library or of the program's loop, ends immediately. */
void connection_come_back(sqlipc_connection *c);

/* For a reply that the program's own loop dispatches: that loop must poll our descriptor, too. */
void connection_wake_if_idle(sqlipc_connection *c);

/* True if this process was forked after the connection was opened. It shares the descriptors with its parent, and may
 * only close them: any other use would take bytes, events and wake-ups from the parent. */
bool connection_is_foreign(const sqlipc_connection *c);

#endif
