/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What errors of SQLite say about names, where these are in the SQL, and words of other systems for our commands. Pure. */
#ifndef CLI_SQL_MISTAKE_H
#define CLI_SQL_MISTAKE_H

typedef enum MistakeKind {
        MISTAKE_NONE,
        MISTAKE_TABLE,
        MISTAKE_COLUMN,
        MISTAKE_FUNCTION,
} MistakeKind;

/** Which kind of name `message` says is unknown; `*ret_name`: the name, without its schema or table, to be freed. NONE: it
 * is about something else. */
MistakeKind sql_mistake_read(const char *message, char **ret_name);

/** Where `name` is in `sql`, for errors to which SQLite gives no place: the first bytes of a token that is this name; of a
 * table, where a table is expected. -1: nowhere. */
int sql_mistake_find(MistakeKind kind, const char *name, const char *sql);

/** Which command does what the statement asks for, if it begins as in other systems: SHOW TABLES, DESC, USE. NULL: none. */
const char *sql_mistake_command(const char *sql);

#endif
