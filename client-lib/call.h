/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One method call under way. Library.
 *
 * A call may outlive whoever made it: a program may finalize a statement whose Prepare was not answered yet, and the
 * statement that the late reply brings must then be given back, or it would stay with the daemon as long as the bus
 * connection. So call_free() on such a call leaves it to the bus, and `undo` gets the reply in place of `on_reply`.
 *
 * A call to the service's name that meets an instance which stops is sent again by itself, once: a restart is no failure.
 */
#ifndef SQLIPC_CALL_H
#define SQLIPC_CALL_H

#include "util.h"

typedef struct Call Call;
typedef struct sqlipc_connection sqlipc_connection;

/* The reply came, also an error. The owner frees the call first of all. */
typedef void (*call_handler)(sd_bus_message *reply, void *userdata);

/* A successful reply came to an abandoned call on the object `path`. */
typedef void (*call_undo)(sd_bus_message *reply, const char *path);

/* Sends `m` on its bus; the reply goes to `on_reply` from within connection_process(), or from the caller's loop if it
 * drives the bus. `undo`: NULL if a reply may simply get lost. `usec`: UINT64_MAX for no deadline. */
int call_new(Call **ret, sqlipc_connection *connection, sd_bus_message *m, call_handler on_reply, call_undo undo,
             void *userdata, uint64_t usec);

/* The options of Prepare, Fetch, Query and OpenRows. Errors tell SQLite's code and the offset into the SQL, which
 * error_set_reply() reads. `pages`: the method agrees on pages, so it is told the highest version that we read.
 * `run_timeout_usec`: UINT64_MAX for none, as for Prepare. */
int call_append_options(sd_bus_message *m, bool pages, uint64_t run_timeout_usec);

/* Checks the version that the service writes. -EBADMSG: none that we offered. */
int call_check_page_version(uint32_t version);

/* Forgets the call: on_reply will not be called. Accepts NULL. Returns NULL. */
Call *call_free(Call *call);

/* Sends METHOD(number, {}) on the database object `path` without asking for a reply, nor starting anybody: what cannot be
 * delivered has no addressee left. */
void call_notify(sd_bus *bus, const char *destination, const char *path, const char *method, uint64_t number);

#endif
