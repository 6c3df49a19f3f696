/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages with descriptors over a UNIX socket, and whole reads and writes, for rivals. EINTR is not told. */
#ifndef BENCH_PASSING_H
#define BENCH_PASSING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PASSING_FDS_MAX = 4 };

/** Sends one message: `size` bytes (0: none, over a datagram socket), `n_fds` descriptors, which stay the caller's. */
int passing_send(int socket, const void *bytes, size_t size, const int *fds, size_t n_fds);

/** Receives one message into `buffer`; its descriptors are the caller's to close. Returns its bytes; -EPROTO where it was
 * longer than `size`, or came with too many descriptors. At the end of a stream 0, as for an empty datagram. */
ssize_t passing_receive(int socket, void *buffer, size_t size, int ret_fds[static PASSING_FDS_MAX], size_t *ret_n_fds);

/** Reads exactly `size` bytes. -ENODATA at an early end, also where there are none. */
int passing_read_all(int fd, void *buffer, size_t size);
/** Writes all of them. */
int passing_write_all(int fd, const void *bytes, size_t size);

#endif
