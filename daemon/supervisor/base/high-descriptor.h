/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Moves descriptors away from the numbers that workers are started with. Supervisor. */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BASE_HIGH_DESCRIPTOR_H
#define SQLIPC_DAEMON_SUPERVISOR_BASE_HIGH_DESCRIPTOR_H

/* Duplicates `fd` to a number of 10 or more, close-on-exec, which the caller owns. Closes `fd` in any case. -errno; -EMFILE
 * also if the limit allows no number that high. */
int high_descriptor(int fd);

#endif
