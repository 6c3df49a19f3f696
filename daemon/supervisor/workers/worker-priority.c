/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lowers the priority of workers that compute for long. Supervisor. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/cpu-time.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/workers/worker-priority.h"

#define LOOK_USEC UINT64_C(250000)
#define LOOK_ACCURACY_USEC UINT64_C(50000)
#define BUSY_USEC UINT64_C(500000)
#define N_RESTS 4
#define REST_SHARE 10 /* a worker that uses less than 1/REST_SHARE of a processor rests */
#define NICE 10
#define NICE_MAX 19

static void lower_priority(const PriorityTimer *t, WorkerPriority *p) {
        int nice = MIN(t->nice + NICE, NICE_MAX);

        p->lowered = true; /* also set if it fails, so that it is not tried again and again */
        if (setpriority(PRIO_PROCESS, (id_t) p->pid, nice) < 0)
                log_debug("The priority of worker %i cannot be lowered: %s", (int) p->pid, g_strerror(errno));
}

static bool computed_just_now(const User *u) {
        return u->computed_usec > 0 && clock_usec() - u->computed_usec < N_RESTS * LOOK_USEC;
}

void worker_priority_add(PriorityTimer *t, WorkerPriority *p, pid_t pid, User *user) {
        *p = (WorkerPriority) { .pid = pid, .user = user, .link.data = p };
        g_queue_push_tail_link(&t->workers, &p->link);
        if (!computed_just_now(user))
                return;
        lower_priority(t, p);
        worker_priority_watch(t);
}

void worker_priority_remove(PriorityTimer *t, WorkerPriority *p) {
        if (p->link.data)
                g_queue_unlink(&t->workers, &p->link);
        p->link.data = NULL;
}

/* If the worker has to end, its channels move to other workers. */
static void restore_priority(const PriorityTimer *t, WorkerPriority *p) {
        if (setpriority(PRIO_PROCESS, (id_t) p->pid, t->nice) < 0) {
                t->events->end(p);
                return;
        }
        p->busy_usec = 0;
        p->n_rests = 0;
        p->lowered = false;
}

static void look_at(const PriorityTimer *t, WorkerPriority *p, uint64_t elapsed_usec) {
        uint64_t cpu_usec = cpu_time_usec(p->pid), used_usec = cpu_usec - MIN(p->cpu_usec, cpu_usec);

        p->cpu_usec = cpu_usec;
        /* a worker that wants a processor and gets none does not rest */
        if (used_usec < elapsed_usec / REST_SHARE && t->events->load(p) != WORKER_LOAD_RUNNING) {
                p->busy_usec = 0;
                p->n_rests++;
        } else {
                p->busy_usec += used_usec;
                p->n_rests = 0;
        }
        if (!p->lowered && p->busy_usec >= BUSY_USEC)
                lower_priority(t, p);
        else if (p->lowered && p->n_rests >= N_RESTS && !computed_just_now(p->user))
                restore_priority(t, p); /* if it ended earlier, its successor would only inherit the lower priority */
        if (p->lowered && p->n_rests == 0)
                p->user->computed_usec = clock_usec();
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
        PriorityTimer *t = userdata;
        uint64_t elapsed_usec = clock_usec() - t->looked_usec;
        bool on = false;

        for (GList *i = t->workers.head, *next; i; i = next) {
                WorkerPriority *p = i->data;

                next = i->next;
                look_at(t, p, elapsed_usec);
                on |= t->events->load(p) != WORKER_LOAD_NONE || p->lowered;
        }
        set(t, on);
        return 0;
}

int worker_priority_start(PriorityTimer *t, sd_event *event, const PriorityEvents *events) {
        t->events = events;
        t->nice = getpriority(PRIO_PROCESS, 0);
        return sd_event_add_time(event, &t->source, CLOCK_MONOTONIC, UINT64_MAX, LOOK_ACCURACY_USEC, on_look, t);
}

void worker_priority_stop(PriorityTimer *t) {
        t->source = sd_event_source_disable_unref(t->source);
}

void worker_priority_watch(PriorityTimer *t) {
        if (t->looked_usec == 0)
                set(t, true);
}
