/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Pure. The table of PRAGMAs: what the service does with each of them (sqlipc-sql(7)). SQLite applies many
 * settings when it compiles the PRAGMA, and to a connection that others share. So only those that read reach it, and, on the
 * connection of a client's own, settings that change nothing for others.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_PRAGMA_H
#define SQLIPC_DAEMON_WORKER_SQLITE_PRAGMA_H

#include <stdbool.h>

typedef enum PragmaUse {
        PRAGMA_RUNS,          /* SQLite runs it: it only reads, and an argument names an object */
        PRAGMA_READS,         /* the argument is ignored: the value that holds is read */
        PRAGMA_ANSWERS,       /* rule->answer returns its columns and rows */
        PRAGMA_DATABASE_LIST, /* as PRAGMA_ANSWERS, but of a pin SQLite's rows without the names of files */
        PRAGMA_IGNORED,       /* it does nothing, and returns nothing */
        PRAGMA_REFUSED,       /* for rule->reason */
        PRAGMA_NEEDS_OFF,     /* ignored if the argument is OFF, which holds; otherwise refused for rule->reason */
        PRAGMA_PIN_UNLESS_OFF, /* a setting of the connection: it runs on a pin, and is ignored if it is OFF, which holds */
        PRAGMA_PIN_UNLESS_ON, /* the same for ON */
        PRAGMA_NUMBER,        /* sets a number in the file, for the use of its programs */
        PRAGMA_BUSY_TIMEOUT,
        PRAGMA_DEFER_FOREIGN_KEYS,
        PRAGMA_FOREIGN_KEYS,
        PRAGMA_QUERY_ONLY,
        PRAGMA_SECURE_DELETE,
        PRAGMA_SYNCHRONOUS,
        PRAGMA_WRITABLE_SCHEMA,
} PragmaUse;

typedef struct PragmaRule {
        const char *name;
        PragmaUse without;    /* its use without an argument */
        PragmaUse with;       /* and with one */
        const char *answer;   /* a SELECT, for PRAGMA_ANSWERS */
        const char *reason;   /* the end of the sentence that refuses it */
} PragmaRule;

/* NULL: SQLite does not know the PRAGMA. It does nothing then, and returns nothing. */
const PragmaRule *pragma_find(const char *name);

/* Reads an argument as SQLite reads a number (sqlite3GetInt32()): one that does not fit is 0, and 0x begins hexadecimal
 * digits. */
int pragma_integer(const char *argument);

/* Reads an argument as SQLite reads one that is ON or OFF. */
bool pragma_is_on(const char *argument);

#endif
