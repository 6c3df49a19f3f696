/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Bytes -> a non-blocking pipe: partial, full, closed.
 *
 * The last bytes of a run are special: the supervisor must know that the pipe is free before the reader can (else a reader
 * that asks for the next run at once is told Busy). So they go in one piece of at most PIPE_BUF, which a pipe that polls
 * writable takes whole: the writer first answers PAGE_WRITER_LAST, the caller reports, and the next call writes them.
 */
#ifndef PAGE_WRITER_H
#define PAGE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What page_writer_flush() says beside -EPIPE (the reader is gone) and other errors. */
enum {
        PAGE_WRITER_FULL = 0, /* the pipe takes no more now */
        PAGE_WRITER_DONE = 1, /* all is written */
        PAGE_WRITER_LAST = 2, /* only the last piece is left, and the next call will write it */
};

typedef struct PageWriter {
        int fd;               /* borrowed */
        const uint8_t *bytes; /* borrowed; NULL: nothing to write */
        size_t size, sent;
        size_t last;          /* offset of the last piece of the run, SIZE_MAX: it is not in these bytes */
        bool announced;       /* PAGE_WRITER_LAST was said */
        uint64_t total;       /* bytes written since init */
} PageWriter;

static inline bool page_writer_is_idle(const PageWriter *w) {
        return !w->bytes;
}

/* Starts with `size` bytes at `bytes`, which stay until DONE. */
void page_writer_begin(PageWriter *w, const uint8_t *bytes, size_t size);

/* The same with the end of the run in them, whose frame starts at `end_offset` and is at most PIPE_BUF long. */
void page_writer_begin_last(PageWriter *w, const uint8_t *bytes, size_t size, size_t end_offset);

int page_writer_flush(PageWriter *w);

#endif
