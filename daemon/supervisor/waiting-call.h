/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A method call that is answered later. Supervisor.
 *
 * The message itself would keep all that came with it for as long as the answer takes: descriptors that nobody asked for,
 * megabytes behind an "x-" option. No quota counts those, and past our limit of descriptors sd-bus gives the bus up. So
 * what waits is a stand-in that holds what a reply needs: sender, cookie, and whether a reply is wanted.
 */
#ifndef SQLIPC_WAITING_CALL_H
#define SQLIPC_WAITING_CALL_H

#include <systemd/sd-bus.h>

#include "refusal.h"

/* A stand-in for `call` (borrowed) that replies and errors can be made for; the caller owns it. -ENOMEM. */
int waiting_call_new(sd_bus_message *call, sd_bus_message **ret);

/* A stand-in with the body of `call`, which can be dispatched as the call itself. `ret_size`: what it needs, at most
 * `size_max`. A body with descriptors is refused: nothing here takes one. LIMITS_EXCEEDED, INVALID_OPTION; -EBADMSG: the
 * body cannot be read; -ENOMEM. */
int waiting_call_copy(sd_bus_message *call, size_t size_max, sd_bus_message **ret, size_t *ret_size, Refusal *refusal);

#endif
