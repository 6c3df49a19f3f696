/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ends everything that a session holds, and the session. Supervisor. */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_SESSION_CLOSE_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_SESSION_CLOSE_H

#include "daemon/supervisor/runs/session.h"

/* Ends what the session holds with `error` and a sentence. Methods of runs that are still unanswered get this as their
 * error. NULL is allowed. Returns NULL. */
Session *session_close(Session *s, ErrorNumber error, const char *sentence);

#endif
