/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Descriptors away from the numbers that workers are started with. Supervisor. */
#ifndef SQLIPC_HIGH_DESCRIPTOR_H
#define SQLIPC_HIGH_DESCRIPTOR_H

/* Moves `fd`, which is closed in any case, to a number of 10 or more: close-on-exec, the caller's. -errno; -EMFILE also
 * where no number as high is allowed. */
int high_descriptor(int fd);

#endif
