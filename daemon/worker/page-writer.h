/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Bytes -> a non-blocking pipe or socket: partial, full, closed. The last of them may be elsewhere, where
 * SQLite has them: the *tail*, for which there is room behind the others, should it have to move there.
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
        uint8_t *bytes;       /* borrowed; NULL: nothing to write */
        size_t size, sent;    /* the tail included */
        const uint8_t *tail;  /* borrowed; NULL: none */
        size_t tail_size;
        size_t last;          /* offset of the last piece of the run, SIZE_MAX: it is not in these bytes */
        bool announced;       /* PAGE_WRITER_LAST was said */
        uint64_t total;       /* bytes written since init */
} PageWriter;

static inline bool page_writer_is_idle(const PageWriter *w) {
        return !w->bytes;
}

/* Starts with `size` bytes at `bytes`, which stay until DONE. */
void page_writer_begin(PageWriter *w, uint8_t *bytes, size_t size);

/* The same, where the last `tail_size` of them are at `tail`, and stay there until DONE or page_writer_keep_tail(). */
void page_writer_begin_with(PageWriter *w, uint8_t *bytes, size_t size, const uint8_t *tail, size_t tail_size);

/* The tail's memory is about to go: what was not sent of it is copied. */
void page_writer_keep_tail(PageWriter *w);

/* The same with the end of the run in them, whose frame starts at `end_offset` and is at most PIPE_BUF long. */
void page_writer_begin_last(PageWriter *w, uint8_t *bytes, size_t size, size_t end_offset);

int page_writer_flush(PageWriter *w);

#endif
