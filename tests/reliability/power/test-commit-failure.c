/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Commits that fail. The worker's loop writes to a database with SQLite, in each way in which clients can write. Each call
 * to the files fails once: a write, a sync, a truncation, a deletion, the growth of the "-shm"; afterwards a client writes,
 * or none. Each allocation fails, too, alone or with all that follow until the clients have their answers. Near the commit
 * point both are tried, elsewhere and with a large file one after the other in turn. If a scenario makes too many, those
 * near the commit point and the growth of the "-shm" fail, and a sample of the others. A client watches meanwhile.
 *
 * The files are opened three times, as they are at the failure, as they are when the clients have their answers and the
 * worker is killed, and after the worker has stopped in order. The first tells if the failure came after the commit point:
 * the changes are there. Then:
 *
 * 1. A client that was told of success finds its row, once.
 * 2. A client that was told of an error finds no row, except after OutcomeUnknown.
 * 3. No failure before the commit point is told as OutcomeUnknown, and none after it as another error.
 * 4. The watcher is told of each commit that may have happened, before the clients are.
 *
 * usage: test-commit-failure [large]   the scenarios with a large row, or all others
 */
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/worker/core/change-numbers.h"
#include "daemon/worker/sqlite/pool.h"
#include "daemon/worker/sqlite/sqlite-engine.h"
#include "dbus-interfaces/wire/page-encoder.h"
#include "tests/reliability/power/recorder.h"
#include "tests/rigs/writing-rig.h"

#define SMALL 10u               /* bytes of a row */
#define N_CLIENTS_MAX 6u
#define UNDONE_CLIENT 8u        /* its statement fails */
#define LATE_CLIENT 9u          /* it writes after the failure */
#define N_ENDED_MAX 32u
#define FIRST_NUMBER UINT64_C(1000) /* of changes */
#define SECOND UINT64_C(1000000)

typedef enum Kind {
        KIND_SINGLE,
        KIND_ROWS,                 /* RETURNING */
        KIND_GROUP,                /* of clients in one commit */
        KIND_BATCH,
        KIND_TRANSACTION,
        KIND_LOAD,
        KIND_LOAD_IN_TRANSACTION,
        KIND_CHANNEL,
        KIND_VACUUM,               /* its "row" is that no page is free */
        KIND_N,
} Kind;

static const char *const kind_names[KIND_N] = { "single", "rows", "group", "batch", "transaction", "load",
                                                "load-in-transaction", "channel", "vacuum" };

typedef struct Scenario {
        const char *name, *journal;
        unsigned page_size;
        size_t size;           /* of the first client's row */
        size_t log_size;       /* bytes that are in the log before, kept there by a reader */
        const char *pragma;    /* for the connection that writes; NULL: none */
        bool writes_again;     /* pages are spilled, and changed again */
        bool undoes;           /* by a statement that fails, in the same transaction or group */
        bool meets_reader;     /* the first attempt to commit is in the way of a reader */
        bool reader_stays;     /* longer than BusyTimeoutSec= */
        bool allocations;      /* these fail, not calls to files */
} Scenario;

/* The database and the files beside it, except the "-shm"; NULL: no such file. */
typedef struct State {
        GBytes *files[DISK_N_NAMES];
} State;

typedef struct Content {
        int64_t n[LATE_CLIENT + 1]; /* rows of each client */
        int64_t n_all, x;           /* a trigger counts, too */
} Content;

typedef struct EndedJob {
        uint64_t number;
        ErrorNumber error;
        unsigned n_committed;  /* COMMITTED messages before */
} EndedJob;

typedef struct Trial {
        const Scenario *scenario;
        Kind kind;
        unsigned n_clients;
        uint64_t numbers[N_CLIENTS_MAX + 1], transaction;
        ErrorNumber told[N_CLIENTS_MAX + 1];
        EndedJob ended[N_ENDED_MAX];
        unsigned n_ended, n_committed;
        uint64_t sequence;
        Client channel;
        int pipe_fd;
        State at_failure, killed, stopped;
        bool failed, late; /* a client wrote after the failure */
        bool keeps_failing; /* not only once: the state of the first failure does not tell of the decisive one */
} Trial;

/* The sums of all trials of a test. */
typedef struct Counts {
        unsigned n_trials, n_nothing, n_unknown, n_unnoticed;
} Counts;

static char *folder, *database, *copy;
static Trial *trial;
static struct {
        sqlite3_mem_methods below;
        uint64_t n, at;      /* allocations so far; the one that fails, 0: none */
        bool all;            /* those after it fail, too */
        GArray *n_calls;     /* if not NULL: the calls to files before each allocation, guint */
} memory;

/* ---- states of the files ---- */

static void state_done(State *s) {
        for (DiskName name = 0; name < DISK_N_NAMES; name++)
                g_clear_pointer(&s->files[name], g_bytes_unref);
}

static State read_state(const char *path) {
        State s = {};

        for (DiskName name = 0; name < DISK_N_NAMES; name++) {
                g_autofree char *file = g_strconcat(path, disk_suffixes[name], NULL);
                char *bytes;
                gsize size;

                if (g_file_get_contents(file, &bytes, &size, NULL))
                        s.files[name] = g_bytes_new_take(bytes, size);
        }
        return s;
}

static void place_state(const char *path, const State *s) {
        g_autofree char *index = g_strconcat(path, "-shm", NULL);

        (void) g_unlink(index);
        for (DiskName name = 0; name < DISK_N_NAMES; name++) {
                g_autofree char *file = g_strconcat(path, disk_suffixes[name], NULL);
                size_t size;
                const void *bytes;
                int fd;

                (void) g_unlink(file);
                if (!s->files[name])
                        continue;
                bytes = g_bytes_get_data(s->files[name], &size);
                fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
                g_assert_cmpint(write(fd, bytes, size), ==, size);
                g_assert_cmpint(close(fd), ==, 0);
        }
}

static int64_t query_number(sqlite3 *db, const char *sql) {
        sqlite3_stmt *stmt;
        int64_t n;

        g_assert_cmpint(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_step(stmt), ==, SQLITE_ROW);
        n = sqlite3_column_int64(stmt, 0);
        (void) sqlite3_finalize(stmt);
        return n;
}

static bool is_same_state(const State *a, const State *b) {
        for (DiskName name = 0; name < DISK_N_NAMES; name++)
                if (!a->files[name] != !b->files[name] ||
                    (a->files[name] && !g_bytes_equal(a->files[name], b->files[name])))
                        return false;
        return true;
}

/* Opens the files as another program does. */
static Content open_state(const Trial *t, const State *s) {
        static const State nothing;
        Content c = {};
        sqlite3_stmt *stmt;
        sqlite3 *db;
        int r;

        place_state(copy, s);
        g_assert_cmpint(sqlite3_open(copy, &db), ==, SQLITE_OK);
        (void) sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL); /* the copy is not used any more */
        g_assert_cmpint(sqlite3_prepare_v2(db, "SELECT client, count(*), (SELECT x FROM counter) FROM w GROUP BY client", -1,
                                           &stmt, NULL), ==, SQLITE_OK);
        while ((r = sqlite3_step(stmt)) == SQLITE_ROW) {
                int client = sqlite3_column_int(stmt, 0);

                g_assert_cmpint(client, <=, LATE_CLIENT);
                c.n[client] = sqlite3_column_int64(stmt, 1);
                c.n_all += c.n[client];
                c.x = sqlite3_column_int64(stmt, 2);
        }
        g_assert_cmpint(r, ==, SQLITE_DONE);
        (void) sqlite3_finalize(stmt);
        if (t->kind == KIND_VACUUM)
                c.n[1] = query_number(db, "PRAGMA freelist_count") == 0;
        g_assert_cmpint(query_number(db, "SELECT count(*) FROM pragma_quick_check WHERE quick_check = 'ok'"), ==, 1);
        g_assert_cmpint(sqlite3_close(db), ==, SQLITE_OK);
        place_state(copy, &nothing);
        return c;
}

static void on_failure(void) {
        if (!trial->failed)
                trial->at_failure = read_state(database);
        trial->failed = true;
}

/* ---- allocations ---- */

static bool memory_fails(void) {
        if (!trial || !trial->scenario->allocations)
                return false;
        memory.n++;
        if (memory.n_calls)
                g_array_append_val(memory.n_calls, recorder_calls()->len);
        if (memory.at == 0 || memory.n < memory.at || (memory.n > memory.at && !memory.all))
                return false;
        on_failure();
        return true;
}

static void *allocate(int size) {
        return memory_fails() ? NULL : memory.below.xMalloc(size);
}

static void *reallocate(void *block, int size) {
        return memory_fails() ? NULL : memory.below.xRealloc(block, size);
}

/* ---- the supervisor ---- */

static void give_lease(void) {
        Message m = { .kind = MESSAGE_LEASE, .number = 1 }; /* clients watch */

        g_assert_cmpint(message_send(writing.rig.control_fd, &m, -1), ==, 0);
}

static void take_messages(Trial *t) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;

        while (message_receive(writing.rig.control_fd, &m) > 0) {
                if (m.message.kind == MESSAGE_LEASE_WANTED)
                        give_lease();
                if (m.message.kind == MESSAGE_COMMITTED && !m.message.committed.answers) {
                        g_assert_cmpuint(m.message.committed.sequence, >, t->sequence);
                        t->sequence = m.message.committed.sequence;
                        t->n_committed++;
                }
                if (m.message.kind == MESSAGE_ENDED) {
                        g_assert_cmpuint(t->n_ended, <, N_ENDED_MAX);
                        t->ended[t->n_ended++] = (EndedJob) {
                                .number = m.message.ended.number, .error = m.message.ended.failure.error,
                                .n_committed = t->n_committed,
                        };
                }
                received_message_done(&m);
        }
}

static void settle(Trial *t) {
        for (unsigned i = 0; i < 3; i++) {
                writing_settle();
                take_messages(t);
        }
}

static const EndedJob *ended_of(const Trial *t, uint64_t number) {
        for (unsigned i = 0; i < t->n_ended; i++)
                if (t->ended[i].number == number)
                        return &t->ended[i];
        return NULL;
}

static ErrorNumber outcome_of(const Trial *t, uint64_t number) {
        const EndedJob *e = ended_of(t, number);

        g_assert_nonnull(e);
        return e->error;
}

/* ---- the ways to write ---- */

static char *insert(const Trial *t, unsigned client, const char *more) {
        return g_strdup_printf("INSERT INTO w VALUES(%u, zeroblob(%zu))%s", client, client == 1 ? t->scenario->size : 10,
                               more);
}

static void send_executes(Trial *t, unsigned n) {
        t->n_clients = n;
        for (unsigned i = 1; i <= n; i++) {
                g_autofree char *sql = insert(t, i, "");

                t->numbers[i] = writing_execute(sql);
        }
}

static void send_batch(Trial *t) {
        GString *sql = g_string_new(NULL);

        t->n_clients = 3;
        for (unsigned i = 1; i <= t->n_clients; i++) {
                g_autofree char *one = insert(t, i, i < t->n_clients ? ";" : "");

                g_string_append(sql, one);
        }
        t->numbers[1] = t->numbers[2] = t->numbers[3] = writing_execute_batch(sql->str);
        g_string_free(sql, true);
}

/* One column, the clients, and END. */
static void send_pages(Trial *t) {
        uint8_t page[4096], columns[8 + 9] = {};
        PageEncoder e;
        size_t size;

        store_le32(columns, 1);
        store_le32(columns + 4, sizeof page);
        store_le32(columns + 8, 1);
        store_le32(columns + 12, 1);
        page_encoder_init(&e, page, sizeof page, 7);
        g_assert_cmpint(page_encoder_begin_part(&e, FRAME_COLUMNS), ==, 1);
        g_assert_cmpuint(page_encoder_append(&e, columns, sizeof columns), ==, sizeof columns);
        page_encoder_end_part(&e, false);
        for (unsigned i = 1; i <= t->n_clients; i++) {
                g_assert_cmpint(page_encoder_begin_row(&e, 1), ==, 1);
                page_encoder_add_int64(&e, i);
                g_assert_cmpint(page_encoder_end_row(&e), ==, 1);
        }
        size = page_encoder_finish(&e);
        g_assert_cmpint(page_encoder_end(&e, &(EndCounters) { .n_rows = t->n_clients, .n_bytes = size }), ==, 1);
        size = page_encoder_finish(&e);
        g_assert_cmpint(write(t->pipe_fd, page, size), ==, size);
}

static void send_load(Trial *t) {
        g_autofree char *sql = g_strdup_printf("INSERT INTO w VALUES(?, zeroblob(%zu))", t->scenario->size / 2);

        t->n_clients = 2;
        t->numbers[1] = t->numbers[2] = writing_load(sql, &t->pipe_fd);
        send_pages(t);
}

static void send_undone(const Trial *t) {
        g_autofree char *sql = insert(t, UNDONE_CLIENT, "");

        if (t->scenario->undoes)
                (void) writing_execute(sql);
}

static void open_transaction(Trial *t) {
        t->transaction = writing_open(true, LATER);
        settle(t);
        writing.transaction = t->transaction;
}

static void commit_transaction(Trial *t) {
        send_undone(t);
        writing.transaction = 0;
        settle(t);
        writing_commit(t->transaction);
}

static void send_to_channel(Trial *t) {
        uint64_t statement;
        g_autofree char *sql = g_strdup_printf("INSERT INTO w VALUES(?, zeroblob(%zu))", t->scenario->size / 2);

        t->n_clients = 2;
        client_start(&writing.rig, &t->channel);
        statement = client_add_prepare(&t->channel, sql);
        for (unsigned i = 1; i <= t->n_clients; i++)
                t->numbers[i] = client_add_fetch(&t->channel, statement, 1, &(int64_t) { i });
        client_send(&t->channel);
}

static bool has_transaction(const Trial *t) {
        return t->kind == KIND_TRANSACTION || t->kind == KIND_LOAD_IN_TRANSACTION;
}

static void send_jobs(Trial *t) {
        g_autofree char *rows = insert(t, 1, " RETURNING client");

        switch (t->kind) {
        case KIND_SINGLE: send_executes(t, 1); break;
        case KIND_GROUP: send_executes(t, N_CLIENTS_MAX); break;
        case KIND_BATCH: send_batch(t); break;
        case KIND_LOAD: send_load(t); break;
        case KIND_CHANNEL: send_to_channel(t); break;
        case KIND_ROWS:
                t->n_clients = 1;
                t->numbers[1] = writing_run(rows, &t->pipe_fd);
                break;
        case KIND_VACUUM:
                t->n_clients = 1;
                t->numbers[1] = writing_execute("VACUUM");
                break;
        case KIND_TRANSACTION:
        case KIND_LOAD_IN_TRANSACTION:
                open_transaction(t);
                if (t->kind == KIND_TRANSACTION)
                        send_executes(t, 2);
                else
                        send_load(t);
                commit_transaction(t);
                break;
        case KIND_N: g_assert_not_reached();
        }
        if (!has_transaction(t))
                send_undone(t);
}

static void hear_channel(Trial *t) {
        for (unsigned i = 0; i <= t->n_clients; i++) {
                Answer a;

                g_assert_true(client_receive(&t->channel, &a));
                if (i > 0) {
                        g_assert_cmpuint(a.number, ==, t->numbers[i]);
                        t->told[i] = a.error;
                }
        }
        client_done(&t->channel);
}

static void hear(Trial *t) {
        settle(t);
        if (t->kind == KIND_CHANNEL) {
                hear_channel(t);
                return;
        }
        for (unsigned i = 1; i <= t->n_clients; i++) {
                t->told[i] = outcome_of(t, t->numbers[i]);
                if (t->told[i] == ERROR_NONE && t->transaction > 0)
                        t->told[i] = outcome_of(t, t->transaction);
        }
        if (t->pipe_fd >= 0)
                close(t->pipe_fd);
}

/* ---- a trial ---- */

static void prepare_database(const Scenario *s, Kind kind) {
        g_autofree char *sql = g_strdup_printf(
                "PRAGMA page_size = %u; PRAGMA auto_vacuum = NONE; PRAGMA journal_mode = %s;"
                "CREATE TABLE w(client, filler); CREATE TABLE counter(x); INSERT INTO counter VALUES(0);"
                "CREATE TRIGGER counts AFTER INSERT ON w BEGIN UPDATE counter SET x = x + 1; END;"
                "CREATE TABLE pad(v, filler);", s->page_size, s->journal);
        /* after the statement has failed, few pages are left to write: the log ends before the first one changed again */
        const char *again = s->undoes
                ? "CREATE TRIGGER again AFTER INSERT ON w WHEN new.client = 8 BEGIN "
                  "INSERT INTO pad SELECT 1, zeroblob(4000) FROM pad; INSERT INTO pad SELECT 2, zeroblob(4000) FROM pad;"
                  "UPDATE pad SET v = 3 WHERE v = 2; UPDATE pad SET v = 4 WHERE v = 3; SELECT RAISE(ABORT, 'undone'); END"
                : "CREATE TRIGGER again AFTER INSERT ON w WHEN new.client = 1 BEGIN "
                  "UPDATE pad SET v = v + 1; UPDATE pad SET v = v + 1; END";
        static const State nothing;

        place_state(database, &nothing);
        exec_sql(database, sql);
        if (s->writes_again || s->undoes) {
                exec_sql(database, "WITH c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 60)"
                                   "INSERT INTO pad SELECT 0, zeroblob(4000) FROM c");
                exec_sql(database, again);
        }
        if (kind == KIND_VACUUM)
                exec_sql(database, "CREATE TABLE gone(x); INSERT INTO gone VALUES(zeroblob(99000)); DROP TABLE gone");
}

static void write_late(Trial *t, unsigned client, size_t size) {
        g_autofree char *sql = g_strdup_printf("INSERT INTO w VALUES(%u, zeroblob(%zu))", client, size);
        uint64_t number = writing_execute(sql);

        settle(t);
        g_assert_cmpint(outcome_of(t, number), ==, ERROR_NONE);
}

/* On the connection of the worker that writes. */
static void run_pragma(const char *sql) {
        SqliteConnection *c = &((Pool *) (void *) writing.loop.context.pool)->writer->sqlite;

        g_assert_cmpint(sqlite3_set_authorizer(c->file, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(c->file, sql, NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpint(access_install(c->file, c->setup, &c->access), ==, SQLITE_OK);
}

/* The worker has written before, and the log is as the scenario wants it. Returns the transaction of the reader. */
static uint64_t prepare_worker(Trial *t) {
        const Scenario *s = t->scenario;
        uint64_t reader = 0;

        write_late(t, 0, 10);
        if (s->pragma)
                run_pragma(s->pragma);
        if (s->log_size > 0) {
                reader = writing_open(false, LATER);
                settle(t);
                write_late(t, 0, s->log_size);
        }
        writing_pass(WRITE_BATCH_ANNOUNCE_USEC);
        take_messages(t);
        t->n_committed = 0;
        return reader;
}

static void begin_trial(Trial *t) {
        Setup setup = wide;

        setup.path = database;
        setup.writes = setup.write_schema = setup.sync_full = true;
        setup.database_size_max = setup.wal_size_max = UINT64_MAX;
        setup.change_slot = 1;
        writing_begin_on(&sqlite_engine, &setup);
        t->sequence = FIRST_NUMBER;
        t->pipe_fd = -1;
}

/* While a reader of another program has the file, the commit waits. */
static sqlite3 *begin_foreign_reader(void) {
        sqlite3 *db;

        g_assert_cmpint(sqlite3_open(database, &db), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(db, "BEGIN; SELECT * FROM w", NULL, NULL, NULL), ==, SQLITE_OK);
        return db;
}

static void run_jobs(Trial *t) {
        sqlite3 *reader = t->scenario->meets_reader ? begin_foreign_reader() : NULL;

        send_jobs(t);
        settle(t);
        if (t->scenario->reader_stays)
                writing_pass(4 * wide.busy_usec); /* a channel carries out one request after the other */
        if (reader) {
                g_assert_cmpint(sqlite3_close(reader), ==, SQLITE_OK);
                writing_pass(SECOND);
        }
        hear(t);
}

/* `n`: the call or allocation that fails; 0: none. */
static void run_trial(Trial *t, const State *template, uint64_t n, int error, CallManner manner, bool late) {
        bool allocations = t->scenario->allocations;
        uint64_t reader;

        place_state(database, template);
        begin_trial(t);
        reader = prepare_worker(t);
        trial = t;
        recorder_fail(database, allocations ? 0 : n, error, manner, on_failure);
        memory.n = 0;
        memory.at = n;
        memory.all = t->keeps_failing;
        run_jobs(t);
        recorder_fail_stop();
        trial = NULL;
        t->late = late;
        if (late)
                write_late(t, LATE_CLIENT, 10);
        t->killed = read_state(database);
        if (reader > 0) {
                writing_cancel(reader);
                settle(t);
        }
        writing_end();
        t->stopped = read_state(database);
}

static void trial_done(Trial *t) {
        state_done(&t->at_failure);
        state_done(&t->killed);
        state_done(&t->stopped);
}

/* ---- checks ---- */

static void check_content(const Trial *t, const char *what, const Content *c) {
        g_assert_cmpint(c->x, ==, c->n_all);
        if (c->n[LATE_CLIENT] != t->late || c->n[UNDONE_CLIENT] != 0)
                g_error("%s, %s, %s: %d rows of the client that writes late, %d of a statement that failed",
                        t->scenario->name, kind_names[t->kind], what, (int) c->n[LATE_CLIENT], (int) c->n[UNDONE_CLIENT]);
        for (unsigned i = 1; i <= t->n_clients; i++) {
                bool ok = t->told[i] == ERROR_NONE ? c->n[i] == 1
                        : t->told[i] == ERROR_OUTCOME_UNKNOWN ? c->n[i] == 0 || c->n[i] == 1
                                                              : c->n[i] == 0;

                if (!ok)
                        g_error("%s, %s, %s: client %u was told %d, and has %d rows", t->scenario->name,
                                kind_names[t->kind], what, i, (int) t->told[i], (int) c->n[i]);
        }
}

/* The watcher was told in time. */
static void check_committed(const Trial *t) {
        for (unsigned i = 1; i <= t->n_clients; i++) {
                const EndedJob *e = ended_of(t, t->transaction > 0 ? t->transaction : t->numbers[i]);

                if (t->told[i] == ERROR_NONE || t->told[i] == ERROR_OUTCOME_UNKNOWN)
                        g_assert_cmpuint(t->kind == KIND_CHANNEL ? t->n_committed : e->n_committed, >, 0);
        }
}

static void check_trial(const Trial *t, Counts *counts) {
        Content killed = open_state(t, &t->killed), stopped = open_state(t, &t->stopped);
        bool is_later = !t->keeps_failing && !is_same_state(&t->at_failure, &t->killed);
        Content at_failure = is_later ? open_state(t, &t->at_failure) : killed;
        bool unnoticed = true;

        counts->n_trials++;
        check_content(t, "killed", &killed);
        check_content(t, "stopped", &stopped);
        check_committed(t);
        for (unsigned i = 1; i <= t->n_clients; i++) {
                bool unknown = t->told[i] == ERROR_OUTCOME_UNKNOWN;

                if (t->told[i] == ERROR_NONE)
                        continue;
                if (unknown != (at_failure.n[i] > 0))
                        g_error("%s, %s: client %u was told %d of a failure %s the commit point", t->scenario->name,
                                kind_names[t->kind], i, (int) t->told[i], unknown ? "before" : "after");
                counts->n_unknown += unknown;
                counts->n_nothing += !unknown;
                unnoticed = false;
        }
        counts->n_unnoticed += unnoticed;
}

/* ---- which calls fail ---- */

#define N_NEAR 12u

/* True if the call is near the commit point, which is one of the last calls that are not about the database itself: a
 * checkpoint follows. These calls fail in each manner. */
static bool is_near_point(const GArray *calls, guint i) {
        guint last = calls->len - 1;

        while (last > 0 && strchr("di", g_array_index(calls, FileCall, last).file))
                last--;
        return i + N_NEAR > last;
}

/* Calls are alike if they, and those before and after them, are of the same kind, to the same file, with as many bytes. */
static char *describe_call(const GArray *calls, guint i) {
        GString *text = g_string_new(NULL);

        for (guint j = i > 0 ? i - 1 : 0; j <= i + 1 && j < calls->len; j++) {
                const FileCall *c = &g_array_index(calls, FileCall, j);

                g_string_append_printf(text, "%d %c %zu, ", (int) c->kind, c->file, c->size);
        }
        return g_string_free(text, false);
}

/* Returns the calls of each sort that are the first or the last ones, to be freed: char for each call, 1: it is one. */
static char *choose_calls(const GArray *calls, guint n_each) {
        GHashTable *n = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        char *chosen = g_malloc0(calls->len);

        for (guint round = 0; round < 2; round++) {
                g_hash_table_remove_all(n);
                for (guint k = 0; k < calls->len; k++) {
                        guint i = round == 0 ? k : calls->len - 1 - k;
                        char *text = describe_call(calls, i);
                        guint seen = GPOINTER_TO_UINT(g_hash_table_lookup(n, text));

                        chosen[i] |= seen < n_each;
                        (void) g_hash_table_replace(n, text, GUINT_TO_POINTER(seen + 1));
                }
        }
        g_hash_table_unref(n);
        return chosen;
}

/* With a large file each trial takes long. */
static bool is_quick(const Scenario *s) {
        return s->size < 100000;
}

/* `both`: once a client writes after the failure, once none does. */
static void fail_call(const Scenario *s, Kind kind, const State *template, uint64_t n, int error, CallManner manner,
                      bool both, Counts *counts) {
        for (uint64_t late = both ? 0 : n % 2; late <= (both ? 1 : n % 2); late++) {
                Trial t = { .scenario = s, .kind = kind };

                run_trial(&t, template, n, error, manner, late);
                if (t.failed)
                        check_trial(&t, counts);
                trial_done(&t);
        }
}

/* Nothing fails; recorder_calls() then has the calls. */
static void run_dry(const Scenario *s, Kind kind, const State *template) {
        Trial dry = { .scenario = s, .kind = kind };
        Content killed, stopped;

        run_trial(&dry, template, 0, 0, CALL_UNDONE, true);
        for (unsigned i = 1; i <= dry.n_clients; i++)
                g_assert_cmpint(dry.told[i], ==, ERROR_NONE);
        killed = open_state(&dry, &dry.killed);
        stopped = open_state(&dry, &dry.stopped);
        check_content(&dry, "killed", &killed);
        check_content(&dry, "stopped", &stopped);
        trial_done(&dry);
}

static void fail_each_call(const Scenario *s, Kind kind, const State *template, Counts *counts) {
        GArray *calls;
        char *chosen;

        run_dry(s, kind, template);
        calls = g_array_copy((GArray *) recorder_calls());
        chosen = choose_calls(calls, !s->writes_again && !s->undoes && is_quick(s) ? 2 : 1);
        for (guint i = 0; i < calls->len; i++) {
                const FileCall *c = &g_array_index(calls, FileCall, i);
                unsigned n_unknown = counts->n_unknown;
                bool near = is_near_point(calls, i), both = near && is_quick(s);

                if (!chosen[i] || (!is_quick(s) && c->file != 'i' && !near))
                        continue;
                fail_call(s, kind, template, i + 1, c->kind == CALL_WRITE ? ENOSPC : EIO, CALL_UNDONE, both, counts);
                if (c->kind == CALL_WRITE && c->file != 'i' && near) {
                        fail_call(s, kind, template, i + 1, EIO, CALL_HALF, both, counts);
                        fail_call(s, kind, template, i + 1, EIO, CALL_DONE, both, counts);
                }
                if (c->file == 'i') /* the worker has the whole "-shm" before the commit point */
                        g_assert_cmpuint(counts->n_unknown, ==, n_unknown);
        }
        g_array_unref(calls);
        g_free(chosen);
}

#define N_LAST_ALLOCATIONS 8u /* COMMIT makes a few, and the answers */

/* True if SQLite may need the allocation for the commit, or to grow the "-shm". */
static bool is_critical(const GArray *calls, const GArray *n_calls, guint i) {
        guint next = g_array_index(n_calls, guint, i);
        bool is_last = i + 2 >= n_calls->len || g_array_index(n_calls, guint, i + 2) > next; /* or the one before that */

        return i + N_LAST_ALLOCATIONS >= n_calls->len || is_near_point(calls, next) ||
               (is_last && next < calls->len && g_array_index(calls, FileCall, next).file == 'i');
}

/* One in so many of the other allocations fails. */
static guint allocation_stride(const Scenario *s, Kind kind, guint n) {
        guint n_samples = is_quick(s) ? 24 : 4;

        return s->writes_again || kind == KIND_VACUUM || !is_quick(s) ? n / n_samples + 1 : 1;
}

/* If all later ones fail, no client writes late: that could replace a commit whose outcome is unknown. */
static void fail_allocation(const Scenario *s, Kind kind, const State *template, uint64_t n, bool all, Counts *counts) {
        Trial t = { .scenario = s, .kind = kind, .keeps_failing = all };

        run_trial(&t, template, n, 0, CALL_UNDONE, !all && n / 2 % 2);
        if (t.failed) /* a group that was divided in the dry run may make fewer */
                check_trial(&t, counts);
        trial_done(&t);
}

static void fail_each_allocation(const Scenario *s, Kind kind, const State *template, Counts *counts) {
        g_autoptr(GArray) n_calls = g_array_new(false, false, sizeof(guint)), calls = NULL;
        guint stride;

        memory.n_calls = n_calls;
        run_dry(s, kind, template);
        memory.n_calls = NULL;
        calls = g_array_copy((GArray *) recorder_calls());
        stride = allocation_stride(s, kind, n_calls->len);
        for (guint i = 0; i < n_calls->len; i++) {
                bool critical = is_critical(calls, n_calls, i), both = critical && is_quick(s);

                if (i % stride != 0 && !critical)
                        continue;
                for (int all = 0; all <= 1; all++)
                        if (both || all == (int) (i / stride) % 2)
                                fail_allocation(s, kind, template, i + 1, all, counts);
        }
}

/* ---- tests ---- */

#define SMALL_CACHE "PRAGMA cache_size = 20"
#define LARGE_CACHE "PRAGMA cache_size = -100000"

/* No client of the service can set the journal modes TRUNCATE and PERSIST, but SQLite has them. */
static const Scenario scenarios[] = {
        { .name = "wal", .journal = "wal", .page_size = 4096, .size = SMALL },
        { .name = "wal-spill", .journal = "wal", .page_size = 4096, .size = SMALL, .pragma = SMALL_CACHE,
          .writes_again = true },
        { .name = "wal-undo", .journal = "wal", .page_size = 4096, .size = SMALL, .pragma = SMALL_CACHE, .undoes = true },
        { .name = "wal-undo-spill", .journal = "wal", .page_size = 4096, .size = 99000, .pragma = SMALL_CACHE,
          .undoes = true },
        { .name = "wal-index-1", .journal = "wal", .page_size = 512, .size = 800000, .log_size = 1500000 },
        { .name = "wal-index-1-spill", .journal = "wal", .page_size = 512, .size = 800000, .log_size = 1500000,
          .pragma = SMALL_CACHE },
        { .name = "wal-index-5", .journal = "wal", .page_size = 512, .size = 10500000, .pragma = LARGE_CACHE },
        { .name = "wal-index-5-spill", .journal = "wal", .page_size = 512, .size = 10500000 },
        { .name = "wal-memory", .journal = "wal", .page_size = 4096, .size = SMALL, .allocations = true },
        { .name = "wal-spill-memory", .journal = "wal", .page_size = 4096, .size = SMALL, .pragma = SMALL_CACHE,
          .writes_again = true, .allocations = true },
        { .name = "wal-index-1-memory", .journal = "wal", .page_size = 512, .size = 800000, .log_size = 1500000,
          .allocations = true },
        { .name = "wal-index-1-spill-memory", .journal = "wal", .page_size = 512, .size = 800000, .log_size = 1500000,
          .pragma = SMALL_CACHE, .allocations = true },
        { .name = "wal-index-5-memory", .journal = "wal", .page_size = 512, .size = 10500000, .pragma = LARGE_CACHE,
          .allocations = true },
        { .name = "wal-index-5-spill-memory", .journal = "wal", .page_size = 512, .size = 10500000, .allocations = true },
        { .name = "journal", .journal = "delete", .page_size = 4096, .size = SMALL },
        { .name = "journal-truncate", .journal = "delete", .page_size = 4096, .size = SMALL,
          .pragma = "PRAGMA journal_mode = truncate" },
        { .name = "journal-persist", .journal = "delete", .page_size = 4096, .size = SMALL,
          .pragma = "PRAGMA journal_mode = persist" },
        { .name = "journal-reader", .journal = "delete", .page_size = 4096, .size = SMALL, .meets_reader = true },
        { .name = "journal-spill", .journal = "delete", .page_size = 4096, .size = SMALL, .pragma = SMALL_CACHE,
          .writes_again = true },
        { .name = "journal-undo", .journal = "delete", .page_size = 4096, .size = SMALL, .pragma = SMALL_CACHE,
          .undoes = true },
        { .name = "journal-memory", .journal = "delete", .page_size = 4096, .size = SMALL, .allocations = true },
        { .name = "journal-spill-memory", .journal = "delete", .page_size = 4096, .size = SMALL, .pragma = SMALL_CACHE,
          .writes_again = true, .allocations = true },
};

typedef struct Case {
        const Scenario *scenario;
        Kind kind;
} Case;

static void test_failure(const void *data) {
        const Case *c = data;
        Counts counts = {};
        State template;

        prepare_database(c->scenario, c->kind);
        template = read_state(database);
        if (c->scenario->allocations)
                fail_each_allocation(c->scenario, c->kind, &template, &counts);
        else
                fail_each_call(c->scenario, c->kind, &template, &counts);
        state_done(&template);
        recorder_fail_done();
        g_test_message("%u failures: %u answers that nothing was written, all before the commit point; %u of "
                       "OutcomeUnknown, all after it; %u failures did not reach a client",
                       counts.n_trials, counts.n_nothing, counts.n_unknown, counts.n_unnoticed);
        g_assert_cmpuint(counts.n_nothing + counts.n_unnoticed, >, 0); /* a group runs again, each by itself */
        if (!c->scenario->allocations)
                g_assert_cmpuint(counts.n_unknown, >, 0);
}

/* A reader keeps the commit out for too long. */
static void test_busy(void) {
        static const Scenario scenario = { .name = "busy", .journal = "delete", .page_size = 4096, .size = SMALL,
                                           .meets_reader = true, .reader_stays = true };
        State template;

        for (Kind kind = 0; kind < KIND_N; kind++) {
                Trial t = { .scenario = &scenario, .kind = kind };
                Content killed, stopped;

                prepare_database(&scenario, kind);
                template = read_state(database);
                run_trial(&t, &template, 0, 0, CALL_UNDONE, false);
                killed = open_state(&t, &t.killed);
                stopped = open_state(&t, &t.stopped);
                for (unsigned i = 1; i <= t.n_clients; i++)
                        g_assert_cmpint(t.told[i], ==, ERROR_BUSY);
                check_content(&t, "killed", &killed);
                check_content(&t, "stopped", &stopped);
                trial_done(&t);
                state_done(&template);
        }
        recorder_fail_done();
}

/* A number of changes, as the supervisor publishes it. */
static void publish_number(void) {
        uint64_t numbers[] = { 0, FIRST_NUMBER };
        int fd = memfd_create("numbers", MFD_CLOEXEC);

        g_assert_cmpint(write(fd, numbers, sizeof numbers), ==, sizeof numbers);
        change_numbers_open(fd);
        close(fd);
}

static void watch_memory(void) {
        sqlite3_mem_methods ours;

        g_assert_cmpint(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory.below), ==, SQLITE_OK);
        ours = memory.below;
        ours.xMalloc = allocate;
        ours.xRealloc = reallocate;
        g_assert_cmpint(sqlite3_config(SQLITE_CONFIG_MALLOC, &ours), ==, SQLITE_OK);
}

int main(int argc, char **argv) {
        static Case cases[G_N_ELEMENTS(scenarios) * KIND_N];
        static const State nothing;
        bool large;
        int r;

        g_test_init(&argc, &argv, NULL);
        large = argc > 1 && g_str_equal(argv[1], "large");
        watch_memory();
        g_assert_cmpint(sqlite_engine.init(&wide), ==, 0);
        publish_number();
        folder = g_dir_make_tmp("sqlipc-commit-XXXXXX", NULL);
        database = g_build_filename(folder, "commit.db", NULL);
        copy = g_build_filename(folder, "copy.db", NULL);
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                g_autofree char *path = NULL;

                cases[i] = (Case) { .scenario = &scenarios[i / KIND_N], .kind = (Kind) (i % KIND_N) };
                if ((cases[i].scenario->size > SMALL) != large || (large && cases[i].kind == KIND_VACUUM))
                        continue;
                path = g_strdup_printf("/commit-failure/%s/%s", cases[i].scenario->name, kind_names[cases[i].kind]);
                g_test_add_data_func(path, &cases[i], test_failure);
        }
        if (!large)
                g_test_add_func("/commit-failure/busy", test_busy);
        r = g_test_run();
        place_state(database, &nothing);
        g_assert_cmpint(g_rmdir(folder), ==, 0);
        return r;
}
