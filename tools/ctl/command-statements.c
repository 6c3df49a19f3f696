/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcctl statements, runs, transactions, channels, watches: lists those of the caller's uid; for root, all. */
#include "tools/ctl/process-name.h"
#include "tools/ctl/work.h"

static const Column statement_columns[] = {
        { "statement", "STATEMENT", SHOWN_TEXT },
        { "database", "DATABASE", SHOWN_TEXT, .gives_way = true },
        { "uid", "USER", SHOWN_USER, .rank = 2 },
        { "process", "PROCESS", SHOWN_TEXT, .rank = 1 },
        { "client", "CLIENT", SHOWN_TEXT, .rank = 3 },
        { "runs", "RUNS", SHOWN_NUMBER },
        { "running", "RUNNING", SHOWN_TEXT, .optional = true },
        { "sql", "SQL", SHOWN_TEXT, .optional = true, .gives_way = true, .rank = 4 },
};

static const Column run_columns[] = {
        { "run", "RUN", SHOWN_TEXT },
        { "database", "DATABASE", SHOWN_TEXT, .gives_way = true },
        { "uid", "USER", SHOWN_USER, .rank = 2 },
        { "process", "PROCESS", SHOWN_TEXT, .rank = 1 },
        { "client", "CLIENT", SHOWN_TEXT, .rank = 6 },
        { "state", "STATE", SHOWN_TEXT },
        { "usec", "TIME", SHOWN_TIME },
        { "rows", "ROWS", SHOWN_NUMBER, .optional = true, .rank = 5 },
        { "bytes", "BYTES", SHOWN_SIZE, .optional = true, .rank = 4 },
        { "worker-pid", "WORKER", SHOWN_NUMBER, .optional = true, .rank = 7 },
        { "sql", "SQL", SHOWN_TEXT, .optional = true, .gives_way = true, .rank = 4 },
};

static const Column transaction_columns[] = {
        { "transaction", "TRANSACTION", SHOWN_TEXT },
        { "database", "DATABASE", SHOWN_TEXT, .gives_way = true },
        { "uid", "USER", SHOWN_USER, .rank = 2 },
        { "process", "PROCESS", SHOWN_TEXT, .rank = 1 },
        { "client", "CLIENT", SHOWN_TEXT, .rank = 4 },
        { "mode", "MODE", SHOWN_TEXT },
        { "state", "STATE", SHOWN_TEXT },
        { "usec", "TIME", SHOWN_TIME },
        { "idle-usec", "IDLE", SHOWN_TIME, .optional = true },
        { "worker-pid", "WORKER", SHOWN_NUMBER, .optional = true, .rank = 5 },
};

static const Column channel_columns[] = {
        { "channel", "CHANNEL", SHOWN_TEXT },
        { "database", "DATABASE", SHOWN_TEXT, .gives_way = true },
        { "uid", "USER", SHOWN_USER, .rank = 2 },
        { "process", "PROCESS", SHOWN_TEXT, .rank = 1 },
        { "client", "CLIENT", SHOWN_TEXT, .rank = 6 },
        { "state", "STATE", SHOWN_TEXT },
        { "usec", "OPEN", SHOWN_TIME },
        { "statements", "STATEMENTS", SHOWN_NUMBER, .rank = 5 },
        { "total-runs", "RUNS", SHOWN_NUMBER, .rank = 4 },
        { "rows", "ROWS", SHOWN_NUMBER, .rank = 3 },
        { "bytes", "BYTES", SHOWN_SIZE, .rank = 3 },
        { "worker-pid", "WORKER", SHOWN_NUMBER, .optional = true, .rank = 7 },
        { "sql", "SQL", SHOWN_TEXT, .optional = true, .gives_way = true, .rank = 4 },
};

static const Column watch_columns[] = {
        { "watch", "WATCH", SHOWN_TEXT },
        { "database", "DATABASE", SHOWN_TEXT, .gives_way = true },
        { "uid", "USER", SHOWN_USER, .rank = 2 },
        { "process", "PROCESS", SHOWN_TEXT, .rank = 1 },
        { "client", "CLIENT", SHOWN_TEXT, .rank = 5 },
        { "sequence", "SEQUENCE", SHOWN_TEXT, .rank = 4 },
        { "waits", "WAITS", SHOWN_TEXT, .rank = 3 },
        { "unread", "UNREAD", SHOWN_TEXT },
        { "tables", "TABLES", SHOWN_TEXT, .gives_way = true, .rank = 4 },
};

static int print_work(Context *c, Work work, const Column *columns, size_t n_columns, const char *thing) {
        g_autoptr(GVariant) rows = NULL, named = NULL;
        int r = work_list(c, work, &rows);

        if (r != CTL_OK)
                return r;
        named = process_names_add(c, rows);
        listing_print(c, named, columns, n_columns, thing);
        return CTL_OK;
}

static int run_statements(Context *c, char **words) {
        return print_work(c, WORK_STATEMENTS, statement_columns, G_N_ELEMENTS(statement_columns), "statement");
}

static int run_runs(Context *c, char **words) {
        return print_work(c, WORK_RUNS, run_columns, G_N_ELEMENTS(run_columns), "run");
}

static int run_transactions(Context *c, char **words) {
        return print_work(c, WORK_TRANSACTIONS, transaction_columns, G_N_ELEMENTS(transaction_columns), "transaction");
}

static int run_channels(Context *c, char **words) {
        return print_work(c, WORK_CHANNELS, channel_columns, G_N_ELEMENTS(channel_columns), "channel");
}

static int run_watches(Context *c, char **words) {
        return print_work(c, WORK_WATCHES, watch_columns, G_N_ELEMENTS(watch_columns), "watch");
}

const Verb verb_statements = {
        "statements", "", "List open statements: yours, or all for root", 0, 0, false, NULL, NULL, run_statements,
};
const Verb verb_runs = {
        "runs", "", "List runs under way: yours, or all for root", 0, 0, false, NULL, NULL, run_runs,
};
const Verb verb_transactions = {
        "transactions", "", "List open transactions: yours, or all for root", 0, 0, false, NULL, NULL, run_transactions,
};
const Verb verb_channels = {
        "channels", "", "List open channels: yours, or all for root", 0, 0, false, NULL, NULL, run_channels,
};
const Verb verb_watches = {
        "watches", "", "List watches: yours, or all for root", 0, 0, false, NULL, NULL, run_watches,
};
