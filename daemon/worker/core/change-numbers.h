/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The change sequences of all databases, in memory that the supervisor writes and workers can only read
 * (docs/design/watching.md). A database has one u64, in its slot. So a worker knows the present number without a message.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_CHANGE_NUMBERS_H
#define SQLIPC_DAEMON_WORKER_CORE_CHANGE_NUMBERS_H

#include <stdint.h>

/* Maps the memory for the rest of the process. If it cannot be mapped, no number is known. */
void change_numbers_open(int fd);

/* The number of the last change that the supervisor knows; 0: not known. */
uint64_t change_number(uint32_t slot);

/* How many messages the supervisor has sent, to any worker, that must be read before a request begins which was made after
 * them; 0: not known. */
uint64_t change_numbers_orders(void);

#endif
