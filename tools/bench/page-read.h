/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The rows of a run out of a pipe of pages, without the library: by the contract's decoder, each value copied. */
#ifndef BENCH_PAGE_READ_H
#define BENCH_PAGE_READ_H

#include "copy.h"
#include "page-decoder.h"

/** Reads from `fd` until the run has ended. -EIO: in an error, whose message `decoder` has; -ECONNRESET: the pipe ended
 * first; what the decoder refuses. */
int page_read_run(PageDecoder *decoder, int fd, Copy *copy);

#endif
