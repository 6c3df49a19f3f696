/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recognizes statements about transactions, see sql-control.h. */
#include "tools/cli/sql/sql-control.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "tools/cli/sql/sql-scan.h"

typedef struct Words {
        SqlDialect dialect;
        const char *sql;
        size_t size, position;
        SqlToken token; /* the next one; .size 0: the end */
} Words;

static void advance(Words *words) {
        do
                if (!sql_scan_next(words->dialect, words->sql, words->size, &words->position, &words->token))
                        words->token = (SqlToken) { .type = SQL_SPACE };
        while (words->token.size > 0 && (words->token.type == SQL_SPACE || words->token.type == SQL_COMMENT));
}

static bool take(Words *words, const char *word) {
        if (words->token.size == 0 || !sql_token_is(words->sql, &words->token, word))
                return false;
        advance(words);
        return true;
}

static bool at_end(const Words *words) {
        return words->token.size == 0 || words->token.type == SQL_SEMICOLON;
}

/* Takes a name, with its quotes. */
static char *take_name(Words *words) {
        const SqlToken token = words->token;

        if (token.type != SQL_NAME && token.type != SQL_QUOTED && token.type != SQL_STRING && token.type != SQL_KEYWORD)
                return NULL;
        advance(words);
        return g_strndup(words->sql + token.start, token.size);
}

/* TRANSACTION may have a name, which SQLite ignores. */
static void skip_transaction(Words *words) {
        if (take(words, "TRANSACTION") && words->token.type == SQL_NAME)
                g_free(take_name(words));
}

static SqlControl begin(Words *words) {
        SqlControl control = SQL_CONTROL_BEGIN;

        if (take(words, "IMMEDIATE") || take(words, "EXCLUSIVE"))
                control = SQL_CONTROL_BEGIN_WRITE;
        else
                (void) take(words, "DEFERRED");
        (void) take(words, "TRANSACTION");
        if (control == SQL_CONTROL_BEGIN && take(words, "READ"))
                return take(words, "ONLY") ? SQL_CONTROL_BEGIN_READ : SQL_CONTROL_NONE;
        if (words->token.type == SQL_NAME)
                g_free(take_name(words));
        return control;
}

static SqlControl savepoint(Words *words, SqlControl control, char **ret_name) {
        if (control != SQL_CONTROL_SAVEPOINT)
                (void) take(words, "SAVEPOINT");
        *ret_name = take_name(words);
        return *ret_name ? control : SQL_CONTROL_NONE;
}

static SqlControl rollback(Words *words, char **ret_name) {
        skip_transaction(words);
        return take(words, "TO") ? savepoint(words, SQL_CONTROL_ROLLBACK_TO, ret_name) : SQL_CONTROL_ROLLBACK;
}

static SqlControl control_of(Words *words, char **ret_name) {
        if (take(words, "BEGIN"))
                return begin(words);
        if (take(words, "COMMIT") || take(words, "END")) {
                skip_transaction(words);
                return SQL_CONTROL_COMMIT;
        }
        if (take(words, "ROLLBACK"))
                return rollback(words, ret_name);
        if (take(words, "SAVEPOINT"))
                return savepoint(words, SQL_CONTROL_SAVEPOINT, ret_name);
        return take(words, "RELEASE") ? savepoint(words, SQL_CONTROL_RELEASE, ret_name) : SQL_CONTROL_NONE;
}

SqlControl sql_control_of(SqlDialect dialect, const char *sql, char **ret_name) {
        Words words = { .dialect = dialect, .sql = sql, .size = strlen(sql) };
        SqlControl control;

        *ret_name = NULL;
        advance(&words);
        control = control_of(&words, ret_name);
        if (control != SQL_CONTROL_NONE && at_end(&words))
                return control;
        g_clear_pointer(ret_name, g_free);
        return SQL_CONTROL_NONE;
}

bool sql_control_copies_in(const char *sql) {
        Words words = { .dialect = SQL_DIALECT_POSTGRESQL, .sql = sql, .size = strlen(sql) };

        advance(&words);
        if (!take(&words, "COPY"))
                return false;
        while (words.token.size > 0)
                if (take(&words, "FROM")) {
                        if (sql_token_is(words.sql, &words.token, "STDIN"))
                                return true;
                } else
                        advance(&words);
        return false;
}
