/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The supervisor's knowledge of the runs on a channel. Supervisor. */
#include <glib.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/configuration/dbus-text.h"
#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/runs/channel-run.h"
#include "daemon/supervisor/runs/sql-text.h"

/* The largest number of bytes that SQL_EXCERPT_LENGTH characters can have. */
#define EXCERPT_SIZE_MAX ((size_t) SQL_EXCERPT_LENGTH * 4)

static void log_slow(const ChannelRun *run, uint64_t usec, const LogFields *about, uint64_t slow_usec) {
        LogFields fields = *about;
        uint64_t waited = run->parked_usec;

        fields.usec = usec > waited ? usec - waited : 0; /* waits for the reader do not make a query slow */
        fields.rows = run->n_rows;
        if (fields.usec > slow_usec)
                /* all fields are the worker's claims */
                log_event_limited(LOG_EVENT_SLOW_QUERY, "channel", &fields,
                                  "A run of uid %u on channel %" PRIu64 " took %.1f s, more than SlowQuerySec=; "
                                  "rows: %" PRIu64 ".",
                                  (unsigned) *fields.uid, fields.run, (double) fields.usec / 1e6, fields.rows);
}

/* A worker may send any bytes, and may cut the SQL inside a character. */
static char *make_excerpt(const Bytes *sql) {
        char *text = dbus_text_replace(sql->data ?: "", MIN(sql->size, EXCERPT_SIZE_MAX)), *excerpt;

        if (!text)
                return NULL;
        excerpt = g_utf8_substring(text, 0, MIN(g_utf8_strlen(text, -1), SQL_EXCERPT_LENGTH));
        free(text);
        return excerpt;
}

static void begin(ChannelRun *run, const ChannelProgress *p) {
        channel_run_done(run);
        if (!p->running)
                return;
        run->excerpt = make_excerpt(&p->sql);
        if (p->n_runs > 0) /* the new rows and bytes may belong to the runs that ended */
                return;
        run->n_rows = p->n_rows;
        run->n_bytes = p->n_bytes;
}

static ChannelRunState state_of(const ChannelProgress *p) {
        return !p->running   ? CHANNEL_RUN_NONE
               : p->draining ? CHANNEL_RUN_DRAINING
               : p->parked   ? CHANNEL_RUN_PARKED
                             : CHANNEL_RUN_RUNNING;
}

bool channel_run_note(ChannelRun *run, const ChannelProgress *p, const LogFields *fields, uint64_t slow_usec) {
        uint64_t now = clock_usec();
        bool was_running = run->state != CHANNEL_RUN_NONE, goes_on = was_running && p->running && p->n_runs == 0;

        if (run->state > CHANNEL_RUN_RUNNING)
                run->parked_usec += now - run->noted_usec;
        if (goes_on) {
                run->n_rows += p->n_rows;
                run->n_bytes += p->n_bytes;
        } else {
                if (p->n_runs > 0 && !p->running)
                        log_slow(run, p->usec, fields, slow_usec);
                else if (p->n_runs > 0 && was_running)
                        log_slow(run, channel_run_usec(run), fields, slow_usec);
                begin(run, p);
        }
        run->state = state_of(p);
        run->usec = p->usec;
        run->noted_usec = now;
        return !goes_on;
}

const char *channel_run_state(const ChannelRun *run) {
        switch (run->state) {
        case CHANNEL_RUN_DRAINING: return "draining";
        case CHANNEL_RUN_PARKED: return "parked";
        case CHANNEL_RUN_RUNNING:
        case CHANNEL_RUN_NONE: break;
        }
        return "running";
}

uint64_t channel_run_usec(const ChannelRun *run) {
        return run->usec + (clock_usec() - run->noted_usec);
}

void channel_run_done(ChannelRun *run) {
        g_free(run->excerpt);
        *run = (ChannelRun) {};
}
