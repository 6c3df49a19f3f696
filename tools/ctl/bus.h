/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The service on the bus, one blocking call at a time. */
#ifndef SQLIPC_TOOLS_CTL_BUS_H
#define SQLIPC_TOOLS_CTL_BUS_H

#include "tools/ctl/context.h"
#include "tools/ctl/variant.h"

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(sd_bus_error, sd_bus_error_free)

/* The effects that a call may have: the bus starts the service; none, since the absence of the service is a valid answer; or
 * it changes the service's state, and polkit may ask the user to authenticate, which may take minutes. */
typedef enum Start { START_SERVICE, START_NOTHING, START_AUTHENTICATION } Start;

/** Opens the bus that the options name. Prints an error if it cannot. Returns 0 or a negative error. */
int bus_open(Context *c);

/** Types of the replies that several verbs use. */
#define REPLY_DATABASES "(a(soa{sv})a{sv})"
#define REPLY_WORK "(a(tosa{sv})a{sv})"
#define REPLY_CLIENTS "(a(sa{sv})a{sv})"
#define REPLY_DICTIONARY "(a{sv})"

/** Calls a method of the service with arguments of `types` (as sd_bus_message_append() does), and returns the body of the
 * reply, a tuple of the type `reply_type`; the caller unrefs it. On a negative result nothing has been printed yet, see
 * bus_failed(); `error` has the reason. A reply of another type is -EBADMSG, so the caller needs no further checks of it.
 * The call is sent again if that does no harm (call-failure.h). */
int bus_call(Context *c, Start start, const char *path, const char *interface, const char *method, const char *reply_type,
             sd_bus_error *error, GVariant **ret, const char *types, ...);
/** bus_call() of a method of the manager, without options. Prints an error if it fails. */
int bus_call_manager(Context *c, const char *method, const char *reply_type, GVariant **ret);

/** The message about a call that failed: the reason, and advice. The caller frees it. */
char *bus_failure(Context *c, const sd_bus_error *error, int r);
/** Prints that. Returns CTL_FAILED. */
int bus_failed(Context *c, const sd_bus_error *error, int r);

/** True if the call failed because the service does not run. */
bool bus_is_absent(const sd_bus_error *error);
/** True if the bus would start the service for a call with START_SERVICE. */
bool bus_can_start(Context *c);

/** The user and process of the service; negative if it does not run. */
int bus_get_service(Context *c, uid_t *ret_uid, pid_t *ret_pid);

/** The database's name in an object's path, always UTF-8. Returns the path itself if it is not that of a database. The
 * caller frees it. */
char *database_of(const char *object);

#endif
