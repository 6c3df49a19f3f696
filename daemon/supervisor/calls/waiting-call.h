/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A method call that is answered later. Supervisor.
 *
 * The message itself would keep everything that came with it until the answer: descriptors that the method does not take, or
 * megabytes in an "x-" option. No quota counts those, and past the limit of descriptors sd-bus closes the bus connection. So
 * a stand-in waits instead. It holds only what a reply needs: sender, cookie, and if a reply is wanted.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_CALLS_WAITING_CALL_H
#define SQLIPC_DAEMON_SUPERVISOR_CALLS_WAITING_CALL_H

#include <systemd/sd-bus.h>

#include "daemon/supervisor/base/refusal.h"

/* Makes a stand-in for `call` (borrowed), to which replies and errors can be made. The caller owns it. -ENOMEM. */
int waiting_call_new(sd_bus_message *call, sd_bus_message **ret);

/* Makes a stand-in that also has the body of `call`, so it can be dispatched like the call itself. `ret_size`: the memory
 * that it needs, at most `size_max`. It has its own copy of a descriptor. More than one are refused, because no method takes
 * them. LIMITS_EXCEEDED, INVALID_OPTION; -EBADMSG: the body cannot be read; -ENOMEM. */
int waiting_call_copy(sd_bus_message *call, size_t size_max, sd_bus_message **ret, size_t *ret_size, Refusal *refusal);

#endif
