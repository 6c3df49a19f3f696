/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The status line that `systemctl status` shows: the number of objects of each kind. Supervisor.
 *
 * It is sent when it has changed, at most once a second. Only an event of the loop can change it, so it is compared after
 * each event. A timer runs only if the last line was sent too recently, so an idle service sleeps.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_SERVICE_STATUS_H
#define SQLIPC_DAEMON_SUPERVISOR_SERVICE_STATUS_H

#include <stdint.h>
#include <systemd/sd-event.h>

#include "daemon/supervisor/base/context.h"

typedef struct Status {
        const Context *context;  /* not owned */
        char *line;              /* the line that was sent last */
        uint64_t next_usec;      /* no line is sent earlier */
        sd_event_source *timer;
} Status;

/* Does nothing if there is no service manager to tell. -errno. */
int status_start(Status *s, const Context *context);
void status_stop(Status *s);

#endif
