/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. What is said to the supervisor, over the control socket: nothing may be left out, so it waits for room.
 */
#ifndef REPORT_H
#define REPORT_H

#include "protocol.h"

/* Sends `m`. The supervisor always reads, so only a burst can fill the socket, for a moment. -EPIPE, -ECONNRESET: it is
 * gone; other -errno: it does not know, and will not. */
int report_send(int control_fd, const Message *m);

#endif
