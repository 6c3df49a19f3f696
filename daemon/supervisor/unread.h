/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The last bytes of a stream that its reader has not taken, although the worker is done. Supervisor.
 *
 * A run that only waits for its reader needs no process, so the worker hands these bytes over: at most a page and the END or
 * ERROR frame after it (unread_size_max()). They count for the uid; past UNREAD_OF_USER_MAX a stream is cut off instead, and
 * its reader finds the end of the file without END or ERROR (I8).
 */
#ifndef SQLIPC_UNREAD_H
#define SQLIPC_UNREAD_H

#include "protocol.h"
#include "user.h"

typedef struct Unread Unread;

/* A copy of `bytes`. -ENOMEM; -ENOBUFS past UNREAD_OF_USER_MAX. */
int unread_new(User *u, Bytes bytes, Unread **ret);

/* NULL is allowed. Returns NULL. */
Unread *unread_free(Unread *u);

/* Of all its bytes, as they count for the user. */
size_t unread_size(const Unread *u);

/* Writes what `fd` takes without blocking. 1: all is written; 0: the reader must read first; -errno, -EPIPE: it is gone. */
int unread_write(Unread *u, int fd);

#endif
