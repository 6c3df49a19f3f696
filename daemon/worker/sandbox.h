/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. What the process may do at most, whatever SQLite is talked into: limits of the kernel and a filter of system
 * calls.
 */
#ifndef SANDBOX_H
#define SANDBOX_H

#include "protocol.h"

/* Dies with the supervisor, dumps no core, gains no privileges, takes no more address space than the heap and 512 MiB.
 * -errno. */
int sandbox_limit(const Setup *setup);

/* From here on only the system calls of a reader: no socket, no exec, no fork, no executable memory, no signal to others;
 * all else is EPERM. -errno. */
int sandbox_filter(void);

#endif
