/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The supervisor as a service: signals, and messages to the service manager. Supervisor.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_SERVICE_SERVICE_H
#define SQLIPC_DAEMON_SUPERVISOR_SERVICE_SERVICE_H

#include <stdint.h>
#include <systemd/sd-event.h>

/* Functions that the signals call. */
typedef struct ServiceSignals {
        void (*stop)(void *userdata);   /* SIGTERM, SIGINT; the service manager has been told STOPPING=1 */
        void (*reload)(void *userdata); /* SIGHUP */
        void *userdata;
} ServiceSignals;

/* Sets up the signals. SIGCHLD is left to the loop, SIGPIPE is ignored. `signals` must exist as long as the loop. Must be
 * called before any worker is started. -errno. */
int service_watch_signals(sd_event *event, const ServiceSignals *signals);

/* Sends one line of sd_notify(3). Without a service manager nothing is sent, which is no failure. */
void service_notify(const char *line);

/* Tells the service manager that the service needs `usec` longer to stop. */
void service_extend_timeout(uint64_t usec);

/* service_ready(): sends READY=1, at the start and after each reload. service_reloading(): sends RELOADING=1. */
void service_ready(void);
void service_reloading(void);

#endif
