/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that change the service or the work of another user: CancelRun and Reload. Supervisor.
 *
 * Root and the service's user may make these calls. For all others polkit is asked about the action org.sqlipc1.manage:
 * first without interaction, then with it if polkit wants the user to authenticate and the call allows interactive
 * authorization. The answers are not kept, because such calls are rare. A call that waits counts as a held call of its uid
 * (held-call.h).
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_ACCESS_MANAGE_H
#define SQLIPC_DAEMON_SUPERVISOR_ACCESS_MANAGE_H

#include <stdint.h>
#include <systemd/sd-bus.h>

#include "daemon/supervisor/access/peer.h"
#include "daemon/supervisor/access/polkit.h"
#include "daemon/supervisor/base/refusal.h"

/* Does the work of the call and replies. `number` is the call's argument. If the result is negative, `refusal` or the errno
 * says why. */
typedef int (*ManageAct)(sd_bus_message *call, Context *context, uint64_t number, Refusal *refusal);

/* Runs `act` now, or after polkit has said yes. `call` is answered in any case. Negative: the result of `act`, or
 * LIMITS_EXCEEDED. */
int manage_call(Context *context, sd_bus_message *call, ManageAct act, uint64_t number, Refusal *refusal);

/* polkit answered a question about org.sqlipc1.manage. */
void manage_on_answer(Peer *p, const PolkitReply *reply);

/* Frees the calls of a peer that vanished, without a reply. */
void manage_forget(Peer *p);

/* Answers the waiting calls of a peer with ShuttingDown and `sentence`. */
void manage_stop(Peer *p, const char *sentence);

#endif
