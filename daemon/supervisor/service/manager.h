/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The object that owns everything else: loop, bus, configuration, the tables of all objects, and the state of single
 * modules. Supervisor.
 *
 *      Manager --> Peer, Session --> Statement, Run, Channel, Watch
 *              --> Database
 *              --> User --> Pipe, Group --> Worker
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_SERVICE_MANAGER_H
#define SQLIPC_DAEMON_SUPERVISOR_SERVICE_MANAGER_H

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "daemon/supervisor/access/listing.h"
#include "daemon/supervisor/access/pacing.h"
#include "daemon/supervisor/access/peer.h"
#include "daemon/supervisor/access/polkit.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/expiry.h"
#include "daemon/supervisor/bus/announcement.h"
#include "daemon/supervisor/runs/pipe.h"
#include "daemon/supervisor/runs/run-timer.h"
#include "daemon/supervisor/runs/watch-poll.h"
#include "daemon/supervisor/service/idle.h"
#include "daemon/supervisor/service/reload.h"
#include "daemon/supervisor/service/status.h"
#include "daemon/supervisor/workers/changes.h"
#include "daemon/supervisor/workers/worker-priority.h"
#include "daemon/supervisor/workers/worker-program.h"

typedef enum BusType { BUS_SYSTEM, BUS_USER, BUS_ADDRESS } BusType;

typedef struct Manager {
        Context context;         /* shared by the modules */

        /* The state of single modules. */
        WorkerProgram worker_program;
        char *engine_socket;
        PriorityTimer priorities;
        PipeStock pipes;
        Expiry statement_expiry;
        RunTimer run_timer;
        PeerWatch peer_watch;
        Polkit polkit;
        Listings listings;
        Pacing pacing;
        ChangeStock changes;
        WatchPoll watch_poll;
        Reload reload;
        Announcements announcements;
        Idle idle;
        Status status;

        bool name_released;      /* the bus confirmed it: no message that was sent to our name can arrive any more */
        int exit_code;           /* once `context.stopping` is set */
        sd_event_source *stop_timer;
        bool stop_spared;        /* see clock_timer_was_late() */
} Manager;

/* Makes the loop and the modules. Reads no configuration yet, see reload_first(). `config_directories` is copied; NULL: the
 * default ones. -errno. */
int manager_new(BusType type, char **config_directories, Manager **ret);
Manager *manager_free(Manager *m);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Manager, manager_free)

/* Connects (`address` for BUS_ADDRESS), exports the objects and requests the name. -EEXIST: another process owns it. */
int manager_connect(Manager *m, BusType type, const char *address);

/* Releases the name, ends all that clients hold, then the workers, then the loop. */
void manager_stop(Manager *m, int exit_code);

/* True if a client has a statement, run, channel or watch or waits for an answer, or if a reload is under way or not
 * announced to all peers. */
bool manager_is_busy(const Manager *m);

#endif
