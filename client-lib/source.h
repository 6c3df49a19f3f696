/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the bytes of a run arrive: one interface, and one implementation for each transport. Library.
 *
 *      source-pipe.h      through the pipe of a statement or a query
 *      source-channel.h   as answers on the channel of a database
 *      source-rows.h      as D-Bus values in replies
 *
 * A Fetch (fetch.h) reads from one source at a time. It calls next() only if its decoder has nothing left, so once for each
 * block of bytes, never for each row. Fetch and cursor do not know which source they have.
 */
#ifndef SQLIPC_CLIENT_LIB_SOURCE_H
#define SQLIPC_CLIENT_LIB_SOURCE_H

#include <poll.h>

#include "client-lib/call.h"

typedef struct Source Source;
typedef struct Fetch Fetch;

typedef struct SourceOperations {
        /* Reads bytes like read(), without waiting. More than 0; -EAGAIN; -ECONNRESET: nothing more comes, and `failure` has
         * the reason, if the service said one; -ENOBUFS: see ahead(); -EBADMSG; -ENOMEM; or the bus cannot be used. */
        ssize_t (*next)(Source *source, uint8_t *room, size_t size);

        /* Cancels what was requested. Once for each run, as soon as `number` is known. */
        void (*cancel)(Source *source);

        /* The run is read no further. True: its rest does not come here any more; false: the rest must be read, up to its
         * end, before the next run. */
        bool (*abandon)(Source *source);

        /* The descriptor to wait for; fd -1 if only the bus can bring news. */
        struct pollfd (*pollfd)(const Source *source);

        /* True if the service has said that the run started. The run's first frame says so, too. */
        bool (*started)(const Source *source);

        /* Closes the source, and drops what still comes. `call` is freed already. */
        void (*close)(Source *source);

        /* The next four may be NULL. */

        /* The bytes were invalid, so nothing else that comes from there can be trusted. */
        void (*distrust)(Source *source);

        /* After -ENOBUFS: the source whose unread answer is in front of this one; NULL: none. */
        Source *(*ahead)(const Source *source);

        /* After -ENOBUFS, if neither run may be sent again: keeps more of the unread answer. False: that was done before. */
        bool (*keep_more)(Source *source);

        /* The object to which the descriptor belongs, if other sources wait for it, too. NULL: the source's own. */
        const void *(*descriptor_owner)(const Source *source);

        /* Several runs share the connection that the source reads. It may be lost, or refuse a run, for reasons that have
         * nothing to do with the run, and an answer that is not read holds up others. `number` is valid only there: frames
         * name it. */
        bool shared;
} SourceOperations;

/* The part that all sources have. */
struct Source {
        const SourceOperations *operations;
        sqlipc_connection *connection;
        Fetch *fetch;            /* that reads it; not owned */
        const char *path;        /* database object; the fetch's */
        char *owner;             /* unique name of the daemon instance, NULL on a bus without names; owned */
        Call *call;              /* the request, or the call that asks if the daemon lives; NULL: none, or answered. Owned */
        Cancellation cancellation; /* of `call` */
        uint64_t number;         /* of the run; 0: not known yet */
        uint64_t waits_since;    /* the turn of connection_process() in which the program was told to wait */
        bool never_sent;         /* the source was lost before all of the request was sent */
        sd_bus_message *failure; /* the error reply that ended the run, after all bytes; owned */
};

/* Sets the sender of `reply` as the owner. -ENOMEM. */
int source_set_owner(Source *source, sd_bus_message *reply);

/* For sources whose numbers are the daemon's: sends Cancel to the owner. */
void source_cancel_on_bus(Source *source);

/* Sets `call`, which is taken, as the request. */
void source_set_call(Source *source, Call *call);

/* For sources whose request is a call: it was answered, or a frame had the number. */
bool source_was_answered(const Source *source);

/* Closes the source, frees what is in progress, and forgets the run. Accepts a source that is closed. */
void source_close(Source *source);

/* source_close(), and frees the owner. */
void source_done(Source *source);

#endif
