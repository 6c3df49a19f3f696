/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ask: runs one statement a number of times and measures nothing. It is meant for tools that observe processes, such as
 * strace and perf. After a warm-up it prints its process id, and it waits for a line before it begins and before it ends, so
 * that such a tool counts only what the statement costs (tools/bench-syscalls.sh).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/bench/core/library.h"
#include "tools/bench/verb.h"
#include "tools/bench/workloads/workload.h"

enum { WARM_UP = 100 };

typedef struct Ask {
        BenchOptions options; /* only those of the bus, `database` and `sql` */
        char *transport;
        gint64 n_times, n_keys;
        gboolean query;
        sqlipc_connection *connection;
        sqlipc_statement *statement; /* NULL with --query */
        gint64 key; /* of the last run */
} Ask;

static const struct {
        const char *name;
        sqlipc_transport transport;
} transports[] = {
        { "auto", SQLIPC_TRANSPORT_AUTO }, { "pipe", SQLIPC_TRANSPORT_PIPE }, { "channel", SQLIPC_TRANSPORT_CHANNEL },
};

static int find_transport(const char *name, sqlipc_transport *ret) {
        for (size_t i = 0; i < G_N_ELEMENTS(transports); i++)
                if (g_strcmp0(transports[i].name, name ?: "auto") == 0) {
                        *ret = transports[i].transport;
                        return 0;
                }
        fprintf(stderr, "sqlipc-bench: --transport is auto, pipe or channel.\n");
        return -EINVAL;
}

static int parse(Ask *ask, int argc, char **argv, sqlipc_transport *ret_transport) {
        const GOptionEntry entries[] = {
                { "system", 0, 0, G_OPTION_ARG_NONE, &ask->options.system, "Use the system bus, root's default", NULL },
                { "user", 0, 0, G_OPTION_ARG_NONE, &ask->options.user, "Use the user's bus, the default of other users",
                  NULL },
                { "address", 0, 0, G_OPTION_ARG_STRING, &ask->options.address, "Use the bus at this D-Bus address",
                  "ADDRESS" },
                { "transport", 0, 0, G_OPTION_ARG_STRING, &ask->transport, "auto (default), pipe or channel", "NAME" },
                { "query", 0, 0, G_OPTION_ARG_NONE, &ask->query, "In one call each time, rather than prepared", NULL },
                { "times", 0, 0, G_OPTION_ARG_INT64, &ask->n_times, "How often, 1000", "N" },
                { "keys", 0, 0, G_OPTION_ARG_INT64, &ask->n_keys, "Its parameter goes from 1 to N, over and over", "N" },
                {},
        };
        g_autoptr(GOptionContext) context = g_option_context_new("DATABASE SQL");
        g_autoptr(GError) error = NULL;

        g_option_context_set_summary(context, "Runs a statement again and again, for strace and perf to look at: says 'ready"
                                              " PID', waits for a line,\nruns, says 'done' and waits for another.");
        g_option_context_add_main_entries(context, entries, NULL);
        if (!g_option_context_parse(context, &argc, &argv, &error))
                fprintf(stderr, "sqlipc-bench: %s\n", error->message);
        else if (argc != 3)
                fprintf(stderr, "sqlipc-bench: ask takes a DATABASE and its SQL.\n");
        else if (ask->n_times < 1 || ask->n_keys < 0)
                fprintf(stderr, "sqlipc-bench: --times and --keys are at least 1.\n");
        else {
                ask->options.database = g_strdup(argv[1]);
                ask->options.sql = g_strdup(argv[2]);
                return find_transport(ask->transport, ret_transport);
        }
        return -EINVAL;
}

/* Starts the next run, with the next key if the statement has a parameter. */
static int start(Ask *ask, sqlipc_cursor **ret) {
        int r = 0;

        ask->key = ask->n_keys > 0 ? ask->key % ask->n_keys + 1 : 0;
        if (ask->query)
                return sqlipc_query(ask->connection, ask->options.database, ask->options.sql, ret, ask->key > 0 ? "i" : "",
                                    (int64_t) ask->key);
        if (ask->key > 0)
                r = sqlipc_bind_int64(ask->statement, 1, ask->key);
        return r < 0 ? r : sqlipc_execute(ask->statement, ret);
}

/* Reads each value and keeps none, because how a program stores values does not belong to the cost of a query. */
static int run(Ask *ask, gint64 n_times, uint64_t *ret_rows, uint64_t *ret_bytes) {
        uint64_t n_rows = 0, n_bytes = 0;
        int r = 0;

        for (gint64 i = 0; r >= 0 && i < n_times; i++) {
                __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;

                r = start(ask, &cursor);
                while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0) {
                        n_rows++;
                        for (unsigned k = 0; k < sqlipc_column_count(cursor); k++) {
                                size_t size = 0;

                                (void) sqlipc_column_blob(cursor, k, &size);
                                n_bytes += size > 0 ? size : sizeof(int64_t);
                        }
                }
        }
        if (r < 0)
                return library_failed(ask->connection, r, ask->options.sql);
        *ret_rows = n_rows;
        *ret_bytes = n_bytes;
        return 0;
}

/* Does not use stdio, because that reads ahead, and a tool would count its system calls. */
static void wait_for_line(void) {
        char byte = 0;

        while (byte != '\n' && read(STDIN_FILENO, &byte, 1) > 0)
                ;
}

static int connect_and_run(Ask *ask, sqlipc_transport transport) {
        uint64_t n_rows, n_bytes;
        int r;

        r = library_open(&ask->options, transport, &ask->connection);
        if (r < 0)
                return r;
        if (!ask->query) {
                r = sqlipc_prepare(ask->connection, ask->options.database, ask->options.sql, &ask->statement);
                if (r < 0)
                        return library_failed(ask->connection, r, ask->options.sql);
        }
        r = run(ask, MIN(ask->n_times, WARM_UP), &n_rows, &n_bytes);
        if (r < 0)
                return r;
        printf("ready %d\n", getpid());
        fflush(stdout);
        wait_for_line();
        r = run(ask, ask->n_times, &n_rows, &n_bytes);
        if (r < 0)
                return r;
        printf("done %" G_GINT64_FORMAT " times, %" PRIu64 " rows, %" PRIu64 " bytes\n", ask->n_times, n_rows, n_bytes);
        fflush(stdout);
        wait_for_line();
        return 0;
}

int verb_ask(int argc, char **argv) {
        Ask ask = { .n_times = 1000 };
        sqlipc_transport transport;
        int r = parse(&ask, argc, argv, &transport);
        int code = BENCH_USAGE;

        if (r >= 0) {
                r = connect_and_run(&ask, transport);
                code = r < 0 ? BENCH_FAILED : BENCH_OK;
        }
        sqlipc_finalize(ask.statement);
        sqlipc_close(ask.connection);
        g_free(ask.transport);
        bench_options_done(&ask.options);
        return code;
}
