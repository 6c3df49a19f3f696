/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See channel-input.h.
 *
 * Facts about a request that waits for its turn are stored in the flags of its header, which must be zero in everything that
 * a client sends. So there is no second list beside the buffer, and the marks move with the channel.
 */
#include "daemon/worker/core/channel-input.h"

#include <errno.h>
#include <stdlib.h>

#include "dbus-interfaces/wire/time-zone.h"

#define CAPACITY (2 * CHANNEL_AHEAD_SIZE) /* initial; the kernel provides its memory only when bytes arrive */

enum {
        MARK_CANCELLED = 1 << 15,
        MARK_TOO_LARGE = 1 << 14,
};

typedef struct Header {
        size_t size; /* of the payload */
        uint8_t kind, version;
        uint16_t flags;
        uint64_t number;
} Header;

static Header load_header(const uint8_t *at) {
        return (Header) {
                .size = load_le32(at),
                .kind = at[4],
                .version = at[5],
                .flags = load_le16(at + 6),
                .number = load_le64(at + 8),
        };
}

/* Of the others, `number` is something else. */
static bool is_numbered(uint8_t kind) {
        return kind != REQUEST_CANCEL && kind != REQUEST_FINALIZE && kind != REQUEST_FOREIGN_KEYS &&
               kind != REQUEST_TIME_ZONE && kind != REQUEST_LOCK_WAIT;
}

static size_t frame_size(const Header *h) {
        return FRAME_HEADER_SIZE + frame_padded(h->size);
}

int channel_input_init(ChannelInput *in, size_t payload_max) {
        *in = (ChannelInput) {
                .bytes = malloc(CAPACITY),
                .capacity = CAPACITY,
                .payload_max = payload_max < CHANNEL_REQUEST_SIZE_MAX ? payload_max : CHANNEL_REQUEST_SIZE_MAX,
        };
        return in->bytes ? 0 : -ENOMEM;
}

void channel_input_free(ChannelInput *in) {
        free(in->bytes);
        *in = (ChannelInput) {};
}

/* ---- bytes that arrive ---- */

/* `marks`: flags that the header may have. */
static bool header_is_valid(const ChannelInput *in, const Header *h, unsigned marks) {
        if (h->version != SQLIPC_PAGE_VERSION || (h->flags & ~marks) != 0)
                return false;
        switch (h->kind) {
        case REQUEST_PREPARE:
        case REQUEST_FETCH:
        case REQUEST_QUERY:
                return h->number > in->scanned_number && h->size <= CHANNEL_REQUEST_SIZE_MAX;
        case REQUEST_CANCEL:
        case REQUEST_FINALIZE:
        case REQUEST_LOCK_WAIT:
                return h->size == 0;
        case REQUEST_FOREIGN_KEYS:
                return h->size == 0 && h->number < FOREIGN_KEYS_MAX_;
        case REQUEST_TIME_ZONE:
                return h->size <= TIME_ZONE_SIZE_MAX && h->number == 0;
        default:
                return false;
        }
}

/* A request that gets no answer has no other way to fail. `h` is whole. */
static bool content_is_valid(const ChannelInput *in, const Header *h) {
        return h->kind != REQUEST_TIME_ZONE ||
               time_zone_is_valid((const char *) in->bytes + in->scanned + FRAME_HEADER_SIZE, h->size);
}

static void cancel(ChannelInput *in, uint64_t number) {
        if (in->lent && number == in->taken_number)
                in->cancelled = true;
        if (number <= in->taken_number || number > in->scanned_number)
                return;
        for (size_t at = in->start; at < in->scanned;) {
                Header h = load_header(in->bytes + at);

                if (h.number == number && is_numbered(h.kind)) {
                        store_le16(in->bytes + at + 6, h.flags | MARK_CANCELLED);
                        return;
                }
                at += frame_size(&h);
        }
}

/* Keeps only the header of the request at `scanned`, with a size of 0. */
static void discard(ChannelInput *in, const Header *h) {
        uint8_t *header = in->bytes + in->scanned;
        size_t have = in->fill - in->scanned - FRAME_HEADER_SIZE, all = frame_padded(h->size);
        size_t gone = have < all ? have : all;

        store_le32(header, 0);
        store_le16(header + 6, h->flags | MARK_TOO_LARGE);
        memmove(header + FRAME_HEADER_SIZE, header + FRAME_HEADER_SIZE + gone, have - gone);
        in->fill -= gone;
        in->discard = all - gone;
}

static void scan(ChannelInput *in, unsigned marks) {
        while (!in->invalid && in->fill - in->scanned >= FRAME_HEADER_SIZE) {
                Header h = load_header(in->bytes + in->scanned);

                if (!header_is_valid(in, &h, marks)) {
                        in->invalid = true;
                        return;
                }
                if (h.size > in->payload_max && is_numbered(h.kind)) {
                        discard(in, &h);
                        h.size = 0;
                }
                if (in->fill - in->scanned < frame_size(&h))
                        return;
                if (!content_is_valid(in, &h)) {
                        in->invalid = true;
                        return;
                }
                if (is_numbered(h.kind))
                        in->scanned_number = h.number;
                else
                        in->passed = true;
                if (h.kind == REQUEST_CANCEL)
                        cancel(in, h.number);
                in->scanned += frame_size(&h);
        }
}

/* Makes room for at least `size` bytes after `fill`. */
static int make_room(ChannelInput *in, size_t size) {
        size_t capacity = in->capacity;
        uint8_t *bytes;

        if (capacity - in->fill >= size)
                return 0;
        if (in->start > 0) {
                memmove(in->bytes, in->bytes + in->start, in->fill - in->start);
                in->scanned -= in->start;
                in->fill -= in->start;
                in->start = 0;
        }
        while (capacity - in->fill < size)
                capacity *= 2;
        if (capacity == in->capacity)
                return 0;
        bytes = realloc(in->bytes, capacity);
        if (!bytes)
                return -ENOMEM;
        in->bytes = bytes;
        in->capacity = capacity;
        return 0;
}

/* Resets the empty buffer, and frees the memory that a large request took. */
static void start_over(ChannelInput *in) {
        in->start = in->scanned = in->fill = 0;
        if (in->capacity > CAPACITY) {
                uint8_t *bytes = realloc(in->bytes, CAPACITY);

                in->bytes = bytes ?: in->bytes;
                in->capacity = bytes ? CAPACITY : in->capacity;
        }
}

int channel_input_reserve(ChannelInput *in, uint8_t **ret_room, size_t *ret_size) {
        size_t waiting = in->fill - in->start, room;

        *ret_size = 0;
        if (in->invalid || ((in->lent || in->start < in->scanned) && waiting >= CHANNEL_AHEAD_SIZE))
                return 0;
        if (!in->lent) {
                int r;

                if (waiting == 0)
                        start_over(in);
                r = make_room(in, CHANNEL_AHEAD_SIZE);
                if (r < 0)
                        return r;
        }
        room = in->capacity - in->fill;
        if (in->lent && room > CHANNEL_AHEAD_SIZE - waiting)
                room = CHANNEL_AHEAD_SIZE - waiting;
        *ret_room = in->bytes + in->fill;
        *ret_size = room;
        return 0;
}

void channel_input_commit(ChannelInput *in, size_t size) {
        size_t gone = in->discard < size ? (size_t) in->discard : size;

        if (gone > 0) {
                memmove(in->bytes + in->fill, in->bytes + in->fill + gone, size - gone);
                in->discard -= gone;
                in->passed = true;
        }
        in->fill += size - gone;
        scan(in, 0);
}

int channel_input_restore(ChannelInput *in, const uint8_t *bytes, size_t size, uint64_t taken_number, uint64_t left) {
        int r;

        if (left > frame_padded(CHANNEL_REQUEST_SIZE_MAX))
                return -EBADMSG;
        r = make_room(in, size);
        if (r < 0)
                return r;
        if (size > 0)
                memcpy(in->bytes, bytes, size);
        in->fill = size;
        in->taken_number = in->scanned_number = taken_number;
        scan(in, MARK_CANCELLED | MARK_TOO_LARGE);
        in->discard += left; /* they belong to the last request, so none has begun after it */
        return 0;
}

/* ---- requests that are taken ---- */

static ChannelRequest request_at(const ChannelInput *in, size_t at, const Header *h) {
        return (ChannelRequest) {
                .kind = h->kind,
                .number = h->number,
                .payload = in->bytes + at + FRAME_HEADER_SIZE,
                .size = h->size,
                .cancelled = h->flags & MARK_CANCELLED,
                .too_large = h->flags & MARK_TOO_LARGE,
        };
}

bool channel_input_look(const ChannelInput *in, size_t *at, ChannelRequest *ret) {
        while (*at < in->scanned) {
                Header h = load_header(in->bytes + *at);

                *ret = request_at(in, *at, &h);
                *at += frame_size(&h);
                if (h.kind != REQUEST_CANCEL)
                        return true;
        }
        return false;
}

int channel_input_take(ChannelInput *in, ChannelRequest *ret) {
        while (in->start < in->scanned) {
                Header h = load_header(in->bytes + in->start);
                int r;

                if (h.kind == REQUEST_CANCEL) { /* it has already acted */
                        in->start += frame_size(&h);
                        continue;
                }
                /* makes room for later bytes, so that a CANCEL can be read while this request must not move */
                if (in->fill - in->start - frame_size(&h) < CHANNEL_AHEAD_SIZE) {
                        r = make_room(in, CHANNEL_AHEAD_SIZE - (in->fill - in->start - frame_size(&h)));
                        if (r < 0)
                                return r;
                }
                *ret = request_at(in, in->start, &h);
                in->start += frame_size(&h);
                in->lent = true;
                in->cancelled = false;
                if (is_numbered(h.kind))
                        in->taken_number = h.number;
                return 1;
        }
        return in->invalid ? -EBADMSG : 0;
}

void channel_input_done(ChannelInput *in) {
        in->lent = false;
}
