/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See stub-worker.h. Tests only. */
#include "tests/rigs/stub-worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "daemon/protocol/protocol.h"
#include "daemon/supervisor/base/child-source.h"
#include "dbus-interfaces/sqlipc-errors.h"
#include "dbus-interfaces/wire/page-encoder.h"
#include "tests/fuzz/demand.h"

#define N_WORKERS_MAX 64
#define N_JOBS_MAX 32
#define N_COLUMNS 5u
#define PAGE_SIZE 4096u   /* what a stub writes fits the smallest pipe */
#define PID_FIRST 2000000000 /* no process has it */

typedef struct StubJob {
        ReceivedMessage received; /* PREPARE, RUN, EXECUTE, BEGIN, CHANNEL */
        bool started, ended;
        bool commits;             /* BEGIN: COMMIT came */
        uint32_t cancelled;       /* BEGIN: the error of CANCEL; ERROR_NONE: none came */
} StubJob;

typedef struct StubWorker {
        pid_t pid;                /* 0: this place is free */
        int job_fd, control_fd;   /* -1: closed, as it is dead */
        bool observes;            /* it has no jobs: both are one socket */
        sd_event_child_handler_t on_exit;
        void *userdata;
        siginfo_t exit;
        bool dead, told_to_end;
        StubJob jobs[N_JOBS_MAX];
        size_t n_jobs;
        StubLease lease;
        StubSetup setup;
        unsigned n_cancels, n_commits;
        bool lease_asked;         /* and not returned since */
        StubConnections connections;
        unsigned n_connections_asked; /* and not returned since */
        StubWatch watch;
} StubWorker;

static StubWorker workers[N_WORKERS_MAX];
static int spawn_job_fd = -1, spawn_control_fd = -1;
static pid_t next_pid = PID_FIRST;
static bool ignore_kill;

bool stub_watch_silent;
Bytes stub_tables = { "a", 2 };
Observed stub_observed = { .state = { .kind = FILE_STATE_ROLLBACK }, .device = 1, .inode = 1, .name = "file" };

int __wrap_posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *actions, int fd, int new_fd);
int __wrap_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]);
int __wrap_child_source_add(sd_event *event, sd_event_source **ret, pid_t pid, sd_event_child_handler_t handler,
                            void *userdata);
int __wrap_kill(pid_t pid, int signal);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);

/* ---- processes ---- */

static StubWorker *find(pid_t pid) {
        for (size_t i = 0; i < N_WORKERS_MAX; i++)
                if (workers[i].pid == pid)
                        return &workers[i];
        return NULL;
}

/* The one of those that live. */
static StubWorker *nth(size_t n) {
        for (size_t i = 0; i < N_WORKERS_MAX; i++)
                if (workers[i].pid != 0 && !workers[i].dead && n-- == 0)
                        return &workers[i];
        demand(false);
        return NULL;
}

static void drop_job(StubWorker *w, size_t i) {
        received_message_done(&w->jobs[i].received);
        w->jobs[i] = w->jobs[--w->n_jobs];
}

static void die(StubWorker *w, int code, int status) {
        if (w->dead)
                return;
        w->dead = true;
        w->exit = (siginfo_t) { .si_signo = SIGCHLD, .si_code = code };
        w->exit.si_pid = w->pid;
        w->exit.si_status = status;
        while (w->n_jobs > 0)
                drop_job(w, 0);
        close(w->job_fd);
        close(w->control_fd);
}

/* The actions themselves are not needed: only what they would hand over. */
int __wrap_posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *actions, int fd, int new_fd) {
        (void) actions;
        if (new_fd == WORKER_JOB_FD)
                spawn_job_fd = fd;
        else if (new_fd == WORKER_CONTROL_FD)
                spawn_control_fd = fd;
        return 0;
}

int __wrap_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
        StubWorker *w = find(0);

        (void) path;
        (void) actions;
        (void) attributes;
        (void) arguments;
        (void) environment;
        if (!w)
                return EAGAIN;
        *w = (StubWorker) {
                .pid = next_pid++,
                .job_fd = fcntl(spawn_job_fd, F_DUPFD_CLOEXEC, 0),
                .control_fd = fcntl(spawn_control_fd, F_DUPFD_CLOEXEC, 0),
                .observes = spawn_job_fd == spawn_control_fd,
        };
        demand(w->job_fd >= 0 && w->control_fd >= 0);
        *pid = w->pid;
        return 0;
}

int __wrap_child_source_add(sd_event *event, sd_event_source **ret, pid_t pid, sd_event_child_handler_t handler,
                            void *userdata) {
        StubWorker *w = find(pid);

        (void) event;
        demand(w && !w->on_exit);
        w->on_exit = handler;
        w->userdata = userdata;
        *ret = NULL; /* there is nothing to give back */
        return 0;
}

int __wrap_kill(pid_t pid, int signal) {
        StubWorker *w = find(pid);

        demand(w && pid >= PID_FIRST && signal == SIGKILL);
        if (!ignore_kill)
                die(w, CLD_KILLED, SIGKILL);
        return 0;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options) {
        StubWorker *w = find(pid);

        (void) status;
        (void) options;
        demand(w && w->dead);
        w->pid = 0;
        return pid;
}

bool stub_workers_reap(void) {
        bool any = false;

        for (size_t i = 0; i < N_WORKERS_MAX; i++) {
                StubWorker *w = &workers[i];

                if (w->pid == 0 || !w->dead || !w->on_exit)
                        continue;
                sd_event_child_handler_t handler = w->on_exit;
                w->on_exit = NULL;
                w->pid = 0;
                (void) handler(NULL, &w->exit, w->userdata);
                any = true;
        }
        return any;
}

unsigned stub_workers_count(void) {
        unsigned n = 0;

        for (size_t i = 0; i < N_WORKERS_MAX; i++)
                n += workers[i].pid != 0;
        return n;
}

/* ---- what a worker says ---- */

static void say(const StubWorker *w, const Message *m) {
        (void) message_send(w->control_fd, m, -1); /* its socket may be full, or closed already */
}

static void say_number(const StubWorker *w, MessageKind kind, uint64_t number) {
        say(w, &(Message) { .kind = kind, .number = number });
}

static uint64_t number_of(const StubJob *j) {
        const Message *m = &j->received.message;

        return m->kind == MESSAGE_CHANNEL ? m->channel.number : m->kind == MESSAGE_BEGIN ? m->begin.number : m->job.number;
}

static void say_started(const StubWorker *w, StubJob *j, unsigned n_columns, unsigned n_parameters) {
        static const Bytes strings[] = { { "a", 1 }, { NULL, 0 }, { "b\xff\0", 3 }, { "TEXT", 4 }, { "", 0 }, { "INT", 3 } };
        Bytes columns[16], parameters[8];

        for (unsigned i = 0; i < n_columns; i++) {
                columns[2 * i] = strings[i % 3 * 2];
                columns[2 * i + 1] = strings[i % 3 * 2 + 1];
        }
        for (unsigned i = 0; i < n_parameters; i++)
                parameters[i] = i % 2 ? (Bytes) { ":a", 2 } : (Bytes) { NULL, 0 };
        say(w, &(Message) {
                .kind = MESSAGE_STARTED,
                .started = {
                        .number = number_of(j),
                        .described = true,
                        .read_only = j->received.message.kind != MESSAGE_LOAD,
                        .n_columns = n_columns,
                        .columns = columns,
                        .n_parameters = n_parameters,
                        .parameters = parameters,
                },
        });
        j->started = true;
}

static void say_ended(const StubWorker *w, StubJob *j, uint32_t error, bool drained) {
        static const uint8_t changes[STATEMENT_LIST_N_MAX * sizeof(int64_t)];
        const Message *m = &j->received.message;
        bool has_changes = m->kind == MESSAGE_EXECUTE_BATCH && error == ERROR_NONE;
        size_t n_changes = has_changes ? (m->job.in_file ? 1 : m->job.n_statements) : 0;

        say(w, &(Message) {
                .kind = MESSAGE_ENDED,
                .ended = {
                        .number = number_of(j),
                        .failure = { .error = error, .sql_offset = error % 2 ? -1 : 3, .extended_code = 1,
                                     .message = error != ERROR_NONE ? "it went wrong \xff" : NULL },
                        .n_rows = 2,
                        .n_bytes = 100,
                        .drained = drained,
                        .tables = m->kind == MESSAGE_TABLES ? stub_tables : (Bytes) {},
                        .names = m->kind == MESSAGE_TABLES ? stub_tables : (Bytes) {},
                        .changes = { (const char *) changes, n_changes * sizeof(int64_t) },
                },
        });
        j->ended = true;
}

static void add_columns(PageEncoder *e) {
        uint8_t payload[8 + 2 * N_COLUMNS * 4 + 2 * N_COLUMNS];
        const size_t n_ends = (size_t) 2 * N_COLUMNS;

        memset(payload, 0, sizeof payload);
        store_le32(payload, N_COLUMNS);
        store_le32(payload + 4, PAGE_SIZE);
        for (size_t i = 0; i < n_ends; i++) {
                store_le32(payload + 8 + 4 * i, (uint32_t) (2 * (i / 2 + 1))); /* a name, no declared type */
                if (i % 2)
                        payload[8 + 4 * n_ends + i - 1] = (uint8_t) ('a' + i / 2);
        }
        demand(page_encoder_begin_part(e, FRAME_COLUMNS) == 1);
        demand(page_encoder_append(e, payload, sizeof payload) == sizeof payload);
        page_encoder_end_part(e, false);
}

static void add_row(PageEncoder *e, unsigned i) {
        demand(page_encoder_begin_row(e, N_COLUMNS) == 1);
        page_encoder_add_null(e);
        page_encoder_add_int64(e, INT64_MIN + i);
        page_encoder_add_double(e, -0.5 * i);
        page_encoder_add_text(e, i % 2 ? "text" : "a\0\xff", i % 2 ? 4 : 3);
        page_encoder_add_blob(e, "\0\1", 2);
        demand(page_encoder_end_row(e) == 1);
}

/* Rows with each kind of value, and the end; with an `error` that. */
static void write_stream(const StubJob *j, uint32_t error, unsigned n_rows) {
        static uint8_t page[PAGE_SIZE];
        PageEncoder e;

        if (j->received.pipe_fd < 0)
                return;
        page_encoder_init(&e, page, sizeof page, number_of(j));
        add_columns(&e);
        for (unsigned i = 0; i < n_rows; i++)
                add_row(&e, i);
        if (error != ERROR_NONE)
                demand(page_encoder_error(&e, error, 1, -1, "wrong \xff", 7) == 1);
        else
                demand(page_encoder_end(&e, &(EndCounters) { .n_rows = n_rows, .n_bytes = page_encoder_finish(&e) }) == 1);
        (void) !write(j->received.pipe_fd, page, page_encoder_finish(&e)); /* it may be full, or closed */
}

/* ---- what a worker hears ---- */

static StubJob *keep_job(StubWorker *w, ReceivedMessage *m) {
        if (w->n_jobs == N_JOBS_MAX)
                return NULL;
        w->jobs[w->n_jobs] = (StubJob) { .received = *m };
        *m = RECEIVED_MESSAGE_INIT;
        return &w->jobs[w->n_jobs++];
}

static StubJob *find_transaction(StubWorker *w, uint64_t number) {
        for (size_t i = 0; i < w->n_jobs; i++)
                if (w->jobs[i].received.message.kind == MESSAGE_BEGIN && number_of(&w->jobs[i]) == number)
                        return &w->jobs[i];
        return NULL;
}

static void hear_cancel(StubWorker *w, const Cancel *c) {
        StubJob *j = find_transaction(w, c->number);

        w->n_cancels++;
        if (j)
                j->cancelled = c->error;
}

static void hear_commit(StubWorker *w, uint64_t number) {
        StubJob *j = find_transaction(w, number);

        w->n_commits++;
        if (j)
                j->commits = true;
}

/* One message of the supervisor, which must be one that it may send. 0: none is there. */
static int hear_control(StubWorker *w) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        int r = message_receive(w->control_fd, &m);

        if (r == 0) /* an observer is told to end in this way */
                w->told_to_end = true;
        if (r == -EAGAIN || r == 0)
                return 0;
        demand(r == 1);
        switch (m.message.kind) {
        case MESSAGE_PREPARE:
        case MESSAGE_RUN:
        case MESSAGE_EXECUTE:
        case MESSAGE_BEGIN:
        case MESSAGE_EXECUTE_BATCH:
        case MESSAGE_TABLES:
        case MESSAGE_LOAD:
        case MESSAGE_CHANNEL:
                (void) keep_job(w, &m);
                break;
        case MESSAGE_EXIT:
        case MESSAGE_GIVE_WAY:
                w->told_to_end = true;
                break;
        case MESSAGE_PING:
                say_number(w, MESSAGE_PONG, m.message.number);
                break;
        case MESSAGE_CHANNEL_CLOSE:
                for (size_t i = 0; i < w->n_jobs; i++)
                        if (number_of(&w->jobs[i]) == m.message.channel_close.number) {
                                drop_job(w, i);
                                say(w, &(Message) { .kind = MESSAGE_CHANNEL_CLOSED,
                                                    .channel_end.progress.number = m.message.channel_close.number });
                                break;
                        }
                break;
        case MESSAGE_LEASE:
                w->lease.n_granted++;
                break;
        case MESSAGE_LEASE_TAKEN:
                w->lease.n_taken++;
                break;
        case MESSAGE_LEASE_ASKED:
                w->lease.n_asked++;
                w->lease_asked = true;
                break;
        case MESSAGE_SETUP:
                w->setup = (StubSetup) {
                        .writes = m.message.setup.writes,
                        .write_schema = m.message.setup.write_schema,
                        .n_write_tables = m.message.setup.n_write_tables,
                        .wal_size_max = m.message.setup.wal_size_max,
                };
                break;
        case MESSAGE_CANCEL:
                hear_cancel(w, &m.message.cancel);
                break;
        case MESSAGE_COMMIT:
        case MESSAGE_TRY_COMMIT:
                hear_commit(w, m.message.number);
                break;
        case MESSAGE_WATCH:
                w->watch.n_told++;
                w->watch.on = m.message.number != 0;
                if (!stub_watch_silent)
                        say(w, &(Message) { .kind = MESSAGE_COMMITTED, .committed.answers = true });
                break;
        case MESSAGE_OBSERVE:
                w->watch.n_looks++;
                if (!stub_watch_silent)
                        say(w, &(Message) { .kind = MESSAGE_OBSERVED, .observed = stub_observed });
                break;
        case MESSAGE_NOTIFIER:
                demand(w->observes && m.pipe_fd >= 0);
                w->watch.n_notifiers++;
                break;
        case MESSAGE_CONNECTION:
                w->connections.n_granted++;
                break;
        case MESSAGE_CONNECTION_ASKED:
                w->connections.n_asked++;
                w->n_connections_asked++;
                break;
        case MESSAGE_RETIRE:
                break;
        default:
                demand(false);
        }
        received_message_done(&m);
        return 1;
}

static int take_job(StubWorker *w) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        int r = w->n_jobs < N_JOBS_MAX && !w->observes ? message_receive(w->job_fd, &m) : -EAGAIN;

        if (r == -EAGAIN || r == 0)
                return 0;
        demand(r == 1 && (m.message.kind == MESSAGE_PREPARE || m.message.kind == MESSAGE_RUN ||
                          m.message.kind == MESSAGE_EXECUTE || m.message.kind == MESSAGE_EXECUTE_BATCH ||
                          m.message.kind == MESSAGE_LOAD || m.message.kind == MESSAGE_BEGIN ||
                          m.message.kind == MESSAGE_TABLES));
        say_number(w, MESSAGE_TAKEN, m.message.kind == MESSAGE_BEGIN ? m.message.begin.number : m.message.job.number);
        (void) keep_job(w, &m);
        return 1;
}

/* ---- in order ---- */

/* It begins, and stays open until it is committed or cancelled. False: there is nothing to do. */
static bool go_on_with_transaction(StubWorker *w, size_t i) {
        StubJob *j = &w->jobs[i];
        bool begins = !j->started;

        if (begins)
                say_started(w, j, 0, 0);
        if (!j->commits && j->cancelled == ERROR_NONE)
                return begins;
        if (!j->ended)
                say_ended(w, j, j->commits ? ERROR_NONE : j->cancelled, true);
        drop_job(w, i);
        return true;
}

static bool finish_job(StubWorker *w, size_t i) {
        StubJob *j = &w->jobs[i];
        bool prepare = j->received.message.kind == MESSAGE_PREPARE;

        if (j->received.message.kind == MESSAGE_BEGIN)
                return go_on_with_transaction(w, i);
        if (!j->started && j->received.message.kind != MESSAGE_EXECUTE &&
            j->received.message.kind != MESSAGE_EXECUTE_BATCH &&
            j->received.message.kind != MESSAGE_TABLES)
                say_started(w, j, N_COLUMNS, 1);
        if (!prepare && !j->ended) {
                say_ended(w, j, ERROR_NONE, true);
                if (j->received.message.kind != MESSAGE_LOAD) /* the pipe of a load is to be read */
                        write_stream(j, ERROR_NONE, 3);
        }
        drop_job(w, i);
        return true;
}

static bool be_honest(StubWorker *w) {
        bool any = false;

        while (hear_control(w) > 0)
                any = true;
        while (!w->told_to_end && take_job(w) > 0)
                any = true;
        for (size_t i = w->n_jobs; i-- > 0;)
                if (w->jobs[i].received.message.kind != MESSAGE_CHANNEL)
                        any |= finish_job(w, i);
        if (w->lease_asked) {
                say_number(w, MESSAGE_LEASE_RETURNED, 0);
                w->lease_asked = false;
                any = true;
        }
        for (; w->n_connections_asked > 0; w->n_connections_asked--) {
                say_number(w, MESSAGE_CONNECTION_RETURNED, 0);
                any = true;
        }
        if (w->told_to_end) {
                die(w, CLD_EXITED, 0);
                any = true;
        }
        return any;
}

bool stub_workers_be_honest(void) {
        bool any = false;

        for (size_t i = 0; i < N_WORKERS_MAX; i++)
                if (workers[i].pid != 0 && !workers[i].dead)
                        any |= be_honest(&workers[i]);
        return any;
}

/* ---- by an input ---- */

static size_t n_alive(void) {
        size_t n = 0;

        for (size_t i = 0; i < N_WORKERS_MAX; i++)
                n += workers[i].pid != 0 && !workers[i].dead;
        return n;
}

static StubWorker *choose(Input *in) {
        size_t wanted = input_byte(in), n = n_alive();

        return n > 0 ? nth(wanted % n) : NULL;
}

static void lie_about_writing(const StubWorker *w, uint64_t number, uint8_t kind, uint8_t value) {
        uint8_t numbers[16];

        store_le64(numbers, number);
        store_le64(numbers + 8, number + value % 3u);
        switch (kind % 5) {
        case 4:
                say(w, &(Message) { .kind = MESSAGE_COMMITTED,
                                    .committed = { .sequence = number, .any = value & 1, .schema = value & 2,
                                                   .answers = value & 4,
                                                   .after = { FILE_STATE_ROLLBACK, value, 0, 0, 0 },
                                                   .tables = { "a", value & 8 ? 2 : 0 } } });
                break;
        case 0: say_number(w, MESSAGE_LEASE_WANTED, 0); break;
        case 1: say_number(w, MESSAGE_LEASE_RETURNED, 0); break;
        case 2:
                say(w, &(Message) { .kind = MESSAGE_COMMITTING,
                                    .committing.numbers = { (const char *) numbers, value & 4 ? 16 : 8 } });
                break;
        case 3:
                say(w, &(Message) { .kind = MESSAGE_ENDED,
                                    .ended = { .number = number, .wrote = value & 1, .n_changes = value, .last_rowid = -1,
                                               .drained = value & 2 } });
                break;
        }
}

/* Anything that the protocol can say, about anything. */
static void lie(StubWorker *w, Input *in) {
        uint8_t kind = input_byte(in), which = input_byte(in), value = input_byte(in);
        uint64_t number = which < w->n_jobs ? number_of(&w->jobs[which]) : which % 2 ? input_number(in, 8) : which;
        StubJob job = { .received = { .message = { .kind = MESSAGE_RUN, .job.number = number }, .pipe_fd = -1,
                                      .memory_fd = -1 } };
        const ChannelProgress progress = {
                .number = number, .n_runs = value, .n_rows = value, .n_bytes = value, .running = value & 1,
                .parked = value & 2, .usec = value * UINT64_C(1000), .n_statements = value / 4,
                .sql = { "SELECT", value % 7u },
        };

        if (kind >= 254) {
                say_number(w, kind & 1 ? MESSAGE_CONNECTION_WANTED : MESSAGE_CONNECTION_RETURNED, 0);
                return;
        }
        if (kind >= 240) { /* so that the inputs of older corpora keep their meaning */
                lie_about_writing(w, number, kind, value);
                return;
        }
        switch (kind % 12) {
        case 0: say_number(w, MESSAGE_TAKEN, number); break;
        case 1: say_started(w, &job, value % 8, value / 8 % 8); break;
        case 2: say_ended(w, &job, value % 40, value & 128); break;
        case 3: say(w, &(Message) { .kind = MESSAGE_DRAINED, .drained = { number, { "unread", value % 7u } } }); break;
        case 4: say_number(w, MESSAGE_FILLING, number); break;
        case 5: say(w, &(Message) { .kind = MESSAGE_PARKED, .parked = { .number = number, .parked = value & 1 } }); break;
        case 6: say(w, &(Message) { .kind = MESSAGE_PROGRESS, .progress = { number, value, value } }); break;
        case 7: say(w, &(Message) { .kind = MESSAGE_CHANNEL_PROGRESS, .channel_progress = progress }); break;
        case 8:
        case 9:
                say(w, &(Message) {
                        .kind = kind % 12 == 8 ? MESSAGE_CHANNEL_RESTED : MESSAGE_CHANNEL_CLOSED,
                        .channel_end = { .progress = progress, .waiting = value & 4, .reads = value & 16,
                                         .state = { "state", value % 6u }, .unread = { "unread", value / 32u } },
                });
                break;
        case 10: say_number(w, MESSAGE_PONG, number); break;
        case 11: say_number(w, value & 1 ? MESSAGE_PING : value & 2 ? MESSAGE_EXIT : MESSAGE_STAY, number); break;
        }
}

static void say_bytes(const StubWorker *w, Input *in) {
        size_t size;
        const uint8_t *bytes = input_bytes(in, input_byte(in), &size);

        (void) send(w->control_fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void write_bytes(const StubJob *j, Input *in) {
        size_t size;
        const uint8_t *bytes = input_bytes(in, input_byte(in), &size);

        if (j->received.pipe_fd >= 0 && size > 0)
                (void) !write(j->received.pipe_fd, bytes, size);
}

static void act_on_job(StubWorker *w, Input *in) {
        size_t i = input_byte(in);
        uint8_t how = input_byte(in), value = input_byte(in);
        StubJob *j;

        if (w->n_jobs == 0)
                return;
        i %= w->n_jobs;
        j = &w->jobs[i];
        switch (how % 6) {
        case 0: (void) finish_job(w, i); break;
        case 1: say_started(w, j, value % 8, value / 8 % 8); break;
        case 2: say_ended(w, j, value % 40, value & 128); break;
        case 3: write_stream(j, value & 1 ? value / 8 % 40 : ERROR_NONE, value % 32); break;
        case 4: write_bytes(j, in); break;
        case 5: drop_job(w, i); break; /* it is not heard of again */
        }
}

void stub_worker_act(Input *in) {
        StubWorker *w = choose(in);
        uint8_t what = input_byte(in);

        if (!w)
                return;
        switch (what % 9) {
        case 0:
                (void) be_honest(w);
                break;
        case 1:
                (void) take_job(w);
                break;
        case 2:
                (void) hear_control(w);
                break;
        case 3:
        case 4:
                act_on_job(w, in);
                break;
        case 5:
        case 6:
                lie(w, in);
                break;
        case 7:
                say_bytes(w, in);
                break;
        case 8:
                die(w, what & 16 ? CLD_KILLED : CLD_EXITED, what / 32);
                break;
        }
}

/* ---- by a script ---- */

unsigned stub_workers_alive(void) {
        return (unsigned) n_alive();
}

bool stub_worker_take(unsigned worker) {
        return take_job(nth(worker)) > 0;
}

void stub_worker_hear(unsigned worker) {
        while (hear_control(nth(worker)) > 0)
                ;
}

StubSetup stub_worker_setup(unsigned worker) {
        stub_worker_hear(worker);
        return nth(worker)->setup;
}

unsigned stub_worker_cancels(unsigned worker) {
        stub_worker_hear(worker);
        return nth(worker)->n_cancels;
}

unsigned stub_worker_commits(unsigned worker) {
        stub_worker_hear(worker);
        return nth(worker)->n_commits;
}

StubWatch stub_worker_watch(unsigned worker) {
        stub_worker_hear(worker);
        return nth(worker)->watch;
}

StubLease stub_worker_lease(unsigned worker) {
        stub_worker_hear(worker);
        return nth(worker)->lease;
}

StubConnections stub_worker_connections(unsigned worker) {
        stub_worker_hear(worker);
        return nth(worker)->connections;
}

void stub_worker_finish(unsigned worker) {
        demand(nth(worker)->n_jobs > 0 && finish_job(nth(worker), 0));
}

const ChannelSetup *stub_worker_channel(unsigned worker, uint64_t number) {
        const StubWorker *w = nth(worker);

        stub_worker_hear(worker);
        for (size_t i = 0; i < w->n_jobs; i++)
                if (w->jobs[i].received.message.kind == MESSAGE_CHANNEL && number_of(&w->jobs[i]) == number)
                        return &w->jobs[i].received.message.channel;
        return NULL;
}

void stub_worker_say(unsigned worker, const Message *m) {
        StubWorker *w = nth(worker);

        if (m->kind == MESSAGE_LEASE_RETURNED)
                w->lease_asked = false;
        if (m->kind == MESSAGE_CONNECTION_RETURNED && w->n_connections_asked > 0)
                w->n_connections_asked--;
        for (size_t i = 0; m->kind == MESSAGE_CHANNEL_RESTED && i < w->n_jobs; i++)
                if (number_of(&w->jobs[i]) == m->channel_end.progress.number) {
                        drop_job(w, i);
                        break;
                }
        say(w, m);
}

void stub_worker_die(unsigned worker, int code, int status) {
        die(nth(worker), code, status);
}

void stub_workers_ignore_kill(bool on) {
        ignore_kill = on;
}
