/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Power failures: the worker's loop writes to a database with SQLite, and everything that it does to the files is recorded.
 * Then, for each moment of the record, states that a power failure at that moment could leave (disk.h) are opened with
 * SQLite. With synchronous=FULL each state is sound, and has all batches that were acknowledged before, at most the one
 * that was being committed beside them, each once and whole. With NORMAL, a log may lose batches from its end.
 *
 * The mutations show that the test can fail: if the syncs of files or of the folder have no effect, it must find a state
 * that breaks these rules.
 *
 * $SQLIPC_SEED chooses other statements and states.
 */
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <unistd.h>

#include "daemon/worker/sqlite/sqlite-engine.h"
#include "tests/reliability/power/disk.h"
#include "tests/rigs/writing-rig.h"

#define N_LIVES 2       /* of the worker */
#define N_ROUNDS 7      /* in each life, of jobs that come together */
#define N_JOBS_MAX 5    /* in a round */
#define JOBS_MAX (N_LIVES * N_ROUNDS * N_JOBS_MAX + 1)
#define KEPT_JOBS 15    /* a job deletes the rows of those before */
#define N_ROWS 3        /* of each job that inserts */
#define N_STATES_MIN 400

static const char schema[] =
        "CREATE TABLE w(id INTEGER PRIMARY KEY, job, part, filler NOT NULL);"
        "CREATE INDEX by_job ON w(job, part);"
        "CREATE TABLE total(n);"
        "INSERT INTO total VALUES(0);"
        "CREATE TRIGGER counts AFTER INSERT ON w BEGIN UPDATE total SET n = n + 1; END;"
        "CREATE TABLE pad(version, filler);"
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 30)"
        "INSERT INTO pad SELECT 0, zeroblob(700) FROM c;";

/* The content in one value: jobs with the number and the sum of their rows; tables; versions of `pad`; the total. */
static const char content[] =
        "SELECT (SELECT coalesce(group_concat(t, ''), '') FROM (SELECT job || ':' || count(*) || ':' || sum(part) || ' ' t "
        "FROM w GROUP BY job ORDER BY job)) || '| ' || (SELECT coalesce(group_concat(t, ''), '') FROM (SELECT name || ' ' t "
        "FROM sqlite_schema WHERE name GLOB 'extra_*' ORDER BY name)) || '| ' || "
        "(SELECT group_concat(DISTINCT version) || ' * ' || count(*) FROM pad) || ' | ' || (SELECT n FROM total)";

typedef enum JobKind {
        JOB_INSERTS,
        JOB_RETURNS,         /* it inserts, and returns rows to a pipe */
        JOB_FAILS,           /* in the middle */
        JOB_ROLLS_BACK,      /* the transaction, because it fails in the middle */
        JOB_CREATES,         /* a table */
        JOB_UPDATES,         /* all rows of `pad` */
        JOB_DELETES,         /* the rows of old jobs */
        JOB_N_KINDS,
} JobKind;

/* A transaction: its result, and the events that it happened between. */
typedef struct Batch {
        uint64_t begun, acknowledged; /* numbers of events: COMMITTING, and the first ENDED, were sent after these */
        char *content;                /* of the database when it is committed */
} Batch;

typedef struct Power {
        const char *journal;
        bool full;
        char *folder, *database;
        GRand *chance;
        GByteArray *before;           /* the database at the beginning */
        GArray *batches;              /* batches[0] is what was there before */

        JobKind kinds[JOBS_MAX];
        guint n_jobs;
        bool inserted[JOBS_MAX], created[JOBS_MAX];
        uint64_t version, total;
        guint n_messages;

        GHashTable *seen;             /* digest of a state -> its content */
        guint n_states, n_different;
} Power;

/* ---- the jobs ---- */

static char *job_sql(const Power *p, guint job, guint size) {
        switch (p->kinds[job]) {
        case JOB_CREATES:
                return g_strdup_printf("CREATE TABLE extra_%03u AS SELECT * FROM pad LIMIT 3", job);
        case JOB_UPDATES:
                return g_strdup_printf("UPDATE pad SET version = %u, filler = randomblob(600 + %u)", job, size / 10);
        case JOB_DELETES:
                return g_strdup_printf("DELETE FROM w WHERE job < %d", (int) job - KEPT_JOBS);
        case JOB_FAILS:
        case JOB_ROLLS_BACK:
                return g_strdup_printf("INSERT OR %s INTO w(job, part, filler) VALUES(%u, 1, zeroblob(%u)), (%u, 2, NULL)",
                                       p->kinds[job] == JOB_FAILS ? "ABORT" : "ROLLBACK", job, size, job);
        default:
                return g_strdup_printf("INSERT INTO w(job, part, filler) VALUES(%u, 1, zeroblob(%u)), (%u, 2, 'x'), "
                                       "(%u, 3, randomblob(%u))%s", job, size, job, job, size,
                                       p->kinds[job] == JOB_RETURNS ? " RETURNING id" : "");
        }
}

static void add_job(Power *p, JobKind kind, GArray *pipes) {
        g_autofree char *sql = NULL;
        guint job = ++p->n_jobs;
        uint64_t number;
        int fd;

        p->kinds[job] = kind;
        sql = job_sql(p, job, (guint) g_rand_int_range(p->chance, 10, 2000));
        writing.rig.next_number = job - 1;
        if (kind == JOB_RETURNS) {
                number = writing_run(sql, &fd);
                g_array_append_val(pipes, fd);
        } else
                number = writing_execute(sql);
        g_assert_cmpuint(number, ==, job);
}

/* ---- what should be in the database ---- */

static void carry_out(Power *p, guint job) {
        switch (p->kinds[job]) {
        case JOB_CREATES: p->created[job] = true; return;
        case JOB_UPDATES: p->version = job; return;
        case JOB_DELETES:
                for (guint i = 0; i + KEPT_JOBS < job; i++)
                        p->inserted[i] = false;
                return;
        case JOB_FAILS:
        case JOB_ROLLS_BACK: g_assert_not_reached();
        default:
                p->inserted[job] = true;
                p->total += N_ROWS;
        }
}

static char *make_content(const Power *p) {
        GString *text = g_string_new(NULL);

        for (guint i = 0; i < JOBS_MAX; i++)
                if (p->inserted[i])
                        g_string_append_printf(text, "%u:3:6 ", i);
        g_string_append(text, "| ");
        for (guint i = 0; i < JOBS_MAX; i++)
                if (p->created[i])
                        g_string_append_printf(text, "extra_%03u ", i);
        g_string_append_printf(text, "| %" G_GUINT64_FORMAT " * 30 | %" G_GUINT64_FORMAT, p->version, p->total);
        return g_string_free(text, false);
}

static void add_batch(Power *p, const Bytes *numbers) {
        Batch batch = { .acknowledged = UINT64_MAX };

        if (numbers)
                batch.begun = g_array_index(recorder_sent(), uint64_t, p->n_messages - 1);
        else
                batch.acknowledged = 0;
        for (size_t i = 0; numbers && i < numbers->size; i += 8)
                carry_out(p, (guint) load_le64((const uint8_t *) numbers->data + i));
        batch.content = make_content(p);
        g_array_append_val(p->batches, batch);
}

static void on_ended(Power *p, const Ended *ended) {
        JobKind kind = p->kinds[ended->number];
        Batch *last = &g_array_index(p->batches, Batch, p->batches->len - 1);

        g_assert_true(ended->wrote == (kind != JOB_FAILS && kind != JOB_ROLLS_BACK));
        g_assert_true(ended->wrote == (ended->failure.error == ERROR_NONE));
        if (ended->wrote && last->acknowledged == UINT64_MAX)
                last->acknowledged = g_array_index(recorder_sent(), uint64_t, p->n_messages - 1);
}

static void take_messages(Power *p) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;

        while (message_receive(writing.rig.control_fd, &m) > 0) {
                p->n_messages++;
                if (m.message.kind == MESSAGE_LEASE_WANTED)
                        writing_say(MESSAGE_LEASE);
                else if (m.message.kind == MESSAGE_COMMITTING)
                        add_batch(p, &m.message.committing.numbers);
                else if (m.message.kind == MESSAGE_ENDED)
                        on_ended(p, &m.message.ended);
                received_message_done(&m);
        }
}

/* ---- the record ---- */

static void prepare_database(const Power *p) {
        g_autofree char *pragma = g_strdup_printf("PRAGMA journal_mode = %s", p->journal);

        exec_sql(p->database, pragma);
        exec_sql(p->database, schema);
}

static GByteArray *read_file(const Power *p, DiskName name) {
        g_autofree char *path = g_strconcat(p->database, disk_suffixes[name], NULL);
        char *bytes;
        gsize size;

        return g_file_get_contents(path, &bytes, &size, NULL) ? g_byte_array_new_take((guint8 *) bytes, size) : NULL;
}

/* If the record is complete, a disk that loses nothing has what the files have. */
static void check_record(const Power *p) {
        GByteArray *recorded[DISK_N_NAMES];
        Disk disk;

        disk_init(&disk, p->before, DISK_LIES_NEVER);
        for (guint i = 0; i < recorder_events()->len; i++)
                disk_apply(&disk, &g_array_index(recorder_events(), DiskEvent, i));
        disk_fail(&disk, DISK_KEEPS_ALL, p->chance, recorded);
        for (DiskName name = 0; name < DISK_N_NAMES; name++) {
                GByteArray *bytes = read_file(p, name);

                g_assert_true(!bytes == !recorded[name]);
                if (!bytes)
                        continue;
                g_assert_cmpmem(bytes->data, bytes->len, recorded[name]->data, recorded[name]->len);
                g_byte_array_unref(bytes);
                g_byte_array_unref(recorded[name]);
        }
        disk_done(&disk);
}

static void run_round(Power *p, guint round) {
        GArray *pipes = g_array_new(false, false, sizeof(int));
        guint n = (guint) g_rand_int_range(p->chance, 1, N_JOBS_MAX);

        add_job(p, (JobKind) (round % JOB_N_KINDS), pipes);
        for (guint i = 0; i < n; i++)
                add_job(p, (JobKind) g_rand_int_range(p->chance, 0, JOB_N_KINDS), pipes);
        writing_settle();
        take_messages(p);
        writing_settle(); /* the first time, it waited for the lease */
        take_messages(p);
        for (guint i = 0; i < pipes->len; i++)
                g_assert_cmpint(close(g_array_index(pipes, int, i)), ==, 0);
        g_array_unref(pipes);
        check_record(p);
}

static void run_life(Power *p) {
        Setup setup = wide;

        setup.path = p->database;
        setup.writes = setup.write_schema = true;
        setup.sync_full = p->full;
        setup.database_size_max = UINT64_MAX;
        setup.wal_size_max = 100000; /* for checkpoints between the commits */
        writing_begin_on(&sqlite_engine, &setup);
        recorder_set_socket(writing.loop.control_fd);
        for (guint round = 0; round < N_ROUNDS; round++)
                run_round(p, round);
        recorder_set_socket(-1);
        writing_end();
        check_record(p);
}

static void set_up(Power *p, const char *journal, bool full) {
        const char *seed = g_getenv("SQLIPC_SEED");

        *p = (Power) { .journal = journal, .full = full, .folder = g_dir_make_tmp("sqlipc-power-XXXXXX", NULL) };
        p->database = g_build_filename(p->folder, "power.db", NULL);
        p->chance = g_rand_new_with_seed(seed ? (guint32) g_ascii_strtoull(seed, NULL, 10) : 1);
        p->batches = g_array_new(false, false, sizeof(Batch));
        p->seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        (void) sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, g_rand_int_range(p->chance, 1, G_MAXINT32), NULL);
        sqlite3_randomness(0, NULL);
        prepare_database(p);
        p->before = read_file(p, DISK_DATABASE);
        recorder_start(p->database);
        add_batch(p, NULL);
        for (guint life = 0; life < N_LIVES; life++)
                run_life(p);
        recorder_stop();
        for (guint i = 0; i < p->batches->len; i++)
                g_assert_cmpuint(g_array_index(p->batches, Batch, i).acknowledged, <, UINT64_MAX);
}

static void tear_down(Power *p) {
        g_autofree char *shm = g_strconcat(p->database, "-shm", NULL);

        (void) g_unlink(shm);
        for (guint i = 0; i < p->batches->len; i++)
                g_free(g_array_index(p->batches, Batch, i).content);
        g_assert_cmpint(g_unlink(p->database), ==, 0);
        g_assert_cmpint(g_rmdir(p->folder), ==, 0);
        g_array_unref(p->batches);
        g_byte_array_unref(p->before);
        g_hash_table_unref(p->seen);
        g_rand_free(p->chance);
        g_free(p->database);
        g_free(p->folder);
        recorder_done();
}

/* ---- states ---- */

static char *query_text(sqlite3 *db, const char *sql) {
        sqlite3_stmt *stmt;
        char *text = NULL;

        if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
                text = g_strdup((const char *) sqlite3_column_text(stmt, 0));
        if (sqlite3_finalize(stmt) != SQLITE_OK || !text)
                text = g_strdup_printf("%s: %s", sql, sqlite3_errmsg(db));
        return text;
}

/* Opens the database after the power failure. Returns its content, or an error; to be freed. */
static char *open_state(const char *database) {
        char *check, *text;
        sqlite3 *db;

        g_assert_cmpint(sqlite3_open(database, &db), ==, SQLITE_OK);
        check = query_text(db, "PRAGMA integrity_check");
        text = strcmp(check, "ok") == 0 ? query_text(db, content) : g_strdup(check);
        g_free(check);
        (void) sqlite3_close(db);
        return text;
}

static char *digest_state(GByteArray *const state[static DISK_N_NAMES]) {
        GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA1);
        char *digest;

        for (DiskName name = 0; name < DISK_N_NAMES; name++) {
                gint64 size = state[name] ? (gint64) state[name]->len : -1;

                g_checksum_update(sum, (const guchar *) &size, sizeof size);
                if (state[name])
                        g_checksum_update(sum, state[name]->data, state[name]->len);
        }
        digest = g_strdup(g_checksum_get_string(sum));
        g_checksum_free(sum);
        return digest;
}

/* Writes the files, or with NULL for all of them, deletes what is left. */
static void place_state(const char *database, GByteArray *const state[static DISK_N_NAMES]) {
        g_autofree char *shm = g_strconcat(database, "-shm", NULL);

        (void) g_unlink(shm);
        for (DiskName name = 0; name < DISK_N_NAMES; name++) {
                g_autofree char *path = g_strconcat(database, disk_suffixes[name], NULL);
                int fd;

                (void) g_unlink(path);
                if (!state[name])
                        continue;
                fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
                g_assert_cmpint(write(fd, state[name]->data, state[name]->len), ==, state[name]->len);
                g_assert_cmpint(close(fd), ==, 0);
        }
}

/* The content of a state. Equal ones are opened once. */
static const char *look_at(Power *p, GByteArray *const state[static DISK_N_NAMES]) {
        GByteArray *const nothing[DISK_N_NAMES] = {};
        char *digest = digest_state(state), *database;
        const char *known = g_hash_table_lookup(p->seen, digest);

        p->n_states++;
        if (known) {
                g_free(digest);
                return known;
        }
        database = g_build_filename(p->folder, "state.db", NULL);
        place_state(database, state);
        known = open_state(database);
        place_state(database, nothing);
        g_free(database);
        p->n_different++;
        (void) g_hash_table_insert(p->seen, digest, (void *) known);
        return known;
}

/* False: the content is not one that may be there after `n_events`. */
static bool may_be_there(const Power *p, const char *found, guint n_events) {
        guint first = 0, end = 1;

        for (guint i = 1; i < p->batches->len; i++) {
                const Batch *b = &g_array_index(p->batches, Batch, i);

                if (p->full && b->acknowledged <= n_events)
                        first = i;
                if (b->begun <= n_events)
                        end = i + 1;
        }
        for (guint i = first; i < end; i++)
                if (strcmp(g_array_index(p->batches, Batch, i).content, found) == 0)
                        return true;
        return false;
}

/* Checks all damages at one moment. Returns what is wrong, to be freed; NULL: nothing. */
static char *check_moment(Power *p, const Disk *disk, guint n_events) {
        for (DiskDamage damage = 0; damage < DISK_N_DAMAGES; damage++) {
                GByteArray *state[DISK_N_NAMES];
                const char *found;

                disk_fail(disk, damage, p->chance, state);
                found = look_at(p, state);
                for (DiskName name = 0; name < DISK_N_NAMES; name++)
                        if (state[name])
                                g_byte_array_unref(state[name]);
                if (!may_be_there(p, found, n_events))
                        return g_strdup_printf("after %u events, damage %d: %s", n_events, damage, found);
        }
        return NULL;
}

/* Returns the first state that breaks the rules, to be freed; NULL: there is none. */
static char *check_all(Power *p, DiskLies lies) {
        const GArray *events = recorder_events();
        char *wrong;
        Disk disk;

        disk_init(&disk, p->before, lies);
        wrong = check_moment(p, &disk, 0);
        for (guint i = 0; i < events->len && !wrong; i++) {
                disk_apply(&disk, &g_array_index(events, DiskEvent, i));
                wrong = check_moment(p, &disk, i + 1);
        }
        disk_done(&disk);
        return wrong;
}

/* ---- tests ---- */

typedef struct Case {
        const char *path, *journal;
        bool full;
} Case;

static void must_fail(Power *p, DiskLies lies) {
        g_autofree char *wrong = check_all(p, lies);

        g_assert_nonnull(wrong);
        g_test_message("without these syncs (%d): %s", lies, wrong);
}

static void test_power(const void *data) {
        const Case *c = data;
        char *wrong;
        Power p;

        set_up(&p, c->journal, c->full);
        wrong = check_all(&p, DISK_LIES_NEVER);
        g_assert_cmpstr(wrong, ==, NULL);
        g_test_message("%u events, %u batches, %u states, %u different", recorder_events()->len, p.batches->len - 1,
                       p.n_states, p.n_different);
        g_assert_cmpuint(p.n_different, >=, N_STATES_MIN);
        must_fail(&p, DISK_LIES_ALWAYS);
        must_fail(&p, DISK_LIES_ABOUT_FILES);
        if (c->full)
                must_fail(&p, DISK_LIES_ABOUT_FOLDER);
        tear_down(&p);
}

int main(int argc, char **argv) {
        static const Case cases[] = {
                { "/power/wal/full", "wal", true },
                { "/power/wal/normal", "wal", false },
                { "/power/journal/full", "delete", true },
        };

        g_test_init(&argc, &argv, NULL);
        g_assert_cmpint(sqlite_engine.init(&wide), ==, 0);
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
                g_test_add_data_func(cases[i].path, &cases[i], test_power);
        return g_test_run();
}
