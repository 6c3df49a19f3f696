/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The supervisor as a service. Supervisor. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>

#include "log.h"
#include "manager.h"
#include "service.h"

void service_notify(const char *line) {
        (void) sd_notify(0, line);
}

void service_extend_timeout(uint64_t usec) {
        (void) sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%" PRIu64, usec);
}

void service_ready(void) {
        service_notify("READY=1");
}

void service_reload(Manager *m) {
        (void) sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, manager_now());
        manager_reload(m);
        service_ready();
}

void service_stop(Manager *m) {
        log_info("Stopping.");
        service_notify("STOPPING=1");
        manager_stop(m, EXIT_SUCCESS);
}

static int on_stop_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        service_stop(userdata);
        return 0;
}

static int on_reload_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        service_reload(userdata);
        return 0;
}

int service_watch_signals(Manager *m) {
        struct sigaction ignore = { .sa_handler = SIG_IGN };
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGHUP);
        sigaddset(&set, SIGCHLD);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || sigaction(SIGPIPE, &ignore, NULL) < 0)
                return -errno;
        int r = sd_event_add_signal(m->event, NULL, SIGTERM, on_stop_signal, m);
        if (r >= 0)
                r = sd_event_add_signal(m->event, NULL, SIGINT, on_stop_signal, m);
        if (r >= 0)
                r = sd_event_add_signal(m->event, NULL, SIGHUP, on_reload_signal, m);
        return r < 0 ? r : 0;
}
