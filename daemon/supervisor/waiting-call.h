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

/* A stand-in for `call` (borrowed) that replies and errors can be made for; the caller owns it. -ENOMEM. */
int waiting_call_new(sd_bus_message *call, sd_bus_message **ret);

#endif
