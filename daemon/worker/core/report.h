/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Sends messages to the supervisor over the control socket. No message may be lost, so it waits for room.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_REPORT_H
#define SQLIPC_DAEMON_WORKER_CORE_REPORT_H

#include "daemon/protocol/protocol.h"

/* Sends `m`. The supervisor always reads, so only a burst can fill the socket, and only for a moment. -EPIPE, -ECONNRESET:
 * the supervisor is gone; other -errno: the message was not sent, and will not be. */
int report_send(int control_fd, const Message *m);

#endif
