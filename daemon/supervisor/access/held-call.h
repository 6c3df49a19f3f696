/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that wait for polkit. Supervisor.
 *
 *      comes in --> held --> (asked about with interaction) --> released: back into the queue of the bus --> dispatched
 *                     `--> refused: the user must authenticate, but the call does not allow it, or the user did not
 *
 * 1. All code that looks up objects runs after the release, when polkit's answer is known. So a polkit "no" is refused by
 *    the same code and with the same words as a name that does not exist.
 * 2. polkit is asked without interaction first, once for all calls of a client to a database. This tells a plain "no" from a
 *    user who failed to authenticate, and no user is asked for a password if the answer is known without.
 * 3. Any method of a database may be sent a statement that writes, so polkit is asked about writing together with reading. A
 *    user who only reads must not be asked to authenticate for writing, so that happens only for methods that are for
 *    writing: Execute, ExecuteBatch, Load, and Begin with the mode "write".
 * 4. Calls of one client to one database stay in order: a later call is held too, until the earlier one has been dispatched.
 * 5. A held call is kept as a copy without descriptors, within the uid's budget of SQL and parameters. A call that cannot be
 *    copied is held without its body, and refused only if its sender may know that the database exists.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_ACCESS_HELD_CALL_H
#define SQLIPC_DAEMON_SUPERVISOR_ACCESS_HELD_CALL_H

#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "daemon/supervisor/access/peer.h"
#include "daemon/supervisor/access/polkit.h"
#include "daemon/supervisor/base/refusal.h"

/* How many calls of one uid can be held at a time, over all its clients. */
#define HELD_CALLS_MAX 16u

/* Starts to filter calls. Must run before peer_watch(), whose filter makes the sender known: the filter that was added last
 * runs first. -errno. */
int held_call_watch(Context *context);

/* held_call_is_full(): true if the peer's uid has as many calls held as it may have. held_call_refuse(): refuses one more
 * (LIMITS_EXCEEDED). */
bool held_call_is_full(const Context *context, const Peer *p);
int held_call_refuse(Refusal *refusal);

/* True if `message` is Properties.Get of the Manager's property Databases, which is held like ListDatabases. */
bool held_call_gets_databases(sd_bus_message *message);

/* True if the call is one of the peer's calls that are released now. */
bool held_call_is_released(const Peer *p, sd_bus_message *message);

/* polkit's answer about a peer and a database is recorded (policy.h): releases the calls that waited for it. */
void held_call_on_answer(Peer *p, const PolkitReply *reply);

/* Frees the calls of a peer that vanished, without a reply. */
void held_call_forget(Peer *p);

/* Answers the held calls of a peer with ShuttingDown and `sentence`. */
void held_call_stop(Peer *p, const char *sentence);

#endif
