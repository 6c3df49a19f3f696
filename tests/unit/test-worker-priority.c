/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * daemon/supervisor/workers/worker-priority.h: when workers get the lower priority, and when they get their own back. The
 * test replaces the clock, the CPU time of the workers, their priorities and the timer; time passes in steps of the timer.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "daemon/supervisor/workers/worker-priority.h"
#include "tests/unit/test.h"

#define LOOK_USEC UINT64_C(250000) /* between two checks */
#define OURS 3
#define LOWER 13
#define CPU_CLOCK 1000             /* of worker 0 */
#define FULL 100u                  /* percent of a processor */

enum { A, B, N_USERS };

typedef struct FakeWorker {
        WorkerPriority priority; /* first, so that this is the address of both */
        WorkerLoad load;
        unsigned percent;
        uint64_t cpu_usec;
        int nice;
        bool ended;
} FakeWorker;

static struct {
        PriorityTimer timer;
        User users[N_USERS];
        FakeWorker workers[4];
        uint64_t now_usec, due_usec;
        bool timer_on, forbidden;
        sd_event_time_handler_t handler;
} rig;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_getcpuclockid(pid_t pid, clockid_t *ret);
int __wrap_getpriority(int which, id_t who);
int __wrap_setpriority(int which, id_t who, int nice);
int __wrap_sd_event_add_time(sd_event *e, sd_event_source **ret, clockid_t clock, uint64_t usec, uint64_t accuracy,
                             sd_event_time_handler_t handler, void *userdata);
int __wrap_sd_event_source_set_time_relative(sd_event_source *s, uint64_t usec);
int __wrap_sd_event_source_set_enabled(sd_event_source *s, int enabled);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret) {
        uint64_t usec = clock >= CPU_CLOCK ? rig.workers[clock - CPU_CLOCK].cpu_usec : rig.now_usec;

        *ret = (struct timespec) { .tv_sec = (time_t) (usec / 1000000), .tv_nsec = (long) (usec % 1000000) * 1000 };
        return 0;
}

int __wrap_clock_getcpuclockid(pid_t pid, clockid_t *ret) {
        *ret = CPU_CLOCK + (clockid_t) pid - 1;
        return 0;
}

int __wrap_getpriority(int which, id_t who) {
        (void) which;
        CHECK_INT(who, 0);
        return OURS;
}

int __wrap_setpriority(int which, id_t who, int nice) {
        CHECK_INT(which, PRIO_PROCESS);
        if (rig.forbidden && nice < rig.workers[who - 1].nice) {
                errno = EACCES;
                return -1;
        }
        rig.workers[who - 1].nice = nice;
        return 0;
}

int __wrap_sd_event_add_time(sd_event *e, sd_event_source **ret, clockid_t clock, uint64_t usec, uint64_t accuracy,
                             sd_event_time_handler_t handler, void *userdata) {
        (void) e;
        (void) clock;
        (void) usec;
        (void) accuracy;
        CHECK(userdata == &rig.timer);
        rig.handler = handler;
        *ret = NULL;
        return 0;
}

int __wrap_sd_event_source_set_time_relative(sd_event_source *s, uint64_t usec) {
        (void) s;
        rig.due_usec = rig.now_usec + usec;
        return 0;
}

int __wrap_sd_event_source_set_enabled(sd_event_source *s, int enabled) {
        (void) s;
        rig.timer_on = enabled != SD_EVENT_OFF;
        return 0;
}

static WorkerLoad load(const WorkerPriority *p) {
        return ((const FakeWorker *) p)->load;
}

static void end_worker(WorkerPriority *p) {
        ((FakeWorker *) p)->ended = true;
}

static void begin(void) {
        static const PriorityEvents events = { .load = load, .end = end_worker };

        memset(&rig, 0, sizeof rig);
        rig.now_usec = UINT64_C(1) << 40;
        CHECK_INT(worker_priority_start(&rig.timer, NULL, &events), 0);
}

/* A worker of the user starts. */
static FakeWorker *start(unsigned n, unsigned user) {
        FakeWorker *w = &rig.workers[n];

        *w = (FakeWorker) { .nice = OURS };
        worker_priority_add(&rig.timer, &w->priority, (pid_t) n + 1, &rig.users[user]);
        return w;
}

/* It uses so much of a processor from now on. */
static void set_load(FakeWorker *w, WorkerLoad what, unsigned percent) {
        w->load = what;
        w->percent = percent;
        worker_priority_watch(&rig.timer);
}

static void pass(unsigned n_looks) {
        for (; n_looks > 0; n_looks--) {
                rig.now_usec += LOOK_USEC;
                for (unsigned i = 0; i < N_ELEMENTS(rig.workers); i++)
                        rig.workers[i].cpu_usec += LOOK_USEC * rig.workers[i].percent / 100;
                if (!rig.timer_on || rig.due_usec > rig.now_usec)
                        continue;
                rig.timer_on = false;
                (void) rig.handler(NULL, rig.due_usec, &rig.timer);
        }
}

/* A worker that has just got the lower priority, and computes. */
static FakeWorker *compute(unsigned n, unsigned user) {
        FakeWorker *w = start(n, user);

        set_load(w, WORKER_LOAD_RUNNING, FULL);
        pass(2);
        CHECK_INT(w->nice, LOWER);
        return w;
}

/* After half a second of computing; back after a second of rest. Then the timer stops. */
static void test_lowered_and_back(void) {
        begin();
        FakeWorker *w = start(0, A), *beside = start(1, B);
        CHECK(!rig.timer_on);
        set_load(w, WORKER_LOAD_RUNNING, FULL);
        pass(1);
        CHECK_INT(w->nice, OURS);
        pass(1);
        CHECK_INT(w->nice, LOWER);
        set_load(w, WORKER_LOAD_NONE, 0);
        pass(3);
        CHECK_INT(w->nice, LOWER);
        CHECK(rig.timer_on);
        pass(1);
        CHECK_INT(w->nice, OURS);
        CHECK_INT(beside->nice, OURS);
        CHECK(!rig.timer_on && !w->ended);
}

/* Half a second of CPU time in all, with rests between, does not count. */
static void test_short_queries(void) {
        begin();
        FakeWorker *w = start(0, A);
        for (unsigned i = 0; i < 10; i++) {
                set_load(w, WORKER_LOAD_RUNNING, FULL);
                pass(1);
                set_load(w, WORKER_LOAD_WAITING, 0);
                pass(1);
                CHECK_INT(w->nice, OURS);
        }
        CHECK(w->cpu_usec > 4 * LOOK_USEC);
}

/* A worker that wants a processor and hardly gets one does not rest. */
static void test_starved(void) {
        begin();
        FakeWorker *w = compute(0, A);
        w->percent = 1;
        pass(20);
        CHECK_INT(w->nice, LOWER);
        set_load(w, WORKER_LOAD_WAITING, 1);
        pass(4);
        CHECK_INT(w->nice, OURS);
}

/* Workers that the user starts while one computes, or within a second after that, have the lower priority from the start,
 * also if the other was killed. */
static void test_inherited(void) {
        begin();
        FakeWorker *w = compute(0, A);
        CHECK_INT(start(1, A)->nice, LOWER);
        CHECK_INT(start(2, B)->nice, OURS);
        worker_priority_remove(&rig.timer, &w->priority);
        w->percent = 0;
        pass(3);
        FakeWorker *late = start(3, A);
        CHECK_INT(late->nice, LOWER);
        pass(1);
        worker_priority_remove(&rig.timer, &rig.workers[1].priority);
        CHECK_INT(start(1, A)->nice, OURS);
        pass(3);
        CHECK_INT(late->nice, OURS);
}

/* A resting worker keeps the lower priority, and does not end for it, while another one of its user computes. */
static void test_kept_while_others_compute(void) {
        for (unsigned forbidden = 0; forbidden < 2; forbidden++) {
                begin();
                rig.forbidden = forbidden;
                FakeWorker *w = compute(0, A), *rests = start(1, A);
                pass(20);
                CHECK_INT(rests->nice, LOWER);
                CHECK(!rests->ended);
                set_load(w, WORKER_LOAD_NONE, 0);
                pass(4);
                CHECK_INT(rests->nice, forbidden ? LOWER : OURS);
                CHECK_INT(rests->ended, forbidden);
        }
}

int main(void) {
        static const Test tests[] = {
                TEST(test_lowered_and_back), TEST(test_short_queries), TEST(test_starved), TEST(test_inherited),
                TEST(test_kept_while_others_compute),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
