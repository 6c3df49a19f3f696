/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Errors as D-Bus replies: the edge where a Failure or Refusal leaves the supervisor. Supervisor.
 *
 * The body is the sentence, as of any D-Bus error. A caller that asked for "error-details" gets SQLite's extended code and
 * the byte offset behind it: (sii). Not everybody does, because GLib's clients show no sentence for such a body.
 */
#ifndef SQLIPC_BUS_ERROR_H
#define SQLIPC_BUS_ERROR_H

#include <systemd/sd-bus.h>

#include "refusal.h"

/* Answers `call` with a failure whose `error` is set, `details`: as (sii). 1, or negative if it could not be sent. */
int bus_error_reply(sd_bus_message *call, const Failure *failure, bool details);

/* The same for the negative result `r` of a function that had `refusal` to say why; without, OutOfMemory, D-Bus's own
 * InvalidArgs (-EBADMSG: the message) or Internal, by errno. Frees what the refusal owns. For the last line of a bus
 * method. */
int bus_error_reply_refusal(sd_bus_message *call, int r, Refusal *refusal);

#endif
