/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Turns the bytes that a channel's client sends (sqlipc-channel.h) into whole requests. Pure: no I/O; owns its
 * buffer. Every byte is treated as hostile.
 *
 *      reserve -> room for bytes; the caller reads into it; commit -> 0 or more requests have become whole
 *      take    -> the next whole request, in place; it stays there until done, even if more bytes arrive
 *
 * Headers are checked as they arrive, so a CANCEL acts when it is read and not when its turn comes. It can name the request
 * that was taken (then `cancelled` is set here), or one that still waits (then take reports that request as cancelled). The
 * buffer grows as bytes arrive, never by an announced length.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_CHANNEL_INPUT_H
#define SQLIPC_DAEMON_WORKER_CORE_CHANNEL_INPUT_H

#include <stdbool.h>

#include "dbus-interfaces/wire/sqlipc-channel.h"

typedef struct ChannelInput {
        uint8_t *bytes;              /* owned */
        size_t capacity;
        size_t start, scanned, fill; /* whole requests: [start, scanned); a partial one: [scanned, fill) */
        size_t payload_max;          /* of one request; the rest of a larger one is dropped as it arrives */
        uint64_t scanned_number;     /* of the last PREPARE, FETCH or QUERY that is whole */
        uint64_t taken_number;       /* of the last request that was taken */
        uint64_t discard;            /* bytes still to arrive of a request that is too large */
        bool lent;                   /* the request that was taken is in use: the buffer must not move */
        bool cancelled;              /* a CANCEL for the request that was taken has arrived */
        bool passed;                 /* bytes that begin no request have arrived since the owner cleared this: a CANCEL,
                                      * FINALIZE, FOREIGN_KEYS, TIME_ZONE or LOCK_WAIT, or more of a request that is too
                                      * large */
        bool invalid;                /* the bytes after `scanned` are not a request, so nothing after them is decoded */
} ChannelInput;

typedef struct ChannelRequest {
        RequestKind kind;            /* any except CANCEL */
        uint64_t number;
        const uint8_t *payload;      /* borrowed until channel_input_done() */
        size_t size;
        bool cancelled;              /* a CANCEL arrived before the request was taken */
        bool too_large;              /* larger than payload_max; the payload was dropped */
} ChannelRequest;

/* Returns -ENOMEM. */
int channel_input_init(ChannelInput *in, size_t payload_max);
void channel_input_free(ChannelInput *in);

/* Continues with the bytes of another worker's input, from its `start` on. May be called only right after init.
 * -EBADMSG: the bytes are not what an input holds; -ENOMEM. */
int channel_input_restore(ChannelInput *in, const uint8_t *bytes, size_t size, uint64_t taken_number, uint64_t discard);

/* Returns the room for the next bytes. *ret_size is 0 if enough bytes wait already, see CHANNEL_AHEAD_SIZE. -ENOMEM. */
int channel_input_reserve(ChannelInput *in, uint8_t **ret_room, size_t *ret_size);
/* The caller has read `size` bytes into that room. */
void channel_input_commit(ChannelInput *in, size_t size);

/* Takes the next request. 1: `ret` has it; 0: no request is whole; -EBADMSG: the client broke the protocol, so there will
 * be no more requests; -ENOMEM. */
int channel_input_take(ChannelInput *in, ChannelRequest *ret);

/* Looks at the request at `*at`, which begins as in->start, and goes on to the next one. False: no more are whole. */
bool channel_input_look(const ChannelInput *in, size_t *at, ChannelRequest *ret);

/* Releases the request that was taken. */
void channel_input_done(ChannelInput *in);

/* True if channel_input_take() would return a request, or -EBADMSG. */
static inline bool channel_input_waits(const ChannelInput *in) {
        return in->start < in->scanned || in->invalid;
}

/* True if a request has begun to arrive, but is not whole. */
static inline bool channel_input_is_partial(const ChannelInput *in) {
        return !in->invalid && (in->scanned < in->fill || in->discard > 0);
}

#endif
