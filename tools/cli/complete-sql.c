/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where in SQL a cursor is, see complete-sql.h. Pure.
 *
 * The tokens of the statement, without blanks and comments, with one of no size for the cursor: the word that is typed
 * there is none of them. What follows FROM, JOIN, INTO and UPDATE, and in a FROM clause a comma, is a table. Parentheses
 * are told apart for commas alone: a name of an inner query is offered in the outer one too, which is more than SQL
 * allows, and no harm.
 */
#include "complete-sql.h"

#include <string.h>

#include "sql-name.h"
#include "sql-scan.h"

typedef struct Statement {
        const char *text;
        GArray *tokens; /* SqlToken */
        size_t cursor;  /* which of them is the cursor's */
} Statement;

typedef struct Table {
        char *name, *alias; /* owned; .alias is .name where there is none */
} Table;

static void clear_table(void *table) {
        g_free(((Table *) table)->name);
        g_free(((Table *) table)->alias);
}

/* NULL past either end. */
static const SqlToken *token_at(const Statement *statement, size_t i) {
        return i < statement->tokens->len ? &g_array_index(statement->tokens, SqlToken, i) : NULL;
}

static bool is_word(const Statement *statement, size_t i, const char *word) {
        const SqlToken *token = token_at(statement, i);

        if (!token || (token->type != SQL_KEYWORD && token->type != SQL_OPERATOR))
                return false;
        return sql_token_is(statement->text, token, word);
}

static bool is_any_of(const Statement *statement, size_t i, const char *const *words) {
        for (; *words; words++)
                if (is_word(statement, i, *words))
                        return true;
        return false;
}

static bool is_name(const Statement *statement, size_t i) {
        const SqlToken *token = token_at(statement, i);

        return token && (token->type == SQL_NAME || token->type == SQL_QUOTED);
}

/* A name without its quotes; what is doubled in it stands for one. `size`: without the closing quote. */
static char *unquote(const char *text, size_t size, char quote) {
        GString *name = g_string_sized_new(size);

        for (size_t i = 0; i < size; i++) {
                g_string_append_c(name, text[i]);
                if (text[i] == quote && i + 1 < size && text[i + 1] == quote)
                        i++;
        }
        return g_string_free(name, false);
}

static char *name_of(const Statement *statement, size_t i) {
        const SqlToken *token = token_at(statement, i);
        const char *text = statement->text + token->start;

        if (token->type != SQL_QUOTED)
                return g_strndup(text, token->size);
        return unquote(text + 1, token->size - (token->open ? 1 : 2), *text == '[' ? ']' : *text);
}

/* ---- The statement ------------------------------------------------------------------------------------------------ */

static bool counts(const SqlToken *token) {
        return token->type != SQL_SPACE && token->type != SQL_COMMENT;
}

/* The tokens before the cursor, of its statement. The last one may be the word that is typed: false where the cursor is in
 * something that has no names. */
static bool read_before(Statement *statement, size_t cursor, SqlToken *ret_word) {
        size_t position = 0;
        SqlToken token = {};

        *ret_word = (SqlToken) { .start = cursor, .type = SQL_SPACE };
        while (sql_scan_next(statement->text, cursor, &position, &token)) {
                if (token.type == SQL_SEMICOLON)
                        g_array_set_size(statement->tokens, 0);
                else if (position >= cursor && (token.type == SQL_NAME || token.type == SQL_KEYWORD))
                        *ret_word = token;
                else if (position >= cursor && token.open && token.type == SQL_QUOTED)
                        *ret_word = token;
                else if (position >= cursor && (token.open || token.type == SQL_COMMENT || token.type == SQL_NUMBER ||
                                                token.type == SQL_PARAMETER || token.type == SQL_BACKSLASH))
                        return false;
                else if (counts(&token))
                        g_array_append_val(statement->tokens, token);
        }
        return true;
}

static void read_after(Statement *statement, size_t cursor) {
        size_t position = cursor, size = strlen(statement->text);
        SqlToken token = { .type = SQL_OTHER, .start = cursor };

        statement->cursor = statement->tokens->len;
        g_array_append_val(statement->tokens, token);
        while (sql_scan_next(statement->text, size, &position, &token) && token.type != SQL_SEMICOLON)
                if (counts(&token))
                        g_array_append_val(statement->tokens, token);
}

/* ---- Tables ------------------------------------------------------------------------------------------------------- */

typedef struct TableReader {
        const Statement *statement;
        GArray *tables;      /* Table */
        bool expected;       /* a table comes next */
        bool at_cursor;      /* it does where the cursor is */
        unsigned depth;      /* of parentheses */
        unsigned cursor_depth;
        uint64_t from;       /* a bit for each depth: a FROM clause goes on there */
} TableReader;

static uint64_t depth_bit(const TableReader *reader) {
        return reader->depth < 64 ? (uint64_t) 1 << reader->depth : 0;
}

/* [schema.]name [[AS] alias]. Returns the last token of it. */
static size_t read_table(TableReader *reader, size_t i) {
        const Statement *statement = reader->statement;
        Table table;

        reader->expected = false;
        if (is_word(statement, i + 1, ".")) {
                reader->at_cursor = reader->at_cursor || i + 2 == statement->cursor;
                i += 2;
        }
        if (!is_name(statement, i))
                return i;
        table.name = name_of(statement, i);
        if (is_word(statement, i + 1, "AS") && is_name(statement, i + 2))
                i += 2;
        else if (is_name(statement, i + 1))
                i++;
        table.alias = name_of(statement, i);
        g_array_append_val(reader->tables, table);
        return i;
}

/* A keyword or an operator: whether a table comes next. */
static void read_word(TableReader *reader, size_t i) {
        static const char *const before_table[] = { "FROM", "JOIN", "INTO", "UPDATE", NULL };
        static const char *const after_from[] = {
                "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "WINDOW", "UNION", "EXCEPT", "INTERSECT", "SELECT", "SET",
                "VALUES", "RETURNING", NULL,
        };
        const Statement *statement = reader->statement;

        if (is_any_of(statement, i, before_table)) {
                reader->expected = true;
                if (is_word(statement, i, "FROM"))
                        reader->from |= depth_bit(reader);
        } else if (is_word(statement, i, "(")) {
                reader->depth++;
                reader->from = reader->expected ? reader->from | depth_bit(reader) : reader->from & ~depth_bit(reader);
        } else if (is_word(statement, i, ")")) {
                reader->depth -= reader->depth > 0;
                reader->expected = false;
        } else if (is_word(statement, i, ","))
                reader->expected = (reader->from & depth_bit(reader)) != 0;
        else {
                reader->expected = false;
                if (is_any_of(statement, i, after_from))
                        reader->from &= ~depth_bit(reader);
        }
}

static void read_tables(TableReader *reader) {
        for (size_t i = 0; i < reader->statement->tokens->len; i++) {
                if (i == reader->statement->cursor) {
                        reader->at_cursor = reader->expected;
                        reader->cursor_depth = reader->depth;
                        reader->expected = false;
                } else if (reader->expected && is_name(reader->statement, i))
                        i = read_table(reader, i);
                else
                        read_word(reader, i);
        }
}

/* Takes `name`. */
static void add_once(GPtrArray *names, char *name) {
        if (g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL))
                g_free(name);
        else
                g_ptr_array_add(names, name);
}

/* WITH name AS (, WITH name(columns) AS ( */
static void add_common_tables(const Statement *statement, GPtrArray *names) {
        static const char *const before[] = { "WITH", "RECURSIVE", ",", NULL };

        for (size_t i = 0; i < statement->tokens->len; i++) {
                size_t next = i + 1;

                if (!is_name(statement, i) || !is_any_of(statement, i - 1, before))
                        continue;
                if (is_word(statement, next, "("))
                        while (next < statement->tokens->len && !is_word(statement, next++, ")"))
                                ;
                if (!is_word(statement, next, "AS"))
                        continue;
                while (is_word(statement, ++next, "NOT") || is_word(statement, next, "MATERIALIZED"))
                        ;
                if (is_word(statement, next, "("))
                        add_once(names, name_of(statement, i));
        }
}

/* CAST(value AS type): what follows AS is no name. */
static bool is_cast(const Statement *statement, size_t as) {
        size_t depth = 0;

        for (size_t i = as; i-- > 0;)
                if (is_word(statement, i, ")"))
                        depth++;
                else if (is_word(statement, i, "(") && depth-- == 0)
                        return i > 0 && is_word(statement, i - 1, "CAST");
        return false;
}

/* WITH table(name, name) AS, value AS name, (SELECT ...) AS name */
static void add_made_names(const Statement *statement, GPtrArray *names) {
        for (size_t i = 0; i < statement->tokens->len; i++) {
                bool is_list = is_word(statement, i, "(") && i > 1 && is_name(statement, i - 1) &&
                               (is_word(statement, i - 2, "WITH") || is_word(statement, i - 2, "RECURSIVE"));

                if (is_word(statement, i, "AS") && is_name(statement, i + 1) && !is_cast(statement, i))
                        add_once(names, name_of(statement, i + 1));
                for (size_t k = i + 1; is_list && k < statement->tokens->len && !is_word(statement, k, ")"); k++)
                        if (is_name(statement, k))
                                add_once(names, name_of(statement, k));
        }
}

/* ---- The place ---------------------------------------------------------------------------------------------------- */

/* Whether a value or a name ends before the cursor: then only a keyword, or an operator, goes on. */
static bool follows_operand(const Statement *statement) {
        static const char *const values[] = {
                ")", "NULL", "END", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", NULL,
        };
        const SqlToken *before = token_at(statement, statement->cursor - 1);

        switch (before ? before->type : SQL_OTHER) {
        case SQL_NAME:
        case SQL_QUOTED:
        case SQL_STRING:
        case SQL_BLOB:
        case SQL_NUMBER:
        case SQL_PARAMETER:
                return true;
        default:
                return is_any_of(statement, statement->cursor - 1, values);
        }
}

static bool is_beginning(const Statement *statement) {
        size_t i = 0;

        if (is_word(statement, i, "EXPLAIN"))
                i++;
        if (i == 1 && is_word(statement, 1, "QUERY") && is_word(statement, 2, "PLAN"))
                i = 3;
        return statement->cursor == i;
}

/* Behind "name.": the columns of what goes by that name. */
static unsigned columns_of(const Statement *statement, const GArray *tables, SqlPlace *place) {
        g_autofree char *name = name_of(statement, statement->cursor - 2);

        for (size_t i = 0; i < tables->len; i++) {
                const Table *table = &g_array_index(tables, Table, i);

                if (g_ascii_strcasecmp(table->alias, name) == 0) {
                        g_ptr_array_add(place->tables, g_strdup(table->name));
                        return WANTS_COLUMNS;
                }
        }
        if (g_ascii_strcasecmp(name, "main") == 0)
                return WANTS_TABLES;
        g_ptr_array_add(place->tables, g_steal_pointer(&name));
        return WANTS_COLUMNS;
}

static void take_tables(const Statement *statement, const GArray *tables, SqlPlace *place) {
        for (size_t i = 0; i < tables->len; i++) {
                const Table *table = &g_array_index(tables, Table, i);

                g_ptr_array_add(place->tables, g_strdup(table->name));
                g_ptr_array_add(place->names, g_strdup(table->alias));
        }
        add_common_tables(statement, place->names);
}

/* A name that is made up here cannot be known. */
static bool is_new_name(const Statement *statement) {
        return is_word(statement, statement->cursor - 1, "AS") && !is_word(statement, statement->cursor - 2, ")");
}

/* PRAGMA [schema.]name, and what it is about: a table, for most that take an argument. */
static unsigned of_pragma(const Statement *statement) {
        static const char *const before_argument[] = { "(", "=", NULL };

        if (is_any_of(statement, statement->cursor - 1, before_argument))
                return WANTS_TABLES;
        return is_word(statement, statement->cursor - 1, "PRAGMA") || is_word(statement, statement->cursor - 1, ".")
                       ? WANTS_PRAGMAS : 0;
}

static unsigned what_is_wanted(const Statement *statement, const TableReader *reader, SqlPlace *place) {
        if (is_word(statement, 0, "PRAGMA") && statement->cursor > 0)
                return of_pragma(statement);
        if (is_word(statement, statement->cursor - 1, ".") && is_name(statement, statement->cursor - 2))
                return reader->at_cursor ? WANTS_TABLES : columns_of(statement, reader->tables, place);
        if (is_beginning(statement))
                return WANTS_BEGINNINGS;
        if (is_new_name(statement))
                return 0;
        take_tables(statement, reader->tables, place);
        if (reader->at_cursor) {
                g_ptr_array_set_size(place->tables, 0);
                return WANTS_TABLES | WANTS_NAMES | (is_word(statement, statement->cursor - 1, "(") ? WANTS_BEGINNINGS : 0);
        }
        if (follows_operand(statement))
                return WANTS_KEYWORDS;
        add_made_names(statement, place->names);
        if (place->tables->len == 0)
                return WANTS_ALL_COLUMNS | WANTS_TABLES | WANTS_NAMES | WANTS_FUNCTIONS | WANTS_KEYWORDS;
        if (*place->word == '\0')
                return WANTS_COLUMNS | WANTS_NAMES;
        return WANTS_COLUMNS | WANTS_NAMES | WANTS_FUNCTIONS | WANTS_KEYWORDS;
}

/* As the word begins, else as the statement does. */
static bool uses_small_letters(const Statement *statement, const char *word) {
        const SqlToken *first = token_at(statement, 0);

        if (*word)
                return g_ascii_islower(*word);
        return first && first->type == SQL_KEYWORD && g_ascii_islower(statement->text[first->start]);
}

void sql_place_find(const char *text, size_t cursor, SqlPlace *ret) {
        g_autoptr(GArray) tokens = g_array_new(false, false, sizeof(SqlToken));
        g_autoptr(GArray) tables = g_array_new(false, false, sizeof(Table));
        Statement statement = { .text = text, .tokens = tokens };
        TableReader reader = { .statement = &statement, .tables = tables };
        SqlToken word;

        g_array_set_clear_func(tables, clear_table);
        *ret = (SqlPlace) {
                .start = cursor,
                .tables = g_ptr_array_new_with_free_func(g_free),
                .names = g_ptr_array_new_with_free_func(g_free),
        };
        if (!read_before(&statement, cursor, &word)) {
                ret->word = g_strdup("");
                return;
        }
        read_after(&statement, cursor);
        ret->start = word.start;
        if (word.type == SQL_QUOTED) {
                ret->quote = text[word.start];
                ret->word = unquote(text + word.start + 1, word.size - 1, ret->quote == '[' ? ']' : ret->quote);
        } else
                ret->word = g_strndup(text + word.start, cursor - word.start);

        read_tables(&reader);
        ret->in_parentheses = reader.cursor_depth > 0;
        ret->small = uses_small_letters(&statement, ret->word);
        ret->wants = what_is_wanted(&statement, &reader, ret);
        if (ret->quote)
                ret->wants &= WANTS_ALL_COLUMNS | WANTS_COLUMNS | WANTS_NAMES | WANTS_TABLES;
}

void sql_place_done(SqlPlace *place) {
        g_clear_pointer(&place->word, g_free);
        g_clear_pointer(&place->tables, g_ptr_array_unref);
        g_clear_pointer(&place->names, g_ptr_array_unref);
}

/* ---- Candidates --------------------------------------------------------------------------------------------------- */

char *sql_place_quote(const SqlPlace *place, const char *name) {
        GString *quoted;

        if (!place->quote && sql_name_is_plain(name))
                return g_strdup(name);
        if (place->quote == '[' && !strchr(name, ']'))
                return g_strdup_printf("[%s]", name);
        quoted = g_string_new(NULL);
        sql_name_append_quoted(quoted, name, place->quote == '`' ? '`' : '"');
        return g_string_free(quoted, false);
}

bool sql_place_matches(const SqlPlace *place, const char *name) {
        return g_ascii_strncasecmp(name, place->word, strlen(place->word)) == 0;
}
