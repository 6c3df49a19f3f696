/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. SQLite's heap, with a limit that holds for what it takes of the machine.
 *
 * sqlite3_hard_heap_limit64() counts the bytes that SQLite asked for. The C library needs more for each of them, so a
 * statement that compiles into millions of small blocks had a third more than HeapMax= (679 MiB of 512). Here each block
 * counts with what lies beside it.
 */
#ifndef SQLIPC_WORKER_HEAP_H
#define SQLIPC_WORKER_HEAP_H

#include <stdint.h>

/** Puts the limit, in bytes, before the allocator that SQLite has now. Called before sqlite3_initialize(). A request that
 * would pass the limit fails, as SQLITE_NOMEM. An SQLite result code. */
int heap_limit(uint64_t size_max);

#endif
