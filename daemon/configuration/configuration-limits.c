/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers of the configuration. Pure. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/configuration/configuration-limits.h"
#include "daemon/configuration/configuration-text.h"
#include "dbus-interfaces/wire/sqlipc-page.h"

#define MSEC UINT64_C(1000)
#define SEC (1000 * MSEC)
#define YEAR (366 * 86400 * SEC)
#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define TIB (1024 * GIB)

typedef enum NumberType { NUMBER_COUNT, NUMBER_SIZE, NUMBER_TIME, NUMBER_BOOLEAN } NumberType;

/* The effect of a limit in NAME.conf. */
typedef enum AtDatabase {
        AT_DATABASE_NEVER,    /* it is allowed in sqlipcd.conf only */
        AT_DATABASE_REPLACES, /* it replaces the value of sqlipcd.conf */
        AT_DATABASE_SHARED,   /* it limits all uids together, in addition to that value */
} AtDatabase;

typedef struct NumberRow {
        const char *key;
        NumberType type;
        size_t offset;        /* in ServiceConfig or in Limits */
        uint64_t initial, min, max;
        bool infinity;        /* "infinity" is allowed: UINT64_MAX */
        AtDatabase at_database;
        size_t shared_offset; /* AT_DATABASE_SHARED: in DatabaseLimits */
} NumberRow;

#define AT(field) G_STRUCT_OFFSET(Limits, field)
#define REPLACES .at_database = AT_DATABASE_REPLACES
#define SHARED(field) .at_database = AT_DATABASE_SHARED, .shared_offset = G_STRUCT_OFFSET(DatabaseLimits, field)

static const NumberRow limit_table[] = {
        { "StatementsMax", NUMBER_COUNT, AT(statements_max), 256, 1, 1000000, SHARED(statements_max) },
        { "RunsMax", NUMBER_COUNT, AT(runs_max), 256, 1, 1000000, SHARED(runs_max) },
        { "ChannelsMax", NUMBER_COUNT, AT(channels_max), 1024, 1, 1000000, SHARED(channels_max) },
        { "WatchesMax", NUMBER_COUNT, AT(watches_max), 1024, 1, 1000000, SHARED(watches_max) },
        { "WorkersMax", NUMBER_COUNT, AT(workers_max), 8, 1, 1024, SHARED(workers_max) },
        { "WorkersTotalMax", NUMBER_COUNT, AT(workers_total_max), 0, 1, 4096 }, /* limits_workers_total() */
        { "PipePagesMax", NUMBER_COUNT, AT(pipe_pages_max), 8192, 1, 1000000000 },
        { "ResultRowsMax", NUMBER_COUNT, AT(result_rows_max), UINT64_MAX, 1, INT64_MAX, .infinity = true, REPLACES },
        { "ResultSizeMax", NUMBER_SIZE, AT(result_size_max), TIB, 1, 1024 * TIB, REPLACES },
        { "RowSizeMax", NUMBER_SIZE, AT(row_size_max), SQLIPC_ROW_SIZE_MAX, 1, SQLIPC_ROW_SIZE_MAX, REPLACES },
        { "RunTimeoutSec", NUMBER_TIME, AT(run_timeout_usec), 600 * SEC, MSEC, YEAR, REPLACES },
        { "PrepareTimeoutSec", NUMBER_TIME, AT(prepare_timeout_usec), 5 * SEC, MSEC, YEAR, REPLACES },
        { "QueueTimeoutSec", NUMBER_TIME, AT(queue_timeout_usec), 10 * SEC, MSEC, YEAR, REPLACES },
        { "ParkTimeoutSec", NUMBER_TIME, AT(park_timeout_usec), 30 * SEC, MSEC, YEAR, REPLACES },
        { "TransactionsMax", NUMBER_COUNT, AT(transactions_max), 256, 1, 1000000 },
        { "PinsMax", NUMBER_COUNT, AT(pins_max), 64, 0, 1000000 },
        { "TransactionTimeoutSec", NUMBER_TIME, AT(transaction_timeout_usec), 60 * SEC, MSEC, YEAR, REPLACES },
        { "TransactionIdleSec", NUMBER_TIME, AT(transaction_idle_usec), 5 * SEC, MSEC, YEAR, REPLACES },
        { "ParkTimeoutRollbackSec", NUMBER_TIME, AT(park_timeout_rollback_usec), 5 * SEC, MSEC, YEAR, REPLACES },
        { "BusyTimeoutSec", NUMBER_TIME, AT(busy_timeout_usec), 5 * SEC, 0, YEAR, REPLACES },
        { "StatementIdleSec", NUMBER_TIME, AT(statement_idle_usec), 3600 * SEC, MSEC, YEAR, REPLACES },
        { "TempSizeMax", NUMBER_SIZE, AT(temp_size_max), GIB, 0, 1024 * TIB, REPLACES },
        { "HeapMax", NUMBER_SIZE, AT(heap_max), 256 * MIB, MIB, TIB, REPLACES },
        { "WorkerIdleSec", NUMBER_TIME, AT(worker_idle_usec), 10 * SEC, 0, YEAR },
        { "SQLSizeMax", NUMBER_SIZE, AT(sql_size_max), 16 * MIB, 1, 1000000000, REPLACES },
        { "ExpressionDepthMax", NUMBER_COUNT, AT(expression_depth_max), 1000, 1, 1000, REPLACES },
        { "CompoundSelectsMax", NUMBER_COUNT, AT(compound_selects_max), 500, 1, 500, REPLACES },
        { "VdbeOpsMax", NUMBER_COUNT, AT(vdbe_ops_max), 1000000, 1000, 250000000, REPLACES },
        { "VariablesMax", NUMBER_COUNT, AT(variables_max), 32766, 1, 32766, REPLACES },
        { "ExemptRoot", NUMBER_BOOLEAN, AT(exempt_root), 0, 0, 1 },
};

G_STATIC_ASSERT(G_N_ELEMENTS(limit_table) <= 64); /* bits of DatabaseLimits.given */

#define SERVICE_AT(field) G_STRUCT_OFFSET(ServiceConfig, field)

static const NumberRow service_table[] = {
        { "IdleExitSec", NUMBER_TIME, SERVICE_AT(idle_exit_usec), 60 * SEC, MSEC, YEAR, .infinity = true },
        { "SlowQuerySec", NUMBER_TIME, SERVICE_AT(slow_query_usec), 10 * SEC, 0, YEAR, .infinity = true },
};

#define DATABASE_AT(field) G_STRUCT_OFFSET(DatabaseConfig, field)

/* The smallest database has one page, of 64 KiB at most; the largest is SQLite's. */
static const NumberRow database_table[] = {
        { "DatabaseSizeMax", NUMBER_SIZE, DATABASE_AT(database_size_max), UINT64_MAX, 64 * KIB, 256 * TIB,
          .infinity = true },
        { "WalSizeMax", NUMBER_SIZE, DATABASE_AT(wal_size_max), 64 * MIB, MIB, TIB },
};

static uint64_t *number_at(void *base, size_t offset) {
        return (uint64_t *) G_STRUCT_MEMBER_P(base, offset);
}

static uint64_t limit_of(const Limits *limits, const NumberRow *row) {
        return *(const uint64_t *) (const void *) ((const char *) limits + row->offset);
}

static void set_defaults(void *base, const NumberRow *rows, size_t n_rows) {
        for (size_t i = 0; i < n_rows; i++)
                *number_at(base, rows[i].offset) = rows[i].initial;
}

static const NumberRow *find_row(const NumberRow *rows, size_t n_rows, const char *key) {
        for (size_t i = 0; i < n_rows; i++)
                if (strcmp(rows[i].key, key) == 0)
                        return &rows[i];
        return NULL;
}

const char *service_config_key(size_t i) {
        return i < G_N_ELEMENTS(service_table) ? service_table[i].key : NULL;
}

const char *limits_key(size_t i) {
        return i < G_N_ELEMENTS(limit_table) ? limit_table[i].key : NULL;
}

const char *database_limits_key(size_t i) {
        for (size_t k = 0; k < G_N_ELEMENTS(limit_table); k++)
                if (limit_table[k].at_database != AT_DATABASE_NEVER && i-- == 0)
                        return limit_table[k].key;
        return NULL;
}

/* ---- Values ---- */

static bool number_parse(const NumberRow *row, const char *value, uint64_t *ret) {
        bool yes = false;
        int r = 0;

        if (row->infinity && strcmp(value, "infinity") == 0) {
                *ret = UINT64_MAX;
                return true;
        }
        switch (row->type) {
        case NUMBER_COUNT:
                r = parse_count(value, ret);
                break;
        case NUMBER_SIZE:
                r = parse_size(value, ret);
                break;
        case NUMBER_TIME:
                r = parse_seconds(value, ret);
                break;
        case NUMBER_BOOLEAN:
                r = parse_boolean(value, &yes);
                *ret = yes;
                break;
        }
        return r >= 0 && *ret >= row->min && *ret <= row->max;
}

/* Formats the number as it would be written in a file. */
static char *number_format(const NumberRow *row, uint64_t n) {
        static const char suffixes[] = "KMGT";
        unsigned unit = 0;

        if (row->type == NUMBER_TIME && n % SEC != 0)
                return g_strdup_printf("%" PRIu64 ".%03" PRIu64, n / SEC, n % SEC / MSEC);
        if (row->type == NUMBER_TIME)
                return g_strdup_printf("%" PRIu64, n / SEC);
        while (row->type == NUMBER_SIZE && n > 0 && n % 1024 == 0 && unit < strlen(suffixes)) {
                n /= 1024;
                unit++;
        }
        return g_strdup_printf("%" PRIu64 "%.*s", n, unit > 0, unit > 0 ? &suffixes[unit - 1] : "");
}

static bool number_set(Place *p, const NumberRow *row, const char *value, uint64_t *ret) {
        static const char *const what[] = {
                [NUMBER_COUNT] = "a number",
                [NUMBER_SIZE] = "bytes, with K, M, G or T behind for a unit,",
                [NUMBER_TIME] = "seconds, such as 10 or 0.5,",
        };
        uint64_t n = 0;

        if (number_parse(row, value, &n)) {
                *ret = n;
                return true;
        }
        if (row->type == NUMBER_BOOLEAN)
                place_broken(p, "%s=%s is not taken: give yes or no", row->key, value);
        else {
                g_autofree char *min = number_format(row, row->min), *max = number_format(row, row->max);

                place_broken(p, "%s=%s is not taken: give %s from %s to %s%s", row->key, value, what[row->type], min, max,
                             row->infinity ? ", or infinity" : "");
        }
        return false;
}

/* ---- [Service] ---- */

ServiceConfig service_config_default(void) {
        ServiceConfig s = { .idle_exit_given = false };

        set_defaults(&s, service_table, G_N_ELEMENTS(service_table));
        return s;
}

KeyKind service_config_set(Place *p, void *config, const char *key, char *value) {
        const NumberRow *row = find_row(service_table, G_N_ELEMENTS(service_table), key);
        Config *c = config;

        if (!row)
                return KEY_UNKNOWN;
        if (number_set(p, row, value, number_at(&c->service, row->offset)) && row == &service_table[0])
                c->service.idle_exit_given = true;
        return KEY_SINGLE;
}

/* ---- [Limits] ---- */

Limits limits_default(void) {
        Limits l;

        set_defaults(&l, limit_table, G_N_ELEMENTS(limit_table));
        return l;
}

uint64_t limits_workers_total(uint64_t memory_size, uint64_t heap_max) {
        return CLAMP(memory_size / 2 / heap_max, 2, 32);
}

KeyKind limits_set(Place *p, void *config, const char *key, char *value) {
        const NumberRow *row = find_row(limit_table, G_N_ELEMENTS(limit_table), key);
        Config *c = config;

        if (!row)
                return KEY_UNKNOWN;
        (void) number_set(p, row, value, number_at(&c->limits, row->offset)); /* it reports errors itself */
        return KEY_SINGLE;
}

DatabaseLimits database_limits_default(void) {
        return (DatabaseLimits) {
                .statements_max = UINT64_MAX,
                .runs_max = UINT64_MAX,
                .channels_max = UINT64_MAX,
                .watches_max = UINT64_MAX,
                .workers_max = UINT64_MAX,
        };
}

KeyKind database_limits_set(Place *p, void *database, const char *key, char *value) {
        const NumberRow *row = find_row(limit_table, G_N_ELEMENTS(limit_table), key);
        DatabaseLimits *l = &((DatabaseConfig *) database)->limits;

        if (!row)
                return KEY_UNKNOWN;
        switch (row->at_database) {
        case AT_DATABASE_NEVER:
                place_broken(p, "key %s= belongs in sqlipcd.conf, not in the file of a database", key);
                break;
        case AT_DATABASE_REPLACES:
                if (number_set(p, row, value, number_at(&l->values, row->offset)))
                        l->given |= UINT64_C(1) << (row - limit_table);
                break;
        case AT_DATABASE_SHARED:
                (void) number_set(p, row, value, number_at(l, row->shared_offset));
                break;
        }
        return KEY_SINGLE;
}

bool database_limits_equal(const DatabaseLimits *a, const DatabaseLimits *b) {
        if (a->statements_max != b->statements_max || a->runs_max != b->runs_max || a->channels_max != b->channels_max ||
            a->watches_max != b->watches_max || a->workers_max != b->workers_max || a->given != b->given)
                return false;
        for (size_t i = 0; i < G_N_ELEMENTS(limit_table); i++)
                if (a->given & (UINT64_C(1) << i) &&
                    limit_of(&a->values, &limit_table[i]) != limit_of(&b->values, &limit_table[i]))
                        return false;
        return true;
}

Limits config_limits(const Config *c, const DatabaseConfig *d) {
        Limits limits = c->limits;

        for (size_t i = 0; i < G_N_ELEMENTS(limit_table); i++)
                if (d->limits.given & (UINT64_C(1) << i))
                        *number_at(&limits, limit_table[i].offset) = limit_of(&d->limits.values, &limit_table[i]);
        return limits;
}

/* ---- [Database] ---- */

void database_sizes_set_defaults(DatabaseConfig *d) {
        set_defaults(d, database_table, G_N_ELEMENTS(database_table));
}

void database_size_set(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d) {
        const NumberRow *row = find_row(database_table, G_N_ELEMENTS(database_table), key->name);

        assert(row);
        (void) number_set(p, row, value, number_at(d, row->offset)); /* it reports errors itself */
}
