/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that change the service or the work of another user: CancelRun and Reload. Supervisor.
 *
 * Root and the service's user may make them. For all others polkit is asked, action org.sqlipc1.manage: first without
 * interaction; then with it, if polkit wants the user to authenticate and the call allows interactive authorization.
 * Nothing is kept of the answers: such calls are rare. A call that waits counts as a held call of its uid (held-call.h).
 */
#ifndef SQLIPC_MANAGE_H
#define SQLIPC_MANAGE_H

#include <stdint.h>
#include <systemd/sd-bus.h>

#include "peer.h"
#include "polkit.h"
#include "refusal.h"

/* What the call asks for, and its reply. `number` is its argument. Negative: `refusal` or the errno says why not. */
typedef int (*ManageAct)(sd_bus_message *call, Manager *m, uint64_t number, Refusal *refusal);

/* Does it now, or once polkit has said yes; `call` is answered in any case. Negative: as of `act`, or LIMITS_EXCEEDED. */
int manage_call(Manager *m, sd_bus_message *call, ManageAct act, uint64_t number, Refusal *refusal);

/* polkit answered a question about the action. */
void manage_on_answer(Peer *p, const PolkitReply *reply);

/* Frees the calls of a peer that vanished, unanswered. */
void manage_forget(Peer *p);

/* Answers those of a peer with ShuttingDown and `sentence`. */
void manage_stop(Peer *p, const char *sentence);

#endif
