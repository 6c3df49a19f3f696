/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory in which workers see the change sequences of all databases (docs/design/watching.md). Supervisor.
 *
 * Workers map it to read only: a seal keeps them from mapping it otherwise. A database file keeps its slot as long as the
 * service runs.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BASE_CHANGE_PAGE_H
#define SQLIPC_DAEMON_SUPERVISOR_BASE_CHANGE_PAGE_H

#include <stdint.h>

#define CHANGE_PAGE_N_SLOTS 65536u /* slot 0 counts the orders */

typedef struct ChangePage {
        int fd;           /* for workers; -1: there is none, and no sequence is known to them */
        uint64_t *slots;  /* NULL: as before */
        uint32_t n_used;  /* slots of databases, from 1 on */
} ChangePage;

/* Makes the memory. If that fails, this is logged, and the page has no slots. */
void change_page_init(ChangePage *p);
void change_page_done(ChangePage *p);

/* Returns a slot that was never used before; 0: there is none left. */
uint32_t change_page_take_slot(ChangePage *p);

/* Shows the number to all workers. Slot 0, of a database that has none, is allowed. */
void change_page_set(ChangePage *p, uint32_t slot, uint64_t number);

/* Shows to all workers that a message has gone to one of them which holds for each request that is made from now on. So a
 * worker that finds a request in the memory of a channel, and has not looked at its socket meanwhile, reads that first. */
void change_page_count_order(ChangePage *p);

#endif
