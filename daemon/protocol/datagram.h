/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One datagram of a SOCK_SEQPACKET socket, with descriptors. Used by supervisor and worker. Nothing here blocks.
 */
#ifndef SQLIPC_DAEMON_PROTOCOL_DATAGRAM_H
#define SQLIPC_DAEMON_PROTOCOL_DATAGRAM_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#define DATAGRAM_FDS_MAX 3 /* of a message: memfd, pipe or socket, memory of a channel */

/* Sends a datagram with at most DATAGRAM_FDS_MAX descriptors, which are borrowed. -errno. */
int datagram_send(int socket_fd, const void *bytes, size_t size, const int *fds, size_t n_fds);

/* Receives one into `h`; its descriptors are close-on-exec. Returns the size, 0 at the end of file, or -errno. */
ssize_t datagram_receive(int socket_fd, struct msghdr *h);

/* Takes all descriptors that came with a datagram, at most `n_max`. The others are closed. Returns how many there are. */
size_t datagram_take_fds(struct msghdr *h, int *ret_fds, size_t n_max);

#endif
