/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that wait for polkit. Supervisor.
 *
 *      comes in --> held --> (asked about with interaction) --> released: put back into the queue of the bus --> comes round
 *                     `--> refused: only the user can say, and was not to be asked, or did not authenticate
 *
 * 1. Whatever looks up objects runs after the call came round, and finds polkit's answer known: what is "no" is refused by
 *    the very code, and in the very words, in which a name that does not exist is.
 * 2. polkit is asked without interaction first, once for all calls of a client to a database. So a plain "no" is told from a
 *    user who failed to authenticate, and nobody is bothered by a question whose answer is known.
 * 3. Calls of one client to one database stay in order: a later one is held too, until the earlier came round.
 * 4. What is held is a copy without descriptors, within the uid's budget of SQL and parameters. A call that cannot be
 *    copied is held without its body, and refused only if its sender may know that the database exists.
 */
#ifndef SQLIPC_HELD_CALL_H
#define SQLIPC_HELD_CALL_H

#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "peer.h"
#include "refusal.h"

/* Calls of one uid that are held at once, of all its clients. */
#define HELD_CALLS_MAX 16u

/* Starts to look at each call. Before peer_watch(): of filters, the last one added runs first. */
int held_call_watch(Manager *m);

/* The uid of a peer has all the calls held that it may have, and the refusal of one more (LIMITS_EXCEEDED). */
bool held_call_is_full(const Manager *m, const Peer *p);
int held_call_refuse(Refusal *refusal);

/* The call that is being dispatched was held, and is answered by what polkit last said. */
bool held_call_was_held(const Manager *m, sd_bus_message *message);

/* The call is one of the peer's that go on now. */
bool held_call_is_released(const Peer *p, sd_bus_message *message);

/* polkit's answer about a peer and a database is recorded (policy.h): lets go on what waited for it. `failed`: the user was
 * asked, and did not authenticate. */
void held_call_on_answer(Peer *p, const char *database, bool interactive, bool failed);

/* Frees the calls of a peer that vanished, unanswered. */
void held_call_forget(Peer *p);

/* Answers those of all peers with ShuttingDown and `sentence`. */
void held_call_stop(Manager *m, const char *sentence);

#endif
