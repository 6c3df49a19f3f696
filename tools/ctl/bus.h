/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The service on the bus, one blocking call at a time. */
#ifndef CTL_BUS_H
#define CTL_BUS_H

#include "context.h"
#include "variant.h"

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(sd_bus_error, sd_bus_error_free)

/* What a call may cause: the bus starts the service; nothing, since an absent service is an answer, too; or that polkit asks
 * the user to authenticate, which may take minutes. */
typedef enum Start { START_SERVICE, START_NOTHING, START_AUTHENTICATION } Start;

/** Opens the bus that the options name; says why it cannot. 0 or negative. */
int bus_open(Context *c);

/** Types of the replies that several verbs ask for. */
#define REPLY_DATABASES "(a(soa{sv})a{sv})"
#define REPLY_WORK "(a(tosa{sv})a{sv})"
#define REPLY_CLIENTS "(a(sa{sv})a{sv})"
#define REPLY_DICTIONARY "(a{sv})"

/** Calls a method of the service with the arguments that `types` says (as sd_bus_message_append() does), and gives the
 * reply's body, a tuple of the type `reply_type`; caller unrefs. Negative: nothing was said yet, see bus_failed(); `error`
 * says why. A reply of another type is -EBADMSG, so a caller may take it apart without further checks. */
int bus_call(Context *c, Start start, const char *path, const char *interface, const char *method, const char *reply_type,
             sd_bus_error *error, GVariant **ret, const char *types, ...);
/** bus_call() of the manager, with no options; says why it fails. */
int bus_call_manager(Context *c, const char *method, const char *reply_type, GVariant **ret);

/** Says why a call failed, and what to do about it. Returns CTL_FAILED. */
int bus_failed(Context *c, const sd_bus_error *error, int r);

/** The call found no service. */
bool bus_is_absent(const sd_bus_error *error);
/** The bus would start the service for a call that may start it. */
bool bus_can_start(Context *c);

/** Who runs the service; negative where it does not run. */
int bus_get_service(Context *c, uid_t *ret_uid, pid_t *ret_pid);

/** The part of an object's path that is a database's name, always UTF-8; caller frees. The path itself if it is none. */
char *database_of(const char *object);

#endif
