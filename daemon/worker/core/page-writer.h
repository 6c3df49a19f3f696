/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Writes bytes to a non-blocking pipe or socket, which may take a part of them, be full, or be closed; or
 * into the memory of a channel (channel-ring.h), whose socket then only wakes the reader. The
 * last bytes may be elsewhere, in the engine's memory: this is the *tail*. The buffer has room for the tail after the other
 * bytes, in case it must move there.
 *
 * The last bytes of a job are special: the supervisor must know that the pipe is free before the reader can know it
 * (otherwise a reader that asks for the next job at once gets Busy). So they are written in one piece of at most PIPE_BUF,
 * which a pipe that polls writable takes whole. The writer first answers PAGE_WRITER_LAST, the caller reports, and the next
 * call writes them.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_PAGE_WRITER_H
#define SQLIPC_DAEMON_WORKER_CORE_PAGE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dbus-interfaces/wire/channel-ring.h"

/* Results of page_writer_flush() beside -EPIPE (the reader is gone) and other errors. */
enum {
        PAGE_WRITER_FULL = 0, /* the pipe takes no more now */
        PAGE_WRITER_DONE = 1, /* all is written */
        PAGE_WRITER_LAST = 2, /* only the last piece is left, and the next call will write it */
};

typedef struct PageWriter {
        int fd;               /* borrowed */
        ChannelRing *ring;    /* borrowed: the bytes go there; NULL: to `fd` */
        uint8_t *bytes;       /* borrowed; NULL: nothing to write */
        size_t size, sent;    /* of all bytes, including the tail */
        const uint8_t *tail;  /* borrowed; NULL: none */
        size_t tail_size;
        size_t last;          /* offset of the last piece of the job, SIZE_MAX: it is not in these bytes */
        bool announced;       /* PAGE_WRITER_LAST was returned */
        uint64_t total;       /* bytes written since init */
} PageWriter;

static inline bool page_writer_is_idle(const PageWriter *w) {
        return !w->bytes;
}

/* Starts with `size` bytes at `bytes`, which must stay valid until DONE. */
void page_writer_begin(PageWriter *w, uint8_t *bytes, size_t size);

/* Does the same if the last `tail_size` of these bytes are at `tail`. They must stay valid until DONE or
 * page_writer_keep_tail(). */
void page_writer_begin_with(PageWriter *w, uint8_t *bytes, size_t size, const uint8_t *tail, size_t tail_size);

/* Copies the unsent part of the tail, whose memory is about to become invalid. */
void page_writer_keep_tail(PageWriter *w);

/* Does the same as page_writer_begin() if the bytes contain the end of the job, whose frame starts at `end_offset` and has
 * at most PIPE_BUF bytes. */
void page_writer_begin_last(PageWriter *w, uint8_t *bytes, size_t size, size_t end_offset);

/* Writes as much as the descriptor takes now. PAGE_WRITER_...; -EPIPE: the reader is gone; other -errno. */
int page_writer_flush(PageWriter *w);

#endif
