/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the open database consists of, as one read transaction of the service saw it: its objects, in the order in which they
 * were made, with the columns of its tables. For .dump, .backup and .describe.
 *
 * A database of which only parts are exposed shows them as virtual tables of the module SCHEMA_EXPOSED_MODULE.
 */
#ifndef CLI_SCHEMA_H
#define CLI_SCHEMA_H

#include "shell.h"

/* Stands in sqlite_schema and in PRAGMA module_list where the database is exposed in part, and nowhere else. */
#define SCHEMA_EXPOSED_MODULE "exposed"

/* Those of SchemaColumn.hidden, as PRAGMA table_xinfo has them. */
enum {
        SCHEMA_COLUMN_PLAIN = 0,
        SCHEMA_COLUMN_HIDDEN = 1,    /* of a virtual table */
        SCHEMA_COLUMN_COMPUTED = 2,  /* GENERATED, virtual */
        SCHEMA_COLUMN_STORED = 3,    /* GENERATED, stored */
};

typedef struct SchemaColumn {
        char *name, *type;   /* owned */
        int hidden;
        int key;             /* its place in the PRIMARY KEY, from 1; 0: none */
} SchemaColumn;

typedef struct SchemaObject {
        char *type, *name, *table; /* owned; "table", "index", "view", "trigger"; whose it is */
        char *sql;                 /* owned; NULL: an index that a constraint made */
        bool wanted;               /* the pattern matches it, its table, or the virtual table that it belongs to */
        bool is_stored;            /* a table with pages of its own: no view, no virtual table */
        const char *rowid;         /* what its rowid is called, where no column is it; NULL: none, or no name for it */
        GArray *columns;           /* of SchemaColumn; of stored tables */
} SchemaObject;

typedef struct Schema {
        GPtrArray *objects;        /* of SchemaObject */
        bool is_exposed;           /* this is not the whole database */
} Schema;

/** Reads it. `pattern`: as of LIKE, "\" escapes; NULL: all objects are wanted. As query_run(), which tells failures. */
int schema_read(Shell *shell, const char *pattern, Schema **ret);
/** NULL is allowed. Returns NULL. */
Schema *schema_free(Schema *schema);
void schema_freep(Schema **schema);

/** 1: only parts of the open database are exposed; 0: all of it; or as query_run(). */
int schema_is_exposed(Shell *shell);

/** Appends a name as sqlite3's shell writes it: in "..." where it is no bare word. */
void schema_append_name(GString *sql, const char *name);
/** Appends a name in "...", always. */
void schema_append_quoted(GString *sql, const char *name);
/** Appends text as an SQL literal. */
void schema_append_literal(GString *sql, const char *text);

#endif
