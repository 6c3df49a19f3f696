/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The objects of the open database, as one read transaction of the service saw them: in the order in which they were made,
 * with the columns of tables. For .dump, .backup and .describe.
 *
 * A database of which only parts are exposed shows them as virtual tables of the module SCHEMA_EXPOSED_MODULE.
 */
#ifndef SQLIPC_TOOLS_CLI_DUMP_SCHEMA_H
#define SQLIPC_TOOLS_CLI_DUMP_SCHEMA_H

#include "tools/cli/shell/shell.h"

/* Occurs in sqlite_schema and in PRAGMA module_list only if the database is exposed in part. */
#define SCHEMA_EXPOSED_MODULE "exposed"

/* Values of SchemaColumn.hidden, as in PRAGMA table_xinfo. */
enum {
        SCHEMA_COLUMN_PLAIN = 0,
        SCHEMA_COLUMN_HIDDEN = 1,    /* of a virtual table */
        SCHEMA_COLUMN_COMPUTED = 2,  /* GENERATED, virtual */
        SCHEMA_COLUMN_STORED = 3,    /* GENERATED, stored */
};

typedef struct SchemaColumn {
        char *name, *type;   /* owned */
        int hidden;
        int key;             /* its position in the PRIMARY KEY, from 1; 0: none */
} SchemaColumn;

typedef struct SchemaObject {
        char *type, *name, *table; /* owned; "table", "index", "view", "trigger"; table: the table it belongs to */
        char *sql;                 /* owned; NULL: an index of a constraint */
        bool wanted;               /* the pattern matches it, its table, or the virtual table that it belongs to */
        bool is_stored;            /* a table with its own pages: not a view, not a virtual table */
        const char *rowid;         /* a name of its rowid, if that is not a column; NULL: it has none, or no free name */
        GArray *columns;           /* of SchemaColumn; of stored tables */
} SchemaObject;

typedef struct Schema {
        GPtrArray *objects;        /* of SchemaObject */
        bool is_exposed;           /* only a part of the database is exposed */
} Schema;

/** Reads the schema. `pattern`: as of LIKE, "\" escapes; NULL: all objects are wanted. Returns as query_run() does, which
 * reports errors. */
int schema_read(Shell *shell, const char *pattern, Schema **ret);
/** NULL is allowed. Returns NULL. */
Schema *schema_free(Schema *schema);
void schema_freep(Schema **schema);

/** Returns 1: only parts of the open database are exposed; 0: all of it is; or an error as query_run() does. */
int schema_is_exposed(Shell *shell);

/** Appends a name as sqlite3's shell writes it: in "..." if it is not a plain word. */
void schema_append_name(GString *sql, const char *name);
/** Appends a name in "...", always. */
void schema_append_quoted(GString *sql, const char *name);
/** Appends text as an SQL literal. */
void schema_append_literal(GString *sql, const char *text);
/** Appends an SQL expression whose value is this name. It can be sent also if the name is not UTF-8. */
void schema_append_value(GString *sql, const char *name);

/** True if SQL that has the name can be sent. Over D-Bus it is a string, so it may have neither bytes that are not UTF-8 nor
 * noncharacters. */
bool schema_name_is_sendable(const char *name);
/** Says that `table` cannot be read because its name, or that of a column, cannot be sent. Returns -EILSEQ. */
int schema_complain_of_name(Shell *shell, const char *table);

#endif
