/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The object that owns everything else: loop, bus, configuration, and the registries of what clients hold. Supervisor.
 *
 *      Manager --> Peer, Session --> Statement, Run, Channel
 *              --> Database
 *              --> User --> Pipe, Group --> Worker
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_MANAGER_H
#define SQLIPC_DAEMON_SUPERVISOR_MANAGER_H

#include <stdbool.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "daemon/configuration/configuration.h"
#include "daemon/supervisor/announcement.h"
#include "daemon/supervisor/database.h"
#include "daemon/supervisor/idle.h"
#include "daemon/supervisor/listing.h"
#include "daemon/supervisor/manager-reload.h"
#include "daemon/supervisor/pacing.h"
#include "daemon/supervisor/peer.h"
#include "daemon/supervisor/pipe-budget.h"
#include "daemon/supervisor/polkit.h"
#include "daemon/supervisor/refusal.h"
#include "daemon/supervisor/run-timer.h"
#include "daemon/supervisor/statement-expiry.h"
#include "daemon/supervisor/status.h"
#include "daemon/supervisor/worker-priority.h"
#include "daemon/supervisor/worker-program.h"

typedef enum BusType { BUS_SYSTEM, BUS_USER, BUS_ADDRESS } BusType;

typedef struct Manager {
        sd_event *event;
        sd_bus *bus;
        uid_t uid;               /* the service's own uid */
        char **config_directories; /* NULL-terminated, in order of precedence */
        WorkerProgram worker_program;
        unsigned n_cpus;
        uint64_t memory_size;    /* of the machine */
        Config *config;

        GHashTable *databases;   /* name -> published Database */
        GHashTable *peers;       /* unique name -> Peer */
        GHashTable *sessions;    /* unique name -> Session */
        GHashTable *users;       /* uid -> User */
        GHashTable *statements;  /* number -> Statement */
        StatementExpiry statement_expiry;
        GHashTable *runs;        /* number -> Run; PREPAREs under their statement's number */
        RunTimer run_timer;
        GHashTable *channels;    /* number -> Channel */
        uint64_t channels_max;   /* bound for all channels, from the limit of descriptors */
        GQueue workers;          /* of Worker, by manager_link */
        uint64_t n_undead;       /* how many of them were killed and are not dead yet; they hold no place (worker.h) */
        unsigned n_starved;      /* groups that want a worker, but a bound forbids it */
        PriorityTimer priorities;
        PipeBudget pipe_budget;
        GQueue resting_pipes;    /* of Pipe, by rest_link */
        sd_event_source *rest_timer;
        bool pipes_are_short;    /* rest_timer looks for pipes that grew */

        Polkit polkit;
        Listings listings;
        Pacing pacing;
        unsigned n_held_calls;   /* held-call.h */
        const sd_bus_message *released_call; /* only to be compared; NULL: the call being dispatched was not held */

        uint64_t next_number;    /* of statements, runs and channels */
        uint64_t total_runs, total_rows, total_bytes;

        Reload reload;
        Announcements announcements;
        Idle idle;
        Status status;

        bool stopping;
        bool name_released;      /* the bus confirmed it: no message that was sent to our name can arrive any more */
        int exit_code;
        sd_event_source *stop_timer;
        sd_event_source *read_ahead; /* peer.c */
        bool stop_spared;        /* see clock_timer_was_late() */
} Manager;

/* Reads no file yet, see manager_load(). `config_directories` NULL: the default ones. */
int manager_new(BusType type, char **config_directories, Manager **ret);
Manager *manager_free(Manager *m);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Manager, manager_free)

/* Connects (`address` for BUS_ADDRESS), exports the objects and requests the name. -EEXIST: another process owns it. */
int manager_connect(Manager *m, BusType type, const char *address);

/* Releases the name, ends all that clients hold, then the workers, then the loop. */
void manager_stop(Manager *m, int exit_code);

/* True if a client has a statement, run or channel or waits for an answer, or if a reload is under way or not announced to
 * all peers. */
bool manager_is_busy(const Manager *m);

uint64_t manager_next_number(Manager *m);

/* Returns the published database of this name, or NULL. */
Database *manager_find_database(Manager *m, const char *name);

/* The number of workers that hold a place of WorkersTotalMax=. */
uint64_t manager_n_workers(const Manager *m);

/* The number of workers with a run that wants a CPU. */
unsigned manager_n_busy_workers(const Manager *m);
uint64_t manager_n_runs(const Manager *m);
uint64_t manager_n_parked(const Manager *m);

/* A worker may have become idle: starved groups check if they can have its place. */
void manager_offer_places(Manager *m);

/* A worker was reaped: groups that wanted a worker try again, in the order in which they began to wait. If the service
 * stops, this may have been the last worker. */
void manager_on_worker_gone(Manager *m);

/* The last bytes of a run were written or dropped. If the service stops, this may have been the last run. */
void manager_on_run_drained(Manager *m);

/* manager-bus.c, database-bus.c, log-control.c: the objects of the bus. */
int manager_bus_export(Manager *m);
int database_bus_export(Manager *m);
int log_control_export(Manager *m);

#endif
