/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The supervisor as a service: signals, and messages to the service manager. Supervisor.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_SERVICE_H
#define SQLIPC_DAEMON_SUPERVISOR_SERVICE_H

#include <stdint.h>

typedef struct Manager Manager;

/* Sets up the signals: SIGTERM and SIGINT stop the service, SIGHUP reloads, SIGCHLD is left to the loop, SIGPIPE is ignored.
 * Must be called before any worker is started. */
int service_watch_signals(Manager *m);

/* Sends one line of sd_notify(3). Without a service manager nothing is sent, which is no failure. */
void service_notify(const char *line);

/* Tells the service manager that the service needs `usec` longer to stop. */
void service_extend_timeout(uint64_t usec);

/* Send READY=1, which also follows a reload; RELOADING=1; STOPPING=1, after which service_stop() calls manager_stop(). */
void service_ready(void);
void service_reloading(void);
void service_stop(Manager *m);

#endif
