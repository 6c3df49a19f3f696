/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lowers the priority of workers that compute for long. Supervisor. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "daemon/supervisor/clock.h"
#include "daemon/supervisor/context.h"
#include "daemon/supervisor/log.h"
#include "daemon/supervisor/worker-priority.h"
#include "daemon/supervisor/worker.h"

#define LOOK_USEC UINT64_C(250000)
#define LOOK_ACCURACY_USEC UINT64_C(50000)
#define BUSY_USEC UINT64_C(500000)
#define N_RESTS 4
#define REST_SHARE 10 /* a worker that uses less than 1/REST_SHARE of a processor rests */
#define NICE 10
#define NICE_MAX 19

uint64_t worker_cpu_usec(const Worker *w) {
        struct timespec ts;
        clockid_t clock;

        if (w->pid <= 0 || clock_getcpuclockid(w->pid, &clock) != 0 || clock_gettime(clock, &ts) < 0)
                return 0;
        return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}

static void lower_priority(Worker *w) {
        int nice = MIN(w->context->priorities->nice + NICE, NICE_MAX);

        w->priority.lowered = true; /* also set if it fails, so that it is not tried again and again */
        if (setpriority(PRIO_PROCESS, (id_t) w->pid, nice) < 0)
                log_debug("The priority of worker %i cannot be lowered: %s", (int) w->pid, g_strerror(errno));
}

static bool computed_just_now(const User *u) {
        return u->computed_usec > 0 && clock_usec() - u->computed_usec < N_RESTS * LOOK_USEC;
}

void worker_priority_inherit(Worker *w) {
        if (!computed_just_now(w->group->user))
                return;
        lower_priority(w);
        worker_priority_watch(w->context);
}

/* If the worker has to end, its channels move to other workers. */
static void restore_priority(Worker *w) {
        if (setpriority(PRIO_PROCESS, (id_t) w->pid, w->context->priorities->nice) >= 0)
                w->priority = (WorkerPriority) { .cpu_usec = w->priority.cpu_usec };
        else
                (void) worker_end(w, WORKER_END_PRIORITY);
}

static void look_at(Worker *w, uint64_t elapsed_usec) {
        WorkerPriority *p = &w->priority;
        uint64_t cpu_usec = worker_cpu_usec(w), used_usec = cpu_usec - MIN(p->cpu_usec, cpu_usec);

        p->cpu_usec = cpu_usec;
        /* a worker that wants a processor and gets none does not rest */
        if (used_usec < elapsed_usec / REST_SHARE && worker_n_runnable(w) == 0) {
                p->busy_usec = 0;
                p->n_rests++;
        } else {
                p->busy_usec += used_usec;
                p->n_rests = 0;
        }
        if (!p->lowered && p->busy_usec >= BUSY_USEC)
                lower_priority(w);
        else if (p->lowered && p->n_rests >= N_RESTS && !computed_just_now(w->group->user))
                restore_priority(w); /* if it ended earlier, its successor would only inherit the lower priority */
        if (p->lowered && p->n_rests == 0)
                w->group->user->computed_usec = clock_usec();
}

static void set(PriorityTimer *t, bool on) {
        int r = 0;

        t->looked_usec = on ? clock_usec() : 0;
        if (on)
                r = sd_event_source_set_time_relative(t->source, LOOK_USEC);
        if (r >= 0)
                r = sd_event_source_set_enabled(t->source, on ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
        if (r < 0)
                log_error("A timer cannot be set: %s", strerror(-r));
}

static int on_look(sd_event_source *s, uint64_t usec, void *userdata) {
        Context *context = userdata;
        uint64_t elapsed_usec = clock_usec() - context->priorities->looked_usec;
        bool on = false;

        for (GList *i = context->workers.head; i; i = i->next) {
                Worker *w = i->data;

                if (w->state >= WORKER_KILLED) /* a worker that ends may still compute for long */
                        continue;
                look_at(w, elapsed_usec);
                on |= !worker_is_idle(w) || w->priority.lowered;
        }
        set(context->priorities, on);
        return 0;
}

int worker_priority_start(Context *context) {
        context->priorities->nice = getpriority(PRIO_PROCESS, 0);
        return sd_event_add_time(context->event, &context->priorities->source, CLOCK_MONOTONIC, UINT64_MAX,
                                 LOOK_ACCURACY_USEC, on_look, context);
}

void worker_priority_stop(PriorityTimer *t) {
        t->source = sd_event_source_disable_unref(t->source);
}

void worker_priority_watch(Context *context) {
        if (context->priorities->looked_usec == 0)
                set(context->priorities, true);
}
