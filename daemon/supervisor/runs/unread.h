/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The last bytes of a stream, which its reader has not taken although the worker is done. Supervisor.
 *
 * A run that only waits for its reader needs no process, so the worker hands these bytes over: at most a page and the END or
 * ERROR frame after it (unread_size_max()). They count for the uid. Past UNREAD_OF_USER_MAX the stream is cut off instead,
 * and its reader finds the end of the file without END or ERROR (I8).
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_UNREAD_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_UNREAD_H

#include "daemon/protocol/protocol.h"
#include "daemon/supervisor/base/user.h"

typedef struct Unread Unread;

/* Copies `bytes`. -ENOMEM; -ENOBUFS past UNREAD_OF_USER_MAX. */
int unread_new(User *u, Bytes bytes, Unread **ret);

/* Drops the bytes that were not written. NULL is allowed. Returns NULL. */
Unread *unread_free(Unread *u);

/* The size of all its bytes, as counted for the user. */
size_t unread_size(const Unread *u);

/* Writes as many bytes as `fd` takes without blocking. 1: all are written; 0: the reader must read first; -errno, with
 * -EPIPE if the reader is gone. */
int unread_write(Unread *u, int fd);

/* The bytes that are left. */
Bytes unread_left(const Unread *u);

/* `size` of them were written elsewhere. Returns as unread_write() does. */
int unread_note_written(Unread *u, size_t size);

#endif
