/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A client's watch: it learns when some tables of a database may have changed (docs/design/watching.md). Supervisor.
 *
 *      Watch         a pipe to the client. A change writes its number, 8 bytes; the next one is written when the client has
 *                    read them, and only if there was one. So a client that never reads costs nothing, and loses nothing.
 *      WaitChange    the first change answers the call, and ends the watch
 *
 *      STARTING --the present state is known: Watch is answered--> WAITING --a change--> UNREAD --the client has read it--+
 *                                                                     ^                                                  |
 *                                                                     +--------------------------------------------------+
 *
 * A watch ends with its session, by Unwatch, when the client has closed its end of the pipe, and when the rights of the
 * client or the database change: then the client finds end-of-file, and may ask again.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_WATCH_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_WATCH_H

#include "daemon/supervisor/runs/session.h"
#include "daemon/supervisor/workers/changes.h"

#define WATCH_SINCE_NOW UINT64_MAX

/* The wishes of the call. */
typedef struct WatchSpec {
        uint64_t since;          /* changes with larger numbers count; WATCH_SINCE_NOW: those from the answer on */
        bool waits;              /* WaitChange */
        uint64_t until_usec;     /* WaitChange: by clock_usec(); UINT64_MAX: there is no limit */
        unsigned n_schemas;      /* of the file, at the call */
} WatchSpec;

typedef struct Watch {
        Context *context;        /* not owned */
        User *user;              /* reference */
        Session *session;        /* not owned */
        Database *database;      /* reference */
        uint64_t number;
        WatchSpec spec;
        ChangeListener listener;
        char **names;            /* owned: the tables that the client may see; NULL: any table */
        size_t held_size;        /* bytes that count for the user */
        int read_fd, write_fd;   /* -1: none, or given to the client */
        sd_event_source *io;     /* of write_fd */
        sd_bus_message *call;    /* owned: to be answered; NULL: it was */
        bool error_details;
        bool unread;             /* the pipe holds a number */
        uint64_t told;           /* the number of the last change that the client was told of */
        sd_event_source *timer;  /* WaitChange with a timeout */
        GList session_link;
} Watch;

/* Makes a watch, which answers `call` (borrowed; a stand-in of waiting-call.h) later. `tables` and `names` are taken,
 * also on failure; NULL: any table. LIMITS_EXCEEDED; -errno. */
int watch_new(Session *s, Database *d, const WatchSpec *spec, char **tables, char **names, sd_bus_message *call,
              bool error_details, Refusal *refusal);

/* Finds a watch of the peer on this database. UNKNOWN_RUN. */
int watch_find(Context *context, const Peer *p, const Database *d, uint64_t number, Watch **ret, Refusal *refusal);

/* Ends the watch; a call that waits gets the error. */
void watch_end(Watch *w, ErrorNumber error, const char *sentence);

/* Rights or databases have changed: ends the watches of clients that must ask again. */
void watches_on_rights_changed(Context *context);

#endif
