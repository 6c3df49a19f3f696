/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Turns a Failure or a Refusal into a D-Bus error reply. Supervisor.
 *
 * The body is the sentence, as in any D-Bus error. If the caller asked for "error-details", SQLite's extended code and the
 * byte offset follow it: (sii). This is not the default, because GLib's clients show no sentence for such a body. A refusal
 * of the supervisor has them only if it has a code: Wait tells by them an error of the load from one of its own.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_CALLS_BUS_ERROR_H
#define SQLIPC_DAEMON_SUPERVISOR_CALLS_BUS_ERROR_H

#include <glib.h>
#include <systemd/sd-bus.h>

#include "daemon/supervisor/base/refusal.h"

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Refusal, refusal_done)

/* Answers `call` with a failure whose `error` is set. If `details`, the body is (sii). Returns 1, or a negative errno if the
 * reply could not be sent. */
int bus_error_reply(sd_bus_message *call, const Failure *failure, bool details);

/* Answers `call` after a function returned the negative result `r`. `refusal` says why if that function set it; otherwise
 * the errno decides: OutOfMemory, LimitsExceeded (no descriptors; -EMSGSIZE: the reply is too large), D-Bus's own
 * InvalidArgs (-EBADMSG: the message cannot be read) or Internal. Frees what the refusal owns. Meant for the last line of a
 * bus method. */
int bus_error_reply_refusal(sd_bus_message *call, int r, Refusal *refusal);

/* Defines method_NAME() for a vtable from NAME(message, object, refusal), which does the work or says why not. */
#define BUS_METHOD(name)                                                                                              \
        static int method_##name(sd_bus_message *m, void *userdata, sd_bus_error *error) {                            \
                g_auto(Refusal) refusal = REFUSAL_INIT;                                                               \
                int r = name(m, userdata, &refusal);                                                                  \
                return r < 0 ? bus_error_reply_refusal(m, r, &refusal) : 1;                                           \
        }

#endif
