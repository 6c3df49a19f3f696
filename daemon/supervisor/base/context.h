/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Data that the modules of the service share: loop, bus, configuration, and the tables of all objects. Supervisor.
 *
 * This header includes no other module of the supervisor. A table is of use only to code that includes the header of its
 * objects, and the state of a single module is opaque to all others. If something that a module notices concerns a module
 * above it, it is reported through `events`.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BASE_CONTEXT_H
#define SQLIPC_DAEMON_SUPERVISOR_BASE_CONTEXT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "daemon/configuration/configuration.h"

typedef struct Context Context;
typedef struct Pipe Pipe;

/* A reload is over. `r` is 0 if a configuration that was read after the call is in force now. -ESHUTDOWN: the service stops.
 * -EMFILE, -ENFILE, -ENOMEM, -EAGAIN: for lack of this resource the configuration could not be read, and the old one stays
 * in force. */
typedef void (*ReloadHandler)(Context *context, int r, void *userdata);

/* The events that a module reports to those above it. The Manager sets the functions. */
typedef struct ContextEvents {
        void (*place_offered)(Context *context); /* a worker may have become idle, so it could give up its place */
        void (*worker_gone)(Context *context);   /* a worker was reaped, or is given up as undead (worker-life.h) */
        void (*run_drained)(Context *context);   /* the last bytes of a run were written or dropped */
        void (*rights_changed)(Context *context); /* polkit's answers may have changed */
        void (*write_granted)(Context *context, const char *client); /* polkit lets the client write a database */
        void (*pipe_grown)(Context *context, Pipe *p); /* a client grew this pipe of a statement or run */
        /* The configuration must be read again. The handler (NULL: none) is called once, possibly before this returns. */
        void (*reload)(Context *context, ReloadHandler handler, void *userdata);
} ContextEvents;

struct Context {
        sd_event *event;
        sd_bus *bus;             /* NULL until the service connects */
        uid_t uid;               /* the service's own uid */
        unsigned n_cpus;
        uint64_t memory_size;    /* of the machine */
        Config *config;
        bool stopping;
        const ContextEvents *events;
        const struct WorkEvents *work; /* work-events.h */

        GHashTable *databases;   /* name -> published Database */
        GHashTable *peers;       /* unique name -> Peer */
        GHashTable *sessions;    /* unique name -> Session */
        GHashTable *users;       /* uid -> User */
        GHashTable *statements;  /* number -> Statement */
        GHashTable *runs;        /* number -> Run; PREPAREs under their statement's number */
        GHashTable *channels;    /* number -> Channel */
        GHashTable *watches;     /* number -> Watch */
        GHashTable *leases;      /* path -> Lease, while a worker has it or waits for it */
        GQueue workers;          /* of Worker, by context_link */
        uint64_t channels_max;   /* bound for all channels, from the limit of descriptors */
        uint64_t watch_pipes_max; /* the same for all watches that have a pipe */
        uint64_t argument_files_max, n_argument_files; /* the same for all calls that have a file */
        uint64_t n_watch_pipes;
        uint64_t n_undead;       /* how many workers were killed and are not dead yet; they hold no place (worker.h) */
        GQueue starved;          /* of Group that wants a worker, but a bound forbids it, by starved_link; in their order */
        uint64_t moved_usec;     /* when one of them last got a worker; 0: none did */

        uint64_t next_number;    /* of statements, runs and channels */
        uint64_t total_runs, total_rows, total_bytes;

        const sd_bus_message *released_call; /* only to be compared; NULL: the call being dispatched was not held */
        unsigned n_held_calls;   /* held-call.h */

        /* ---- The state of single modules; the Manager owns it ---- */
        struct WorkerProgram *worker_program;
        const char *engine_socket; /* of the unit for engine processes (worker-process.h) */
        struct PriorityTimer *priorities;
        struct PipeStock *pipes;
        struct Expiry *statement_expiry;
        struct RunTimer *run_timer;
        struct PeerWatch *peer_watch;
        struct Polkit *polkit;
        struct Listings *listings;
        struct Pacing *pacing;
        struct ChangeStock *changes;
        struct WatchPoll *watch_poll;
};

/* Makes the loop, empty tables and a configuration of defaults; the bus stays NULL. -errno; call context_done() then,
 * too. */
int context_init(Context *context, const ContextEvents *events);

/* Frees what is left; the tables must hold no objects that own others. */
void context_done(Context *context);

/* Returns a number for a new statement, run or channel (I5). */
uint64_t context_next_number(Context *context);

#endif
