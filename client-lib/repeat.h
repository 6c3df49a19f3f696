/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether a request that brought no result may be sent again. Library; the one place that decides it.
 *
 * A request that changes nothing may be sent any number of times. Any other may have been carried out before its channel,
 * its service or its bus was lost, and sending it again could do it twice. So it is repeated only if the service said that
 * it never began, or if it never left this process; else it ends as OutcomeUnknown. Compiling changes nothing, so Prepare
 * and PREPARE are repeated without asking here.
 *
 * The service says what changes nothing: of a compiled statement (`readonly`, STATEMENT_READ_ONLY) and of a channel as a
 * whole. Nothing is concluded from the SQL.
 */
#ifndef SQLIPC_REPEAT_H
#define SQLIPC_REPEAT_H

#include "error.h"

/* What is known of a request that brought no result. */
typedef enum Fate {
        FATE_NOT_BEGUN,   /* it was refused, or did not leave */
        FATE_WORKER_LOST, /* the service lost the worker, and says so: a change would have been undone */
        FATE_UNKNOWN,     /* no answer will come */
        FATE_ENDED,       /* it was answered: the failure is its result */
} Fate;

/* Of a request on the bus, from its error reply, which `e` holds. */
Fate fate_of_reply(sd_bus_message *reply, const Error *e);

/* Of a request on a channel, from the number of its ERROR frame. */
Fate fate_of_frame(uint32_t number);

/* `read_only`: the request is known to change nothing. */
bool may_repeat(Fate fate, bool read_only);

/* A request that is not repeated: if its outcome is unknown, `e` now says that, beside what it said before. */
void error_set_outcome(Error *e, Fate fate, bool read_only);

#endif
