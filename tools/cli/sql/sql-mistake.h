/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the unknown name in an error of SQLite, its position in the SQL, and our command for words of other systems.
 * Pure. */
#ifndef SQLIPC_TOOLS_CLI_SQL_SQL_MISTAKE_H
#define SQLIPC_TOOLS_CLI_SQL_SQL_MISTAKE_H

typedef enum MistakeKind {
        MISTAKE_NONE,
        MISTAKE_TABLE,
        MISTAKE_COLUMN,
        MISTAKE_FUNCTION,
} MistakeKind;

/** Returns the kind of name that `message` reports as unknown; `*ret_name`: the name, without its schema or table, which the
 * caller frees. NONE: the message is about something else. */
MistakeKind sql_mistake_read(const char *message, char **ret_name);

/** Finds `name` in `sql`, for errors without a position: returns the start of the first token with this name; for a table,
 * only at a position that expects a table. -1: not found. */
int sql_mistake_find(MistakeKind kind, const char *name, const char *sql);

/** Returns a hint at our command if the statement begins like one of other systems: SHOW TABLES, DESC, USE. NULL: none. */
const char *sql_mistake_command(const char *sql);

#endif
