/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The line that `systemctl status` shows: how much of everything there is. Supervisor.
 *
 * It is sent when it changed, at most once a second. What changes it is an event of the loop, so it is looked at after each,
 * and a timer runs only where that was too soon: a service at rest sleeps.
 */
#ifndef SQLIPC_STATUS_H
#define SQLIPC_STATUS_H

#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct Manager Manager;

typedef struct Status {
        char *line;              /* what was sent last */
        uint64_t next_usec;      /* not before */
        sd_event_source *timer;
} Status;

/* Nothing where no service manager listens. */
int status_start(Manager *m);
void status_stop(Manager *m);

#endif
