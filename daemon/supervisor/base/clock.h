/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The time of timers and deadlines. Supervisor. */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BASE_CLOCK_H
#define SQLIPC_DAEMON_SUPERVISOR_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* CLOCK_MONOTONIC, in microseconds. */
uint64_t clock_usec(void);

/* For a timer that ends something because it was silent for too long. True: the timer fires so late that this process was
 * stopped, perhaps the whole service, so the silence proves nothing: wait for another second. `spared` is the caller's, and
 * remembers that this has happened: it happens once for each wait, since a flood of messages can make the loop late, too. */
bool clock_timer_was_late(uint64_t due_usec, bool *spared);

#endif
