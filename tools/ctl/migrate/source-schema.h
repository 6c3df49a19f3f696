/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The schema of the database that is migrated, which has SQLite's dialect, as the service shows it. */
#ifndef SQLIPC_TOOLS_CTL_MIGRATE_SOURCE_SCHEMA_H
#define SQLIPC_TOOLS_CTL_MIGRATE_SOURCE_SCHEMA_H

#include <glib.h>
#include <stdbool.h>

#include "tools/ctl/migrate/side.h"

typedef struct SourceColumn {
        char *name, *type;   /* owned; type: as declared, "" for none */
        char *default_sql;   /* owned; NULL: none */
        bool not_null, is_computed;
        bool ignores_case;   /* COLLATE NOCASE */
        bool ignores_blanks; /* COLLATE RTRIM: those at the end */
        int key;             /* its position in the PRIMARY KEY, from 1; 0: none */
} SourceColumn;

typedef struct SourceIndexColumn {
        char *name;          /* owned; NULL: an expression */
        char *collation;     /* owned: "BINARY", "NOCASE", "RTRIM" */
        bool descending;
} SourceIndexColumn;

typedef struct SourceIndex {
        char *name, *sql;    /* owned; sql: NULL for that of a constraint */
        bool is_unique, is_partial, is_key;
        GArray *columns;     /* of SourceIndexColumn */
} SourceIndex;

typedef struct SourceReference {
        char *parent;                  /* owned */
        GPtrArray *from, *to;          /* of char *; to: empty for the PRIMARY KEY of the parent */
        char *on_update, *on_delete;   /* owned */
        bool is_deferred;              /* DEFERRABLE INITIALLY DEFERRED: checked at COMMIT */
} SourceReference;

typedef struct SourceTable {
        char *name, *sql;    /* owned */
        GArray *columns;     /* of SourceColumn */
        GPtrArray *indexes;  /* of SourceIndex */
        GPtrArray *references; /* of SourceReference: its foreign keys */
        bool is_virtual;     /* or belongs to a virtual table */
        bool is_clustered;   /* WITHOUT ROWID */
        bool has_checks;
        char *conflict;      /* owned; REPLACE, IGNORE, FAIL or ROLLBACK of an ON CONFLICT clause; NULL: none */
        int rowid_column;    /* the INTEGER PRIMARY KEY; -1: none */
        const char *rowid;   /* a name for the rowid, if no column has it; NULL */
        int64_t sequence;    /* of AUTOINCREMENT: the largest rowid ever used; 0 */
} SourceTable;

typedef struct SourceObject {
        char *type, *name, *sql; /* owned; "view" or "trigger" */
} SourceObject;

typedef struct SourceSchema {
        GPtrArray *tables;   /* of SourceTable */
        GPtrArray *objects;  /* of SourceObject, in the order in which they were made */
        int64_t user_version, application_id;
        char *fingerprint;   /* owned; differs from that of any other schema */
} SourceSchema;

/** Reads the schema. Returns 0, or an error, which has been printed. */
int source_schema_read(const Side *side, SourceSchema **ret);
/** NULL is allowed. */
void source_schema_free(SourceSchema *schema);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SourceSchema, source_schema_free)

/** The fingerprint that the schema has now. The caller frees it. Returns 0, or an error, which has been printed. */
int source_schema_fingerprint(const Side *side, char **ret);

#endif
