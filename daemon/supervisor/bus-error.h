/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Errors as D-Bus replies: the edge where a Failure or Refusal leaves the supervisor. Supervisor.
 *
 * The body is the sentence, as of any D-Bus error. A caller that asked for "error-details" gets SQLite's extended code and
 * the byte offset behind it: (sii). Not everybody does, because GLib's clients show no sentence for such a body.
 */
#ifndef SQLIPC_BUS_ERROR_H
#define SQLIPC_BUS_ERROR_H

#include <glib.h>
#include <systemd/sd-bus.h>

#include "refusal.h"

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Refusal, refusal_done)

/* Answers `call` with a failure whose `error` is set, `details`: as (sii). 1, or negative if it could not be sent. */
int bus_error_reply(sd_bus_message *call, const Failure *failure, bool details);

/* The same for the negative result `r` of a function that had `refusal` to say why; without, OutOfMemory, LimitsExceeded
 * (descriptors; -EMSGSIZE: the reply), D-Bus's own InvalidArgs (-EBADMSG: the message) or Internal, by errno. Frees what the
 * refusal owns. For the last line of a bus method. */
int bus_error_reply_refusal(sd_bus_message *call, int r, Refusal *refusal);

/* method_NAME() for a vtable, from NAME(message, object, refusal): it does it, or says why not. */
#define BUS_METHOD(name)                                                                                              \
        static int method_##name(sd_bus_message *m, void *userdata, sd_bus_error *error) {                            \
                g_auto(Refusal) refusal = REFUSAL_INIT;                                                               \
                int r = name(m, userdata, &refusal);                                                                  \
                return r < 0 ? bus_error_reply_refusal(m, r, &refusal) : 1;                                           \
        }

#endif
