/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The databases of its guests. A *guest* is a channel of the worker's user to another database than the
 * worker's own. Only a worker that reads whole databases has guests, and the limits of their databases are those of its own.
 * So a guest only needs another pool.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_GUEST_DATABASE_H
#define SQLIPC_DAEMON_WORKER_CORE_GUEST_DATABASE_H

#include "daemon/worker/core/job.h"

typedef struct GuestDatabase GuestDatabase;
struct GuestDatabase {
        Setup setup;         /* that of the worker with another path; `pool` borrows it */
        char *path;          /* owned */
        EnginePool *pool;
        unsigned n_channels; /* with none it is freed when the last of its connections has expired */
        GuestDatabase *next;
};

/* Gets the database for one more channel. -EBADMSG: this worker may have no guests; -ENOMEM. */
int guest_database_get(GuestDatabase **first, const JobContext *context, const char *path, bool immutable,
                       uint32_t change_slot, GuestDatabase **ret);

/* A channel to it is gone. NULL is allowed. */
void guest_database_put(GuestDatabase *g);

/* Closes connections that have been idle for long, and frees databases without channels and connections. Returns when to
 * call it again, UINT64_MAX: only after a connection was used. */
uint64_t guest_databases_expire(GuestDatabase **first, const Engine *engine, uint64_t now_usec);

/* Frees all of them. Their channels are gone. */
void guest_databases_free(GuestDatabase **first, const Engine *engine);

#endif
