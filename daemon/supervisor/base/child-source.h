/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Event sources for the exit of a child process. Supervisor. */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BASE_CHILD_SOURCE_H
#define SQLIPC_DAEMON_SUPERVISOR_BASE_CHILD_SOURCE_H

#include <systemd/sd-event.h>

/* Like sd_event_add_child() for WEXITED, but the exit is not lost if it happens while the loop looks only for events of a
 * higher priority. `handler` must disable or unref the source, because the process is reaped when it returns. Errors: those
 * of sd_event_add_child(). */
int child_source_add(sd_event *event, sd_event_source **ret, pid_t pid, sd_event_child_handler_t handler, void *userdata);

#endif
