/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* No transport: SQLite in this process, as programs use it and as fast as it goes (baseline.h). */
#include "transport.h"

static int open_direct(Transport *transport) {
        return 0;
}

static int fetch_usual(Transport *transport, const char *sql, Copy *copy) {
        return baseline_copy(transport->setup->baseline, sql, BASELINE_USUAL, copy);
}

static int fetch_fastest(Transport *transport, const char *sql, Copy *copy) {
        return baseline_copy(transport->setup->baseline, sql, BASELINE_FASTEST, copy);
}

const TransportKind transport_usual = {
        .name = "direct, usual",
        .how = "in process: sqlite3_column_type(), then _int64(), _double(), _text() or _blob(), _bytes()",
        .open = open_direct,
        .fetch = fetch_usual,
};

const TransportKind transport_fastest = {
        .name = "direct, fastest",
        .how = "in process: sqlite3_column_value() once a value, sqlite3_value_...() on it",
        .open = open_direct,
        .fetch = fetch_fastest,
};
