/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls of the service that failed: the rule for sending them again, and the messages about the others. Pure. */
#ifndef SQLIPC_TOOLS_CTL_CALL_FAILURE_H
#define SQLIPC_TOOLS_CTL_CALL_FAILURE_H

#include <glib.h>
#include <stdbool.h>

/** Never sent on the bus: the error if the reply has another type. Its message says which. */
#define CALL_FAILURE_REPLY_TYPE "org.sqlipc1.ctl.ReplyType"

/** The repeats of one call. */
typedef struct CallRepeats {
        bool may_start;       /* the bus starts the service for it; otherwise the service's absence is an answer */
        bool changes_nothing;
        unsigned n_refused;   /* because it never began */
        bool lost;            /* because the service ended before it answered */
} CallRepeats;

/** True if a call that ended with the error `name` is to be sent again, by the rule of the library: if it never began, or
 * once if it changes nothing and the service ended before it answered. Counts the repeat. */
bool call_repeats_take(CallRepeats *repeats, const char *name);

/** The message about a call that failed: the reason, and advice. `name`, `reason`: the error's; NULL if there is none.
 * `r`: the same as a negative errno. `can_start`: the bus can start the service, if the error is that it is absent.
 * `advice`: how to start it, or to learn why it does not run. The caller frees the result. */
char *call_failure_sentence(const char *name, const char *reason, int r, bool can_start, const char *advice);

#endif
