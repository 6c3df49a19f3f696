/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A reply that is built from data of any size. Supervisor.
 *
 * The bus disconnects a connection that sends a message of more than 32 MiB, and then all users would lose the service. So a
 * reply counts its bytes while it is built, and one of more than REPLY_SIZE_MAX is never sent: each function that appends
 * data of another party announces its size first, and gets -EMSGSIZE when the reply is full. bus_error_reply_refusal() turns
 * that into an error for the caller. sd-bus cannot tell the size of a message; the count is an upper bound of it.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_CALLS_REPLY_H
#define SQLIPC_DAEMON_SUPERVISOR_CALLS_REPLY_H

#include <glib.h>
#include <stddef.h>
#include <systemd/sd-bus.h>

/* Bound for the body. The other half of the bus's limit is left for headers, fixed entries and padding. */
#define REPLY_SIZE_MAX ((size_t) 16 * 1024 * 1024)

/* Upper bounds for the bytes that marshalling adds: to a value with its type, and to a struct or dictionary entry with its
 * keys. */
#define REPLY_VALUE_OVERHEAD ((size_t) 16)
#define REPLY_ENTRY_OVERHEAD ((size_t) 64)

typedef struct Reply {
        sd_bus_message *message; /* owned */
        size_t size;             /* upper bound of its body */
} Reply;

#define REPLY_INIT ((Reply) {})

/* Makes an empty reply to `call`; free it with reply_done(), even after an error. */
int reply_new(sd_bus_message *call, Reply *ret);

/* Announces `size` bytes that will be appended next. -EMSGSIZE if they would make the reply larger than REPLY_SIZE_MAX. */
int reply_count(Reply *r, size_t size);

/* Announces and appends a string. */
int reply_append_string(Reply *r, const char *text);

/* Announces and appends an entry of a dictionary whose value is an array of strings. `strings` NULL: the array is empty. */
int reply_append_strings(Reply *r, const char *key, char *const *strings);

/* Sends the reply. -EMSGSIZE if it has become too large; nothing is sent then. */
int reply_send(Reply *r);

void reply_done(Reply *r);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Reply, reply_done)

#endif
