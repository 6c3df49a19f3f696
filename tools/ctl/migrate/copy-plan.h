/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The statements that make a copy of the source's schema in the target, and those that read and write the rows. Pure.
 *
 *      source-schema ──> plan_new() ──> scan: the values in the columns ──> plan_write() for a dialect
 *
 * copy-plan-sqlite.c writes them in SQLite's dialect, for SQLite itself and for rqlite; copy-plan-postgresql.c in that of
 * PostgreSQL.
 */
#ifndef SQLIPC_TOOLS_CTL_MIGRATE_COPY_PLAN_H
#define SQLIPC_TOOLS_CTL_MIGRATE_COPY_PLAN_H

#include "tools/ctl/migrate/column-choice.h"
#include "tools/ctl/migrate/source-schema.h"

typedef struct PlanColumn {
        const SourceColumn *source; /* borrowed; NULL: the rowid of a table in which it is no column */
        ColumnFound found;
        ColumnKind kind;
        const char *note;           /* static; NULL: none */
} PlanColumn;

typedef struct PlanTable {
        const SourceTable *source;  /* borrowed */
        GArray *columns;            /* of PlanColumn: those that are copied, in the order of all statements below */
        int key;                    /* the column of the rowid, in whose order rows are copied; -1: none */
        char *create, *drop;        /* owned, as all texts below */
        char *read, *read_after;    /* in the source: all rows; rows after a key, in its order; NULL if there is no key */
        char *read_copy, *last_key; /* in the target: all rows; the largest key, NULL if there is no key */
        char *insert;
} PlanTable;

/* An object that is made after the rows. */
typedef struct PlanObject {
        const char *kind;           /* "index", "unique", "foreign-key", "sequence", "view", "trigger", "header" */
        char *name;                 /* owned; unique in its kind */
        char *before, *sql;         /* owned; before: removes the object of an earlier attempt; NULL */
        const char *table, *parent; /* borrowed; made again after one of these tables is dropped; no table: after any is */
        bool is_required;           /* without it the copy is not complete */
} PlanObject;

typedef struct Dialect Dialect;
extern const Dialect dialect_sqlite, dialect_rqlite, dialect_postgresql;

typedef struct PlanOptions {
        const Dialect *dialect;
        bool with_dates;            /* see column_choose() */
        bool keep_case;             /* names keep their capitals */
        char **types;               /* "TABLE.COLUMN=TYPE"; NULL: none */
} PlanOptions;

typedef struct Plan {
        const PlanOptions *options; /* borrowed */
        const SourceSchema *schema; /* borrowed */
        GPtrArray *tables;          /* of PlanTable; parents of foreign keys first */
        GPtrArray *objects;         /* of PlanObject, in the order in which they are made */
        GPtrArray *omitted;         /* of char *: lines about things that are not copied */
        GPtrArray *obstacles;       /* of char *: why the copy cannot be made */
} Plan;

struct Dialect {
        const char *product;        /* its name, for people */
        const char *names_sql;      /* the names of all tables and views of the target */
        bool has_types;             /* a column has one type */
        bool has_rowids;            /* a rowid is copied even if it is no column */
        bool keeps_nul;             /* in texts */
        bool keeps_any_bytes;       /* in texts: also those that are not UTF-8 */
        void (*write)(Plan *plan);
};

Plan *plan_new(const SourceSchema *schema, const PlanOptions *options);
void plan_free(Plan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Plan, plan_free)

/** Chooses the types of the columns by `found`, and writes the statements. */
void plan_write(Plan *plan);

/** The table of the source with this name, in any case of letters; NULL if there is none that is copied. */
const SourceTable *plan_find_source(const Plan *plan, const char *name);

/** Adds a line to the list of things that are not copied. */
void plan_omit(Plan *plan, const char *format, ...) G_GNUC_PRINTF(2, 3);
/** Adds an object, and takes its texts. */
void plan_add(Plan *plan, const PlanObject *object);

/** Appends a name in "...". */
void plan_append_name(GString *sql, const char *name);
/** Appends a text as a literal. */
void plan_append_literal(GString *sql, const char *text);

#endif
