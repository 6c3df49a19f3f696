/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * many: point queries to a random one of N databases, over one connection that all queries of a side share, beside SQLite
 * in process with N open handles. The databases are published as many-0, many-1, ..., and are FOLDER/many/0.sqlite, ...
 * (tools/bench-many.sh makes them). The cost for 4 databases is what the others are compared with.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>

#include "tools/bench/core/copy-sqlite.h"
#include "tools/bench/core/library.h"
#include "tools/bench/core/measure.h"
#include "tools/bench/core/random.h"
#include "tools/bench/report/service-facts.h"
#include "tools/bench/workloads/point.h"
#include "tools/bench/workloads/workload.h"

enum { N_KEYS = 1000, STEPS = 4, FOUR = 1, SIDES = 2, IN_PROCESS = 0 };

static const unsigned n_databases[STEPS] = { 1, 4, 50, 200 };

typedef struct Many Many;

/* Sends one query to database `i`. */
typedef int (*ManyAsk)(Many *many, unsigned i, int64_t key);

struct Many {
        const BenchOptions *options;
        Service service;
        sqlipc_connection *connection; /* of ours, in the step under way */
        sqlite3_stmt *statements[200]; /* in process; NULL: not open yet */
        unsigned step, n_queries;
        Copy copy;
        ManyAsk asks[SIDES];
        Findings found[STEPS][SIDES];
        size_t n_steps;                /* that are measured */
};

typedef struct ManySide {
        Many *many;
        ManyAsk ask;
} ManySide;

static char *file_of(const Many *many, unsigned i) {
        g_autofree char *name = g_strdup_printf("many/%u", i);

        return bench_dataset_file(many->options, name);
}

static int open_in_process(Many *many, unsigned i) {
        g_autofree char *file = file_of(many, i);
        sqlite3 *db = NULL;

        if (sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
            sqlite3_prepare_v2(db, POINT_SQL, -1, &many->statements[i], NULL) == SQLITE_OK)
                return 0;
        fprintf(stderr, "sqlipc-bench: %s: %s\n", file, sqlite3_errmsg(db));
        (void) sqlite3_close(db);
        return -EIO;
}

static int ask_in_process(Many *many, unsigned i, int64_t key) {
        int r = many->statements[i] ? 0 : open_in_process(many, i);
        sqlite3_stmt *statement = many->statements[i];

        if (r < 0 || sqlite3_bind_int64(statement, 1, key) != SQLITE_OK)
                return -EIO;
        while (sqlite3_step(statement) == SQLITE_ROW) {
                for (int k = 0; k < sqlite3_column_count(statement); k++)
                        copy_sqlite_column(&many->copy, statement, k);
                many->copy.n_rows++;
        }
        return sqlite3_reset(statement) == SQLITE_OK ? 0 : -EIO;
}

static int ask_ours(Many *many, unsigned i, int64_t key) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        char name[16];
        int r;

        (void) snprintf(name, sizeof name, "many-%u", i);
        r = sqlipc_query(many->connection, name, POINT_SQL, &cursor, "i", key);
        if (r >= 0)
                r = library_copy_rows(cursor, &many->copy);
        return r < 0 ? library_failed(many->connection, r, name) : 0;
}

/* The warm-up run asks each database once, so that handles and channels are open. */
static int run_side(void *userdata) {
        const ManySide *side = userdata;
        Many *many = side->many;
        unsigned n = n_databases[many->step];
        Random random;
        int r = 0;

        random_init(&random, n);
        for (unsigned i = 0; r >= 0 && i < n; i++)
                r = side->ask(many, i, 1);
        for (unsigned i = n; r >= 0 && i < many->n_queries; i++) {
                uint64_t number = random_next(&random);

                r = side->ask(many, (unsigned) (number % n), 1 + (int64_t) (number / n % N_KEYS));
        }
        return r;
}

static uint64_t check_side(void *userdata) {
        Copy *copy = &((const ManySide *) userdata)->many->copy;
        uint64_t hash = copy_hash(copy);

        copy_done(copy);
        return hash;
}

static void close_in_process(Many *many) {
        for (size_t i = 0; i < G_N_ELEMENTS(many->statements); i++) {
                sqlite3 *db = many->statements[i] ? sqlite3_db_handle(many->statements[i]) : NULL;

                (void) sqlite3_finalize(many->statements[i]);
                (void) sqlite3_close(db);
                many->statements[i] = NULL;
        }
}

static int measure_step(Many *many) {
        g_autofree char *what = g_strdup_printf("%u databases", n_databases[many->step]);
        ManySide in_process = { many, ask_in_process }, ours = { many, ask_ours };
        const Side sides[SIDES] = {
                { .name = "in process", .run = run_side, .check = check_side, .userdata = &in_process },
                { .name = "ours", .run = run_side, .check = check_side, .userdata = &ours, .server = many->service.pid },
        };
        int r = library_open(many->options, SQLIPC_TRANSPORT_AUTO, &many->connection);

        many->n_queries = (unsigned) bench_amount(many->options, 400, 4000, 40000);
        if (r >= 0)
                r = measure_sides(sides, SIDES, bench_rounds(many->options), what, many->found[many->step]);
        many->connection = sqlipc_close(many->connection);
        close_in_process(many);
        copy_done(&many->copy);
        return r;
}

static void add_row(const Many *many, ReportTable *table, size_t side, const char *name) {
        double each = 1.0 / many->n_queries;

        for (size_t step = 0; step < many->n_steps; step++) {
                const Findings *found = &many->found[step][side];
                g_autofree char *title = g_strdup_printf("%s, %u", name, n_databases[step]);
                g_autoptr(GArray) usec = measure_scaled(found->usec, each);
                g_autoptr(GArray) client = measure_scaled(found->client_cpu_usec, each);
                g_autoptr(GArray) server = measure_scaled(found->server_cpu_usec, each);
                g_autoptr(GArray) ratios = measure_ratios(found->usec, many->found[FOUR][side].usec);

                report_table_row(table, title, false);
                report_table_values(table, 0, usec);
                report_table_values(table, 1, client);
                if (side != IN_PROCESS)
                        report_table_values(table, 2, server);
                report_table_values(table, 3, ratios);
        }
}

static void report_all(const Many *many, Report *report) {
        ReportTable *table = report_table(report, "many", "A point query to one of many databases", "side, databases");

        service_facts_add(report, &many->service, many->options);
        report_fact(report, "method", "%u queries in a run, each to a random database; one connection; warm cache",
                    many->n_queries);
        report_table_column(table, "time", "us/query");
        report_table_column(table, "client CPU", "us/query");
        report_table_column(table, "server CPU", "us/query");
        report_table_column(table, "to 4 databases", "");
        add_row(many, table, IN_PROCESS, "in process");
        add_row(many, table, 1, "ours");
}

static int measure(const BenchOptions *options, Report *report) {
        Many many = { .options = options };
        int r = bench_service_open(options, &many.service);

        if (r < 0)
                return r;
        for (; r >= 0 && many.step < STEPS; many.step++) {
                r = measure_step(&many);
                many.n_steps += r >= 0;
        }
        if (r >= 0)
                report_all(&many, report);
        for (size_t step = 0; step < many.n_steps; step++)
                for (size_t i = 0; i < SIDES; i++)
                        findings_done(&many.found[step][i]);
        bench_service_close(&many.service);
        return r;
}

const Workload workload_many = {
        .verb = "many",
        .help = "point queries to one of many databases at random",
        .summary = "Point queries over one connection to a random one of 1, 4, 50 and 200 databases, many-0, many-1, ...,\n"
                   "whose files are FOLDER/many/0.sqlite, ..., beside SQLite in process with as many handles. The\n"
                   "script tools/bench-many.sh makes and publishes them.",
        .bus = true,
        .folder = true,
        .measure = measure,
};
