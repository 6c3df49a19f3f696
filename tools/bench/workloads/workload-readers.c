/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * readers: many clients fetch the same whole result concurrently and repeatedly for a fixed time, compared with one client
 * alone; meanwhile another client asks for single rows. Each client is a process with its own connection, and reads the size
 * of each value. All clients belong to one user and query one database, so that they share the service's workers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/core/baseline.h"
#include "tools/bench/core/bench-service.h"
#include "tools/bench/core/library.h"
#include "tools/bench/core/measure.h"
#include "tools/bench/core/random.h"
#include "tools/bench/core/sampler.h"
#include "tools/bench/report/service-facts.h"
#include "tools/bench/workloads/workload.h"

enum {
        POINTS_MAX = 100000,    /* single rows that are counted in a run */
        POINT_REST_USEC = 1000, /* pause between two single rows, so that they are no load */
};

#define POINT_SQL "SELECT * FROM study WHERE rowid = ?"

/* The results of a client, in memory that all processes share. */
typedef struct Reader {
        pid_t pid;
        uint64_t n_bytes;
} Reader;

typedef struct Readers {
        const BenchOptions *options;
        Service service;
        int64_t n_keys;
        unsigned n;               /* readers in this run */
        bool with_point;
        double duration_usec;
        int arrived[2];           /* a byte for each client that is connected */
        int barrier[2];           /* closed when all are */
        struct {
                double end_usec;
                Reader point;
                uint32_t n_points;
                double point_usec[POINTS_MAX];
                Reader readers[];
        } *shared;
} Readers;

/* ---- A client's process ------------------------------------------------------------------------------------------- */

static int wait_for_start(const Readers *readers) {
        char byte = 0;

        if (write(readers->arrived[1], &byte, 1) < 0)
                return -errno;
        return TEMP_FAILURE_RETRY(read(readers->barrier[0], &byte, 1)) < 0 ? -errno : 0;
}

static bool is_time_up(const Readers *readers) {
        return sampler_now_usec() >= readers->shared->end_usec;
}

static int read_result(const Readers *readers, sqlipc_connection *connection, Reader *reader) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        uint64_t n_rows = 0;
        unsigned n_columns = 0;
        int r = sqlipc_query(connection, readers->options->database, readers->options->sql, &cursor, NULL);

        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0) {
                if (n_rows == 0)
                        n_columns = sqlipc_column_count(cursor);
                for (unsigned i = 0; i < n_columns; i++) {
                        size_t size;

                        reader->n_bytes += sqlipc_column_blob(cursor, i, &size) ? size : sizeof(uint64_t);
                }
                if (n_rows++ % 64 == 0 && is_time_up(readers))
                        return 0;
        }
        return r < 0 ? library_failed(connection, r, readers->options->sql) : 0;
}

static int run_reader(const Readers *readers, sqlipc_connection *connection, Reader *reader) {
        int r;

        do /* at least one row, even if the time is over */
                r = read_result(readers, connection, reader);
        while (r >= 0 && !is_time_up(readers));
        return r;
}

static int ask_point(const Readers *readers, sqlipc_connection *connection, Random *random) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        int64_t key = 1 + (int64_t) (random_next(random) % (uint64_t) readers->n_keys);
        unsigned n_rows = 0;
        int r = sqlipc_query(connection, readers->options->database, POINT_SQL, &cursor, "i", key);

        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0)
                n_rows++;
        if (r < 0)
                return library_failed(connection, r, POINT_SQL);
        return n_rows == 1 ? 0 : -EBADMSG;
}

static int run_point(const Readers *readers, sqlipc_connection *connection, Reader *reader) {
        Random random;
        int r;

        (void) reader;
        random_init(&random, 1);
        do {
                double start = sampler_now_usec();

                r = ask_point(readers, connection, &random);
                readers->shared->point_usec[readers->shared->n_points++] = sampler_now_usec() - start;
                (void) usleep(POINT_REST_USEC);
        } while (r >= 0 && readers->shared->n_points < POINTS_MAX && !is_time_up(readers));
        return r;
}

static int run_client(const Readers *readers, int (*run)(const Readers *, sqlipc_connection *, Reader *), Reader *reader) {
        sqlipc_connection *connection = NULL;
        int r;

        r = library_open(readers->options, SQLIPC_TRANSPORT_AUTO, &connection);
        if (r < 0)
                return r;
        r = wait_for_start(readers);
        if (r >= 0)
                r = run(readers, connection, reader);
        sqlipc_close(connection);
        return r;
}

/* ---- The parent's ------------------------------------------------------------------------------------------------- */

static int start(const Readers *readers, int (*run)(const Readers *, sqlipc_connection *, Reader *), Reader *reader) {
        pid_t pid = fork();

        if (pid < 0)
                return -errno;
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                close(readers->arrived[0]);
                close(readers->barrier[1]);
                _exit(run_client(readers, run, reader) < 0);
        }
        reader->pid = pid;
        return 0;
}

static int start_all(Readers *readers) {
        unsigned n = readers->n + readers->with_point;
        int r = readers->with_point ? start(readers, run_point, &readers->shared->point) : 0;

        for (unsigned i = 0; r >= 0 && i < readers->n; i++)
                r = start(readers, run_reader, &readers->shared->readers[i]);
        close(readers->arrived[1]); /* so that the end of the last client is the end of the file */
        for (unsigned i = 0; r >= 0 && i < n; i++) {
                char byte;

                if (TEMP_FAILURE_RETRY(read(readers->arrived[0], &byte, 1)) != 1)
                        r = -ECHILD;
        }
        readers->shared->end_usec = r < 0 ? 0 : sampler_now_usec() + readers->duration_usec;
        close(readers->barrier[1]);
        return r;
}

static int wait_for(const Reader *reader) {
        int status;

        if (reader->pid <= 0)
                return 0;
        if (TEMP_FAILURE_RETRY(waitpid(reader->pid, &status, 0)) < 0)
                return -errno;
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

/* Does a run of `n` readers. The results are in readers->shared. */
static int run_readers(Readers *readers, unsigned n, bool with_point) {
        int r, waited;

        readers->n = n;
        readers->with_point = with_point;
        memset(readers->shared->readers, 0, n * sizeof(Reader));
        readers->shared->point = (Reader) {};
        readers->shared->n_points = 0;
        if (pipe2(readers->arrived, O_CLOEXEC) < 0)
                return -errno;
        if (pipe2(readers->barrier, O_CLOEXEC) < 0) {
                r = -errno;
                close(readers->arrived[0]);
                close(readers->arrived[1]);
                return r;
        }
        r = start_all(readers);
        close(readers->arrived[0]);
        close(readers->barrier[0]);
        waited = wait_for(&readers->shared->point);
        for (unsigned i = 0; i < n; i++) {
                int one = wait_for(&readers->shared->readers[i]);

                waited = waited < 0 ? waited : one;
        }
        r = r < 0 ? r : waited;
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: %u readers did not end well: %s\n", n, g_strerror(-r));
        return r;
}

/* What all rounds found; GArrays of double, an element a round, but for the last two. */
typedef struct Rounds {
        GArray *one, *all;               /* MB/s of a reader alone, of all readers together */
        GArray *share, *slowest;         /* the second of the first; of the slowest reader to the median */
        GArray *alone_usec, *point_usec; /* of each single row: without readers, and meanwhile */
} Rounds;

static void rounds_init(Rounds *rounds) {
        GArray **arrays[] = { &rounds->one, &rounds->all, &rounds->share, &rounds->slowest, &rounds->alone_usec,
                              &rounds->point_usec };

        for (size_t i = 0; i < G_N_ELEMENTS(arrays); i++)
                *arrays[i] = g_array_new(FALSE, FALSE, sizeof(double));
}

static void rounds_done(Rounds *rounds) {
        GArray *arrays[] = { rounds->one, rounds->all, rounds->share, rounds->slowest, rounds->alone_usec,
                             rounds->point_usec };

        for (size_t i = 0; i < G_N_ELEMENTS(arrays); i++)
                g_array_unref(arrays[i]);
}

static void append(GArray *values, double value) {
        g_array_append_val(values, value);
}

/* Returns the rate of each reader. The caller frees it. */
static GArray *reader_rates(const Readers *readers) {
        GArray *rates = g_array_new(FALSE, FALSE, sizeof(double));

        for (unsigned i = 0; i < readers->n; i++)
                append(rates, (double) readers->shared->readers[i].n_bytes / readers->duration_usec);
        return rates;
}

static double sum(const GArray *values) {
        double total = 0;

        for (guint i = 0; i < values->len; i++)
                total += g_array_index(values, double, i);
        return total;
}

static int measure_round(Readers *readers, unsigned n, Rounds *rounds) {
        g_autoptr(GArray) one = NULL, all = NULL;
        int r = run_readers(readers, 0, true);

        if (r < 0)
                return r;
        g_array_append_vals(rounds->alone_usec, readers->shared->point_usec, readers->shared->n_points);
        r = run_readers(readers, 1, false);
        if (r < 0)
                return r;
        one = reader_rates(readers);
        r = run_readers(readers, n, true);
        if (r < 0)
                return r;
        all = reader_rates(readers);
        g_array_append_vals(rounds->point_usec, readers->shared->point_usec, readers->shared->n_points);
        append(rounds->one, sum(one));
        append(rounds->all, sum(all));
        append(rounds->share, sum(all) / sum(one));
        append(rounds->slowest, report_quantile(all, 0) / report_median(all));
        return 0;
}

static void report_points(const GArray *usec, const char *when, Report *report) {
        static const struct { const char *name; double fraction; } quantiles[] = { { "p50", 0.5 }, { "p99", 0.99 } };

        for (size_t i = 0; i < G_N_ELEMENTS(quantiles); i++) {
                g_autofree char *name = g_strdup_printf("a single row %s, %s", when, quantiles[i].name);

                report_single(report, name, "ms", report_quantile(usec, quantiles[i].fraction) / 1e3);
        }
}

static int measure_rounds(Readers *readers, unsigned n, Report *report) {
        g_autofree char *together = g_strdup_printf("%u readers together", n);
        g_autofree char *share = g_strdup_printf("%u readers together / one alone", n);
        int n_rounds = bench_rounds(readers->options), r = 0;
        Rounds rounds;

        rounds_init(&rounds);
        for (int i = 0; r >= 0 && i < n_rounds; i++) {
                measure_progress("readers", (unsigned) i, (unsigned) n_rounds);
                r = measure_round(readers, n, &rounds);
        }
        measure_progress("readers", 1, 1);
        if (r >= 0) {
                service_facts_add(report, &readers->service, readers->options);
                report_fact(report, "method", "%d rounds: no reader, one, and %u, for %.1f s each", n_rounds, n,
                            readers->duration_usec / 1e6);
                report_figure(report, "one reader alone", "MB/s", rounds.one);
                report_figure(report, together, "MB/s", rounds.all);
                report_figure(report, share, "", rounds.share);
                report_figure(report, "the slowest reader / the median one", "", rounds.slowest);
                report_points(rounds.alone_usec, "without readers", report);
                report_points(rounds.point_usec, "meanwhile", report);
        }
        rounds_done(&rounds);
        return r;
}

/* Checks that the result equals that of SQLite in process. This also warms the cache. */
static int check_result(Readers *readers) {
        __attribute__((cleanup(baseline_closep))) Baseline *baseline = NULL;
        const BenchOptions *options = readers->options;
        Copy ours = {}, theirs = {};
        int r = baseline_open(options->file, &baseline);

        if (r >= 0)
                r = bench_service_copy(&readers->service, options->database, options->sql, &ours);
        if (r >= 0)
                r = baseline_copy(baseline, options->sql, BASELINE_FASTEST, &theirs);
        if (r >= 0 && copy_hash(&ours) != copy_hash(&theirs)) {
                fprintf(stderr, "sqlipc-bench: the service brings something else than SQLite in process does.\n"
                                "Is the service's database the same file, and does the query say its order?\n");
                r = -EBADMSG;
        }
        copy_done(&ours);
        copy_done(&theirs);
        return r;
}

/* Keys of single rows are from 1 to this. */
static int count_keys(Readers *readers) {
        Copy copy = {};
        int r = bench_service_copy(&readers->service, readers->options->database, "SELECT max(rowid) FROM study", &copy);

        if (r >= 0 && copy.n_bytes == sizeof readers->n_keys)
                memcpy(&readers->n_keys, (const uint8_t *) (copy.last + 1) + 1, sizeof readers->n_keys);
        copy_done(&copy);
        return r < 0 ? r : readers->n_keys > 0 ? 0 : -ENODATA;
}

static int measure(const BenchOptions *options, Report *report) {
        unsigned n = (unsigned) bench_amount(options, 4, 50, 50);
        Readers readers = {
                .options = options,
                .duration_usec = (double) bench_amount(options, 200, 4000, 20000) * 1e3,
        };
        size_t size = sizeof *readers.shared + n * sizeof(Reader);
        int r = bench_service_open(options, &readers.service);

        readers.shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (readers.shared == MAP_FAILED)
                g_error("out of memory for %zu bytes", size);
        if (r >= 0)
                r = count_keys(&readers);
        if (r >= 0)
                r = check_result(&readers);
        if (r >= 0)
                r = measure_rounds(&readers, n, report);
        (void) munmap(readers.shared, size);
        bench_service_close(&readers.service);
        return r;
}

const Workload workload_readers = {
        .verb = "readers",
        .help = "50 clients that read a whole table at once, and one that asks for single rows",
        .summary = "Has 50 processes fetch a whole result again and again for some seconds, and compares what they get "
                   "together with what one gets alone; and times single rows of the table 'study' meanwhile.",
        .database = "study",
        .sql = "SELECT * FROM study",
        .measure = measure,
        .in_report = true,
};
