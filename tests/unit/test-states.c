/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The states of the supervisor's objects. For each kind of object, the header of its life cycle lists all transitions. This
 * test reads the lists and checks that the code permits these transitions and no others, that all others abort, and that
 * each of them occurs in the supervisor. The test's clock does not advance by itself. The arguments are the headers.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/group-jobs.h"
#include "daemon/supervisor/runs/run-life.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/workers/worker.h"
#include "dbus-interfaces/sqlipc-names.h"
#include "tests/rigs/bus-rig.h"
#include "tests/rigs/life.h"
#include "tests/rigs/stub-worker.h"
#include "tests/unit/test.h"

#define OPEN SQLIPC_DATABASE_PATH "/open"
#define SECOND UINT64_C(1000000)
#define HOUR (3600 * SECOND)
#define IDLE_USEC (12 * SECOND) /* a little more than WorkerIdleSec= */

/* ---- Life cycles ---- */

LIFE_FUNCTIONS(worker_life, WorkerState)

static Life worker_life = LIFE(worker_life, "worker", WORKER_STATE_MAX, [WORKER_STARTING] = "STARTING",
                               [WORKER_RUNNING] = "RUNNING", [WORKER_ASKED] = "ASKED", [WORKER_ENDING] = "ENDING",
                               [WORKER_KILLED] = "KILLED", [WORKER_CLOSED] = "CLOSED", [WORKER_UNDEAD] = "UNDEAD");

LIFE_FUNCTIONS(channel_life, ChannelState)

static Life channel_life = LIFE(channel_life, "channel", CHANNEL_STATE_MAX, [CHANNEL_RESTING] = "RESTING",
                                [CHANNEL_WAITING] = "WAITING", [CHANNEL_DRAINING] = "DRAINING",
                                [CHANNEL_AT_WORKER] = "AT_WORKER", [CHANNEL_LEAVING] = "LEAVING",
                                [CHANNEL_CLOSING] = "CLOSING");

LIFE_FUNCTIONS(run_life, RunState)

static Life run_life = LIFE(run_life, "run", RUN_STATE_MAX, [RUN_NEW] = "NEW", [RUN_WAITING] = "WAITING",
                            [RUN_SENT] = "SENT", [RUN_MISSING] = "MISSING", [RUN_TAKEN] = "TAKEN",
                            [RUN_STARTED] = "STARTED", [RUN_PARKED] = "PARKED", [RUN_ENDED] = "ENDED",
                            [RUN_DRAINING] = "DRAINING", [RUN_OVER] = "OVER");

LIFE_FUNCTIONS(statement_life, StatementState)

static Life statement_life = LIFE(statement_life, "statement", STATEMENT_STATE_MAX,
                                  [STATEMENT_PREPARING] = "PREPARING", [STATEMENT_READY] = "READY",
                                  [STATEMENT_LOST] = "LOST", [STATEMENT_ENDING] = "ENDING");

LIFE_FUNCTIONS(pipe_life, PipeState)

static Life pipe_life = LIFE(pipe_life, "pipe", PIPE_STATE_MAX, [PIPE_IN_USE] = "IN_USE", [PIPE_BROKEN] = "BROKEN",
                             [PIPE_RESTING] = "RESTING", [PIPE_WATCHED] = "WATCHED");

/* In the order of the arguments. */
static Life *const lives[] = { &worker_life, &channel_life, &run_life, &statement_life, &pipe_life };

static void test_code_agrees_with_headers(void) {
        life_check_documented(lives, N_ELEMENTS(lives));
}

static void test_others_are_rejected(void) {
        life_check_others_are_rejected(lives, N_ELEMENTS(lives));
}

/* ---- The supervisor ---- */

enum { A, B, C }; /* peers, each of a user of its own */

static void begin(void) {
        rig_begin_users();
}

static void end(void) {
        rig_check_nothing_left();
}

/* Query, or OpenRows. */
static void call(unsigned peer, const char *method) {
        sd_bus_message *m = rig_new_call(peer, OPEN, SQLIPC_DATABASE_INTERFACE, method);

        CHECK(sd_bus_message_append(m, "sava{sv}a{sv}", "SELECT 1", 0, 0, 0) >= 0);
        rig_send_call(peer, m, true);
        rig_pump();
}

static void query(unsigned peer) {
        call(peer, "Query");
}

/* Opens a channel, which rests as long as no worker runs. Returns the client's end; borrowed. */
static int open_silent_channel(unsigned peer) {
        sd_bus_message *m = rig_new_call(peer, OPEN, SQLIPC_DATABASE_INTERFACE, "OpenChannel");
        size_t n_fds = rig.n_fds;

        CHECK(sd_bus_message_append(m, "a{sv}", 0) >= 0);
        rig_send_call(peer, m, true);
        rig_pump();
        CHECK_INT(rig.n_fds, n_fds + 1);
        return rig.fds[n_fds];
}

/* Opens a channel, and sends a byte, so that it needs a worker. */
static void open_channel(unsigned peer) {
        CHECK_INT(write(open_silent_channel(peer), "x", 1), 1);
        rig_pump();
}

static Worker *worker(unsigned n) {
        Worker *w = g_queue_peek_nth(&rig.manager->context.workers, n);

        CHECK(w);
        return w;
}


static void say_number(MessageKind kind, uint64_t number) {
        stub_worker_say(0, &(Message) { .kind = kind, .number = number });
        rig_pump();
}

static void say_nonsense(void) {
        say_number(MESSAGE_FILLING, 12345);
}

/* A worker that has a job, and has not sent a message. */
static void begin_starting(void) {
        begin();
        query(A);
        CHECK_INT(worker(0)->state, WORKER_STARTING);
}

/* A worker that took a query. */
static void begin_with_run(void) {
        begin_starting();
        CHECK(stub_worker_take(0));
        rig_pump();
        CHECK_INT(worker(0)->state, WORKER_RUNNING);
}

/* A worker that has a channel. */
static void begin_with_channel(void) {
        begin();
        open_channel(A);
        CHECK_INT(worker(0)->channels.length, 1);
        stub_worker_hear(0); /* it answers PING */
        rig_pump();
        CHECK_INT(worker(0)->state, WORKER_RUNNING);
}

static void begin_asked(void) {
        begin_with_channel();
        CHECK(worker_end(worker(0), WORKER_END_PLACE));
        CHECK_INT(worker(0)->state, WORKER_ASKED);
        CHECK_INT(worker(0)->end, WORKER_END_PLACE);
}

static void begin_ending(void) {
        begin_with_channel();
        CHECK(worker_end(worker(0), WORKER_END_STOPPING));
        CHECK_INT(worker(0)->state, WORKER_ENDING);
}

/* ---- Workers ---- */

static void test_worker_that_starts(void) {
        begin_starting();
        stub_worker_die(0, CLD_KILLED, SIGSEGV);
        rig_pump();
        CHECK_INT(worker(0)->state, WORKER_STARTING); /* another one: the job waits */
        CHECK_INT(worker(0)->group->n_early_deaths, 1);
        say_nonsense();
        CHECK_INT(worker(0)->group->n_early_deaths, 2);
        rig_leave(A); /* its job is taken back, and the worker has nothing to do */
        rig_pass_time(IDLE_USEC);
        CHECK_INT(worker(0)->state, WORKER_ENDING);
        CHECK_INT(worker(0)->end, WORKER_END_IDLE);
        end();

        begin();
        open_channel(A);
        CHECK_INT(worker(0)->state, WORKER_STARTING);
        CHECK(worker_end(worker(0), WORKER_END_PLACE));
        CHECK_INT(worker(0)->state, WORKER_ASKED);
        end();
}

static void test_worker_that_runs(void) {
        begin_with_run();
        stub_worker_die(0, CLD_KILLED, SIGSEGV);
        rig_pump();
        CHECK_INT(rig.manager->context.workers.length, 0);
        end();

        begin_with_run(); /* killed, as it does not obey the CANCEL of the client that leaves */
        Worker *w = worker(0);
        stub_workers_ignore_kill(true);
        rig_leave(A);
        rig_pass_time(6 * SECOND); /* a stub uses no CPU, so it gets all the time that there is (grace.h) */
        CHECK_INT(w->state, WORKER_KILLED);
        CHECK_INT(w->end, WORKER_END_KEEPS_JOB);
        CHECK_INT(w->runs.length, 1);
        stub_worker_die(0, CLD_KILLED, SIGKILL);
        rig_pump();
        CHECK_INT(rig.manager->context.workers.length, 0);
        end();

        begin_with_channel(); /* told to end as it is idle */
        rig_leave(A);
        rig_pump();
        stub_worker_hear(0); /* it closes the channel */
        rig_pass_time(IDLE_USEC);
        CHECK_INT(worker(0)->state, WORKER_ENDING);
        CHECK_INT(worker(0)->end, WORKER_END_IDLE);
        end();
}

static void test_worker_that_is_asked(void) {
        begin_asked();
        say_number(MESSAGE_STAY, 0);
        CHECK_INT(worker(0)->state, WORKER_RUNNING);
        CHECK_INT(worker(0)->end, WORKER_END_NONE);
        end();

        begin_asked();
        CHECK(worker_end(worker(0), WORKER_END_STOPPING));
        CHECK_INT(worker(0)->state, WORKER_ENDING);
        say_number(MESSAGE_STAY, 0); /* too late */
        CHECK_INT(worker(0)->state, WORKER_ENDING);
        end();

        begin_asked();
        stub_workers_ignore_kill(true);
        rig_pass_time(HOUR);
        end();

        begin_asked();
        stub_worker_die(0, CLD_EXITED, 0);
        rig_pump();
        CHECK_INT(rig.manager->context.workers.length, 0);
        end();
}

static void test_worker_that_ends(void) {
        begin_ending();
        stub_worker_die(0, CLD_EXITED, 0);
        rig_pump();
        CHECK_INT(rig.manager->context.workers.length, 0);
        end();

        begin_ending();
        stub_workers_ignore_kill(true);
        rig_pass_time(6 * SECOND);
        CHECK_INT(worker(0)->state, WORKER_KILLED);
        CHECK_INT(worker(0)->end, WORKER_END_GOES_ON);
        CHECK(!worker(0)->holds_no_place);
        rig_pass_time(2 * SECOND);
        CHECK_INT(worker(0)->state, WORKER_UNDEAD);
        CHECK_INT(worker(0)->channels.length, 0);
        CHECK(worker(0)->holds_no_place);
        CHECK_INT(worker(0)->group->database->n_workers, 0);
        stub_worker_die(0, CLD_KILLED, SIGKILL);
        rig_pump();
        CHECK_INT(rig.manager->context.workers.length, 0);
        end();
}

/* ---- Channels ---- */

static Channel *channel(void) {
        GHashTableIter i;
        void *c;

        CHECK_INT(g_hash_table_size(rig.manager->context.channels), 1);
        g_hash_table_iter_init(&i, rig.manager->context.channels);
        CHECK(g_hash_table_iter_next(&i, NULL, &c));
        return c;
}

static void check_no_channel(void) {
        CHECK_INT(g_hash_table_size(rig.manager->context.channels), 0);
}

/* The worker gives the channel back, or has closed it. */
static void say_channel_end(MessageKind kind, bool waiting, const char *unread) {
        stub_worker_say(0, &(Message) {
                .kind = kind,
                .channel_end = {
                        .progress.number = channel()->number,
                        .waiting = waiting,
                        .state = { "", 0 },
                        .unread = { unread, strlen(unread) },
                },
        });
        rig_pump();
}

static void hang_up(void) {
        close(rig.fds[--rig.n_fds]);
        rig_pump();
}

/* Answers that the supervisor has written for the worker. */
static void read_answers(const char *expected) {
        char bytes[32] = {};

        CHECK_INT(recv(rig.fds[0], bytes, sizeof bytes - 1, MSG_DONTWAIT), strlen(expected));
        CHECK_STRING(bytes, expected);
}

static void test_channel_that_comes_back(void) {
        begin_with_channel();
        say_channel_end(MESSAGE_CHANNEL_RESTED, false, "");
        CHECK_INT(channel()->state, CHANNEL_AT_WORKER); /* at once: its byte can still be read */
        say_channel_end(MESSAGE_CHANNEL_RESTED, true, "");
        CHECK(channel()->worker == worker(1)); /* the first one is stuck */
        end();

        begin_with_channel();
        say_channel_end(MESSAGE_CHANNEL_RESTED, false, "unread");
        read_answers("unread");
        end();

        begin_with_channel();
        say_channel_end(MESSAGE_CHANNEL_RESTED, true, "waits");
        read_answers("waits");
        end();

        begin_with_channel();
        say_channel_end(MESSAGE_CHANNEL_CLOSED, false, "last");
        read_answers("last");
        check_no_channel();
        end();
}

static void test_channel_that_ends(void) {
        begin_with_channel();
        hang_up();
        CHECK_INT(channel()->state, CHANNEL_CLOSING);
        CHECK_INT(channel()->end, CHANNEL_END_HANGUP);
        stub_worker_hear(0);
        rig_pump();
        check_no_channel();
        end();

        begin_with_channel();
        channel_end(channel(), CHANNEL_END_RIGHTS);
        CHECK_INT(channel()->state, CHANNEL_LEAVING);
        hang_up();
        CHECK_INT(channel()->state, CHANNEL_CLOSING);
        end();

        begin_with_channel();
        channel_end(channel(), CHANNEL_END_RIGHTS);
        say_channel_end(MESSAGE_CHANNEL_RESTED, true, "crossed");
        read_answers("crossed");
        check_no_channel();
        end();

        begin_with_channel();
        stub_worker_die(0, CLD_KILLED, SIGSEGV);
        rig_pump();
        check_no_channel();
        end();
}

/* A worker has time for a new channel. */
static void test_channel_without_request(void) {
        begin_with_channel();
        const unsigned n_cpus = rig.manager->context.n_cpus;
        rig.manager->context.n_cpus = 1;
        (void) open_silent_channel(A);
        CHECK_INT(worker(0)->channels.length, 2);
        rig.manager->context.n_cpus = n_cpus;
        end();
}

/* ---- Runs ---- */

/* The one that was made last. */
static Run *run(void) {
        Run *found = NULL;
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, rig.manager->context.runs);
        while (g_hash_table_iter_next(&i, NULL, &value))
                if (!found || ((Run *) value)->number > found->number)
                        found = value;
        CHECK(found);
        return found;
}

static void check_no_run(void) {
        CHECK_INT(g_hash_table_size(rig.manager->context.runs), 0);
}

static void say_started(void) {
        stub_worker_say(0, &(Message) {
                .kind = MESSAGE_STARTED,
                .started = { .number = run()->number, .described = true },
        });
        rig_pump();
}

static void say_parked(bool parked) {
        stub_worker_say(0, &(Message) { .kind = MESSAGE_PARKED, .parked = { run()->number, parked } });
        rig_pump();
}

static void say_ended(bool drained) {
        stub_worker_say(0, &(Message) {
                .kind = MESSAGE_ENDED,
                .ended = { .number = run()->number, .failure.sql_offset = -1, .drained = drained },
        });
        rig_pump();
}

static void say_drained(const char *unread) {
        stub_worker_say(0, &(Message) { .kind = MESSAGE_DRAINED, .drained = { run()->number, { unread, strlen(unread) } } });
        rig_pump();
}

/* A run that has started: a Query, or one whose rows go over D-Bus. */
static void begin_started(const char *method) {
        begin();
        call(A, method);
        CHECK(stub_worker_take(0));
        rig_pump();
        say_started();
        CHECK_INT(run()->state, RUN_STARTED);
}

static void test_run_until_it_starts(void) {
        begin_started("Query");
        say_ended(true);
        check_no_run();
        query(A); /* the worker is idle, and need not take it from the job socket */
        CHECK_INT(run()->state, RUN_TAKEN);
        CHECK(worker_end(worker(0), WORKER_END_STOPPING));
        stub_worker_die(0, CLD_EXITED, 0); /* it has not read the job */
        rig_pump();
        CHECK_INT(run()->state, RUN_SENT); /* to another worker */
        group_jobs_recall(run()->group);
        CHECK_INT(run()->state, RUN_WAITING);
        rig_pump();
        CHECK_INT(run()->state, RUN_SENT);
        rig_leave(A);
        rig_pump();
        check_no_run();
        end();
}

static void test_run_that_is_missing(void) {
        begin_starting();
        CHECK(stub_worker_take(0)); /* its message has not been read */
        group_jobs_recall(run()->group);
        CHECK_INT(run()->state, RUN_MISSING);
        rig_pump();
        CHECK_INT(run()->state, RUN_TAKEN);
        end();

        begin_starting();
        run_on_missing(run()); /* as if the socket could not be read */
        CHECK_INT(run()->state, RUN_MISSING);
        group_jobs_recall(run()->group);
        CHECK_INT(run()->state, RUN_WAITING);
        end();

        begin_starting();
        run_on_missing(run());
        rig_pass_time(2 * SECOND);
        check_no_run();
        end();
}

static void test_run_that_ends(void) {
        begin_started("Query");
        say_parked(true);
        CHECK_INT(run()->state, RUN_PARKED);
        say_parked(false);
        CHECK_INT(run()->state, RUN_STARTED);
        say_parked(true);
        say_ended(false);
        CHECK_INT(run()->state, RUN_ENDED);
        say_parked(true); /* its last bytes wait */
        CHECK_INT(run()->state, RUN_ENDED);
        say_drained("last");
        check_no_run();
        end();
}

/* A RowReader keeps its run until it has read to the end. */
static void test_run_that_is_over(void) {
        begin_started("OpenRows");
        say_ended(true);
        CHECK_INT(run()->state, RUN_OVER);
        end();

        begin_started("OpenRows");
        say_ended(false);
        say_drained("last");
        CHECK_INT(run()->state, RUN_OVER);
        end();

        for (unsigned parked = 0; parked < 2; parked++) {
                begin_started("OpenRows");
                if (parked)
                        say_parked(true);
                stub_worker_die(0, CLD_KILLED, SIGSEGV);
                rig_pump();
                CHECK_INT(run()->state, RUN_OVER);
                CHECK_INT(run()->end.error, ERROR_WORKER_LOST);
                rig_pass_time(2 * HOUR); /* StatementIdleSec= */
                check_no_run();
                end();
        }
}

/* A worker reports the end of a run, and exits with status 0 before the supervisor reads that. Last bytes are missing. */
static const RigCall *lose_last_bytes(bool told, bool lies) {
        const RigCall *c;

        begin_started("QueryRows");
        c = &rig.calls[rig.n_calls - 1];
        if (told)
                CHECK(worker_end(worker(0), WORKER_END_STOPPING));
        stub_worker_say(0, &(Message) {
                .kind = MESSAGE_ENDED,
                .ended = { .number = run()->number, .failure.sql_offset = -1, .drained = true },
        });
        if (lies)
                stub_worker_say(0, &(Message) { .kind = MESSAGE_FILLING, .number = 12345 });
        CHECK_INT(c->n_replies, 0);
        stub_worker_die(0, CLD_EXITED, 0);
        rig_pump();
        CHECK_INT(rig.manager->context.workers.length, 0);
        return c;
}

static void check_call_lost(const RigCall *c) {
        CHECK_INT(c->n_replies, 1);
        CHECK_STRING(c->error, "org.sqlipc1.Error.WorkerLost");
        check_no_run();
        end();
}

/* A worker that is killed may have exited before, with status 0. Only that of an honest worker that was told to end means
 * that it wrote everything. */
static void test_run_whose_last_bytes_are_missing(void) {
        check_call_lost(lose_last_bytes(false, false));
        check_call_lost(lose_last_bytes(false, true));
        check_call_lost(lose_last_bytes(true, true));
        CHECK_INT(lose_last_bytes(true, false)->n_replies, 0);
        CHECK_INT(run()->state, RUN_OVER); /* its reader reads on */
        CHECK(run()->pipe->state != PIPE_BROKEN);
        end();
}

/* ---- Statements ---- */

static Statement *statement(void) {
        GHashTableIter i;
        void *s;

        CHECK_INT(g_hash_table_size(rig.manager->context.statements), 1);
        g_hash_table_iter_init(&i, rig.manager->context.statements);
        CHECK(g_hash_table_iter_next(&i, NULL, &s));
        return s;
}

static void check_no_statement(void) {
        CHECK_INT(g_hash_table_size(rig.manager->context.statements), 0);
}

static void begin_preparing(void) {
        begin();
        sd_bus_message *m = rig_new_call(A, OPEN, SQLIPC_DATABASE_INTERFACE, "Prepare");

        CHECK(sd_bus_message_append(m, "sa{sv}", "SELECT 1", 0) >= 0);
        rig_send_call(A, m, true);
        rig_pump();
        CHECK(stub_worker_take(0));
        rig_pump();
        CHECK_INT(statement()->state, STATEMENT_PREPARING);
}

/* A statement that runs. */
static void begin_fetching(void) {
        begin_preparing();
        say_started();
        CHECK_INT(statement()->state, STATEMENT_READY);
        sd_bus_message *m = rig_new_call(A, OPEN, SQLIPC_DATABASE_INTERFACE, "Fetch");

        CHECK(sd_bus_message_append(m, "tava{sv}a{sv}", statement()->number, 0, 0, 0) >= 0);
        rig_send_call(A, m, true);
        rig_pump();
        CHECK_INT(run()->state, RUN_TAKEN);
        say_started();
        CHECK(statement()->run == run());
}

static void test_statement_that_ends(void) {
        begin_preparing();
        statement_on_unpublished(statement());
        CHECK_INT(statement()->state, STATEMENT_ENDING);
        statement_on_unpublished(statement()); /* another reload */
        say_started();
        check_no_statement();
        end();

        begin_fetching();
        statement_on_unpublished(statement());
        CHECK_INT(statement()->state, STATEMENT_ENDING);
        stub_worker_die(0, CLD_KILLED, SIGSEGV);
        rig_pump();
        check_no_statement();
        end();

        begin_fetching();
        stub_worker_die(0, CLD_KILLED, SIGSEGV);
        rig_pump();
        CHECK_INT(statement()->state, STATEMENT_LOST);
        statement_on_unpublished(statement());
        check_no_statement();
        end();
}

/* ---- Pipes ---- */

static Pipe *only_pipe(void) {
        GHashTableIter i;
        void *u;

        g_hash_table_iter_init(&i, rig.manager->context.users);
        CHECK(g_hash_table_iter_next(&i, NULL, &u));
        CHECK_INT(((User *) u)->pipes.length, 1);
        return ((User *) u)->pipes.head->data;
}

/* The client keeps its end after its run, and after that of a worker that is lost. */
static void test_pipe_that_is_kept(void) {
        begin_started("Query");
        CHECK_INT(only_pipe()->state, PIPE_IN_USE);
        say_ended(true);
        CHECK_INT(only_pipe()->state, PIPE_RESTING);
        rig_pass_time(SECOND / 5);
        CHECK_INT(only_pipe()->state, PIPE_WATCHED);
        end();

        begin_fetching();
        stub_worker_die(0, CLD_KILLED, SIGSEGV);
        rig_pump();
        CHECK_INT(only_pipe()->state, PIPE_BROKEN);
        end();
}

/* ---- All of them ---- */

static void test_each_transition_occurred(void) {
        life_check_walked(lives, N_ELEMENTS(lives));
}

int main(int argc, char **argv) {
        static const Test tests[] = {
                TEST(test_code_agrees_with_headers), TEST(test_others_are_rejected), TEST(test_worker_that_starts),
                TEST(test_worker_that_runs), TEST(test_worker_that_is_asked), TEST(test_worker_that_ends),
                TEST(test_channel_without_request), TEST(test_channel_that_comes_back),
                TEST(test_channel_that_ends), TEST(test_run_until_it_starts), TEST(test_run_that_is_missing),
                TEST(test_run_that_ends), TEST(test_run_that_is_over), TEST(test_run_whose_last_bytes_are_missing),
                TEST(test_statement_that_ends), TEST(test_pipe_that_is_kept),
                TEST(test_each_transition_occurred),
        };

        life_take_headers(lives, N_ELEMENTS(lives), argc, argv);
        return test_main(tests, N_ELEMENTS(tests));
}
