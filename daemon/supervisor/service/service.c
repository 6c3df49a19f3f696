/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The supervisor as a service. Supervisor. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <systemd/sd-daemon.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/service/service.h"

void service_notify(const char *line) {
        (void) sd_notify(0, line);
}

void service_extend_timeout(uint64_t usec) {
        (void) sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%" PRIu64, usec);
}

void service_ready(void) {
        service_notify("READY=1");
}

void service_reloading(void) {
        (void) sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_usec());
}

static int on_stop_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        const ServiceSignals *signals = userdata;

        log_info("Stopping.");
        service_notify("STOPPING=1");
        signals->stop(signals->userdata);
        return 0;
}

static int on_reload_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        const ServiceSignals *signals = userdata;

        signals->reload(signals->userdata);
        return 0;
}

/* Signals come before the bus, so that a service that is flooded with calls still stops. */
static int add_signal(sd_event *event, int signal, sd_event_signal_handler_t handler, const ServiceSignals *signals) {
        sd_event_source *s;
        int r = sd_event_add_signal(event, &s, signal, handler, (void *) signals);

        if (r < 0)
                return r;
        r = sd_event_source_set_priority(s, SD_EVENT_PRIORITY_IMPORTANT);
        if (r >= 0)
                r = sd_event_source_set_floating(s, true);
        (void) sd_event_source_unref(s);
        return r < 0 ? r : 0;
}

int service_watch_signals(sd_event *event, const ServiceSignals *signals) {
        struct sigaction ignore = { .sa_handler = SIG_IGN }, usual = { .sa_handler = SIG_DFL };
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGHUP);
        sigaddset(&set, SIGCHLD);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || sigaction(SIGPIPE, &ignore, NULL) < 0)
                return -errno;
        /* the parent may have set it to be ignored; workers would then be reaped before we see how they ended */
        if (sigaction(SIGCHLD, &usual, NULL) < 0)
                return -errno;
        int r = add_signal(event, SIGTERM, on_stop_signal, signals);
        if (r >= 0)
                r = add_signal(event, SIGINT, on_stop_signal, signals);
        if (r >= 0)
                r = add_signal(event, SIGHUP, on_reload_signal, signals);
        return r;
}
