/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See writing-rig.h. From top to bottom: time, the engine, the supervisor. Tests only. */
#include "tests/rigs/writing-rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/protocol/statement-list.h"
#include "daemon/worker/core/row-source.h"

#define PAGE_SIZE 16384
#define BIG_SIZE ((size_t) 1 << 20)
#define LOOK_USEC UINT64_C(1)

int __real_epoll_wait(int fd, struct epoll_event *events, int n, int msec);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int msec);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_sched_yield(void);

Writing writing;

/* ---- time ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret) {
        *ret = (struct timespec) {
                .tv_sec = (time_t) (writing.clock_usec / 1000000),
                .tv_nsec = (long) (writing.clock_usec % 1000000) * 1000,
        };
        return 0;
}

int __wrap_sched_yield(void) {
        void (*polls)(void) = writing.polls;

        writing.clock_usec++;
        writing.polls = NULL;
        if (polls)
                polls();
        return 0;
}

static void call_later(void) {
        void (*later)(void) = writing.later;

        if (!later || writing.clock_usec < writing.later_usec)
                return;
        writing.later = NULL;
        later();
}

/* If the worker would wait for longer than it may, its loop returns to the test with an error of its own. */
int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int msec) {
        uint64_t woken;
        int r;

        call_later();
        r = __real_epoll_wait(fd, events, n, 0);
        if (r != 0 || msec == 0) {
                writing.clock_usec += r == 0 ? LOOK_USEC : 0;
                return r;
        }
        if (writing.clock_usec >= writing.until_usec) {
                errno = ETIME;
                return -1;
        }
        woken = msec < 0 ? UINT64_MAX : writing.clock_usec + (uint64_t) msec * 1000;
        writing.clock_usec = woken < writing.until_usec ? woken : writing.until_usec;
        return 0;
}

void writing_settle(void) {
        writing_pass(0);
}

void writing_pass(uint64_t usec) {
        writing.until_usec = writing.clock_usec + usec;
        g_assert_cmpint(worker_loop_run(&writing.loop), ==, -ETIME);
}

#define PROGRAM_FREE_USEC UINT64_C(10)
#define MOMENT_USEC UINT64_C(100)

/* ---- the engine: statements ---- */

struct EngineStatement {
        char *sql;
        bool stepped, locks, on_reader;
        uint64_t n_rows;
        size_t row_size;
        int64_t n_changes;
};

struct EngineConnection {
        bool writes, reads, locks; /* it writes; it has a snapshot, which keeps writers out */
        uint32_t file_counter;     /* of the snapshot */
        unsigned n_held;
};

static const char *option(const EngineStatement *s, const char *name) {
        const char *at = strstr(s->sql, name);

        return at ? at + strlen(name) : NULL;
}

static uint64_t number_option(const EngineStatement *s, const char *name) {
        const char *at = option(s, name);

        return at ? g_ascii_strtoull(at, NULL, 10) : 0;
}

static bool fake_writes(const EngineStatement *s) {
        return !option(s, " read");
}

static bool fake_compile(EngineConnection *connection, const char *sql, size_t sql_size, bool describe, EngineHint *hint,
                         EngineStatement **ret, SqlError *error) {
        if (g_str_has_prefix(sql, "nonsense"))
                return sql_error_set(error, ERROR_SQL, "nonsense");
        *ret = g_new0(EngineStatement, 1);
        (*ret)->sql = g_strndup(sql, sql_size);
        (*ret)->on_reader = !connection->writes;
        if (hint)
                *hint = (EngineHint) { .id = 1 };
        writing.n_statements++;
        writing.n_compiles++;
        return true;
}

static void fake_reset(EngineStatement *s) {
        writing.n_locks -= s->locks;
        s->locks = s->stepped = false;
}

static void fake_release(EngineStatement *s) {
        fake_reset(s);
        g_free(s->sql);
        g_free(s);
        writing.n_statements--;
}

static bool fake_describe(EngineStatement *s, EngineDescription *ret, SqlError *error) {
        *ret = (EngineDescription) {};
        return true;
}

static bool fake_columns(EngineStatement *s, uint32_t page_size, const uint8_t **ret_payload, size_t *ret_size,
                         SqlError *error) {
        static uint8_t payload[20];
        bool has_rows = s->n_rows > 0;

        memset(payload, 0, sizeof payload);
        store_le32(payload, has_rows);
        store_le32(payload + 4, page_size);
        store_le32(payload + 8, 2);
        store_le32(payload + 12, 2);
        payload[16] = 'x';
        *ret_payload = payload;
        *ret_size = has_rows ? 18 : 8;
        return true;
}

static bool fake_bind(EngineStatement *s, const JobSpec *spec, SqlError *error) {
        return spec->n_positional == 0 || sql_error_set(error, ERROR_PARAMETER_COUNT, "none");
}

/* Steps until the core interrupts; it has set its error then. */
static void hang(void) {
        for (unsigned i = 0; writing.progress(writing.userdata) == 0; i++) {
                g_assert_cmpuint(i, <, 100000);
                writing.clock_usec += 1000;
        }
}

static void write_name(const EngineStatement *s) {
        const char *end = strchr(s->sql, ' ');

        if (s->on_reader) {
                g_assert_true(option(s, " savepoint") && writing.savepoints);
                writing.n_reader_savepoints++;
                return;
        }
        g_assert_true(writing.in_transaction && writing.is_saved == !option(s, " savepoint"));
        g_string_append_len(writing.pending, s->sql, end ? end - s->sql : (gssize) strlen(s->sql));
        g_string_append_c(writing.pending, ' ');
}

static EngineResult fake_step(EngineStatement *s, RowSink *sink, SqlError *error) {
        g_assert_false(s->stepped);
        s->stepped = true;
        if (fake_writes(s))
                write_name(s);
        else if (writing.reader_locks)
                writing.n_locks += s->locks = true;
        writing.clock_usec += 1000 * number_option(s, " slow=");
        if (option(s, " hook"))
                writing.hook();
        if (option(s, " hang"))
                hang();
        if (option(s, " rollback")) {
                writing.in_transaction = writing.is_saved = false;
                g_string_truncate(writing.pending, 0);
        }
        if (option(s, " fail") || option(s, " rollback") || option(s, " hang")) {
                if (!option(s, " hang"))
                        (void) sql_error_set(error, ERROR_SQL, "failed");
                return ENGINE_FAILED;
        }
        s->row_size = option(s, " big") ? BIG_SIZE : WRITING_ROW_SIZE;
        s->n_rows = option(s, " big") ? 1 : number_option(s, " rows=");
        sink->n_columns = s->n_rows > 0;
        sink->row_waits = s->n_rows > 0;
        return sink->row_waits ? ENGINE_ROW : ENGINE_DONE;
}

static EngineResult fake_fill(EngineStatement *s, RowSink *sink, SqlError *error) {
        EngineResult result = ENGINE_ROW;

        while (s->n_rows > 0 && result == ENGINE_ROW) {
                uint8_t *row;

                sink->row_waits = true;
                result = row_sink_begin(sink);
                if (result != ENGINE_ROW)
                        return result;
                row = page_encoder_add(sink->encoder, VALUE_BLOB, s->row_size);
                if (row)
                        memset(row, 'x', s->row_size);
                result = row_sink_end(sink);
                if (result == ENGINE_ROW || result == ENGINE_PAGE_FULL)
                        s->n_rows--;
        }
        return result == ENGINE_ROW ? ENGINE_DONE : result;
}

static bool fake_measure(EngineStatement *s, unsigned i, ValueType *ret_type, uint64_t *ret_size, SqlError *error) {
        *ret_type = VALUE_BLOB;
        *ret_size = s->row_size;
        return true;
}

static const uint8_t *fake_value(EngineStatement *s, unsigned i, uint8_t number[static 8], SqlError *error) {
        static uint8_t bytes[BIG_SIZE];

        memset(bytes, 'x', sizeof bytes);
        s->n_rows = 0; /* the only row */
        return bytes;
}

static bool fake_takes_rows(EngineStatement *s, SqlError *error) {
        return fake_writes(s) || sql_error_set(error, ERROR_NOT_ALLOWED, "reads");
}

/* The actions of the statement at one row. */
static bool act(EngineStatement *s, SqlError *error) {
        writing.clock_usec += 1000 * number_option(s, " slow=");
        if (option(s, " hook"))
                writing.hook();
        if (option(s, " hang")) {
                hang();
                return false;
        }
        if (option(s, " rollback"))
                writing.in_transaction = writing.is_saved = false;
        if (!option(s, " fail") && !option(s, " rollback"))
                return true;
        (void) sql_error_set(error, ERROR_SQL, "failed");
        error->extended_code = 19;
        return false;
}

static bool fake_load(EngineStatement *s, RowSource *source, SqlError *error) {
        do {
                PageValue v = page_decoder_value(&source->decoder, 0);

                g_assert_true(writing.in_transaction);
                if (source->n_rows + 1 == MAX(number_option(s, " at="), 1) && !act(s, error))
                        return false;
                g_string_append_printf(writing.pending, "%.1s:%.*s ", s->sql, (int) v.size, (const char *) v.bytes);
        } while (row_source_next(source, 1));
        return true;
}

static void fake_changes(EngineStatement *s, int64_t *ret_n_changes, int64_t *ret_last_rowid) {
        *ret_n_changes = 3;
        *ret_last_rowid = 77;
}

static void fake_written(EngineStatement *s, EngineWritten *written) {
        g_assert_cmpint(engine_tables_add(&written->tables, "t"), ==, 0);
}

/* A commit is one for the supervisor only if the test counts them. */
static void fake_state(EngineConnection *c, FileState *ret) {
        *ret = (FileState) { .kind = FILE_STATE_ROLLBACK, .counter = writing.counts_commits ? writing.file_counter : 0 };
}

static void fake_counters(EngineStatement *s, EndCounters *counters) {
        counters->vm_steps++;
}

/* ---- the engine: connections ---- */

static int fake_start(const Setup *setup, EngineProgress progress, void *userdata, EnginePool **ret) {
        writing.progress = progress;
        writing.userdata = userdata;
        *ret = (EnginePool *) (void *) &writing;
        return 0;
}

static void fake_stop(EnginePool *pool) {
        g_assert_cmpint(writing.n_connections, ==, 0);
        g_assert_cmpint(writing.n_statements, ==, 0);
}

static uint64_t fake_expire(EnginePool *pool, uint64_t now) {
        return UINT64_MAX;
}

static bool fake_connect(EnginePool *pool, const char *sql, size_t sql_size, const EngineHint *hint, EngineConnection **ret,
                         SqlError *error) {
        *ret = g_new0(EngineConnection, 1);
        writing.n_connections++;
        return true;
}

static void fake_disconnect(EnginePool *pool, EngineConnection *c) {
        g_assert_false(c->writes && writing.in_transaction);
        writing.n_locks -= c->locks;
        writing.n_snapshots -= c->reads;
        g_free(c);
        writing.n_connections--;
}

static void fake_hold(EngineConnection *c) {
        g_assert_false(c->writes);
}

static bool meet_lock(SqlError *error) {
        (void) sql_error_set(error, ERROR_BUSY, "locked");
        error->extended_code = 5;
        return false;
}

static bool fake_snapshot(EngineConnection *c, SqlError *error) {
        if (writing.n_begin_busy > 0) {
                writing.n_begin_busy--;
                return meet_lock(error);
        }
        writing.n_snapshots += c->reads = true;
        c->file_counter = writing.file_counter;
        writing.n_locks += c->locks = writing.reader_locks;
        return true;
}

static bool fake_others_commit(const EnginePool *pool) {
        (void) pool;
        return writing.others_commit;
}

static bool fake_is_current(EngineConnection *c, SqlError *error) {
        g_assert_true(c->reads);
        if (c->file_counter == writing.file_counter)
                return true;
        (void) sql_error_set(error, ERROR_BUSY, "old");
        error->extended_code = WRITING_OLD;
        return false;
}

static bool fake_keeps_writers_out(const EngineConnection *c) {
        return writing.n_locks > 0 || (c->writes && writing.has_no_wal);
}

static bool fake_keeps_log(const EngineConnection *c) {
        return writing.reader_logs && !c->writes;
}

static bool fake_writer_waits(const EngineConnection *c) {
        return writing.foreign_writer;
}

static void fake_trim(EngineConnection *c) {
}

/* Transactions of another program follow one another, each between half and one and a half times as long as usual. */
static void run_program(void) {
        if (writing.program_next_usec == 0)
                writing.program_next_usec = writing.clock_usec;
        while (writing.clock_usec >= writing.program_next_usec) {
                uint32_t varied = (uint32_t) ++writing.program_commits * 2654435761u >> 8;

                writing.program_committed_usec = writing.program_next_usec;
                writing.program_next_usec += writing.program_usec / 2 + varied % writing.program_usec;
        }
}

/* The other program has the lock. As the engine of SQLite does, this tries for 0.1 ms if it committed since the last try. */
static bool program_has_lock(void) {
        if (writing.program_usec == 0)
                return false;
        run_program();
        writing.others_commit = writing.program_seen > 0 && writing.program_seen != writing.program_commits;
        writing.program_seen = writing.program_commits;
        if (writing.clock_usec >= writing.program_committed_usec + PROGRAM_FREE_USEC &&
            !(writing.others_commit && writing.clock_usec + MOMENT_USEC >= writing.program_next_usec))
                return true;
        writing.program_seen = 0;
        return false;
}

static bool fake_begin(EnginePool *pool, bool enforces, EngineConnection **ret, SqlError *error) {
        g_assert_false(writing.in_transaction);
        writing.savepoints = false;
        writing.n_begins++;
        if (program_has_lock())
                return meet_lock(error);
        if (writing.n_begin_busy > 0) {
                writing.n_begin_busy--;
                return meet_lock(error);
        }
        if (writing.begin_error != ERROR_NONE)
                return sql_error_set(error, writing.begin_error, "cannot begin");
        (void) fake_connect(pool, NULL, 0, NULL, ret, error);
        (*ret)->writes = writing.in_transaction = true;
        g_string_assign(writing.pending, enforces ? "keys " : "");
        if (writing.begin_hook)
                g_steal_pointer(&writing.begin_hook)();
        return true;
}

static void fake_rollback(EngineConnection *c) {
        g_assert_true(c->writes && writing.in_transaction);
        writing.in_transaction = false;
        writing.n_rollbacks++;
}

static bool fake_commit(EngineConnection *c, SqlError *error) {
        ErrorNumber result = writing.commits[writing.n_commit_results];

        g_assert_true(c->writes && writing.in_transaction && !writing.is_saved);
        if (writing.n_locks > 0)
                return sql_error_set(error, ERROR_BUSY, "a reader");
        if (writing.n_commit_results + 1 < G_N_ELEMENTS(writing.commits))
                writing.n_commit_results++;
        if (result == ERROR_BUSY || result == ERROR_COMMIT_REFUSED)
                return sql_error_set(error, result, result == ERROR_BUSY ? "a reader" : "a rule is broken");
        writing.in_transaction = false;
        writing.file_counter++;
        writing.clock_usec += writing.commit_usec;
        if (result != ERROR_NONE)
                return sql_error_set(error, result, "cannot commit");
        writing.n_commits++;
        g_string_append(writing.durable, writing.pending->str);
        g_string_append(writing.durable, "| ");
        return true;
}

static bool fake_is_in_transaction(const EngineConnection *c) {
        return c->writes ? writing.in_transaction : c->reads && !writing.loses_snapshots;
}

static void fake_allow_savepoints(EngineConnection *c) {
        writing.savepoints = true;
}

static bool fake_is_savepoint(const EngineStatement *s) {
        return option(s, " savepoint") != NULL;
}

static bool fake_save(EngineConnection *c, SqlError *error) {
        if (c->reads)
                return true;
        g_assert_true(writing.in_transaction && !writing.is_saved);
        writing.is_saved = true;
        writing.saved = writing.pending->len;
        return true;
}

static bool fake_keep(EngineConnection *c, SqlError *error) {
        if (c->reads)
                return true;
        g_assert_true(writing.is_saved);
        writing.is_saved = false;
        return true;
}

static void fake_undo(EngineConnection *c) {
        if (c->reads)
                return;
        g_assert_true(writing.is_saved);
        writing.is_saved = false;
        g_string_truncate(writing.pending, writing.saved);
}

static bool fake_must_commit(const EngineConnection *c) {
        return strstr(writing.pending->str, "set ");
}

static void fake_set_client(EngineConnection *c, ForeignKeys foreign_keys, bool keeps, bool in_transaction) {
        g_assert_false(c->writes);
}

static void fake_give_up(SqlError *error) {
        g_assert_cmpint(error->error, ==, ERROR_BUSY);
        (void) sql_error_set(error, ERROR_BUSY, "given up");
}

const Engine writing_engine = {
        .start = fake_start, .stop = fake_stop, .expire = fake_expire, .connect = fake_connect,
        .disconnect = fake_disconnect, .hold = fake_hold, .let_go = fake_hold, .snapshot = fake_snapshot,
        .is_current = fake_is_current, .keeps_writers_out = fake_keeps_writers_out, .keeps_log = fake_keeps_log,
        .writer_waits = fake_writer_waits, .set_client = fake_set_client,
        .others_commit = fake_others_commit, .trim = fake_trim,
        .compile = fake_compile, .release = fake_release, .describe = fake_describe, .columns = fake_columns,
        .bind = fake_bind, .step = fake_step, .fill = fake_fill, .measure = fake_measure, .value = fake_value,
        .writes = fake_writes, .begin = fake_begin, .commit = fake_commit, .rollback = fake_rollback,
        .is_in_transaction = fake_is_in_transaction, .save = fake_save, .keep = fake_keep, .undo = fake_undo,
        .allow_savepoints = fake_allow_savepoints, .is_savepoint = fake_is_savepoint,
        .must_commit = fake_must_commit, .changes = fake_changes, .written = fake_written, .state = fake_state,
        .takes_rows = fake_takes_rows, .load = fake_load, .counters = fake_counters, .reset = fake_reset,
        .give_up = fake_give_up,
};

/* ---- the supervisor ---- */

static void socket_pair(int fds[2]) {
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), ==, 0);
}

void writing_begin(void) {
        Setup setup = wide;

        setup.writes = true;
        writing_begin_on(&writing_engine, &setup);
}

void writing_begin_on(const Engine *engine, const Setup *limits) {
        ReceivedMessage setup = RECEIVED_MESSAGE_INIT;
        uint64_t clock_usec = writing.clock_usec;
        int control[2];

        if (clock_usec == 0) /* the kernel's timers of the loop never fire */
                clock_usec = (uint64_t) g_get_monotonic_time() + LATER;
        writing = (Writing) { .clock_usec = clock_usec, .lock_wait_usec = UINT64_MAX,
                              .job_lock_wait_usec = UINT64_MAX,
                              .durable = g_string_new(NULL), .pending = g_string_new(NULL) };
        setup.message = (Message) { .kind = MESSAGE_SETUP, .setup = *limits };
        socket_pair(writing.extra_fds);
        socket_pair(control);
        writing.rig = (Rig) {
                .control_fd = control[0], .job_fd = writing.extra_fds[0], .row_size_max = SQLIPC_ROW_SIZE_MAX,
                .result_rows_max = UINT64_MAX, .result_size_max = UINT64_C(1) << 30,
        };
        g_assert_cmpint(worker_loop_init(&writing.loop, engine, writing.extra_fds[1], control[1], &setup), ==, 0);
        writing.setup = &writing.loop.setup.message.setup;
}

void writing_end(void) {
        worker_loop_done(&writing.loop);
        g_assert_false(writing.in_transaction);
        close(writing.loop.control_fd);
        close(writing.rig.control_fd);
        close(writing.extra_fds[0]);
        close(writing.extra_fds[1]);
        g_string_free(writing.durable, true);
        g_string_free(writing.pending, true);
}

static void add_numbers(GString *text, const char *word, const Bytes *numbers) {
        g_string_append(text, word);
        for (size_t i = 0; i < numbers->size; i += 8)
                g_string_append_printf(text, " %" G_GUINT64_FORMAT, load_le64((const uint8_t *) numbers->data + i));
        g_string_append(text, "; ");
}

static void add_ended(GString *text, const Ended *e) {
        g_string_append_printf(text, "ended %" G_GUINT64_FORMAT, e->number);
        if (e->failure.error != ERROR_NONE)
                g_string_append_printf(text, " error %u%s", e->failure.error,
                                       e->failure.extended_code == WRITING_OLD ? " old" : "");
        if (e->wrote)
                g_string_append_printf(text, " wrote %d %d", (int) e->n_changes, (int) e->last_rowid);
        if (e->changes.size > 0)
                add_numbers(text, " changes", &e->changes);
        else
                g_string_append(text, "; ");
}

static void add_report(GString *text, const Message *m) {
        switch (m->kind) {
        case MESSAGE_LEASE_WANTED: g_string_append(text, "wanted; "); return;
        case MESSAGE_LEASE_RETURNED: g_string_append(text, "returned; "); return;
        case MESSAGE_LEASE_KEPT: g_string_append(text, "kept; "); return;
        case MESSAGE_CONNECTION_WANTED: g_string_append(text, "connection wanted; "); return;
        case MESSAGE_CONNECTION_RETURNED: g_string_append(text, "connection returned; "); return;
        case MESSAGE_ATTACH_WANTED:
                g_string_append_printf(text, "asks %" G_GUINT64_FORMAT " for %s; ", m->attach.number, m->attach.name);
                return;
        case MESSAGE_COMMITTING: add_numbers(text, "committing", &m->committing.numbers); return;
        case MESSAGE_ENDED: add_ended(text, &m->ended); return;
        case MESSAGE_COMMIT_REFUSED:
                g_string_append_printf(text, "refused %" G_GUINT64_FORMAT " error %u; ", m->ended.number,
                                       m->ended.failure.error);
                return;
        case MESSAGE_STARTED:
                g_string_append_printf(text, "started %" G_GUINT64_FORMAT "%s; ", m->started.number,
                                       m->started.read_only ? "" : " to write");
                return;
        case MESSAGE_DRAINED:
                g_string_append_printf(text, "drained %" G_GUINT64_FORMAT "; ", m->drained.number);
                return;
        case MESSAGE_CHANNEL_CLOSED: g_string_append(text, "closed; "); return;
        case MESSAGE_CHANNEL_RESTED:
                g_string_append_printf(text, "rested%s; ", m->channel_end.reads ? " reads" : "");
                return;
        default: return;
        }
}

char *writing_reports(void) {
        GString *text = g_string_new(NULL);
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;

        while (message_receive(writing.rig.control_fd, &m) > 0) {
                add_report(text, &m.message);
                received_message_done(&m);
        }
        return g_string_free(text, false);
}

void writing_expect(const char *expected) {
        writing_settle();
        writing_expect_last(expected);
}

void writing_expect_last(const char *expected) {
        g_autofree char *reports = writing_reports();

        g_assert_cmpstr(reports, ==, expected);
}

void writing_expect_durable(const char *expected) {
        g_assert_cmpstr(writing.durable->str, ==, expected);
}

static void post(const Message *m, int pipe_fd) {
        g_assert_cmpint(message_send(writing.rig.control_fd, m, pipe_fd), ==, 0);
}

void writing_say(MessageKind kind) {
        post(&(Message) { .kind = kind }, -1);
}

void writing_attach(uint64_t pin, const char *name, const char *path) {
        post(&(Message) {
                .kind = MESSAGE_ATTACH,
                .attach = { .number = pin, .name = name, .path = path, .error = path ? ERROR_NONE : ERROR_UNKNOWN_DATABASE,
                            .message = path ? NULL : "there is no such database" },
        }, -1);
}

void writing_cancel(uint64_t number) {
        post(&(Message) {
                .kind = MESSAGE_CANCEL,
                .cancel = { .number = number, .error = ERROR_CANCELLED, .message = "cancelled" },
        }, -1);
}

static Message job_message(MessageKind kind, const char *sql, uint64_t deadline_usec) {
        return (Message) {
                .kind = kind,
                .job = {
                        .number = ++writing.rig.next_number, .transaction = writing.transaction,
                        .pin = writing.transaction > 0 ? 0 : writing.pin,
                        .foreign_keys = writing.foreign_keys, .lock_wait_usec = writing.job_lock_wait_usec,
                        .sql = sql, .sql_size = strlen(sql), .page_size = PAGE_SIZE,
                        .deadline_usec = deadline_usec, .row_size_max = SQLIPC_ROW_SIZE_MAX, .result_rows_max = UINT64_MAX,
                        .result_size_max = writing.rig.result_size_max,
                },
        };
}

uint64_t writing_execute(const char *sql) {
        return writing_execute_until(sql, LATER);
}

uint64_t writing_execute_until(const char *sql, uint64_t usec) {
        Message m = job_message(MESSAGE_EXECUTE, sql, writing.clock_usec + usec);

        post(&m, -1);
        return m.job.number;
}

uint64_t writing_run(const char *sql, int *ret_fd) {
        Message m = job_message(MESSAGE_RUN, sql, writing.clock_usec + LATER);
        int fds[2];

        g_assert_cmpint(pipe2(fds, O_CLOEXEC | O_NONBLOCK), ==, 0);
        (void) fcntl(fds[1], F_SETPIPE_SZ, PAGE_SIZE);
        post(&m, fds[1]);
        close(fds[1]);
        *ret_fd = fds[0];
        return m.job.number;
}

uint64_t writing_load(const char *sql, int *ret_fd) {
        return writing_load_until(sql, LATER, ret_fd);
}

uint64_t writing_load_until(const char *sql, uint64_t usec, int *ret_fd) {
        Message m = job_message(MESSAGE_LOAD, sql, writing.clock_usec + usec);
        int fds[2];

        m.job.idle_usec = WRITING_IDLE_USEC;
        m.job.row_size_max = 100000;
        g_assert_cmpint(pipe2(fds, O_CLOEXEC | O_NONBLOCK), ==, 0);
        post(&m, fds[0]);
        close(fds[0]);
        *ret_fd = fds[1];
        return m.job.number;
}

uint64_t writing_execute_batch(const char *statements) {
        return writing_execute_batch_until(statements, LATER);
}

uint64_t writing_execute_batch_until(const char *statements, uint64_t usec) {
        g_auto(GStrv) list = g_strsplit(statements, ";", 0);
        StatementList l = STATEMENT_LIST_INIT;
        Message m = job_message(MESSAGE_EXECUTE_BATCH, "", writing.clock_usec + usec);

        for (char **sql = list; *sql; sql++)
                g_assert_cmpint(statement_list_add(&l, &(JobSpec) { .sql = *sql, .sql_size = strlen(*sql) }), ==, 0);
        m.job.n_statements = l.n;
        m.job.statements = l.bytes;
        m.job.statements_size = l.size;
        post(&m, -1);
        statement_list_done(&l);
        return m.job.number;
}

static uint64_t begin(Begin begin, uint64_t usec) {
        begin.number = ++writing.rig.next_number;
        begin.deadline_usec = writing.clock_usec + usec;
        begin.idle_usec = WRITING_IDLE_USEC;
        begin.lock_wait_usec = writing.lock_wait_usec;
        begin.foreign_keys = writing.foreign_keys;
        post(&(Message) { .kind = MESSAGE_BEGIN, .begin = begin }, -1);
        return begin.number;
}

uint64_t writing_open(bool writes, uint64_t usec) {
        return begin((Begin) { .writes = writes, .pin = writing.pin }, usec);
}

uint64_t writing_open_deferred(uint64_t usec) {
        return begin((Begin) { .deferred = true, .pin = writing.pin }, usec);
}

uint64_t writing_open_pin(uint64_t transaction) {
        return begin((Begin) { .is_pin = true, .transaction = transaction }, LATER);
}

void writing_commit(uint64_t transaction) {
        post(&(Message) { .kind = MESSAGE_COMMIT, .number = transaction }, -1);
}

void writing_try_commit(uint64_t transaction) {
        post(&(Message) { .kind = MESSAGE_TRY_COMMIT, .number = transaction }, -1);
}

Outcome writing_read(int fd, uint64_t number) {
        Outcome o = {};
        PageDecoder d;
        int event;

        page_decoder_init(&d, SQLIPC_PAGE_SIZE_MAX, SQLIPC_ROW_SIZE_MAX);
        do {
                while ((event = page_decoder_next(&d)) == PAGE_MORE) {
                        uint8_t *room;
                        size_t size;
                        ssize_t n;

                        writing_settle();
                        g_assert_cmpint(page_decoder_reserve(&d, &room, &size), ==, 0);
                        n = read(fd, room, size);
                        g_assert_cmpint(n, >, 0);
                        page_decoder_commit(&d, (size_t) n);
                }
                g_assert_cmpint(event, >, 0);
                g_assert_cmpuint(d.run, ==, number);
                o.n_rows += event == PAGE_ROW;
        } while (event != PAGE_END && event != PAGE_ERROR);
        if (event == PAGE_ERROR)
                o.error = (ErrorNumber) d.error_number;
        page_decoder_done(&d);
        close(fd);
        return o;
}
