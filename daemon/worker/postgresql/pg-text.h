/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The SQL of a client before the server sees it. Pure. Clients write parameters as SQLite does, and PostgreSQL
 * knows only $1, $2, ..., so they are replaced. And the words of a statement say if a client may run it.
 *
 * The scanner follows PostgreSQL's lexical rules: strings with and without escapes, quoted identifiers, dollar quotes,
 * comments in comments, casts. A placeholder is, outside of all these:
 *
 *      ?  ?NNN  :name  @name  $name  $N
 *
 * 1. "?" is always a placeholder. "??" is the character of an operator: data ?? 'key', ??|, ??&, @??.
 * 2. "@name" is a placeholder, unless "<" or "@" comes directly before it. The operators "@" (absolute value), "<@" and "@@"
 *    are followed by a space if a name follows.
 * 3. ":name" is a placeholder, and "::name" a cast. In a slice of an array, write a space: a[low : high].
 * 4. "$name$" begins a dollar quote.
 *
 * The class of a statement is that of its first word, with these exceptions. Doubt decides for the class that needs the
 * greater right.
 *
 * 1. EXPLAIN that may have the option ANALYZE has the class of the statement that it runs. Without it, it reads.
 * 2. SELECT INTO makes a table.
 * 3. WITH has that of the INSERT, UPDATE, DELETE or MERGE in it.
 * 4. A query that calls pg_notify(), lo_put() and the like is a CALL: see PG_TEXT_EFFECTS. Other functions may call them: a
 *    query has a list of those that it calls, about which the server is asked (pg-effects.h).
 *
 * A placeholder has the index that SQLite would give it. The server's numbers have no gaps, because it refuses to guess the
 * type of a parameter that is not there.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_TEXT_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_TEXT_H

#include "daemon/worker/core/sql-error.h"

typedef enum PgCommand {
        PG_COMMAND_READ,      /* SELECT and the like */
        PG_COMMAND_ROWS,      /* INSERT, UPDATE, DELETE, MERGE, also below WITH */
        PG_COMMAND_CALL,      /* CALL, DO, TRUNCATE, REFRESH, ...: it writes, and does not say what or how much */
        PG_COMMAND_SCHEMA,    /* CREATE, ALTER, DROP, GRANT, SELECT INTO, ... */
        PG_COMMAND_UNKNOWN,   /* a word that this service does not know, or none: nothing or anything */
        PG_COMMAND_SAVEPOINT, /* SAVEPOINT, RELEASE, ROLLBACK TO */
        PG_COMMAND_REFUSED,   /* it would change the session or end the transaction */
} PgCommand;

/* Functions of the server whose effect comes with the commit, and that it lets a transaction call that only reads. Such a
 * transaction is rolled back, so they would succeed without an effect. The server itself refuses nextval() and setval()
 * there; others take effect at once, as pg_cancel_backend(). lo_open() alone changes nothing. As an array of the server. */
#define PG_TEXT_EFFECTS                                                                                                   \
        "{lo_creat,lo_create,lo_from_bytea,lo_import,lo_put,lo_truncate,lo_truncate64,lo_unlink,lowrite,"                 \
        "pg_logical_emit_message,pg_notify}"

/* A part of the SQL that was replaced. */
typedef struct PgPiece {
        size_t from, from_size; /* in the SQL of the client */
        size_t to, to_size;     /* in that of the server */
} PgPiece;

typedef struct PgName {
        char *name;           /* owned; with its prefix; NULL: it is "?", or the placeholder does not occur */
        unsigned number;      /* the server's, from 1; 0: the placeholder does not occur */
} PgName;

typedef struct PgText {
        char *sql;            /* owned: for the server */
        size_t sql_size, sql_capacity;
        PgPiece *pieces;      /* owned, in order */
        size_t n_pieces;
        PgName *names;        /* owned: of the parameters, in the order of SQLite's indexes */
        unsigned n_names;     /* the largest index */
        unsigned n_numbers;   /* of the server's parameters */
        PgCommand command;
        char word[24];        /* that has decided the command, in capitals */
        bool locks;           /* it may take an advisory lock, which the end of a transaction does not release */
        bool sets;            /* it may change the session for the statements after it, as any CALL may */
        char *calls;          /* owned: functions that a query calls, and perhaps other names before "(", without schemas, as
                               * an array of the server; NULL: only usual ones of the server */
        size_t calls_size;
} PgText;

/* Reads `sql`. `parameters_max` limits the indexes. EmptyStatement, SeveralStatements, Sql, LimitsExceeded, OutOfMemory. */
bool pg_text_read(const char *sql, size_t sql_size, unsigned parameters_max, PgText *ret, SqlError *error);

void pg_text_done(PgText *text);

/* The class of a command that the server says it has carried out. `tag` is the text of its answer, for example
 * "INSERT 0 1". */
PgCommand pg_text_command(const char *tag);

/* Finds the index, from 0, of the parameter `name`, which has its prefix or none. -ENOENT; -ENOTUNIQ: without a prefix the
 * name fits several. */
int pg_text_find(const PgText *text, const char *name);

/* Turns the server's position, which counts characters from 1, into an offset in bytes into the client's SQL. -1: there is
 * none. */
int32_t pg_text_offset(const PgText *text, long position);

#endif
