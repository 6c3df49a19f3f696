/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The command line that all workloads share (workload-options.h). */
#include "tools/bench/workload-options.h"

#include <errno.h>
#include <stdio.h>

static gboolean parse_size(const char *option, const char *value, gpointer data, GError **error) {
        BenchOptions *options = data;

        if (bench_size_from_name(value, &options->size) >= 0)
                return TRUE;
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "%s is tiny, normal or full, not '%s'.", option, value);
        return FALSE;
}

/* The options of all workloads. The group's data is the argument of parse_size(). */
static void add_common(GOptionContext *context, BenchOptions *options) {
        const GOptionEntry entries[] = {
                { "size", 0, 0, G_OPTION_ARG_CALLBACK, parse_size, "How much: tiny, normal (default), full", "SIZE" },
                { "rounds", 0, 0, G_OPTION_ARG_INT, &options->n_rounds, "Rounds that are measured", "N" },
                { "quiet", 0, 0, G_OPTION_ARG_NONE, &options->quiet, "No progress, even on a terminal", NULL },
                {},
        };
        GOptionGroup *group = g_option_group_new("sqlipc-bench", "", "", options, NULL);

        g_option_group_add_entries(group, entries);
        g_option_context_set_main_group(context, group);
}

static void add_bus(GOptionContext *context, BenchOptions *options) {
        const GOptionEntry entries[] = {
                { "system", 0, 0, G_OPTION_ARG_NONE, &options->system, "Use the system bus, root's default", NULL },
                { "user", 0, 0, G_OPTION_ARG_NONE, &options->user, "Use the user's bus, the default of other users", NULL },
                { "address", 0, 0, G_OPTION_ARG_STRING, &options->address, "Use the bus at this D-Bus address", "ADDRESS" },
                {},
        };

        g_option_context_add_main_entries(context, entries, NULL);
}

static void add_folder(GOptionContext *context, BenchOptions *options) {
        const GOptionEntry entries[] = {
                { "folder", 0, 0, G_OPTION_ARG_FILENAME, &options->folder,
                  "Where the datasets are, published by their names", "FOLDER" },
                {},
        };

        g_option_context_add_main_entries(context, entries, NULL);
}

static void add_servers(GOptionContext *context, BenchOptions *options) {
        const GOptionEntry entries[] = {
                { "postgres", 0, 0, G_OPTION_ARG_STRING, &options->postgres, "A PostgreSQL server beside", "CONNINFO" },
                { "engine", 0, 0, G_OPTION_ARG_STRING, &options->engine,
                  "The PostgreSQL server as the service publishes it", "NAME" },
                { "mariadb", 0, 0, G_OPTION_ARG_STRING, &options->mariadb, "A MariaDB server beside",
                  "USER@SOCKET/DATABASE" },
                {},
        };

        g_option_context_add_main_entries(context, entries, NULL);
}

static void add_forms(GOptionContext *context, BenchOptions *options) {
        const GOptionEntry entries[] = {
                { "json", 0, 0, G_OPTION_ARG_NONE, &options->json, "Write JSON", NULL },
                { "csv", 0, 0, G_OPTION_ARG_NONE, &options->csv, "Write CSV, a line for each cell of a table", NULL },
                { "plot", 0, 0, G_OPTION_ARG_FILENAME, &options->plot_folder,
                  "Draw the charts into this folder by gnuplot, as SVG and PNG", "FOLDER" },
                {},
        };

        g_option_context_add_main_entries(context, entries, NULL);
}

static void add_database(GOptionContext *context, BenchOptions *options) {
        const GOptionEntry entries[] = {
                { "database", 0, 0, G_OPTION_ARG_STRING, &options->database,
                  "The database as the service calls it", "NAME" },
                { "file", 0, 0, G_OPTION_ARG_FILENAME, &options->file,
                  "The same database's file, for SQLite in process", "PATH" },
                {},
        };

        g_option_context_add_main_entries(context, entries, NULL);
}

static void add_sql(GOptionContext *context, BenchOptions *options) {
        const GOptionEntry entries[] = {
                { "sql", 0, 0, G_OPTION_ARG_STRING, &options->sql, "Ask this instead", "SQL" },
                {},
        };

        g_option_context_add_main_entries(context, entries, NULL);
}

/* Parses a time: a number of seconds, or a number followed by s, min or h. */
static gboolean parse_time(const char *option, const char *value, gpointer data, GError **error) {
        static const struct { const char *name; double seconds; } units[] = {
                { "", 1 }, { "s", 1 }, { "min", 60 }, { "h", 3600 },
        };
        BenchOptions *options = data;
        char *end;
        double number = g_ascii_strtod(value, &end);

        for (size_t i = 0; end > value && i < G_N_ELEMENTS(units); i++)
                if (g_str_equal(end, units[i].name) && number * units[i].seconds >= 1 && number * units[i].seconds <= 1e7) {
                        options->seconds = number * units[i].seconds;
                        return TRUE;
                }
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "%s is a time from 1s on, as 20s, 2min or 3h, not '%s'.", option, value);
        return FALSE;
}

/* The options of workload_soak. The group's data is the argument of parse_time(). */
static void add_soak(GOptionContext *context, BenchOptions *options) {
        const GOptionEntry entries[] = {
                { "clients", 0, 0, G_OPTION_ARG_INT, &options->n_clients, "How many, by default 200", "N" },
                { "uids", 0, 0, G_OPTION_ARG_STRING, &options->uids, "Be these users in turn, as root can", "UID,..." },
                { "time", 0, 0, G_OPTION_ARG_CALLBACK, parse_time, "Of load, by default 2min", "TIME" },
                { "seed", 0, 0, G_OPTION_ARG_INT64, &options->seed, "Another order of what is done (1)", "N" },
                {},
        };
        GOptionGroup *group = g_option_context_get_main_group(context);

        options->seed = 1;
        g_option_group_add_entries(group, entries);
}

/* The options that only one workload has. */
static void add_own(GOptionContext *context, BenchOptions *options, const Workload *workload) {
        const GOptionEntry exposed[] = {
                { "exposed", 0, 0, G_OPTION_ARG_STRING, &options->exposed,
                  "The same file's name with Expose=study study_shown, by default 'exposed'", "NAME" },
                {},
        };
        const GOptionEntry cold[] = {
                { "cold", 0, 0, G_OPTION_ARG_NONE, &options->cold,
                  "Measure without a worker, too, which takes its idle time for each run", NULL },
                {},
        };

        const GOptionEntry tasks[] = {
                { "tasks", 0, 0, G_OPTION_ARG_STRING, &options->tasks,
                  "Only these: python-fetchall, python-point, python-executemany, arrow-table, polars-frame, pandas-frame",
                  "TASK,..." },
                {},
        };

        if (!workload || workload == &workload_exposed)
                g_option_context_add_main_entries(context, exposed, NULL);
        if (!workload || workload == &workload_first_row)
                g_option_context_add_main_entries(context, cold, NULL);
        if (workload == &workload_languages)
                g_option_context_add_main_entries(context, tasks, NULL);
        if (workload == &workload_soak)
                add_soak(context, options);
}

static int parse(GOptionContext *context, BenchOptions *options, int *argc, char ***argv) {
        g_autoptr(GError) error = NULL;

        options->size = BENCH_NORMAL;
        options->n_rounds = options->n_clients = INT_MIN;
        if (!g_option_context_parse(context, argc, argv, &error))
                fprintf(stderr, "sqlipc-bench: %s\n", error->message);
        else if (options->system + options->user + (options->address != NULL) > 1)
                fprintf(stderr, "sqlipc-bench: --system, --user and --address exclude each other.\n");
        else if (options->json && options->csv)
                fprintf(stderr, "sqlipc-bench: --json and --csv exclude each other.\n");
        else if (options->engine && !options->postgres)
                fprintf(stderr, "sqlipc-bench: --engine needs --postgres, the server that it asks.\n");
        else if (options->n_rounds < 1 && options->n_rounds != INT_MIN)
                fprintf(stderr, "sqlipc-bench: --rounds is at least 1.\n");
        else if (options->n_clients != INT_MIN && (options->n_clients < 1 || options->n_clients > 100000))
                fprintf(stderr, "sqlipc-bench: --clients is from 1 to 100000.\n");
        else {
                options->n_rounds = MAX(options->n_rounds, 0);
                options->n_clients = MAX(options->n_clients, 0);
                return 0;
        }
        return -EINVAL;
}

/* Sets the defaults of what the command line does not set. */
static void complete(BenchOptions *options, const Workload *workload) {
        if (workload->database && !options->database)
                options->database = g_strdup(workload->database);
        if (workload->database && !options->file)
                options->file = bench_dataset_file(options, options->database);
        if (workload->sql && !options->sql)
                options->sql = g_strdup(workload->sql);
        if (!options->exposed)
                options->exposed = g_strdup("exposed");
}

int workload_options_parse(BenchOptions *options, const Workload *workload, int argc, char **argv) {
        g_autoptr(GOptionContext) context = g_option_context_new(NULL);
        int r;

        g_option_context_set_summary(context, workload->summary);
        add_common(context, options);
        add_forms(context, options);
        if (workload->bus || workload->database)
                add_bus(context, options);
        if (workload->folder || workload->database)
                add_folder(context, options);
        if (workload->database)
                add_database(context, options);
        if (workload->servers)
                add_servers(context, options);
        if (workload->sql)
                add_sql(context, options);
        add_own(context, options, workload);
        r = parse(context, options, &argc, &argv);
        if (r < 0)
                return r;
        if (argc != 1)
                fprintf(stderr, "sqlipc-bench: %s takes options alone.\n", workload->verb);
        else if (options->sql && (options->postgres || options->mariadb))
                fprintf(stderr, "sqlipc-bench: --sql excludes --postgres and --mariadb, because those servers get one table"
                                " and are only asked for all of it.\n");
        else if (workload->database && !options->file && !options->folder)
                fprintf(stderr, "sqlipc-bench: --folder=FOLDER is needed, or --file=PATH.\n");
        else if (workload->folder && !options->folder)
                fprintf(stderr, "sqlipc-bench: --folder=FOLDER is needed.\n");
        else {
                complete(options, workload);
                return 0;
        }
        return -EINVAL;
}

int workload_options_parse_report(BenchOptions *options, int argc, char **argv, char **ret_folder) {
        g_autoptr(GOptionContext) context = g_option_context_new("DIRECTORY");
        int r;

        g_option_context_set_summary(context, "Runs all workloads and writes a page of what they found.");
        add_common(context, options);
        add_bus(context, options);
        add_folder(context, options);
        add_servers(context, options);
        add_own(context, options, NULL);
        r = parse(context, options, &argc, &argv);
        if (r < 0)
                return r;
        if (argc != 2 || !options->folder) {
                fprintf(stderr, "sqlipc-bench: report takes one DIRECTORY, and --folder=FOLDER.\n");
                return -EINVAL;
        }
        *ret_folder = g_strdup(argv[1]);
        return 0;
}

void workload_options_for(const BenchOptions *common, const Workload *workload, BenchOptions *ret) {
        *ret = *common;
        ret->address = g_strdup(common->address);
        ret->folder = g_strdup(common->folder);
        ret->exposed = g_strdup(common->exposed);
        ret->postgres = g_strdup(common->postgres);
        ret->engine = g_strdup(common->engine);
        ret->mariadb = g_strdup(common->mariadb);
        ret->plot_folder = g_strdup(common->plot_folder);
        ret->database = ret->file = ret->sql = ret->uids = NULL;
        complete(ret, workload);
}
