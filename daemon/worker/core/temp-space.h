/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The temporary space of the process: files without a name, and one count of the bytes in all of them, those
 * of an engine included. RLIMIT_FSIZE is per file, and kills.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_TEMP_SPACE_H
#define SQLIPC_DAEMON_WORKER_CORE_TEMP_SPACE_H

#include <stdbool.h>
#include <stdint.h>

/* Counts bytes that are about to be written. False: all files together would have more than `max`; nothing is counted. */
bool temp_space_take(uint64_t size, uint64_t max);

/* These bytes are gone. */
void temp_space_give(uint64_t size);

/* Creates a file without a name, where SQLite has its own. Returns the descriptor, which the caller closes; -errno. */
int temp_space_open(void);

#endif
