/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A watch: the service tells it when tables may have changed. Library.
 *
 *      table-watch.c    the watch at the service, as a member of the connection
 *      watch-next.c     functions of programs, which may wait
 *
 * Watch brings a pipe, into which the service writes the number of a change, and nothing more until that is read. On a bus
 * without descriptors WaitChange replaces it: the first call, with a number in the future, is answered at once, and
 * each later one when something has changed. It is sent again only after the program has taken the change, so a program
 * that never looks costs nothing.
 *
 * If the pipe ends or the service is lost, the watch is made again, at once and then after pauses that grow. Changes may
 * have been missed meanwhile, so that counts as one. The program hears of nothing else, unless the service says that the
 * watch is not possible any more.
 */
#ifndef SQLIPC_CLIENT_LIB_TABLE_WATCH_H
#define SQLIPC_CLIENT_LIB_TABLE_WATCH_H

#include "client-lib/call.h"
#include "client-lib/connection.h"
#include "client-lib/object-fd.h"
#include "client-lib/watch-life.h"

struct sqlipc_watch {
        Member member;
        sqlipc_connection *connection; /* a reference */
        WatchState state;
        char *path;                    /* database object */
        char *sql;                     /* the tables are those that it reads; NULL: `tables` are */
        char **tables;                 /* owned, in one piece; NULL: all */
        char *owner;                   /* unique name of the instance that has it; NULL on a bus without names */
        uint64_t number;               /* the daemon's; 0: none */
        uint64_t bus_generation;       /* of the bus on which it was made */
        unsigned n_interrupts;         /* of the connection, when it began */
        Call *call;                    /* Watch or WaitChange in progress */
        int fd;                        /* the read end of the pipe, -1: none; owned */
        uint64_t since;                /* report changes after this one; 0: those after the beginning */
        bool tells_beginning;          /* the beginning counts as a change */
        bool changed;                  /* the program does not know yet */
        uint64_t sequence;             /* of the last change; at first, of the beginning */
        uint64_t opened_at;            /* OPEN */
        uint64_t retry_at;             /* LOST: when the next attempt is due */
        unsigned n_failures;           /* in a row */
        unsigned n_opened;             /* how often the service has made it */
        ObjectFd object_fd;
        sqlipc_watch_callback on_ready; /* NULL: none */
        void *on_ready_userdata;
        Error error;                   /* OVER */
};

/* The tables that a watch is about. */
typedef struct WatchSubject {
        const char *database;
        const char *const *tables; /* NULL: all, or `sql` */
        const char *sql;           /* NULL: `tables` */
        uint64_t since;            /* 0: from now on */
} WatchSubject;

/* Makes a watch, and sends Watch if that is possible now. The subject is copied. */
int table_watch_new(sqlipc_watch **ret, sqlipc_connection *c, const WatchSubject *subject);

/* Goes on as far as possible without waiting. 1: there was a change, which is taken; -EAGAIN: nothing is new; or the
 * failure after which the watch is over, of which the connection then has the details. */
int table_watch_take(sqlipc_watch *w);

/* The things that can bring news. */
ObjectNews watch_news(const sqlipc_watch *w);

#endif
