/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the rows of a run from a pipe with the contract's decoder, without the library, and copies each value. */
#ifndef SQLIPC_TOOLS_BENCH_CORE_PAGE_READ_H
#define SQLIPC_TOOLS_BENCH_CORE_PAGE_READ_H

#include "dbus-interfaces/wire/page-decoder.h"
#include "tools/bench/core/copy.h"

/** Reads from `fd` until the run has ended. -EIO: the run ended with an error, whose message is in `decoder`. -ECONNRESET:
 * the pipe ended first. Other errors are those of the decoder. */
int page_read_run(PageDecoder *decoder, int fd, Copy *copy);

#endif
