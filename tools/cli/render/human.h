/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Formats amounts for people. Pure. The caller frees each result. */
#ifndef SQLIPC_TOOLS_CLI_RENDER_HUMAN_H
#define SQLIPC_TOOLS_CLI_RENDER_HUMAN_H

#include <stddef.h>
#include <stdint.h>

/** "1 row", "12,345 rows". */
char *human_rows(uint64_t n);
/** "999 B", "1.2 kB", "34.5 MB": one decimal, units of 1000. */
char *human_size(uint64_t n_bytes);
/** As configuration files write it: "64M", or "1500" if it is not a multiple of a unit. */
char *human_configured_size(uint64_t n_bytes);
/** "0.3 ms", "12.1 ms", "1.25 s", "2:05 min". */
char *human_time(uint64_t usec);
/** "12,345 rows, 3.4 MB, 12.1 MB/s, 0:03", or those parts that fit into `width` columns. Bytes and speed are left out if
 * `n_bytes` is 0. */
char *human_progress(uint64_t n_rows, uint64_t n_bytes, uint64_t usec, size_t width);

#endif
