/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. SQLite's heap, with a limit on the memory that it really takes.
 *
 * sqlite3_hard_heap_limit64() counts the bytes that SQLite asked for. The C library needs more for each block, so a
 * statement that compiles into millions of small blocks took a third more than HeapMax= (679 MiB instead of 512). Here each
 * block counts with its overhead.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_HEAP_H
#define SQLIPC_DAEMON_WORKER_SQLITE_HEAP_H

#include <stdint.h>

/* Sets the limit, in bytes, by wrapping the allocator that SQLite has now. Must be called before sqlite3_initialize(). An
 * allocation that would pass the limit fails with SQLITE_NOMEM. Returns an SQLite result code. */
int heap_limit(uint64_t size_max);

#endif
