/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. What a channel's client sends (sqlipc-channel.h): bytes -> whole requests. Pure: no I/O; owns its buffer.
 * Every byte is hostile.
 *
 *      reserve -> room, the caller reads into it, commit -> 0 or more requests more are whole
 *      take    -> the next of them, in place; it stays there, whatever else arrives, until done
 *
 * Headers are checked as they arrive, so a CANCEL acts when it is read and not when its turn comes: on the request that was
 * taken (`cancelled`), or on one that waits, which take then says. The buffer grows as bytes arrive, never by an announced
 * length.
 */
#ifndef CHANNEL_INPUT_H
#define CHANNEL_INPUT_H

#include <stdbool.h>

#include "sqlipc-channel.h"

typedef struct ChannelInput {
        uint8_t *bytes;              /* owned */
        size_t capacity;
        size_t start, scanned, fill; /* whole requests: [start, scanned), part of one: [scanned, fill) */
        size_t payload_max;          /* of a request; the rest of a larger one is dropped as it arrives */
        uint64_t scanned_number;     /* of the last PREPARE, FETCH or QUERY that is whole */
        uint64_t taken_number;       /* of the last that was taken */
        uint64_t discard;            /* bytes to come of a request that is too large */
        bool lent;                   /* what was taken is in use: nothing moves */
        bool cancelled;              /* a CANCEL of it came */
        bool invalid;                /* behind `scanned` is no request, and so nothing to be believed */
} ChannelInput;

typedef struct ChannelRequest {
        RequestKind kind;            /* any but CANCEL */
        uint64_t number;
        const uint8_t *payload;      /* borrowed until channel_input_done() */
        size_t size;
        bool cancelled;              /* before its turn came */
        bool too_large;              /* over payload_max; it has no payload */
} ChannelRequest;

/* -ENOMEM. */
int channel_input_init(ChannelInput *in, size_t payload_max);
void channel_input_free(ChannelInput *in);

/* Goes on where another worker's input ended: what it held, from `start` on. Once, before anything else. -EBADMSG: this is
 * nothing that one holds; -ENOMEM. */
int channel_input_restore(ChannelInput *in, const uint8_t *bytes, size_t size, uint64_t taken_number, uint64_t discard);

/* Where the next bytes go. *ret_size is 0 where enough waits already, see CHANNEL_AHEAD_SIZE. -ENOMEM. */
int channel_input_reserve(ChannelInput *in, uint8_t **ret_room, size_t *ret_size);
void channel_input_commit(ChannelInput *in, size_t size);

/* The next request. 1; 0: none is whole; -EBADMSG: there will be none any more; -ENOMEM. */
int channel_input_take(ChannelInput *in, ChannelRequest *ret);

/* What was taken is no longer needed. */
void channel_input_done(ChannelInput *in);

/* Something is to be done: a request, or the end of them, can be taken. */
static inline bool channel_input_waits(const ChannelInput *in) {
        return in->start < in->scanned || in->invalid;
}

/* A request has begun to arrive, and is not whole. */
static inline bool channel_input_is_partial(const ChannelInput *in) {
        return !in->invalid && (in->scanned < in->fill || in->discard > 0);
}

#endif
