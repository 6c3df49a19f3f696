/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The changes of one database file, or of the data of one server: its change sequence, the tables that changed, and the
 * listeners that wait for changes of some tables (docs/design/watching.md). Supervisor.
 *
 *      a listener:   NEW --the present state is known--> on_ready(), IDLE
 *                    IDLE --changes_arm()--> ARMED --one of its tables changed--> DUE --a turn of the loop--> on_change()
 *                      |                                                           ^                              |
 *                      +---changes_arm(), and one has changed since then-----------+           IDLE <-------------+
 *
 * 1. A change costs as much as there are ARMED listeners of its tables. Listeners in other states cost nothing.
 * 2. DUE listeners are told some at a time, so that a commit with thousands of them does not hold up the loop.
 * 3. Numbers only grow. A commit of the lease's holder has the number that the holder gave it, which readers of its END
 *    know, if that is new; another change has a number that no holder can have given (CHANGE_STEP).
 * 4. A table that no listener has named is not kept. A listener that names it counts the last change of any such table as
 *    one of this table. The same holds for changes while nothing was watched: too many notices, never too few.
 * 5. A change of the schema may change the tables that a view reads, so all listeners then wait for any table.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_WORKERS_CHANGES_H
#define SQLIPC_DAEMON_SUPERVISOR_WORKERS_CHANGES_H

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "daemon/protocol/protocol.h"
#include "daemon/supervisor/base/change-page.h"
#include "daemon/supervisor/base/context.h"

typedef struct Observer Observer;
typedef struct Worker Worker;
typedef struct ChangeListener ChangeListener;
typedef struct ChangeTable ChangeTable;

/* The state of this module in the context. */
typedef struct ChangeStock {
        Context *context;        /* not owned */
        ChangePage page;
        GHashTable *files;       /* path -> Changes, owned; as long as the service runs */
        GQueue ready, due;       /* of ChangeListener, by link */
        sd_event_source *turn;   /* tells those that are ready or due */
        GQueue observers;        /* of Observer, by link: those that have a process */
        GQueue waiting;          /* of Observer, by link: those that wait for the place of one */
        uint64_t n_changes;      /* that were published */
        uint64_t first;          /* the first number of each file */
} ChangeStock;

typedef enum ChangeAwaits {
        CHANGE_AWAITS_WRITER = 1 << 0,   /* the lease's holder tells what it has committed until now */
        CHANGE_AWAITS_OBSERVER = 1 << 1, /* the observer tells the state of the file */
} ChangeAwaits;

/* How the process that observes a server gets there. */
typedef struct ServerAccess {
        EngineKind engine;
        Consistency consistency;
        char *connection, *password_file; /* owned; NULL: no password */
} ServerAccess;

/* The state that an observer has seen. */
typedef struct ObservedState {
        FileState state;         /* UNKNOWN: nothing */
        uint64_t n_committed;    /* of the file, when the observer was asked */
} ObservedState;

typedef struct Changes {
        ChangeStock *stock;      /* not owned */
        char *path;              /* of the file; of a server: its database_config_data() */
        ServerAccess *server;    /* owned; NULL: it is a file */
        bool immutable;          /* it never changes, and is not observed */
        uint32_t slot;           /* in the page; 0: none was left */
        uint64_t sequence;       /* the number of the last change */
        uint64_t all, others;    /* that of the last change of any table, or of one that is not in `tables` */
        ObservedState observed;  /* if this is a change is not decided before the writer has told its commits */
        ObservedState later;     /* seen since the writer was asked: it must wait for the next answer */
        FileState state;         /* after the last change that is known; UNKNOWN: what is found next is a change */
        GHashTable *tables;      /* name -> ChangeTable, owned */
        GQueue any;              /* of ChangeEntry of the ARMED listeners that wait for any table */
        GQueue starting;         /* of the ChangeListener that are NEW, by link, while something is awaited */
        unsigned awaits;         /* what is not known yet: a mask of ChangeAwaits */
        unsigned n_listeners;
        unsigned n_schemas;      /* how often the schema may have changed */
        bool watched;            /* there are listeners, or were a moment ago */
        uint64_t n_committed;    /* how many COMMITTED with commits came */
        Observer *observer;      /* owned; NULL: not watched, or never changes */
        sd_event_source *linger; /* ends `watched` when there have been no listeners for a while; NULL: not yet needed */
} Changes;

/* The place of an ARMED listener among those of a table. */
typedef struct ChangeEntry {
        ChangeListener *listener;
        GQueue *queue;           /* NULL: not ARMED */
        GList link;
} ChangeEntry;

struct ChangeListener {
        Changes *changes;        /* not owned; it outlives the listener */
        char **tables;           /* owned; NULL: any table */
        ChangeEntry *entries;    /* owned: one for each table, or one */
        unsigned n_entries;
        unsigned n_schemas;      /* of the file, when `tables` were found */
        bool armed;
        GQueue *queue;           /* NEW, DUE: in which it is, by `link` */
        GList link;
        void (*on_ready)(ChangeListener *l);  /* these two may free the listener */
        void (*on_change)(ChangeListener *l, uint64_t sequence); /* of the last change of its tables */
};

int changes_start(ChangeStock *s, Context *context);
void changes_stop(ChangeStock *s);

/* Returns the changes of the file, which stay the stock's. */
Changes *changes_of(Context *context, const char *path, bool immutable);

/* The same for the file or server of a database. */
Changes *changes_of_database(Context *context, const DatabaseConfig *d);

/* Adds a NEW listener, whose functions are set. `tables` is taken in any case; NULL: any table. They were found when
 * `n_schemas` of the file had this value. on_ready() is called in a later turn of the loop. -ENOMEM: other programs'
 * commits could not be noticed, and the listener was not added. */
int changes_add(Changes *c, ChangeListener *l, char **tables, unsigned n_schemas);

/* Takes the listener out, in any state, and frees what it owns. Without changes_add() it does nothing. */
void changes_remove(ChangeListener *l);

/* The IDLE listener waits for a change after `since`. */
void changes_arm(ChangeListener *l, uint64_t since);

/* Another program has changed any number of tables, or it is not known which tables a worker of ours has changed. */
void changes_on_foreign(Changes *c);

/* A state that is not the last one that is known is a commit of another program, unless the holder of the lease tells that
 * it is its own. changes_on_known() for CHANGE_AWAITS_OBSERVER when that is decided. */
void changes_on_observed(Changes *c, const ObservedState *o, bool replaced);

/* The schema has changed, which is a change of any table. */
void changes_on_schema(Changes *c);

/* COMMITTED came from the holder of the lease. */
void changes_on_committed(Worker *w, const Committed *committed);

/* One of the things that `awaits` names is known, or will not be. */
void changes_on_known(Changes *c, ChangeAwaits what);

/* The holder of the lease has answered WATCH, or there is none any more. */
void changes_on_writer_known(Changes *c);

/* The holder of the lease is dead, and its last commits may be unknown. */
void changes_on_writer_lost(Changes *c);

/* How changes by other programs are noticed, as clients are told. */
const char *changes_foreign(const Changes *c);

static inline bool changes_are_of_server(const Changes *c) {
        return c->server != NULL;
}

/* True if the holder of the lease must tell each commit. */
static inline bool changes_are_watched(const Changes *c) {
        return c->watched;
}

#endif
