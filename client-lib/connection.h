/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One bus connection and the daemon on that bus. Owns the bus connection, the descriptors to wait on, the lists of
 * statements, cursors, transactions, loads, watches, live queries and channels, and the details of the last failure.
 * Library.
 *
 * The rest of the library never waits: it returns -EAGAIN. Only the loops of the blocking calls go through
 * connection_wait(), and the program's own loop through sqlipc_process().
 */
#ifndef SQLIPC_CLIENT_LIB_CONNECTION_H
#define SQLIPC_CLIENT_LIB_CONNECTION_H

#include <poll.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "client-lib/client-zone.h"
#include "client-lib/error.h"
#include "client-lib/turns.h"
#include "dbus-interfaces/wire/channel-polling.h"

/* Tells if the bus passes descriptors. */
typedef enum Descriptors {
        DESCRIPTORS_UNKNOWN, /* while a bus of the caller is not ready */
        DESCRIPTORS_PASS,
        DESCRIPTORS_NONE,
} Descriptors;

typedef struct Member Member;

/* The connection's requests to its statements, cursors, transactions, loads, watches, live queries and channels. */
typedef struct MemberOperations {
        /* Cursors, watches, live queries, channels: the bus was processed. Does as much as possible without waiting, and
         * frees no member. */
        void (*advance)(Member *member);

        /* The connection is being closed: ends what is in progress. */
        void (*close)(Member *member);

        /* Statements: the bus was lost, and another one was opened. */
        void (*on_bus_lost)(Member *member);

        /* Watches, live queries, channels: the time of the next advance(), at the latest; UINT64_MAX: any time. */
        uint64_t (*deadline)(const Member *member);

        /* Channels, pins: frees it, when nothing else refers to the connection. */
        void (*free)(Member *member);

        /* Transactions and pins: the program gets an error that says that this pin is lost (Error). */
        void (*tell_loss)(Member *member, uint64_t pin_id);

        /* All but channels: the object to whose descriptor the program may have been sent to wait; NULL: none. */
        const void *(*descriptor_owner)(const Member *member);

        /* All but channels: calls the program back. False: it wants no callback. */
        bool (*call_back)(Member *member);
} MemberOperations;

/* Does a program wait for the member, because of -EAGAIN (a row) or 0 (a statement that is being compiled)? */
typedef enum MemberWait {
        MEMBER_WAITS_NOT, /* or it was called back since */
        MEMBER_WAITS,
        MEMBER_HAS_NEWS,  /* the callback is due */
} MemberWait;

/* Each statement, cursor, transaction, load, watch, live query and channel begins with it. */
struct Member {
        TAILQ_ENTRY(Member) link;
        const MemberOperations *operations;
        MemberWait wait;
};

TAILQ_HEAD(MemberList, Member);

/* If the service knows the option `describe` of Query. Version 0.1 does not, and refuses it. */
typedef enum DescribeOption {
        DESCRIBE_UNTRIED,
        DESCRIBE_KNOWN,
        DESCRIBE_REFUSED,
} DescribeOption;

/* The bus's descriptor in an epoll set, with the events that it has there. */
typedef struct BusSet {
        int epoll_fd;     /* -1: not made yet */
        int fd;           /* the bus's, -1: none */
        uint32_t events;
} BusSet;

struct sqlipc_connection {
        atomic_uint n_ref;         /* the program's, and one for each object that is not a channel */
        bool closed;               /* by sqlipc_close(): no bus, no channels; waits for its objects to be freed */
        sd_bus *bus;               /* owned, or a reference on the caller's */
        int (*open_bus)(sd_bus **ret, const char *address); /* opens another after a loss; NULL: the bus is the caller's */
        char *address;             /* for open_bus, may be NULL */
        bool bus_was_ready;        /* our bus has said Hello: before that, no request is sent */
        int bus_refusal;           /* negative errno: the bus answered Hello with this error; 0: it did not */
        bool bus_loss_told;        /* a call has failed since our bus was lost */
        uint64_t bus_generation;   /* counts the buses that were opened after a loss */
        Descriptors descriptors;   /* connection_bus_descriptors() */
        bool blocking;
        bool delivering;           /* sqlipc_process() is calling callbacks of the program */
        bool dispatching;          /* connection_process() is processing the bus, which calls handlers */
        uint64_t timeout_usec;     /* of one blocking call, UINT64_MAX: none */
        bool allow_interactive_authorization;
        uint64_t run_timeout_usec; /* limit of the service for new runs; UINT64_MAX: only its own */
        uint64_t lock_wait_usec;   /* limit of the service for waits for locks; UINT64_MAX: only its own */
        size_t row_memory_max;     /* larger rows are kept in a file */
        atomic_uint n_interrupts;  /* set by any thread; what began at a lower count must end */
        int wake_fd;               /* eventfd: a cursor was cancelled, or the caller's loop received a reply */
        bool is_woken;             /* wake_fd is readable, and need not be written to again before it is read */
        BusSet loop_set;           /* for the program's loop, with all else that wakes it */
        BusSet bus_set;            /* the bus alone, for the descriptors of objects (object-fd.h) */
        struct MemberList statements;
        struct MemberList cursors; /* the oldest first */
        struct MemberList transactions; /* at most one for each database, and those that are over; and the pins */
        uint64_t n_pins;           /* that have begun */
        struct MemberList loads;
        struct MemberList watches;
        struct MemberList lives;
        struct MemberList channels; /* one for each database that was used */
        struct ChannelLink *channel_table[64]; /* the same by path (channel-link.c) */
        unsigned n_watches_lost;   /* those that are to be made again */
        unsigned n_channels_max;   /* how many channels it keeps open; 0: the service did not tell (channel-link.h) */
        sqlipc_transport transport;
        ClientZone zone;           /* all requests carry it */
        bool without_memory;       /* channels have none: the service does not know it, or it cannot be mapped */
        bool without_cached;       /* the service does not know this option, and keeps each statement and channel */
        DescribeOption describe_option;
        uint64_t small_usec;       /* when the last small result ended (transport.h); 0: none came */
        ChannelPolling polling;    /* for answers (channel-read.c) */
        bool patient;              /* a blocking call is running: the next read of a channel may wait for a moment */
        uint64_t n_turns;          /* of connection_process() */
        Turns turns;               /* of the loops that wait: connection_wait(), and the program's */
        unsigned n_quiet;          /* runs since the bus was last processed */
        unsigned forks;            /* connection_is_foreign() */
        sqlipc_cursor *spare_cursor; /* memory of the last closed cursor, for the next one */
        Error error;               /* of the last call that failed */
};

/* Checks if a program may still use the connection. 0; -EINVAL (NULL); -ENOTCONN (closed) or -ECHILD (forked), of which
 * the connection then has the details. */
int connection_check(sqlipc_connection *c);

/* Copies the failure to `connection`. Returns its negative errno. */
int connection_fail(sqlipc_connection *connection, const Error *e);

/* error_set_errno() in `connection` (NULL: only returns `r`). */
int connection_fail_errno(sqlipc_connection *connection, int r);

/* error_set_send() in `connection`. */
int connection_fail_send(sqlipc_connection *connection, int r);

/* Sets the failure -ELOOP. Returns it. */
int connection_fail_loop(sqlipc_connection *connection);

/* Sets a failure of connection_wait(), with a sentence for -ETIMEDOUT. */
int connection_fail_wait(sqlipc_connection *connection, int r);

/* Processes the messages that came, and advances every waiting cursor as far as possible. 1: something was done;
 * -EBUSY: it is running already; or another negative errno. */
int connection_process(sqlipc_connection *c);

/* The same for one object, outside of the program's loop, which is woken if others may have news. */
int connection_process_aside(sqlipc_connection *c);

/* When connection_process() must be called at the latest, because of a channel, a watch or a live query; UINT64_MAX: no
 * need to. */
uint64_t connection_deadline(const sqlipc_connection *c);

/* The `deadline` of a call that may wait for `timeout_usec` (UINT64_MAX: forever). */
uint64_t connection_deadline_after(uint64_t timeout_usec);

/* The initial `deadline` of a call that waits for the service's answer, for which a user may have to be asked. */
uint64_t connection_answer_deadline(const sqlipc_connection *c);

/* Waits for the bus, cancellation or `data`, a pipe or channel (CONNECTION_NO_DATA: none), and processes the first two.
 * `data` must follow from the state: the caller's next step reads or writes it. `*deadline`: 0 before the first wait of a
 * blocking call, which sets it; UINT64_MAX: none. 1: `data` has news; 0: look again; -ETIMEDOUT; -ELOOP: earlier waits ended
 * at once, again and again, for something that the caller does not read (turns.h). */
int connection_wait(sqlipc_connection *c, struct pollfd data, uint64_t *deadline);

#define CONNECTION_NO_DATA ((struct pollfd) { .fd = -1 })

/* A blocking call is about to read: a read from a channel may then wait for a moment. */
void connection_be_patient(sqlipc_connection *c);

/* Called by blocking calls that got everything from a channel. Processes the bus now and then, because its queue would
 * fill otherwise. */
void connection_look_at_bus(sqlipc_connection *c);

/* The current count of interrupts. An operation stores it when it begins, and is interrupted when the count has changed. */
unsigned connection_interrupts(const sqlipc_connection *c);

/* True if this process was forked after the connection was opened. It shares the descriptors with its parent, and may
 * only close them: any other use would take bytes, events and wake-ups from the parent. */
bool connection_is_foreign(const sqlipc_connection *c);

#endif
