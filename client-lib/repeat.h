/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decides if a request that brought no result may be sent again. Library; no other code decides it, except that execute.c
 * repeats less in a transaction (transact.h).
 *
 * A request that changes nothing may be sent any number of times. Any other request may have been carried out before its
 * channel, its service or its bus was lost, so sending it again could do it twice. It is therefore repeated only if the
 * service said that it never began, or if it never left this process; otherwise it ends as OutcomeUnknown. Compiling changes
 * nothing, so Prepare and PREPARE are repeated without asking here.
 *
 * The service says if a compiled statement (`readonly`, STATEMENT_READ_ONLY) or all requests on a channel change nothing.
 * Nothing is concluded from the SQL. If a run is lost before the service has said so, the service, or its next instance, is
 * asked to compile the SQL (cursor-event.h), and only then is it decided.
 */
#ifndef SQLIPC_CLIENT_LIB_REPEAT_H
#define SQLIPC_CLIENT_LIB_REPEAT_H

#include "client-lib/error.h"

/* The fate of a request that brought no result, as far as it is known. */
typedef enum Fate {
        FATE_NOT_BEGUN,   /* it was refused, or was never sent */
        FATE_WORKER_LOST, /* the service says that it lost the worker: a change would have been undone */
        FATE_UNKNOWN,     /* no answer will come */
        FATE_ENDED,       /* it was answered: the failure is its result */
} Fate;

/* The fate of a request on the bus, from its error reply, which `e` holds. */
Fate repeat_fate_of_reply(sd_bus_message *reply, const Error *e);

/* The fate of a request on a channel, from the number of its ERROR frame. */
Fate repeat_fate_of_frame(uint32_t number);

/* The repeats that a request has had. A request that never began cannot have ended the service, so its repeats do not use up
 * the one after a loss. */
typedef struct Repeats {
        unsigned n_refused; /* because it never began, at most NEVER_BEGAN_REPEATS_MAX */
        bool lost;          /* because it was lost: if it ended the service, it might do so again */
} Repeats;

/* True if the request may be repeated. `read_only`: it is known to change nothing. */
bool repeat_is_allowed(Fate fate, bool read_only);

/* The same, and counts the repeat. The request may not be repeated if it has had too many. */
bool repeat_take(Repeats *repeats, Fate fate, bool read_only);

/* The fact that is unknown about a statement that may write. */
#define STATEMENT_FACT "the statement took effect"

/* For a request that is not repeated: if its outcome is unknown, adds that to the sentence of `e`, and sets the error to
 * OUTCOME_UNKNOWN. */
void repeat_set_outcome(Error *e, Fate fate, bool read_only);

/* Sets the error to OUTCOME_UNKNOWN. Its sentence keeps what `e` said, and adds which `fact` is unknown. */
void repeat_set_unknown(Error *e, const char *fact);

#endif
