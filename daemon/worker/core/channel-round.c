/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See channel-round.h. From top to bottom: lists, the round, events inside a step.
 */
#include "daemon/worker/core/channel-round.h"

#include "daemon/worker/core/channel-request.h"
#include "daemon/worker/core/channel-turn.h"
#include "daemon/worker/core/monotonic.h"

/* ---- lists ---- */

static void append(ChannelList *list, ServedChannel *c) {
        c->next_in_round = NULL;
        *(list->last ? &list->last->next_in_round : &list->first) = c;
        list->last = c;
}

static ServedChannel *take(ChannelList *list) {
        ServedChannel *c = list->first;

        if (!c)
                return NULL;
        list->first = c->next_in_round;
        if (!list->first)
                list->last = NULL;
        return c;
}

static void take_out(ChannelList *list, const ServedChannel *c) {
        ServedChannel *before = NULL;

        for (ServedChannel *at = list->first; at; before = at, at = at->next_in_round)
                if (at == c) {
                        *(before ? &before->next_in_round : &list->first) = c->next_in_round;
                        if (list->last == c)
                                list->last = before;
                        return;
                }
}

void channel_round_forget(ChannelRound *round, ServedChannel *c) {
        take_out(&round->waiting, c);
        take_out(&round->ran, c);
}

/* ---- the round ---- */

static bool can_share(const ServedChannel *c) {
        return c->state == CHANNEL_READY && !served_channel_is_busy(c) && !c->lasts;
}

/* A guest shares a transaction only with channels to the same database. */
static bool can_join(const ServedChannel *c, const EnginePool *pool) {
        return can_share(c) && c->job.pool == pool;
}

/* A channel that has no turn is settled. */
static int join(ChannelRound *round, TaskQueue *tasks, ServedChannel *c) {
        if (channel_turn_begin(c)) {
                append(&round->waiting, c);
                return 0;
        }
        task_queue_take_out(tasks, &c->task);
        return c->task.type->settle(tasks, &c->task);
}

static int gather(ChannelRound *round, TaskQueue *tasks, ServedChannel *first) {
        const EnginePool *pool = first->job.pool;
        int r = 0;

        for (Task *t = &first->task, *next; t && r == 0; t = next) {
                ServedChannel *c = served_channel_of_task(t);

                next = t->next;
                while (next && (!next->type->is_channel || !can_join(served_channel_of_task(next), pool)))
                        next = next->next;
                r = join(round, tasks, c);
        }
        return r;
}

static bool has_request(const ServedChannel *c) {
        return (c->reported || channel_input_waits(&c->input)) && !c->client_left && c->intake < CHANNEL_CLOSING;
}

static bool others_have_requests(const ChannelRound *round) {
        const ServedChannel *c = round->waiting.first;

        while (c && !has_request(c))
                c = c->next_in_round;
        return c;
}

static int run(ChannelRound *round, TaskQueue *tasks, ServedChannel *c) {
        bool ends;

        task_queue_take_out(tasks, &c->task);
        tasks->current = &c->task;
        c->job.context->shares = others_have_requests(round);
        ends = channel_turn_run(c, round);
        c->job.context->shares = false;
        tasks->current = NULL;
        round->n_turns++;
        if (!ends)
                return c->task.type->settle(tasks, &c->task);
        append(&round->ran, c);
        return 0;
}

/* In the order in which they will run. */
static void foresee(const ChannelRound *round) {
        ServedChannel *c = round->waiting.first;

        if (c && job_engine(&c->job)->foresee)
                while (c && channel_request_foresee(c))
                        c = c->next_in_round;
}

static int run_all(ChannelRound *round, TaskQueue *tasks) {
        ServedChannel *c;
        int r = 0;

        foresee(round);
        while (r == 0 && (c = take(&round->waiting))) {
                r = run(round, tasks, c);
                if (round->waiting.first && round->until_usec <= now_usec())
                        break;
        }
        while (take(&round->waiting)) {
        }
        return r;
}

static int run_alone(ChannelRound *round, TaskQueue *tasks, ServedChannel *c) {
        task_queue_take_out(tasks, &c->task);
        tasks->current = &c->task;
        (void) channel_turn(c);
        tasks->current = NULL;
        round->n_turns++;
        return c->task.type->settle(tasks, &c->task);
}

void channel_round_send(ChannelRound *round) {
        for (ServedChannel *c = round->ran.first; c; c = c->next_in_round)
                (void) channel_turn_send(c);
}

/* Of a channel whose answers were sent already it sends nothing. */
static int send_all(ChannelRound *round, TaskQueue *tasks) {
        ServedChannel *c;
        int r = 0;

        while (r == 0 && (c = take(&round->ran))) {
                task_queue_take_out(tasks, &c->task);
                if (c->state == CHANNEL_READY) /* it may have been closed in the step of another */
                        (void) channel_turn_end(c);
                r = c->task.type->settle(tasks, &c->task);
        }
        return r;
}

int channel_round(ChannelRound *round, TaskQueue *tasks, ServedChannel *first) {
        JobContext *context = first->job.context;
        int r;

        *round = (ChannelRound) { .until_usec = UINT64_MAX };
        if (!can_share(first))
                return run_alone(round, tasks, first);
        r = gather(round, tasks, first);
        if (r == 0)
                r = run_all(round, tasks);
        job_context_let_go(context);
        return r == 0 ? send_all(round, tasks) : r;
}

/* ---- events inside a step ---- */

void channel_round_on_progress(ChannelRound *round, uint64_t now) {
        if (round->sent || !round->ran.first || now < round->until_usec)
                return;
        round->sent = true;
        channel_round_send(round);
}
