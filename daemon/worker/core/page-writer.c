/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See page-writer.h. SIGPIPE is ignored by the process (serve.c).
 */
#include "daemon/worker/core/page-writer.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

void page_writer_begin(PageWriter *w, uint8_t *bytes, size_t size) {
        page_writer_begin_with(w, bytes, size, NULL, 0);
}

void page_writer_begin_with(PageWriter *w, uint8_t *bytes, size_t size, const uint8_t *tail, size_t tail_size) {
        w->bytes = bytes;
        w->size = size;
        w->sent = 0;
        w->tail = tail;
        w->tail_size = tail_size;
        w->last = SIZE_MAX;
        w->announced = false;
}

void page_writer_keep_tail(PageWriter *w) {
        size_t start = w->size - w->tail_size, from = w->sent > start ? w->sent : start;

        if (w->bytes && w->tail)
                memcpy(w->bytes + from, w->tail + (from - start), w->size - from);
        w->tail = NULL;
        w->tail_size = 0;
}

void page_writer_begin_last(PageWriter *w, uint8_t *bytes, size_t size, size_t end_offset) {
        page_writer_begin(w, bytes, size);
        w->last = size <= PIPE_BUF ? 0 : end_offset;
}

/* Makes one write of the next bytes, up to `limit`. With a tail `limit` must be the end. */
static ssize_t write_some(const PageWriter *w, size_t limit) {
        size_t start = w->size - w->tail_size;
        struct iovec parts[2];

        if (!w->tail)
                return write(w->fd, w->bytes + w->sent, limit - w->sent);
        if (w->sent >= start)
                return write(w->fd, w->tail + (w->sent - start), w->size - w->sent);
        parts[0] = (struct iovec) { .iov_base = w->bytes + w->sent, .iov_len = start - w->sent };
        parts[1] = (struct iovec) { .iov_base = (void *) w->tail, .iov_len = w->tail_size };
        return writev(w->fd, parts, 2);
}

/* If the ring is full, the reader wakes us. */
static ssize_t write_ring(ChannelRing *ring, const uint8_t *bytes, size_t size) {
        ssize_t n = channel_ring_write(ring, bytes, size);

        if (n != 0)
                return n;
        channel_ring_writer_sleeps(ring);
        return channel_ring_write(ring, bytes, size);
}

static int write_memory(PageWriter *w) {
        size_t start = w->size - w->tail_size, size;

        while (w->sent < w->size) {
                const uint8_t *from = w->tail && w->sent >= start ? w->tail + (w->sent - start) : w->bytes + w->sent;
                ssize_t n;

                size = w->tail && w->sent < start ? start - w->sent : w->size - w->sent;
                n = write_ring(w->ring, from, size);
                if (n < 0)
                        return (int) n;
                w->sent += (size_t) n;
                w->total += (size_t) n;
                if (n == 0)
                        return PAGE_WRITER_FULL;
        }
        return PAGE_WRITER_DONE;
}

/* If the socket is full, bytes wait there that wake the reader. A reader that cannot be woken is lost. */
static int wake_reader(PageWriter *w) {
        ssize_t n = 1;

        if (channel_ring_wake_reader(w->ring))
                do
                        n = write(w->fd, "", 1);
                while (n == 0 || (n < 0 && errno == EINTR));
        return n < 0 && errno != EAGAIN ? -EPIPE : 0;
}

static int flush_memory(PageWriter *w) {
        int r = write_memory(w), woken = wake_reader(w);

        return woken < 0 ? woken : r;
}

static int write_until(PageWriter *w, size_t limit) {
        while (w->sent < limit) {
                ssize_t n = write_some(w, limit);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN ? PAGE_WRITER_FULL : -errno;
                w->sent += (size_t) n;
                w->total += (size_t) n;
        }
        return PAGE_WRITER_DONE;
}

/* A pipe that polls writable has a free slot, so it takes PIPE_BUF bytes in one piece (pipe(7)). */
static int announce(PageWriter *w) {
        struct pollfd p = { .fd = w->fd, .events = POLLOUT };

        if (poll(&p, 1, 0) < 0)
                return errno == EINTR ? PAGE_WRITER_FULL : -errno;
        if (p.revents & (POLLERR | POLLHUP))
                return -EPIPE;
        if (!(p.revents & POLLOUT))
                return PAGE_WRITER_FULL;
        w->announced = true;
        return PAGE_WRITER_LAST;
}

int page_writer_flush(PageWriter *w) {
        int r;

        if (!w->bytes)
                return PAGE_WRITER_DONE;
        if (w->last != SIZE_MAX && !w->announced) {
                r = write_until(w, w->last);
                return r == PAGE_WRITER_DONE ? announce(w) : r;
        }
        r = w->ring ? flush_memory(w) : write_until(w, w->size);
        if (r == PAGE_WRITER_DONE) {
                w->bytes = NULL;
                w->tail = NULL;
        }
        return r;
}
