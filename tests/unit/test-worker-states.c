/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The states of a worker, its jobs and its channels: every transition of their tables is permitted, every other one is
 * rejected, and a real object goes through each permitted one. The engine is a fake one that fills pages, meets a lock or
 * awaits its server as it is told, and times are arguments, so there is no database and no waiting.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/worker/core/channel-request.h"
#include "daemon/worker/core/channel-turn.h"
#include "daemon/worker/core/engine.h"
#include "daemon/worker/core/job-end.h"
#include "daemon/worker/core/job-slice.h"
#include "daemon/worker/core/job-time.h"
#include "daemon/worker/core/leaving.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/row-sink.h"
#include "daemon/worker/core/writer.h"
#include "tests/rigs/life.h"
#include "tests/unit/test.h"

enum { PAGE_SIZE = 4096, ROW_SIZE = 3000, ENDLESS = 1000000, N_STATES = 8 };

#define HOUR_USEC UINT64_C(3600000000)
#define SOON (now_usec() + USEC_PER_SEC)  /* a lock is tried again before that */
#define LATER (now_usec() + 2 * HOUR_USEC)

/* ---- a fake engine ---- */

static struct {
        unsigned n_locks; /* so many first steps meet a lock */
        unsigned n_awaits; /* then so many steps, and later calls for a page, await the server */
        unsigned n_pages; /* then there are so many pages of rows */
        int server_fd;
        bool writes;
        unsigned n_commits;
} fake;

static bool fake_connect(EnginePool *pool, const char *sql, size_t sql_size, const EngineHint *hint, EngineConnection **ret,
                         SqlError *error) {
        *ret = (EngineConnection *) (void *) &fake;
        return true;
}

static void fake_disconnect(EnginePool *pool, EngineConnection *connection) {
}

static void fake_hold(EngineConnection *connection) {
}

static bool fake_false(const EngineConnection *connection) {
        return false;
}

static bool fake_compile(EngineConnection *connection, const char *sql, size_t sql_size, bool describe, EngineHint *hint,
                         EngineStatement **ret, SqlError *error) {
        *ret = (EngineStatement *) (void *) &fake;
        return true;
}

static void fake_release(EngineStatement *statement) {
}

static bool fake_describe(EngineStatement *statement, EngineDescription *ret, SqlError *error) {
        *ret = (EngineDescription) {};
        return true;
}

static bool fake_columns(EngineStatement *statement, uint32_t page_size, const uint8_t **ret_payload, size_t *ret_size,
                         SqlError *error) {
        static const uint8_t payload[8];

        *ret_payload = payload;
        *ret_size = sizeof payload;
        return true;
}

static bool fake_bind(EngineStatement *statement, const JobSpec *spec, SqlError *error) {
        return true;
}

static bool awaits(const RowSink *sink) {
        if (fake.n_awaits == 0)
                return false;
        CHECK(sink->may_await);
        return fake.n_awaits-- > 0;
}

static int fake_awaited_fd(const EngineConnection *connection) {
        return fake.server_fd;
}

static EngineResult fake_step(EngineStatement *statement, RowSink *sink, SqlError *error) {
        if (fake.n_locks > 0) {
                fake.n_locks--;
                (void) sql_error_set(error, ERROR_BUSY, "locked");
                return ENGINE_BUSY;
        }
        if (awaits(sink))
                return ENGINE_AWAITS;
        sink->n_columns = 1;
        sink->row_waits = fake.n_pages > 0;
        return sink->row_waits ? ENGINE_ROW : ENGINE_DONE;
}

static EngineResult fake_fill(EngineStatement *statement, RowSink *sink, SqlError *error) {
        EngineResult result;
        uint8_t *row;

        if (awaits(sink))
                return ENGINE_AWAITS;
        if (fake.n_pages == 0)
                return ENGINE_DONE;
        result = row_sink_begin(sink);
        if (result != ENGINE_ROW)
                return result;
        row = page_encoder_add(sink->encoder, VALUE_BLOB, ROW_SIZE);
        if (row)
                memset(row, 0, ROW_SIZE);
        result = row_sink_end(sink);
        if (result == ENGINE_ROW)
                fake.n_pages--;
        return result == ENGINE_ROW ? ENGINE_PAGE_FULL : result;
}

static bool fake_measure(EngineStatement *statement, unsigned i, ValueType *ret_type, uint64_t *ret_size, SqlError *error) {
        *ret_type = VALUE_BLOB;
        *ret_size = ROW_SIZE;
        return true;
}

static void fake_counters(EngineStatement *statement, EndCounters *counters) {
}

static void fake_give_up(SqlError *error) {
}

static bool fake_is_savepoint(const EngineStatement *statement) {
        return false;
}

static bool fake_writes(const EngineStatement *statement) {
        return fake.writes;
}

static bool fake_begin(EnginePool *pool, bool enforces, EngineConnection **ret, SqlError *error) {
        *ret = (EngineConnection *) (void *) &fake;
        return true;
}

static bool fake_commit(EngineConnection *connection, SqlError *error) {
        fake.n_commits++;
        return true;
}

static bool fake_save(EngineConnection *connection, SqlError *error) {
        return true;
}

static void fake_changes(EngineStatement *statement, int64_t *ret_n_changes, int64_t *ret_last_rowid) {
        *ret_n_changes = *ret_last_rowid = 1;
}

static void fake_written(EngineStatement *statement, EngineWritten *written) {
}

static void fake_state(EngineConnection *connection, FileState *ret) {
        *ret = (FileState) { .kind = FILE_STATE_ROLLBACK };
}

static const Engine fake_engine = {
        .connect = fake_connect,
        .disconnect = fake_disconnect,
        .hold = fake_hold,
        .let_go = fake_hold,
        .keeps_writers_out = fake_false,
        .writer_waits = fake_false,
        .trim = fake_hold,
        .compile = fake_compile,
        .release = fake_release,
        .describe = fake_describe,
        .columns = fake_columns,
        .bind = fake_bind,
        .step = fake_step,
        .fill = fake_fill,
        .awaited_fd = fake_awaited_fd,
        .measure = fake_measure,
        .counters = fake_counters,
        .reset = fake_release,
        .give_up = fake_give_up,
        .writes = fake_writes,
        .begin = fake_begin,
        .commit = fake_commit,
        .is_in_transaction = fake_false,
        .save = fake_save,
        .keep = fake_save,
        .undo = fake_hold,
        .is_savepoint = fake_is_savepoint,
        .changes = fake_changes,
        .written = fake_written,
        .state = fake_state,
};

static const Setup setup = {
        .park_usec = HOUR_USEC, .park_rollback_usec = HOUR_USEC, .busy_usec = HOUR_USEC, .drain_usec = HOUR_USEC,
        .sql_size_max = 1000, .writes = true,
};
static void hear_nothing(void *userdata) {
}

static JobContext context = { .setup = &setup, .engine = &fake_engine, .hear = hear_nothing };

/* ---- tables ---- */

/* The transitions that an object went through. */
typedef struct Path {
        int last;
        bool seen[N_STATES][N_STATES];
} Path;

static void walk(Path *path, int state) {
        if (state != path->last)
                path->seen[path->last][state] = true;
        path->last = state;
}

/* The row of a state in `table` has an "x" under each state that may follow. */
static void check_table(const char *const *table, unsigned n, bool (*may_follow)(unsigned from, unsigned to),
                        void (*change)(unsigned from, unsigned to), const Path *path) {
        for (unsigned from = 0; from < n; from++)
                for (unsigned to = 0; to < n; to++) {
                        bool permitted = table[from][to] == 'x';

                        CHECK_INT(may_follow(from, to), permitted);
                        CHECK_INT(path->seen[from][to], permitted);
                        if (LIFE_ASSERTS && from != to)
                                CHECK_INT(life_is_rejected(change, from, to), !permitted);
                }
        CHECK(!may_follow(0, n) && !may_follow(n, 0));
}

/* ---- a job ---- */

static Path job_path;
static Task task = { .number = 1 };
static bool hands_over;

static bool started(Job *job) {
        walk(&job_path, job->state);
        return true;
}

static int write_page(Job *job) {
        walk(&job_path, job->state);
        return page_writer_flush(&job->writer);
}

static bool has_left;

static bool reader_left(const Job *job) {
        return has_left;
}

static void parked(Job *job, bool is_parked) {
}

static void progress(Job *job) {
        walk(&job_path, job->state);
}

static void ended(Job *job, bool drained) {
        walk(&job_path, job->state);
}

static void hand_over(Job *job) {
        uint8_t *bytes;
        size_t size;

        hands_over = true;
        CHECK_INT(job_take_unread(job, &bytes, &size), 0);
        CHECK(size > 0);
        free(bytes);
        (void) job_set_state(job, JOB_OVER);
}

static const JobOwner pipe_owner = {
        .started = started,
        .write_page = write_page,
        .reader_left = reader_left,
        .parked = parked,
        .progress = progress,
        .ended = ended,
        .hand_over = hand_over,
};

static const JobSpec spec = {
        .number = 1, .sql = "", .page_size = PAGE_SIZE, .deadline_usec = UINT64_MAX, .lock_wait_usec = UINT64_MAX,
        .row_size_max = PAGE_SIZE, .result_rows_max = UINT64_MAX, .result_size_max = UINT64_MAX,
};

static void make_pipe(int fds[2]) {
        CHECK(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
        (void) fcntl(fds[1], F_SETPIPE_SZ, PAGE_SIZE);
}

static void empty(int fd) {
        uint8_t bytes[PAGE_SIZE];

        while (read(fd, bytes, sizeof bytes) > 0)
                ;
}

static void begin_job(Job *job, unsigned n_locks, unsigned n_pages) {
        fake.n_locks = n_locks;
        fake.n_pages = n_pages;
        walk(&job_path, job->state);
        job_begin(job, &spec, false, NULL);
        walk(&job_path, job->state);
}

/* A slice after another until the job is in that state. */
static void slice_until(Job *job, JobState state) {
        for (unsigned i = 0; job->state != state; i++) {
                CHECK(i < 100);
                (void) job_slice(job);
                walk(&job_path, job->state);
        }
}

static void end_job(Job *job, ErrorNumber reason, JobState expected) {
        (void) job_end(job, reason, "for a reason");
        walk(&job_path, job->state);
        CHECK_INT(job->state, expected);
}

/* Runs to the end, with a reader that is slow. */
static void run_to_the_end(Job *job, int reader_fd) {
        begin_job(job, 0, 4);
        slice_until(job, JOB_PARKED);
        empty(reader_fd);
        job_wake(job);
        walk(&job_path, job->state);
        CHECK_INT(job->state, JOB_READY);
        slice_until(job, JOB_PARKED);
        end_job(job, ERROR_CANCELLED, JOB_DRAINING);
        end_job(job, ERROR_TIMED_OUT, JOB_DRAINING);
        CHECK_INT(job->error.error, ERROR_CANCELLED);
        empty(reader_fd);
        job_wake(job);
        walk(&job_path, job->state);
        CHECK_INT(job->state, JOB_ENDING);
        while (job->state != JOB_OVER) {
                empty(reader_fd);
                (void) job_slice(job);
                walk(&job_path, job->state);
        }
        empty(reader_fd);
}

static void meet_locks(Job *job, int reader_fd) {
        begin_job(job, 2, 0);
        slice_until(job, JOB_RETRY);
        job_on_time(job, LATER);
        walk(&job_path, job->state);
        CHECK_INT(job->state, JOB_READY);
        slice_until(job, JOB_RETRY);
        end_job(job, ERROR_CANCELLED, JOB_OVER);
        empty(reader_fd);
}

static void await_server(Job *job) {
        begin_job(job, 0, 0);
        fake.n_awaits = 1;
        slice_until(job, JOB_AWAITING);
        CHECK_INT(job_next_usec(job), UINT64_MAX);
}

/* The worker is woken once by the answer, before and between rows. Rows go out before the wait. */
static void await_answers(Job *job, int reader_fd) {
        struct epoll_event e;
        uint8_t bytes[PAGE_SIZE];
        int server[2];

        make_pipe(server);
        fake.server_fd = server[0];
        context.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        context.answer_event = &fake;
        await_server(job);
        CHECK_INT(epoll_wait(context.epoll_fd, &e, 1, 0), 0);
        CHECK(!job_is_answered(job));
        CHECK_INT(write(server[1], "", 1), 1);
        CHECK_INT(epoll_wait(context.epoll_fd, &e, 1, 0), 1);
        CHECK(e.data.ptr == &fake);
        CHECK_INT(epoll_wait(context.epoll_fd, &e, 1, 0), 0);
        CHECK(job_is_answered(job));
        job_wake(job);
        walk(&job_path, job->state);
        CHECK_INT(job->state, JOB_READY);
        fake.n_pages = 1;
        CHECK_INT(job_slice(job), JOB_READY);
        fake.n_awaits = 1;
        slice_until(job, JOB_AWAITING);
        CHECK(read(reader_fd, bytes, sizeof bytes) > ROW_SIZE);
        CHECK_INT(epoll_wait(context.epoll_fd, &e, 1, 0), 1);
        end_job(job, ERROR_CANCELLED, JOB_OVER);
        empty(reader_fd);

        await_server(job);
        empty(reader_fd);
        job->deadline_usec = now_usec();
        job_on_time(job, LATER);
        walk(&job_path, job->state);
        CHECK_INT(job->state, JOB_OVER);
        CHECK_INT(job->error.error, ERROR_TIMED_OUT);
        empty(reader_fd);
        begin_job(job, 0, 0);
        fake.n_awaits = 1;
        has_left = true;
        slice_until(job, JOB_OVER);
        has_left = false;
        CHECK_INT(job->error.error, ERROR_PIPE_CLOSED);
        close(context.epoll_fd);
        close(server[0]);
        close(server[1]);
}

/* A statement that writes waits for the lease, which comes, or for which it does not wait. */
static void wait_to_write(Job *job, int reader_fd) {
        TaskQueue tasks = {};
        GroupWriter writer;

        writer_init(&writer, &context, &tasks);
        fake.writes = true;
        begin_job(job, 0, 0);
        slice_until(job, JOB_QUEUED);
        CHECK_INT(job_slice(job), JOB_QUEUED);
        CHECK_INT(writer_on_lease(&writer, false), 0);
        fake.n_commits = 0;
        writer_turn(&writer);
        walk(&job_path, job->state);
        CHECK_INT(job->state, JOB_READY);
        CHECK_INT(fake.n_commits, 1);
        empty(reader_fd);
        slice_until(job, JOB_OVER);
        CHECK(job->counters.wrote);
        empty(reader_fd);

        begin_job(job, 0, 0);
        slice_until(job, JOB_QUEUED);
        job_on_time(job, now_usec());
        CHECK_INT(job->state, JOB_QUEUED);
        empty(reader_fd);
        end_job(job, ERROR_CANCELLED, JOB_OVER);
        CHECK(!job->counters.wrote);
        empty(reader_fd);
        writer_turn(&writer);
        CHECK_INT(fake.n_commits, 1);
        fake.writes = false;
        writer_done(&writer);
        context.writer = NULL;
}

/* The reader takes nothing, or leaves. */
static void drain_in_vain(Job *job, int reader_fd) {
        begin_job(job, 0, ENDLESS);
        slice_until(job, JOB_PARKED);
        end_job(job, ERROR_CANCELLED, JOB_DRAINING);
        hands_over = false;
        job_on_time(job, now_usec());
        CHECK(!hands_over);
        job_on_time(job, LATER);
        walk(&job_path, job->state);
        CHECK(hands_over);
        CHECK_INT(job->state, JOB_OVER);
        empty(reader_fd);
        begin_job(job, 0, ENDLESS);
        slice_until(job, JOB_PARKED);
        end_job(job, ERROR_CANCELLED, JOB_DRAINING);
        end_job(job, ERROR_PIPE_CLOSED, JOB_OVER);
        CHECK_INT(job->error.error, ERROR_PIPE_CLOSED);
        empty(reader_fd);
}

static void prepare_only(void) {
        Job job;

        CHECK_INT(job_init(&job, &task, &pipe_owner, &context, -1, 0), 0);
        job_path.last = job.state;
        job_begin(&job, &spec, true, NULL);
        walk(&job_path, job.state);
        slice_until(&job, JOB_OVER);
        job_done(&job);
}

static void refuse(void) {
        Job job;

        CHECK_INT(job_init(&job, &task, &pipe_owner, &context, -1, PAGE_SIZE), 0);
        job_path.last = job.state;
        (void) sql_error_set(job_refuse(&job, &spec), ERROR_BUSY, "refused");
        walk(&job_path, job.state);
        CHECK_INT(job.state, JOB_ENDING);
        end_job(&job, ERROR_PIPE_CLOSED, JOB_OVER);
        job_done(&job);
}

static bool job_may_follow(unsigned from, unsigned to) {
        return job_state_may_follow((JobState) from, (JobState) to);
}

static void change_job(unsigned from, unsigned to) {
        Job job = { .state = (JobState) from };

        (void) job_set_state(&job, (JobState) to);
}

static void test_job(void) {
        static const char *const table[_JOB_STATE_MAX] = {
                /*                  OVER READY RETRY AWAITING PARKED QUEUED ENDING DRAINING */
                [JOB_OVER] =     ".x....x.",
                [JOB_READY] =    "x.xxxxx.",
                [JOB_RETRY] =    ".x....x.",
                [JOB_AWAITING] = ".x....x.",
                [JOB_PARKED] =   ".x....x.",
                [JOB_QUEUED] =   ".x....x.",
                [JOB_ENDING] =   "x......x",
                [JOB_DRAINING] = "x.....x.",
        };
        Job job;
        int fds[2];

        make_pipe(fds);
        CHECK_INT(job_init(&job, &task, &pipe_owner, &context, fds[1], PAGE_SIZE), 0);
        run_to_the_end(&job, fds[0]);
        begin_job(&job, 0, 0);
        slice_until(&job, JOB_OVER);
        empty(fds[0]);
        meet_locks(&job, fds[0]);
        await_answers(&job, fds[0]);
        wait_to_write(&job, fds[0]);
        drain_in_vain(&job, fds[0]);
        job_done(&job);
        prepare_only();
        refuse();
        check_table(table, _JOB_STATE_MAX, job_may_follow, change_job, &job_path);
        close(fds[0]);
        close(fds[1]);
}

/* ---- a channel ---- */

static Path channel_path;
static int client_fd;
static uint64_t n_requests;

static ServedChannel *open_channel(void) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        ServedChannel *c;
        int fds[2];

        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        client_fd = fds[0];
        m.message = (Message) { .kind = MESSAGE_CHANNEL, .channel = {
                .number = 1, .page_size = PAGE_SIZE, .statements_max = 1, .run_timeout_usec = HOUR_USEC,
                .prepare_timeout_usec = HOUR_USEC, .row_size_max = PAGE_SIZE, .result_rows_max = UINT64_MAX,
                .result_size_max = UINT64_MAX,
        } };
        m.pipe_fd = fds[1];
        CHECK_INT(served_channel_new(&context, &channel_request_owner, &m, &c), 0);
        n_requests = 0;
        channel_path.last = c->state;
        CHECK_INT(c->state, CHANNEL_READY);
        return c;
}

static void close_channel(ServedChannel *c) {
        (void) served_channel_free(c);
        close(client_fd);
}

static void turn_to(ServedChannel *c, ChannelState expected) {
        (void) channel_turn(c);
        walk(&channel_path, c->state);
        CHECK_INT(c->state, expected);
}

/* As the worker's set of channels does. */
static void wake(ServedChannel *c, uint32_t events) {
        CHECK(served_channel_on_events(c, events));
        walk(&channel_path, served_channel_set_state(c, CHANNEL_READY));
}

/* The client asks for a query without SQL, which is all that the engine needs. */
static void ask(unsigned n_locks, unsigned n_pages) {
        uint8_t request[FRAME_HEADER_SIZE + CHANNEL_QUERY_HEAD_SIZE] = {};

        fake.n_locks = n_locks;
        fake.n_pages = n_pages;
        store_le32(request, CHANNEL_QUERY_HEAD_SIZE);
        request[4] = REQUEST_QUERY;
        request[5] = SQLIPC_PAGE_VERSION;
        store_le64(request + 8, ++n_requests);
        CHECK(write(client_fd, request, sizeof request) == sizeof request);
}

static void idle_and_wait(void) {
        ServedChannel *c = open_channel();

        turn_to(c, CHANNEL_IDLE);
        ask(1, 0);
        wake(c, EPOLLIN);
        turn_to(c, CHANNEL_WAITING);
        CHECK_INT(c->job.state, JOB_RETRY);
        channel_turn_on_time(c, SOON);
        walk(&channel_path, c->state);
        CHECK_INT(c->state, CHANNEL_READY);
        turn_to(c, CHANNEL_IDLE);
        channel_turn_drain(c);
        walk(&channel_path, c->state);
        CHECK_INT(c->state, CHANNEL_OVER);
        close_channel(c);
}

/* The socket is full already, so that no answer fits. */
static ServedChannel *drain(void) {
        ServedChannel *c = open_channel();
        uint8_t bytes[PAGE_SIZE] = {};

        turn_to(c, CHANNEL_IDLE);
        while (write(c->fd, bytes, sizeof bytes) > 0)
                ;
        ask(0, 0);
        wake(c, EPOLLIN);
        turn_to(c, CHANNEL_DRAINING);
        return c;
}

static void drain_to_each_end(void) {
        ServedChannel *c = drain();
        uint8_t *bytes;
        size_t size;
        bool can_go_on;

        CHECK(!served_channel_on_events(c, EPOLLIN));
        empty(client_fd);
        wake(c, EPOLLOUT);
        turn_to(c, CHANNEL_IDLE);
        close_channel(c);

        c = drain();
        channel_turn_on_time(c, now_usec());
        CHECK_INT(c->state, CHANNEL_DRAINING);
        channel_turn_on_time(c, LATER);
        walk(&channel_path, c->state);
        CHECK_INT(c->state, CHANNEL_SLOW);
        CHECK_INT(channel_turn_take_unread(c, &bytes, &size, &can_go_on), 0);
        CHECK(can_go_on && size > 0);
        free(bytes);
        close_channel(c);

        c = drain();
        CHECK(shutdown(client_fd, SHUT_RD) == 0);
        channel_turn_drop(c, false);
        walk(&channel_path, c->state);
        CHECK_INT(c->state, CHANNEL_OVER);
        close_channel(c);
}

/* A request under way whose client reads nothing. */
static void wait_to_each_end(void) {
        ServedChannel *c = open_channel();
        uint8_t *bytes;
        size_t size;
        bool can_go_on;

        ask(0, ENDLESS);
        while (c->state == CHANNEL_READY)
                (void) channel_turn(c);
        walk(&channel_path, c->state);
        CHECK_INT(c->state, CHANNEL_WAITING);
        CHECK_INT(c->job.state, JOB_PARKED);
        channel_turn_cancel(c, ERROR_CANCELLED, "cancelled");
        CHECK_INT(c->state, CHANNEL_WAITING);
        CHECK_INT(c->job.state, JOB_DRAINING);
        channel_turn_on_time(c, LATER);
        walk(&channel_path, c->state);
        CHECK_INT(c->state, CHANNEL_SLOW);
        CHECK_INT(channel_turn_take_unread(c, &bytes, &size, &can_go_on), 0);
        CHECK(can_go_on && !served_channel_is_busy(c));
        free(bytes);
        close_channel(c);

        c = open_channel();
        c->client_left = true;
        turn_to(c, CHANNEL_OVER);
        close_channel(c);
}

/* CHANNEL_CLOSE with `drain` waits for the answer to the request under way, also if that waits for a lock. */
static void test_drain_answers_first(void) {
        ServedChannel *c = open_channel();
        uint8_t answer[PAGE_SIZE];

        ask(2, 0);
        turn_to(c, CHANNEL_WAITING);
        channel_turn_drain(c);
        CHECK_INT(c->state, CHANNEL_WAITING);
        channel_turn_on_time(c, SOON);
        turn_to(c, CHANNEL_WAITING);
        channel_turn_on_time(c, SOON);
        turn_to(c, CHANNEL_OVER);
        CHECK_INT(c->job.state, JOB_OVER);
        CHECK(read(client_fd, answer, sizeof answer) > 0);
        close_channel(c);
}

static bool channel_may_follow(unsigned from, unsigned to) {
        return served_channel_state_may_follow((ChannelState) from, (ChannelState) to);
}

static void change_channel(unsigned from, unsigned to) {
        ServedChannel c = { .state = (ChannelState) from };

        (void) served_channel_set_state(&c, (ChannelState) to);
}

static void test_channel(void) {
        static const char *const table[_CHANNEL_STATE_MAX] = {
                /*                      IDLE READY WAITING DRAINING SLOW OVER */
                [CHANNEL_IDLE] =     ".x...x",
                [CHANNEL_READY] =    "x.xx.x",
                [CHANNEL_WAITING] =  ".x..x.",
                [CHANNEL_DRAINING] = ".x..xx",
                [CHANNEL_SLOW] =     "......",
                [CHANNEL_OVER] =     "......",
        };

        idle_and_wait();
        drain_to_each_end();
        wait_to_each_end();
        check_table(table, _CHANNEL_STATE_MAX, channel_may_follow, change_channel, &channel_path);
}

/* ---- a worker that leaves ---- */

static Path leaving_path;

static bool leaving_may_follow(unsigned from, unsigned to) {
        return leaving_state_may_follow((LeavingState) from, (LeavingState) to);
}

static void change_leaving(unsigned from, unsigned to) {
        Leaving l = { .state = (LeavingState) from };

        leaving_set_state(&l, (LeavingState) to);
}

typedef enum Event { ASK, ASK_AT_ONCE, EXIT, GO, TIME } Event;

/* A worker without jobs handles the events in turn; then it is in the state `expected`. */
static void leave(const Event *events, size_t n, LeavingState expected) {
        TaskQueue tasks;
        ChannelSet channels = { .tasks = &tasks, .context = &context };
        Leaving l;
        int fds[2];

        CHECK_INT(task_queue_init(&tasks), 0);
        make_pipe(fds);
        CHECK_INT(leaving_init(&l, &channels, fds[0], &tasks), 0);
        leaving_path.last = l.state;
        for (size_t i = 0; i < n; i++) {
                int r = 0;

                switch (events[i]) {
                case ASK: r = leaving_give_way(&l, 1); break;
                case ASK_AT_ONCE: r = leaving_give_way(&l, 0); break;
                case EXIT: r = leaving_exit(&l); break;
                case GO: leaving_go_now(&l); break;
                case TIME: r = leaving_check(&l, LATER); break;
                }
                CHECK_INT(r, 0);
                walk(&leaving_path, l.state);
                if (l.state != LEAVING_GONE)
                        CHECK_INT(context.leaving, l.state >= LEAVING_GIVES_WAY);
        }
        CHECK_INT(l.state, expected);
        CHECK_INT(leaving_takes_jobs(&l), expected <= LEAVING_ASKED);
        context.leaving = false;
        task_queue_done(&tasks);
        close(fds[0]);
        close(fds[1]);
}

#define LEAVE(expected, ...)                                                                                          \
        leave((const Event[]) { __VA_ARGS__ }, sizeof((Event[]) { __VA_ARGS__ }) / sizeof(Event), expected)

static void test_leaving(void) {
        static const char *const table[_LEAVING_STATE_MAX] = {
                /*                       STAYS ASKED GIVES_WAY LEAVES GONE */
                [LEAVING_STAYS] =     ".xxxx",
                [LEAVING_ASKED] =     "..xxx",
                [LEAVING_GIVES_WAY] = "x..xx",
                [LEAVING_LEAVES] =    "....x",
                [LEAVING_GONE] =      ".....",
        };

        LEAVE(LEAVING_STAYS, TIME);
        LEAVE(LEAVING_STAYS, ASK, ASK, TIME, TIME, TIME);
        LEAVE(LEAVING_LEAVES, ASK, EXIT, ASK, ASK_AT_ONCE);
        LEAVE(LEAVING_LEAVES, ASK_AT_ONCE, ASK, EXIT);
        LEAVE(LEAVING_LEAVES, EXIT);
        LEAVE(LEAVING_GIVES_WAY, ASK_AT_ONCE, ASK);
        LEAVE(LEAVING_GONE, EXIT, TIME);
        LEAVE(LEAVING_GONE, GO, EXIT, ASK);
        LEAVE(LEAVING_GONE, ASK, GO);
        LEAVE(LEAVING_GONE, ASK_AT_ONCE, GO, TIME);
        check_table(table, _LEAVING_STATE_MAX, leaving_may_follow, change_leaving, &leaving_path);
}

static void ignore_reports(void) {
        int fds[2];

        (void) signal(SIGPIPE, SIG_IGN);
        CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        context.control_fd = fds[0];
}

int main(void) {
        static const Test tests[] = { TEST(test_job), TEST(test_channel), TEST(test_drain_answers_first),
                                      TEST(test_leaving) };

        ignore_reports();
        return test_main(tests, N_ELEMENTS(tests));
}
