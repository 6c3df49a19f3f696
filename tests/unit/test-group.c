/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * daemon/supervisor/workers/group: jobs come back from the socket even if the supervisor runs out of resources; which worker
 * gives up its place, and when. No worker is started.
 */
#include <errno.h>
#include <glib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/protocol/protocol.h"
#include "daemon/supervisor/runs/channel-run.h"
#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/group-jobs.h"
#include "daemon/supervisor/runs/pipe.h"
#include "daemon/supervisor/runs/run-spec.h"
#include "daemon/supervisor/runs/session-close.h"
#include "daemon/supervisor/runs/statement.h"
#include "daemon/supervisor/service/manager.h"
#include "daemon/supervisor/workers/group.h"
#include "daemon/supervisor/workers/worker.h"
#include "tests/unit/test.h"

#define N_JOBS 4u

typedef struct Rig {
        Manager *manager;
        Database *database;
        Session *session;
        Run *runs[N_JOBS];
} Rig;

static Run *new_run(Rig *rig, size_t sql_size) {
        g_autofree char *sql = g_strnfill(sql_size, 'x');
        g_autoptr(GBytes) bytes = g_bytes_new(sql, sql_size);
        g_autoptr(Pipe) pipe = NULL;
        Refusal refusal = REFUSAL_INIT;
        Run *run;

        CHECK_INT(pipe_new(rig->session->user, true, &pipe, &refusal), 0);
        CHECK_INT(run_spec_make(rig->session, (RunSpec) {
                .kind = RUN_QUERY, .database = rig->database, .sql = bytes, .pipe = pipe, .page_size = 4096,
                .timeout_usec = UINT64_C(3600000000),
        }, &run, &refusal), 0);
        return run;
}

/* Jobs of a service that stops, which starts no worker: they stay in the socket. Every other one is in a memfd. */
static void rig_init(Rig *rig) {
        static char *no_directories[] = { NULL };
        static const Peer peer = { .name = (char *) ":1.7", .uid = 1000 };
        DatabaseConfig *config = g_new0(DatabaseConfig, 1);

        *rig = (Rig) {};
        config->name = g_strdup("chinook");
        config->path = g_strdup("/chinook.sqlite");
        config->limits.runs_max = N_JOBS;
        CHECK_INT(manager_new(BUS_ADDRESS, no_directories, &rig->manager), 0);
        rig->manager->context.stopping = true;
        CHECK_INT(database_new(&rig->manager->context, config, &rig->database), 0);
        rig->session = session_get(&rig->manager->context, &peer);
        for (unsigned i = 0; i < N_JOBS; i++) {
                rig->runs[i] = new_run(rig, i % 2 == 0 ? 10 : MESSAGE_SIZE_MAX + 1);
                run_submit(rig->runs[i]);
                CHECK_INT(rig->runs[i]->state, RUN_SENT);
        }
}

static void rig_done(Rig *rig) {
        for (unsigned i = 0; i < N_JOBS; i++)
                if (rig->runs[i])
                        run_free(rig->runs[i]);
        (void) session_close(rig->session, ERROR_CANCELLED, "It is over.");
        (void) database_unref(rig->database);
        (void) manager_free(rig->manager);
}

static void check_waiting_in_order(const Rig *rig, const Group *g) {
        GList *i = g->waiting.head;

        CHECK_INT(g->sent.length, 0);
        CHECK_INT(g->waiting.length, N_JOBS);
        for (unsigned k = 0; k < N_JOBS; k++, i = i->next) {
                CHECK(i->data == rig->runs[k]);
                CHECK_INT(rig->runs[k]->state, RUN_WAITING);
        }
}

static struct rlimit set_descriptor_limit(rlim_t soft) {
        struct rlimit before, limit;

        CHECK_INT(getrlimit(RLIMIT_NOFILE, &before), 0);
        limit = before;
        limit.rlim_cur = soft;
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
        return before;
}

static void test_recall_without_descriptors(void) {
        Rig rig;

        rig_init(&rig);
        Group *g = rig.runs[0]->group;
        struct rlimit before = set_descriptor_limit(0);
        CHECK_INT(dup(0), -1);
        group_jobs_recall(g);
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &before), 0);
        check_waiting_in_order(&rig, g);
        CHECK(sd_event_run(rig.manager->context.event, 0) >= 0); /* they are sent again */
        CHECK_INT(g->sent.length, N_JOBS);
        rig_done(&rig);
}

/* A job that a worker has read is not in the socket; the others come back. */
static void test_recall_after_a_job_was_taken(void) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        Rig rig;

        rig_init(&rig);
        Group *g = rig.runs[0]->group;
        CHECK_INT(message_receive(g->workers_fd, &m), 1);
        CHECK_INT(m.message.job.number, rig.runs[0]->number);
        received_message_done(&m);
        group_jobs_recall(g);
        CHECK_INT(g->sent.length, 1);
        CHECK_INT(rig.runs[0]->state, RUN_MISSING);
        CHECK_INT(g->waiting.length, N_JOBS - 1);
        rig_done(&rig);
}

static uint64_t timer_usec(const Group *g) {
        uint64_t usec;

        CHECK(sd_event_source_get_time(g->timer, &usec) >= 0);
        return usec;
}

/* The messages of a worker about its channel. */
static void note_progress(const Rig *rig, bool running) {
        Channel c = { .context = &rig->manager->context, .user = rig->session->user, .database = rig->database, .fd = -1 };

        channel_on_progress(&c, &(ChannelProgress) { .running = running });
        channel_run_done(&c.run);
}

/* Of a worker that is not told anything. */
static void end_work(const Rig *rig) {
        Worker w = { .context = &rig->manager->context, .state = WORKER_CLOSED, .control_fd = -1 };

        worker_on_work_over(&w);
}

/* A starved group looks for a place at once if a worker may be idle, unless it has just asked another worker. */
static void test_offered_place(void) {
        Rig rig;

        rig_init(&rig);
        Group *g = rig.runs[0]->group;
        for (unsigned i = 0; i < 2; i++) {
                g->asked_usec = 0;
                group_staff(g);
                CHECK(g->starved);
                uint64_t later = timer_usec(g);
                CHECK(later > 0);
                note_progress(&rig, true);
                CHECK_INT(timer_usec(g), later);
                g->asked_usec = UINT64_MAX / 2;
                note_progress(&rig, false);
                end_work(&rig);
                CHECK_INT(timer_usec(g), later);
                g->asked_usec = 0;
                if (i == 0)
                        note_progress(&rig, false);
                else
                        end_work(&rig);
                CHECK_INT(timer_usec(g), 0);
        }
        rig_done(&rig);
}

/* A worker that is no process, with a channel that its client last used at `used_usec`. */
typedef struct FakeWorker {
        Worker worker;
        Channel channel;
        int its_fd;
} FakeWorker;

static void fake_worker_init(FakeWorker *f, Group *g, uint64_t used_usec) {
        int fds[2];

        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        *f = (FakeWorker) {
                .worker = { .context = g->context, .group = g, .control_fd = fds[0], .context_link.data = &f->worker },
                .channel = { .used_usec = used_usec, .worker_link.data = &f->channel },
                .its_fd = fds[1],
        };
        g_queue_push_tail_link(&f->worker.channels, &f->channel.worker_link);
        g_queue_push_tail_link(&g->context->workers, &f->worker.context_link);
}

static void fake_worker_done(FakeWorker *f) {
        g_queue_unlink(&f->worker.context->workers, &f->worker.context_link);
        close(f->worker.control_fd);
        close(f->its_fd);
}

/* It was told to give way, and has a turn of so many microseconds. */
static void check_gives_way(const FakeWorker *f, uint64_t turn_usec) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;

        CHECK_INT(message_receive(f->its_fd, &m), 1);
        CHECK_INT(m.message.kind, MESSAGE_GIVE_WAY);
        CHECK_INT(m.message.number, turn_usec);
        received_message_done(&m);
        CHECK_INT(message_receive(f->its_fd, &m), -EAGAIN);
}

/* The worker whose channels were used longest ago gives way, and none on whose channels something runs. One that a reload
 * outdated has no turn: it has the limits of before. */
static void test_who_gives_way(void) {
        DatabaseConfig *config = g_new0(DatabaseConfig, 1);
        FakeWorker old, recent, busy, outdated;
        Database *other;
        Group *g;
        Rig rig;

        rig_init(&rig);
        config->name = g_strdup("other");
        CHECK_INT(database_new(&rig.manager->context, config, &other), 0);
        CHECK_INT(group_get(rig.session->user, other, false, &g), 0);
        fake_worker_init(&busy, g, 1);
        busy.channel.run.state = CHANNEL_RUN_RUNNING;
        fake_worker_init(&recent, g, 3);
        fake_worker_init(&old, g, 2);
        CHECK(worker_end_idle(&rig.manager->context, NULL, NULL));
        check_gives_way(&old, WORKER_TURN_USEC);
        CHECK(worker_end_idle(&rig.manager->context, NULL, NULL));
        check_gives_way(&recent, WORKER_TURN_USEC);
        CHECK(!worker_end_idle(&rig.manager->context, NULL, NULL));
        fake_worker_init(&outdated, g, 4);
        CHECK(worker_end(&outdated.worker, WORKER_END_OUTDATED));
        check_gives_way(&outdated, 0);
        fake_worker_done(&old);
        fake_worker_done(&recent);
        fake_worker_done(&busy);
        fake_worker_done(&outdated);
        (void) group_unref(g);
        (void) database_unref(other);
        rig_done(&rig);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_recall_without_descriptors), TEST(test_recall_after_a_job_was_taken), TEST(test_offered_place),
                TEST(test_who_gives_way),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
