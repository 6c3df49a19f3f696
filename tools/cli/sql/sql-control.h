/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recognizes the statements that begin, divide and end transactions: the shell carries them out. Pure. */
#ifndef SQLIPC_TOOLS_CLI_SQL_SQL_CONTROL_H
#define SQLIPC_TOOLS_CLI_SQL_SQL_CONTROL_H

#include <stdbool.h>

#include "tools/cli/sql/sql-scan.h"

typedef enum SqlControl {
        SQL_CONTROL_NONE,        /* another statement, or not SQLite's syntax */
        SQL_CONTROL_BEGIN,       /* BEGIN, BEGIN DEFERRED */
        SQL_CONTROL_BEGIN_WRITE, /* BEGIN IMMEDIATE, BEGIN EXCLUSIVE */
        SQL_CONTROL_BEGIN_READ,  /* BEGIN READ ONLY, which SQLite does not know */
        SQL_CONTROL_COMMIT,      /* also END */
        SQL_CONTROL_ROLLBACK,
        SQL_CONTROL_SAVEPOINT,
        SQL_CONTROL_RELEASE,
        SQL_CONTROL_ROLLBACK_TO,
} SqlControl;

/** `*ret_name`: the name of a savepoint as it is written, which the caller frees; else NULL. */
SqlControl sql_control_of(SqlDialect dialect, const char *sql, char **ret_name);

/** Returns true for COPY ... FROM STDIN of PostgreSQL: the lines after it are data, not statements. */
bool sql_control_copies_in(const char *sql);

#endif
