/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See channel-turn.h. From top to bottom: the turn, then what interrupts or ends it.
 */
#include "daemon/worker/core/channel-turn.h"

#include "daemon/worker/core/channel-report.h"
#include "daemon/worker/core/channel-request.h"
#include "daemon/worker/core/channel-round.h"
#include "daemon/worker/core/compile-limit.h"
#include "daemon/worker/core/job-end.h"
#include "daemon/worker/core/job-slice.h"
#include "daemon/worker/core/job-time.h"
#include "daemon/worker/core/monotonic.h"

#define TURN_USEC USEC_PER_MSEC          /* one turn, or the turns of one round, take requests for so long */

#define DROPPED "the service closed this channel: open another, and ask again"

int channel_turn_send(ServedChannel *c) {
        Job *job = &c->job;
        int r;

        if (page_writer_is_idle(&job->writer) && !page_encoder_is_empty(&job->encoder))
                page_writer_begin(&job->writer, job->page, page_encoder_finish(&job->encoder));
        r = job->owner->write_page(job);
        if (r == PAGE_WRITER_DONE) {
                c->drain_until_usec = 0;
                page_encoder_clear(&job->encoder);
        }
        return r;
}

static ChannelState drain(ServedChannel *c) {
        uint64_t now = now_usec(), drain_usec = c->job.context->setup->drain_usec;

        if (c->drain_until_usec == 0)
                c->drain_until_usec = drain_usec < UINT64_MAX - now ? now + drain_usec : UINT64_MAX;
        return served_channel_set_state(c, CHANNEL_DRAINING);
}

/* Sends the answers of a channel without a request under way. False: the channel is DRAINING or OVER. */
static bool send_all(ServedChannel *c) {
        int r = channel_turn_send(c);

        if (r < 0 || c->client_left) /* a full ring does not tell that its reader has left */
                (void) served_channel_set_state(c, CHANNEL_OVER);
        else if (r == PAGE_WRITER_FULL)
                (void) drain(c);
        else if (c->intake >= CHANNEL_CLOSING)
                (void) served_channel_set_state(c, CHANNEL_OVER);
        else
                return true;
        return false;
}

/* The supervisor does not know the client's time limit, and one SQL function may compute for minutes. */
static void run_within_limit(ServedChannel *c) {
        if (c->job.has_own_limit)
                compile_limit_run_begin(c->job.deadline_usec);
        (void) job_slice(&c->job);
        if (c->job.has_own_limit)
                compile_limit_run_end();
}

/* Continues the request under way. JOB_OVER: it is answered. */
static JobState slice(ServedChannel *c) {
        if (c->input.cancelled && !job_is_ending(&c->job))
                (void) job_end(&c->job, ERROR_CANCELLED, "the query was cancelled");
        else
                run_within_limit(c);
        if (!served_channel_is_busy(c))
                channel_request_end(c);
        return c->job.state;
}

/* True if a request is under way, perhaps one that begins now. */
static bool has_request(ServedChannel *c) {
        if (c->client_left || served_channel_is_busy(c))
                return !c->client_left;
        return c->intake < CHANNEL_CLOSING && !c->job.context->leaving && channel_request_begin_next(c);
}

/* With memory the ring tells what was sent before the turn, and not the byte that woke us. */
static void note_sent(ServedChannel *c) {
        ssize_t fill;

        if (!c->side.memory)
                return;
        fill = channel_ring_fill(&c->side.in);
        c->n_sent = fill > 0 ? (size_t) fill : 0;
        c->reported = fill > 0;
}

bool channel_turn_begin(ServedChannel *c) {
        c->used_usec = now_coarse_usec();
        if (!served_channel_is_busy(c) && !page_writer_is_idle(&c->job.writer) && !send_all(c))
                return false;
        note_sent(c);
        c->batch = c->input.scanned_number;
        c->next_was_sent = c->reported || channel_input_is_partial(&c->input);
        c->input.passed = false;
        return true;
}

static uint64_t end_of(const Job *job) {
        return job->taken_usec + job->counters.usec;
}

/* A wait for a lock or a server may last. */
static bool may_last(JobState state) {
        return state == JOB_RETRY || state == JOB_AWAITING;
}

/* The request under way waits, or needs more turns. Its statement keeps the connection and the read transaction. */
static bool leave_round(ServedChannel *c, JobState state) {
        job_stop_sharing(&c->job);
        c->lasts = state == JOB_READY || state == JOB_PARKED;
        if (may_last(state) || state == JOB_QUEUED) /* nothing else reports it */
                channel_report_progress(c, c->used_usec);
        (void) served_channel_set_state(c, state == JOB_READY ? CHANNEL_READY : CHANNEL_WAITING);
        return false;
}

bool channel_turn_run(ServedChannel *c, ChannelRound *round) {
        const Job *job = &c->job;
        bool busy = served_channel_is_busy(c);
        uint64_t began_usec = 0; /* when the first request that this turn answers was taken */

        while (has_request(c)) {
                JobState state;

                if (!c->is_quick) /* it may last, so the answers to others must not wait for it */
                        channel_round_send(round);
                state = slice(c);
                /* answers to earlier requests need not wait for it */
                if (may_last(state) && (channel_turn_send(c) < 0 || c->client_left)) {
                        job_stop_sharing(&c->job);
                        (void) served_channel_set_state(c, CHANNEL_OVER);
                        return false;
                }
                /* epoll does not report again what was already readable when the request began */
                if (state != JOB_OVER && served_channel_read(c) && c->input.cancelled)
                        continue;
                if (state != JOB_OVER)
                        return leave_round(c, state);
                if (began_usec == 0)
                        began_usec = job->taken_usec;
                if (round->until_usec == UINT64_MAX)
                        round->until_usec = began_usec + TURN_USEC;
                if (end_of(job) >= round->until_usec)
                        break;
        }
        if (began_usec > 0 && !busy)
                c->lasts = end_of(job) > began_usec + served_channel_quick_usec(c);
        return true;
}

ChannelState channel_turn_end(ServedChannel *c) {
        channel_report_progress(c, c->used_usec);
        if (c->client_left)
                return served_channel_set_state(c, CHANNEL_OVER);
        if (send_all(c) && !served_channel_has_input(c))
                (void) served_channel_set_state(c, CHANNEL_IDLE);
        return c->state;
}

ChannelState channel_turn(ServedChannel *c) {
        ChannelRound alone = { .until_usec = UINT64_MAX };
        bool ends = channel_turn_begin(c) && channel_turn_run(c, &alone);

        job_context_let_go(c->job.context);
        return ends ? channel_turn_end(c) : c->state;
}

/* ---- from outside ---- */

void channel_turn_look(ServedChannel *c) {
        Job *job = &c->job;

        channel_report_progress(c, now_coarse_usec());
        (void) served_channel_read(c);
        if (c->input.cancelled && job->error.error == ERROR_NONE)
                (void) sql_error_set(&job->error, ERROR_CANCELLED, "the query was cancelled");
}

/* The request under way was ended from outside: the next turn sends its error. */
static void on_ended(ServedChannel *c) {
        if (served_channel_is_busy(c))
                return;
        channel_request_end(c);
        (void) served_channel_set_state(c, CHANNEL_READY);
}

void channel_turn_cancel(ServedChannel *c, ErrorNumber error, const char *message) {
        if (!served_channel_is_busy(c))
                return;
        (void) job_end(&c->job, error, message);
        on_ended(c);
}

void channel_turn_on_time(ServedChannel *c, uint64_t now) {
        if (c->state == CHANNEL_DRAINING && c->drain_until_usec <= now)
                (void) served_channel_set_state(c, CHANNEL_SLOW);
        if (c->state != CHANNEL_WAITING)
                return;
        job_on_time(&c->job, now);
        if (!served_channel_is_busy(c))
                on_ended(c);
        else if (job_next_usec(&c->job) == 0)
                (void) served_channel_set_state(c, CHANNEL_READY);
}

void channel_turn_drain(ServedChannel *c) {
        served_channel_restrict(c, CHANNEL_CLOSING);
        if (!served_channel_is_busy(c))
                (void) send_all(c);
}

void channel_turn_drop(ServedChannel *c, bool in_step) {
        served_channel_restrict(c, CHANNEL_DROPPED);
        if (in_step) {
                if (c->job.error.error == ERROR_NONE)
                        (void) sql_error_set(&c->job.error, ERROR_SHUTTING_DOWN, DROPPED);
                return;
        }
        channel_turn_cancel(c, ERROR_SHUTTING_DOWN, DROPPED);
        if (!served_channel_is_busy(c) && !c->client_left)
                (void) send_all(c);
}

int channel_turn_take_unread(ServedChannel *c, uint8_t **ret, size_t *ret_size, bool *ret_can_go_on) {
        int r = job_take_unread(&c->job, ret, ret_size);

        if (r < 0)
                return r;
        if (served_channel_is_busy(c)) {
                (void) job_set_state(&c->job, JOB_OVER);
                channel_request_end(c);
        }
        *ret_can_go_on = served_channel_can_go_on(c);
        return 0;
}
