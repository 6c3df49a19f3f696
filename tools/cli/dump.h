/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies the open database, or some of its tables, into a sink: SQL text (dump-text.h), or an SQLite file (backup.h).
 *
 *      schema.c: what there is ──> snapshot.c: one SELECT of it all ──> dump.c ──> DumpSink
 *
 * Statements and rows come in the order in which sqlite3's .dump writes them, and are those that it writes.
 */
#ifndef CLI_DUMP_H
#define CLI_DUMP_H

#include "snapshot.h"
#include "value.h"

typedef struct DumpHeader {
        int64_t application_id, user_version, page_size;
        const char *encoding;
} DumpHeader;

/* Each returns 0, or a negative code that ends the dump; and has told why. */
typedef struct DumpSink {
        int (*begin)(void *userdata, const DumpHeader *header);
        /* SQL without ";", but with the newline or the end of a comment that it needs before one. */
        int (*statement)(void *userdata, const char *sql);
        /* Values [first, first + n) of the next row, or the one under way: it is complete with table->n_values of them. */
        int (*values)(void *userdata, const SnapshotTable *table, const Value *values, size_t first, size_t n);
} DumpSink;

typedef struct DumpOptions {
        const char *pattern; /* of LIKE: those tables, with what belongs to them; NULL: everything */
        bool with_rowids;    /* of tables whose rowid is no column */
} DumpOptions;

/** Copies. 0; or what failed, which was told: -ESTALE where the schema changed in between, as query_run(), or the sink's.
 * Where limits of the service do not let all of it be read in one transaction that is said on stderr, and no failure. */
int dump_run(Shell *shell, const DumpOptions *options, const DumpSink *sink, void *userdata);

/** Limits of the open database that bound one statement of many tables. */
SnapshotLimits dump_limits(Shell *shell);

#endif
