/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The supervisor as a service: signals, and what the service manager is told. Supervisor.
 */
#ifndef SQLIPC_SERVICE_H
#define SQLIPC_SERVICE_H

#include <stdint.h>

typedef struct Manager Manager;

/* SIGTERM and SIGINT stop, SIGHUP reloads; SIGCHLD is for the loop, SIGPIPE for nobody. Before any worker is started. */
int service_watch_signals(Manager *m);

/* One line of sd_notify(3). Without a service manager nobody hears it, which is no failure. */
void service_notify(const char *line);

/* We stop, and need that much longer for it. */
void service_extend_timeout(uint64_t usec);

/* READY=1, also when a reload is over; RELOADING=1; STOPPING=1 before manager_stop(). */
void service_ready(void);
void service_reloading(void);
void service_stop(Manager *m);

#endif
