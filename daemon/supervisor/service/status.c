/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The line that `systemctl status` shows. Supervisor. */
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/runs/counts.h"
#include "daemon/supervisor/service/service.h"
#include "daemon/supervisor/service/status.h"

#define INTERVAL_USEC UINT64_C(1000000)

static const char *plural(uint64_t n) {
        return n == 1 ? "" : "s";
}

static char *describe(const Context *context) {
        unsigned databases = g_hash_table_size(context->databases), clients = g_hash_table_size(context->sessions);
        unsigned statements = g_hash_table_size(context->statements), channels = g_hash_table_size(context->channels);
        unsigned watches = g_hash_table_size(context->watches), workers = context->workers.length;
        uint64_t runs = counts_runs(context);

        return g_strdup_printf("STATUS=%u database%s, %u client%s, %u statement%s, %u channel%s, %u watch%s, %" PRIu64
                               " run%s (%" PRIu64 " parked), %u worker%s",
                               databases, plural(databases), clients, plural(clients), statements, plural(statements),
                               channels, plural(channels), watches, watches == 1 ? "" : "es", runs, plural(runs),
                               counts_parked(context), workers, plural(workers));
}

static void update(Status *s) {
        g_autofree char *line = describe(s->context);

        if (g_strcmp0(line, s->line) == 0)
                return;
        service_notify(line);
        g_free(s->line);
        s->line = g_steal_pointer(&line);
}

static void arm(Status *s, uint64_t usec) {
        (void) sd_event_source_set_time(s->timer, usec);
        (void) sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

/* Runs before the loop looks for events, so after each event; it costs no turn of the loop. */
static int on_prepare(sd_event_source *source, void *userdata) {
        Status *s = userdata;
        uint64_t now = clock_usec();

        if (now < s->next_usec) {
                arm(s, s->next_usec);
                return 0;
        }
        s->next_usec = now + INTERVAL_USEC;
        update(s);
        return 0;
}

/* on_prepare() runs with this timer's source, which must stay enabled, even if it never fires. */
static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        arm(userdata, UINT64_MAX);
        return 0;
}

int status_start(Status *s, const Context *context) {
        s->context = context;
        if (!getenv("NOTIFY_SOCKET"))
                return 0;
        int r = sd_event_add_time(context->event, &s->timer, CLOCK_MONOTONIC, 0, 0, on_timer, s); /* fires once now */
        if (r < 0)
                return r;
        return sd_event_source_set_prepare(s->timer, on_prepare);
}

void status_stop(Status *s) {
        s->timer = sd_event_source_disable_unref(s->timer);
        g_clear_pointer(&s->line, g_free);
}
