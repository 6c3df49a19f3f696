/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages with descriptors over a UNIX socket, and complete reads and writes, for rivals. They retry after EINTR. */
#ifndef SQLIPC_TOOLS_BENCH_CORE_PASSING_H
#define SQLIPC_TOOLS_BENCH_CORE_PASSING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PASSING_FDS_MAX = 4 };

/** Sends one message: `size` bytes (0 only for datagram sockets) and `n_fds` descriptors, which the caller still owns. */
int passing_send(int socket, const void *bytes, size_t size, const int *fds, size_t n_fds);

/** Receives one message into `buffer`; the caller closes its descriptors. Returns the number of bytes: 0 at the end of a
 * stream and for an empty datagram. -EPROTO: the message is longer than `size` or has too many descriptors. */
ssize_t passing_receive(int socket, void *buffer, size_t size, int ret_fds[static PASSING_FDS_MAX], size_t *ret_n_fds);

/** Reads exactly `size` bytes. -ENODATA: the end came earlier, perhaps before the first byte. */
int passing_read_all(int fd, void *buffer, size_t size);
/** Writes all `size` bytes. */
int passing_write_all(int fd, const void *bytes, size_t size);

#endif
