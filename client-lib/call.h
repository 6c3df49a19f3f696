/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One method call in progress. Library.
 *
 * A call may outlive its owner: a program may finalize a statement before Prepare was answered. The statement in the late
 * reply must then be given back, or the daemon would keep it as long as the bus connection lasts. So call_free() hands such
 * a call over to the bus, and its reply goes to `undo` instead of `on_reply`.
 *
 * If a call to the service's name meets an instance that is shutting down, the call is sent again automatically, as often as
 * repeat.h allows, so that a restart of the service is not a failure.
 */
#ifndef SQLIPC_CLIENT_LIB_CALL_H
#define SQLIPC_CLIENT_LIB_CALL_H

#include "client-lib/error.h"
#include "client-lib/util.h"
#include "dbus-interfaces/wire/sqlipc-page.h"

typedef struct Call Call;
typedef struct sqlipc_connection sqlipc_connection;

/* The option that names the transaction or pin to which a call belongs. */
typedef struct CallPlace {
        const char *option; /* NULL: it belongs to none */
        uint64_t number;
} CallPlace;

/* Receives the reply, which may be an error. The owner must free the call before it does anything else. */
typedef void (*call_handler)(sd_bus_message *reply, void *userdata);

/* Receives a successful reply to an abandoned call on the object `path`. */
typedef void (*call_undo)(sd_bus_message *reply, const char *path);

/* Sends `m` on its bus. The reply goes to `on_reply` from within connection_process(), or from the caller's loop if that
 * drives the bus. `undo`: NULL if a late reply needs no undo. `usec`: UINT64_MAX for no deadline. */
int call_new(Call **ret, sqlipc_connection *connection, sd_bus_message *m, call_handler on_reply, call_undo undo,
             void *userdata, uint64_t usec);

/* The state of a Cancel for a call. */
typedef enum CancelState {
        CANCEL_NONE,    /* it was not sent */
        CANCEL_SENT,    /* it was not answered */
        CANCEL_OBEYED,  /* the call is answered soon, with the end of its run */
        CANCEL_REFUSED, /* the service was not reached, or knows no such call: it has answered it, or has not begun it */
} CancelState;

/* A Cancel for a call. */
typedef struct Cancellation {
        Call *call;        /* Cancel; NULL: it was not sent, or is answered. Owned */
        CancelState state;
} Cancellation;

/* Has the service cancel the run that `call` asks for, whose number is not known yet, unless that was done. `call` is then
 * answered soon, with the end of the run, and is not sent again. An error goes to `on_reply` if the service knows no such
 * run, or does not answer; `on_reply` calls call_note_cancel(). */
void call_cancel(Cancellation *c, Call *call, call_handler on_reply, void *userdata);
void call_note_cancel(Cancellation *c, sd_bus_message *reply);

/* Forgets the Cancel. */
void call_forget_cancel(Cancellation *c);

/* Appends the options of Fetch, Query, OpenRows, ExecuteBatch and Load, with the time zone of the program, and those of
 * Prepare, which has no `c` (NULL). They ask for errors with SQLite's code and the offset into the SQL, which
 * error_set_reply() reads. `pages`: true if the method negotiates the page format; the call then names
 * the highest version that the library knows. `describe`: false if the reply need not describe the statement.
 * `run_timeout_usec`: UINT64_MAX for none, as for Prepare. `file_fd`: borrowed (call-file.h); -1 for none. */
int call_append_options(sqlipc_connection *c, sd_bus_message *m, bool pages, bool describe, uint64_t run_timeout_usec,
                        CallPlace place, ForeignKeys foreign_keys, int file_fd);

/* Appends that option, unless there is none. */
int call_append_place(sd_bus_message *m, CallPlace place);

/* Appends the option for a setting, unless there is none. */
int call_append_foreign_keys(sd_bus_message *m, ForeignKeys foreign_keys);

/* The same for a Prepare of a statement that is kept. `cached`: the service may release it while it is idle. */
int call_append_prepare_options(const sqlipc_connection *c, sd_bus_message *m, bool cached, CallPlace place);

/* Checks that `sql` can be sent. 0, or a failure in `e` with the offset of the invalid byte. */
int call_check_sql(Error *e, const char *sql);

/* Gets the object path of `database`; the caller frees it. */
int call_database_path(const char *database, char **ret);

/* Checks the page version that the service uses. -EBADMSG: not a version that we offered. */
int call_check_page_version(uint32_t version);

/* Forgets the call: on_reply will not be called. Accepts NULL. Returns NULL. */
Call *call_free(Call *call);

/* Forgets a Begin or Load, and has the service end what it begins or has begun. Otherwise the lock of the database would be
 * held until the program reads the answer, which may take long. `undo` runs after that answer as before, in case the service
 * has refused the Cancel. */
Call *call_abandon(Call *call);

/* Sends METHOD(number, {}) to the database object `path` without asking for a reply, and without starting a service. If
 * it cannot be delivered, the receiver is gone and the message is not needed. */
void call_notify(sd_bus *bus, const char *destination, const char *path, const char *method, uint64_t number);

#endif
