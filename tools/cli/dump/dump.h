/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies the open database, or some of its tables, into a sink: SQL text (dump-text.h), or an SQLite file (backup.h).
 *
 *      schema.c: the objects ──> snapshot.c: one SELECT of all tables ──> dump.c ──> DumpSink
 *
 * Statements and rows are the same, and in the same order, as those of sqlite3's .dump.
 */
#ifndef SQLIPC_TOOLS_CLI_DUMP_DUMP_H
#define SQLIPC_TOOLS_CLI_DUMP_DUMP_H

#include "tools/cli/dump/snapshot.h"
#include "tools/terminal/value.h"

typedef struct DumpHeader {
        int64_t application_id, user_version, page_size, auto_vacuum;
        const char *encoding;
} DumpHeader;

/* Each function returns 0, or a negative code that ends the dump, after reporting the error. */
typedef struct DumpSink {
        int (*begin)(void *userdata, const DumpHeader *header);
        /* SQL without ";", but with the newline or the end of a comment that it needs before one. */
        int (*statement)(void *userdata, const char *sql);
        /* Values [first, first + n) of a row; the row is complete after table->n_values of them. */
        int (*values)(void *userdata, const SnapshotTable *table, const Value *values, size_t first, size_t n);
} DumpSink;

typedef struct DumpOptions {
        const char *pattern; /* of LIKE: the matching tables, with their indexes and triggers; NULL: everything */
        bool with_rowids;    /* dump the rowids of tables whose rowid is not a column */
} DumpOptions;

/** Copies. Returns 0, or an error, which has been reported: -ESTALE if the schema changed meanwhile, an error as of
 * query_run(), or the sink's. If limits of the service do not allow one transaction, a warning on stderr says so, and the
 * dump goes on. */
int dump_run(Shell *shell, const DumpOptions *options, const DumpSink *sink, void *userdata);

/** The limits of the open database that restrict one statement over many tables. */
SnapshotLimits dump_limits(Shell *shell);

#endif
