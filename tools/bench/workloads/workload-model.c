/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * model: rows as a list for a window: SqlipcLiveModel, with all rows and with windows, beside a GListStore that is filled by
 * SQLite in process. A turn is one iteration of the main loop, without the time in which it waits for events. Rows are there
 * when the turn that brought them ends, since nothing can be drawn before.
 */
#include <errno.h>
#include <gio/gio.h>
#include <malloc.h>
#include <sqlite3.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "client-lib/glib/sqlipc-glib.h"
#include "tools/bench/core/bench-service.h"
#include "tools/bench/core/measure.h"
#include "tools/bench/core/sampler.h"
#include "tools/bench/report/service-facts.h"
#include "tools/bench/workloads/workload.h"

#define ALL "SELECT id, n, r, t FROM point"
#define FEW ALL " WHERE id <= 100"

enum {
        PAUSE_USEC = 10 * 1000, /* after a list that was closed early, so that its end does not disturb the next one */
        LARGE_SIZE = 64 * 1024, /* of an allocation that glibc serves from joined memory */
};

/* ---- A row of the GListStore -------------------------------------------------------------------------------------- */

#define TYPE_STORED_ROW (stored_row_get_type())
G_DECLARE_FINAL_TYPE(StoredRow, stored_row, STORED, ROW, GObject)

struct _StoredRow {
        GObject parent;
        gint64 id, n;
        double r;
        char *t;
};

G_DEFINE_FINAL_TYPE(StoredRow, stored_row, G_TYPE_OBJECT)

static void stored_row_finalize(GObject *object) {
        g_free(STORED_ROW(object)->t);
        G_OBJECT_CLASS(stored_row_parent_class)->finalize(object);
}

static void stored_row_init(StoredRow *self) { (void) self; }

static void stored_row_class_init(StoredRowClass *class) { G_OBJECT_CLASS(class)->finalize = stored_row_finalize; }

/* ---- Ways to a list ----------------------------------------------------------------------------------------------- */

typedef struct ModelRun {
        const BenchOptions *options;
        SqlipcConnection *connection; /* NULL: the list opens one */
        sqlite3 *db;
        /* of the current list */
        const struct Way *way;
        const char *sql;
        GListModel *list;
        int r;              /* of its start */
        guint n_came;       /* rows that came in this turn */
        double waited_usec; /* in this turn */
} ModelRun;

typedef struct Way {
        const char *name;
        int (*open)(ModelRun *run, GListModel **ret);
        gint64 (*number)(GListModel *list, guint i); /* `n` of a row; NULL: rows are only counted */
} Way;

static int open_connection(const BenchOptions *options, SqlipcConnection **ret) {
        const bool system = options->system || (!options->user && geteuid() == 0);
        g_autoptr(GError) error = NULL;

        *ret = options->address ? sqlipc_glib_connection_new_for_address(options->address, &error)
                                : sqlipc_glib_connection_new(system ? SQLIPC_GLIB_BUS_SYSTEM : SQLIPC_GLIB_BUS_USER, &error);
        if (*ret)
                return 0;
        fprintf(stderr, "sqlipc-bench: cannot reach the bus: %s\n", error->message);
        return -EIO;
}

static int open_model(ModelRun *run, bool windowed, GListModel **ret) {
        static const char *const key[] = {"id", NULL};
        const char *database = run->options->database;
        g_autoptr(SqlipcConnection) connection = NULL;
        int r = 0;

        if (run->connection)
                connection = g_object_ref(run->connection);
        else
                r = open_connection(run->options, &connection);
        if (r < 0)
                return r;
        if (windowed)
                *ret = G_LIST_MODEL(sqlipc_glib_live_model_new_windowed(connection, database, run->sql, NULL, key, NULL));
        else
                *ret = G_LIST_MODEL(sqlipc_glib_live_model_new(connection, database, run->sql, NULL, key));
        return 0;
}

static int open_whole(ModelRun *run, GListModel **ret) { return open_model(run, false, ret); }

static int open_windowed(ModelRun *run, GListModel **ret) { return open_model(run, true, ret); }

static StoredRow *make_stored_row(sqlite3_stmt *statement) {
        StoredRow *row = g_object_new(TYPE_STORED_ROW, NULL);

        row->id = sqlite3_column_int64(statement, 0);
        row->n = sqlite3_column_int64(statement, 1);
        row->r = sqlite3_column_double(statement, 2);
        row->t = g_strdup((const char *) sqlite3_column_text(statement, 3));
        return row;
}

static int open_store(ModelRun *run, GListModel **ret) {
        g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func(g_object_unref);
        sqlite3_stmt *statement = NULL;
        int code = sqlite3_prepare_v2(run->db, run->sql, -1, &statement, NULL);

        while (code == SQLITE_OK || code == SQLITE_ROW) {
                code = sqlite3_step(statement);
                if (code == SQLITE_ROW)
                        g_ptr_array_add(rows, make_stored_row(statement));
        }
        (void) sqlite3_finalize(statement);
        if (code != SQLITE_DONE) {
                fprintf(stderr, "sqlipc-bench: in process: %s\n", sqlite3_errmsg(run->db));
                return -EIO;
        }
        *ret = G_LIST_MODEL(g_list_store_new(TYPE_STORED_ROW));
        g_list_store_splice(G_LIST_STORE(*ret), 0, 0, rows->pdata, rows->len);
        run->n_came += rows->len;
        return 0;
}

static gint64 number_in_model(GListModel *list, guint i) {
        g_autoptr(SqlipcRow) row = g_list_model_get_item(list, i);

        return sqlipc_glib_row_get_int64(row, 1);
}

static gint64 number_in_store(GListModel *list, guint i) {
        g_autoptr(StoredRow) row = g_list_model_get_item(list, i);

        return row->n;
}

enum { WHOLE, WINDOWED, STORE, _WAYS };

static const Way ways[_WAYS] = {
        [WHOLE] = {"SqlipcLiveModel", open_whole, number_in_model},
        [WINDOWED] = {"SqlipcLiveModel, windows", open_windowed, NULL},
        [STORE] = {"GListStore, in process", open_store, number_in_store},
};

/* ---- Turns -------------------------------------------------------------------------------------------------------- */

typedef struct Turns {
        double first_usec, all_usec; /* from the beginning until rows, or all, are there */
        double longest_usec, longest_cpu_usec;
        double n, most_rows; /* turns; rows that came in one of them */
} Turns;

static ModelRun *polling; /* GLib passes no data to its poll function */

static gint poll_and_count(GPollFD *fds, guint n_fds, gint timeout) {
        double before = sampler_now_usec();
        int n = g_poll(fds, n_fds, timeout);

        polling->waited_usec += sampler_now_usec() - before;
        return n;
}

static double thread_cpu_usec(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}

static void on_items_changed(GListModel *list, guint position, guint n_removed, guint n_added, gpointer data) {
        ModelRun *run = data;

        (void) list;
        (void) position;
        (void) n_removed;
        run->n_came += n_added;
}

static gboolean open_list(gpointer data) {
        ModelRun *run = data;

        run->r = run->way->open(run, &run->list);
        if (run->r >= 0)
                (void) g_signal_connect(run->list, "items-changed", G_CALLBACK(on_items_changed), run);
        return G_SOURCE_REMOVE;
}

/* One turn; returns a negative value if the list has failed, 1 if it is complete, 0 if more is to come. */
static int run_turn(ModelRun *run, double began, Turns *turns) {
        const double start = sampler_now_usec(), cpu_start = thread_cpu_usec();
        const GError *error;
        double now;

        run->n_came = 0;
        run->waited_usec = 0;
        (void) g_main_context_iteration(NULL, TRUE);
        now = sampler_now_usec();
        turns->n++;
        turns->longest_usec = MAX(turns->longest_usec, now - start - run->waited_usec);
        turns->longest_cpu_usec = MAX(turns->longest_cpu_usec, thread_cpu_usec() - cpu_start);
        turns->most_rows = MAX(turns->most_rows, run->n_came);
        if (run->n_came > 0 && turns->first_usec == 0)
                turns->first_usec = now - began;
        turns->all_usec = now - began;
        if (run->r < 0 || !run->list)
                return run->r;
        if (!SQLIPC_IS_LIVE_MODEL(run->list))
                return 1;
        error = sqlipc_glib_live_model_get_error(SQLIPC_LIVE_MODEL(run->list));
        if (!error)
                return sqlipc_glib_live_model_is_settled(SQLIPC_LIVE_MODEL(run->list));
        fprintf(stderr, "sqlipc-bench: %s: %s\n", run->options->database, error->message);
        return -EIO;
}

/* Runs the loop until the list has rows, or all rows with `all`. */
static int run_turns(ModelRun *run, bool all, Turns *ret) {
        const double began = sampler_now_usec();
        Turns turns = {};
        int r;

        do
                r = run_turn(run, began, &turns);
        while (r == 0 && (all || turns.first_usec == 0));
        *ret = turns;
        return r < 0 ? r : measure_interrupted();
}

/* Opens the list in the first turn. The caller calls close_list(). */
static int run_list(ModelRun *run, const Way *way, const char *sql, bool all, Turns *ret) {
        run->way = way;
        run->sql = sql;
        run->r = 0;
        (void) g_idle_add_full(G_PRIORITY_DEFAULT, open_list, run, NULL);
        return run_turns(run, all, ret);
}

static void close_list(ModelRun *run) {
        if (run->list)
                g_signal_handlers_disconnect_by_data(run->list, run);
        g_clear_object(&run->list);
        while (g_main_context_iteration(NULL, FALSE)) {
        }
        /* glibc joins the memory of the rows when much memory is next allocated. This must not be in the time of the next
         * list. */
        (void) malloc_trim(0);
        g_free(g_malloc(LARGE_SIZE));
}

/* ---- First rows --------------------------------------------------------------------------------------------------- */

typedef struct FirstCase {
        const char *name, *sql;
        bool connects;
} FirstCase;

static const FirstCase first_cases[] = {
        {"100 rows", FEW, false},
        {"100 rows, new connection", FEW, true},
        {"all rows", ALL, false},
};

static int measure_first_once(ModelRun *run, const FirstCase *c, GArray **usec) {
        for (int i = 0; i < _WAYS; i++) {
                Turns turns;
                int r = run_list(run, &ways[i], c->sql, false, &turns);

                close_list(run);
                if (r < 0)
                        return r;
                if (usec)
                        g_array_append_val(usec[i], turns.first_usec);
                g_usleep(PAUSE_USEC);
        }
        return 0;
}

static void report_first(const FirstCase *c, GArray **usec, Report *report, ReportTable *table) {
        g_autofree char *task = g_strdup_printf("First rows of a list, %s", c->name);
        g_autoptr(GArray) ratios = measure_ratios(usec[WHOLE], usec[STORE]);

        report_verdict(report, task, ways[STORE].name, ratios);
        report_table_row(table, c->name, false);
        for (unsigned i = 0; i < _WAYS; i++) {
                report_table_values(table, 2 * i, usec[i]);
                report_table_value(table, 2 * i + 1, report_quantile(usec[i], 0.99));
        }
}

static int measure_first(ModelRun *run, const FirstCase *c, Report *report, ReportTable *table) {
        const unsigned n = (unsigned) bench_amount(run->options, 2, 100, 500);
        SqlipcConnection *connection = run->connection;
        GArray *usec[_WAYS];
        int r;

        if (c->connects)
                run->connection = NULL;
        for (int i = 0; i < _WAYS; i++)
                usec[i] = g_array_new(FALSE, FALSE, sizeof(double));
        r = measure_first_once(run, c, NULL);
        for (unsigned i = 0; r >= 0 && i < n; i++) {
                measure_progress(c->name, i, n);
                r = measure_first_once(run, c, usec);
        }
        measure_progress(c->name, 1, 1);
        if (r >= 0)
                report_first(c, usec, report, table);
        for (int i = 0; i < _WAYS; i++)
                g_array_unref(usec[i]);
        run->connection = connection;
        return r;
}

static int measure_firsts(ModelRun *run, Report *report) {
        ReportTable *table = report_table(report, "model-first", "Until the first rows of a list are there", "rows");
        int r = 0;

        for (unsigned i = 0; i < _WAYS; i++) {
                g_autofree char *p99 = g_strconcat(ways[i].name, ", p99", NULL);

                (void) report_table_column(table, ways[i].name, "us");
                (void) report_table_column(table, p99, "us");
        }
        for (size_t i = 0; r >= 0 && i < G_N_ELEMENTS(first_cases); i++)
                r = measure_first(run, &first_cases[i], report, table);
        return r;
}

/* ---- All rows ----------------------------------------------------------------------------------------------------- */

/* The reported properties of the turns, in the order of the columns. */
static const struct {
        const char *name, *unit;
        size_t offset;
        double factor;
} turn_columns[] = {
        {"all rows", "ms", offsetof(Turns, all_usec), 1e-3},
        {"longest turn", "ms", offsetof(Turns, longest_usec), 1e-3},
        {"longest turn, processor time", "ms", offsetof(Turns, longest_cpu_usec), 1e-3},
        {"turns", "", offsetof(Turns, n), 1},
        {"rows of a turn, at most", "", offsetof(Turns, most_rows), 1},
};

static guint64 hash_list(const Way *way, GListModel *list) {
        guint n = g_list_model_get_n_items(list);
        guint64 hash = n;

        for (guint i = 0; way->number && i < n; i++)
                hash = hash * 31 + (guint64) way->number(list, i);
        return hash;
}

/* All lists must have the same rows, as far as they have loaded them. */
static int check_list(const ModelRun *run, guint64 *hash, guint *n) {
        const guint n_items = g_list_model_get_n_items(run->list);
        const guint64 own = hash_list(run->way, run->list);

        if (*n == 0) {
                *n = n_items;
                *hash = own;
        }
        if (n_items == *n && (!run->way->number || own == *hash))
                return 0;
        fprintf(stderr, "sqlipc-bench: the rows of %s differ from those of %s.\n", run->way->name, ways[WHOLE].name);
        return -EBADMSG;
}

/* The lists that are reported: each way, and the live models when they read all rows again. */
enum { AGAIN = _WAYS, _RESULTS = AGAIN + STORE };

static const char *const results[_RESULTS] = {
        "SqlipcLiveModel",
        "SqlipcLiveModel, windows",
        "GListStore, in process",
        "SqlipcLiveModel, read again",
        "SqlipcLiveModel, windows, read again",
};

typedef GArray *TurnValues[G_N_ELEMENTS(turn_columns)];

static void add_turns(TurnValues *values, const Turns *turns) {
        for (size_t k = 0; values && k < G_N_ELEMENTS(turn_columns); k++) {
                const char *field = (const char *) turns + turn_columns[k].offset;
                double value = *(const double *) (const void *) field * turn_columns[k].factor;

                g_array_append_val((*values)[k], value);
        }
}

/* `values`: of each result; NULL: this run does not count. */
static int measure_all_once(ModelRun *run, TurnValues *values) {
        guint64 hash = 0;
        guint n = 0;

        for (int i = 0; i < _WAYS; i++) {
                Turns turns;
                int r = run_list(run, &ways[i], ALL, true, &turns);

                if (r >= 0)
                        r = check_list(run, &hash, &n);
                add_turns(values ? &values[i] : NULL, &turns);
                if (r >= 0 && i < STORE) {
                        sqlipc_glib_live_model_refresh(SQLIPC_LIVE_MODEL(run->list));
                        r = run_turns(run, true, &turns);
                        add_turns(values ? &values[AGAIN + i] : NULL, &turns);
                }
                close_list(run);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int measure_all(ModelRun *run, Report *report) {
        ReportTable *table = report_table(report, "model-all", "All rows in a list", "list");
        TurnValues values[_RESULTS];
        const int n_rounds = bench_rounds(run->options);
        int r = measure_all_once(run, NULL);

        for (size_t k = 0; k < G_N_ELEMENTS(turn_columns); k++) {
                (void) report_table_column(table, turn_columns[k].name, turn_columns[k].unit);
                for (int i = 0; i < _RESULTS; i++)
                        values[i][k] = g_array_new(FALSE, FALSE, sizeof(double));
        }
        for (int i = 0; r >= 0 && i < n_rounds; i++)
                r = measure_all_once(run, values);
        for (int i = 0; i < _RESULTS; i++) {
                if (r >= 0)
                        report_table_row(table, results[i], false);
                for (unsigned k = 0; k < G_N_ELEMENTS(turn_columns); k++) {
                        if (r >= 0)
                                report_table_values(table, k, values[i][k]);
                        g_array_unref(values[i][k]);
                }
        }
        return r;
}

/* ---- Life --------------------------------------------------------------------------------------------------------- */

static int open_all(ModelRun *run, Service *service, Report *report) {
        int r = bench_service_open(run->options, service);

        if (r < 0)
                return r;
        service_facts_add(report, service, run->options);
        report_fact(report, "method",
                    "the lists take turns, after one of each that is not counted; file cached, warm worker");
        report_note(report,
                    "A turn is an iteration of the main loop without its waiting. SqlipcLiveModel with windows counts "
                    "the rows, and loads those that are asked for. \"Read again\": after refresh(), nothing has changed.");
        if (sqlite3_open_v2(run->options->file, &run->db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
                fprintf(stderr, "sqlipc-bench: %s: %s\n", run->options->file, sqlite3_errmsg(run->db));
                return -EIO;
        }
        return open_connection(run->options, &run->connection);
}

static int measure(const BenchOptions *options, Report *report) {
        ModelRun run = {.options = options};
        Service service = {};
        int r = open_all(&run, &service, report);

        polling = &run;
        g_main_context_set_poll_func(NULL, poll_and_count);
        if (r >= 0)
                r = measure_firsts(&run, report);
        if (r >= 0)
                r = measure_all(&run, report);
        close_list(&run);
        g_main_context_set_poll_func(NULL, NULL);
        g_clear_object(&run.connection);
        (void) sqlite3_close(run.db);
        bench_service_close(&service);
        return r;
}

const Workload workload_model = {
        .verb = "model",
        .help = "a live model for a window, beside a GListStore",
        .summary = "Fills lists for a window: SqlipcLiveModel of libsqlipc-glib, with all rows and with windows, and a\n"
                   "GListStore with the rows of SQLite in process. Measures the time until the first rows are there, and\n"
                   "the turns of the main loop until all are: their number, the longest, the rows of one.",
        .database = "point",
        .measure = measure,
        .in_report = true,
};
