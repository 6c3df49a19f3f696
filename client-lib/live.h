/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A live query: a statement that runs again when its result may have changed, and the differences. Library.
 *
 *      live.c           its life: the times of its runs, and the changes that it tells
 *      live-run.h       one run, and the comparison of its result with the one before
 *      live-watch.h     its watch
 *      live-next.c      functions of programs, which may wait
 *      live-rows.h      the rows of a result, matched by their keys
 *      rows-difference.h  the changes from one list to another
 *
 * A live query uses a watch and cursors as a program does, but without waiting: live_advance() goes on as far as possible,
 * and live_news() says what can bring more. In an event loop the callbacks of the watch and the cursor call live_advance(),
 * so the statement runs even if the program does not ask.
 *
 * While differences are told, and while a run is under way, the watch is not read: all changes meanwhile are one, and lead
 * to one more run. A change that the last result has already, by its number, leads to none.
 *
 * If the statement cannot be compiled any more (a table was dropped), its watch fails. A second watch, of all tables, then
 * tells when to try again. It stays open until the first one is back, so no change is lost between the two.
 */
#ifndef SQLIPC_CLIENT_LIB_LIVE_H
#define SQLIPC_CLIENT_LIB_LIVE_H

#include "client-lib/bindings.h"
#include "client-lib/connection.h"
#include "client-lib/live-life.h"
#include "client-lib/live-rows.h"
#include "client-lib/object-fd.h"
#include "client-lib/parameter.h"

struct sqlipc_live {
        Member member;
        sqlipc_connection *connection; /* a reference */
        LiveState state;
        char *database, *sql;
        Bindings *bindings;            /* owns names and bytes of the parameters */
        Parameter *parameters;
        size_t n_parameters;
        unsigned *key_columns;
        size_t n_key_columns;
        uint64_t debounce_usec;

        sqlipc_watch *watch;           /* of the statement; NULL: it could not be compiled */
        sqlipc_watch *fallback;        /* of all tables; NULL: it is not needed */
        bool was_watched;              /* `watch` was open */
        bool tries_again;              /* `watch` will be opened when `fallback` is open */

        uint64_t due_at;               /* of the next run; UINT64_MAX: there is no reason for one */
        unsigned n_failures;           /* of runs, in a row */

        sqlipc_cursor *cursor;         /* RUNNING */
        unsigned run_n_opened;         /* RUNNING: n_opened of the watch when the run began */
        LiveIndex index;               /* RUNNING, after the first row: of `rows` */
        LiveRows rows;                 /* of the last result */
        bool has_result;
        char **names;                  /* of the columns; owned, in one piece */
        uint64_t sequence;             /* of the last result, */
        unsigned n_opened;             /* and n_opened of the watch when its run began */

        LiveRows next;                 /* RUNNING: of the result to come. TELLING: of the result that is told */
        RowsChange *changes;           /* TELLING */
        size_t n_changes, n_told;
        sqlipc_live_change change;     /* that the program has */

        ObjectFd object_fd;
        sqlipc_live_callback on_ready; /* NULL: none */
        void *on_ready_userdata;
        bool has_error;                /* that the program does not know yet */
        Error error;                   /* the same, or OVER */
};

/* Goes on as far as possible without waiting. True: there is something to tell, a difference or an error. */
bool live_advance(sqlipc_live *l);

/* The things that can bring news. */
ObjectNews live_news(const sqlipc_live *l);

/* Takes the next thing to tell, after live_advance() returned true. 1: `*ret` is a change; or an error, of which the
 * connection then has the details. */
int live_take(sqlipc_live *l, const sqlipc_live_change **ret);

/* Arranges that live_advance() is called when there is news: by the program's loop, through the connection's descriptor or
 * that of the object. 0, or a negative errno. */
int live_arm(sqlipc_live *l);

/* The statement is to run, `usec` from now or earlier. */
void live_set_due(sqlipc_live *l, uint64_t usec);

/* Keeps an error for the program. */
void live_report(sqlipc_live *l, const Error *e);

/* Makes a live query with copies of all arguments, and begins to watch. 0, or the failure, of which the connection then has
 * the details. */
int live_new(sqlipc_live **ret, sqlipc_connection *c, const char *database, const char *sql,
             const sqlipc_parameter *parameters, size_t n_parameters, const sqlipc_live_options *options);

#endif
