/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The one object that owns everything: loop, bus, configuration, and the registries of what clients hold. Supervisor.
 *
 *      Manager --> Peer, Session --> Statement, Run, Channel
 *              --> Database
 *              --> User --> Pipe, Group --> Worker
 */
#ifndef SQLIPC_MANAGER_H
#define SQLIPC_MANAGER_H

#include <stdbool.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "announcement.h"
#include "configuration.h"
#include "database.h"
#include "idle.h"
#include "listing.h"
#include "manager-reload.h"
#include "pacing.h"
#include "peer.h"
#include "pipe-budget.h"
#include "polkit.h"
#include "refusal.h"
#include "run-timer.h"
#include "statement-expiry.h"
#include "status.h"
#include "worker-priority.h"
#include "worker-program.h"

typedef enum BusType { BUS_SYSTEM, BUS_USER, BUS_ADDRESS } BusType;

typedef struct Manager {
        sd_event *event;
        sd_bus *bus;
        uid_t uid;               /* our own */
        char **config_directories; /* NULL-terminated, the first wins */
        WorkerProgram worker_program;
        unsigned n_cpus;
        uint64_t memory_size;    /* of the machine */
        Config *config;

        GHashTable *databases;   /* name -> Database that is published */
        GHashTable *peers;       /* unique name -> Peer */
        GHashTable *sessions;    /* unique name -> Session */
        GHashTable *users;       /* uid -> User */
        GHashTable *statements;  /* number -> Statement */
        StatementExpiry statement_expiry;
        GHashTable *runs;        /* number -> Run; PREPAREs under their statement's number */
        RunTimer run_timer;
        GHashTable *channels;    /* number -> Channel */
        uint64_t channels_max;   /* of all, by the descriptors that there are */
        GQueue workers;          /* of Worker, by manager_link */
        uint64_t n_undead;       /* of them: killed, and not dead yet; they hold no place (worker.h) */
        unsigned n_starved;      /* groups that want a worker which a bound forbids */
        PriorityTimer priorities;
        PipeBudget pipe_budget;
        GQueue resting_pipes;    /* of Pipe, by rest_link */
        sd_event_source *rest_timer;
        bool pipes_are_short;    /* rest_timer is to look for those that grew */

        Polkit polkit;
        Listings listings;
        Pacing pacing;
        unsigned n_held_calls;   /* held-call.h */
        const sd_bus_message *released_call; /* to be compared only; NULL: the call being dispatched was not held */

        uint64_t next_number;    /* of statements, runs and channels */
        uint64_t total_runs, total_rows, total_bytes;

        Reload reload;
        Announcements announcements;
        Idle idle;
        Status status;

        bool stopping;
        bool name_released;      /* the bus said so: nothing that it sent to our name is on its way any more */
        int exit_code;
        sd_event_source *stop_timer;
        sd_event_source *read_ahead; /* peer.c */
        bool stop_spared;        /* clock_timer_was_late() */
} Manager;

/* Nothing is read yet, see manager_load(). `config_directories` NULL: the default ones. */
int manager_new(BusType type, char **config_directories, Manager **ret);
Manager *manager_free(Manager *m);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Manager, manager_free)

/* Connects (`address` for BUS_ADDRESS), exports the objects, takes the name. -EEXIST: another has it. */
int manager_connect(Manager *m, BusType type, const char *address);

/* Gives up the name, ends all that clients hold, then the workers, then the loop. */
void manager_stop(Manager *m, int exit_code);

/* Somebody has a statement, a run or a channel, or waits for an answer; a reload is under way, or not told to all. */
bool manager_is_busy(const Manager *m);

uint64_t manager_next_number(Manager *m);

/* The published database of this name; NULL. */
Database *manager_find_database(Manager *m, const char *name);

/* Workers that hold a place of WorkersTotalMax=. */
uint64_t manager_n_workers(const Manager *m);

/* Workers that have a run which wants a CPU. */
unsigned manager_n_busy_workers(const Manager *m);
uint64_t manager_n_runs(const Manager *m);
uint64_t manager_n_parked(const Manager *m);

/* A worker may have become idle: starved groups look whether they can have its place. */
void manager_offer_places(Manager *m);

/* A worker was reaped: groups that wanted one try again, the one that has waited longest first; if we stop, it may have been
 * the last. */
void manager_on_worker_gone(Manager *m);

/* The last bytes of a run were written or dropped: if we stop, it may have been the last. */
void manager_on_run_drained(Manager *m);

/* manager-bus.c, database-bus.c, log-control.c: the objects of the bus. */
int manager_bus_export(Manager *m);
int database_bus_export(Manager *m);
int log_control_export(Manager *m);

#endif
