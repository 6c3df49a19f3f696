/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Analyzes the SQL around the cursor, see complete-sql.h. Pure.
 *
 * The statement is a list of tokens without blanks and comments. A token of size 0 marks the cursor; the word that is being
 * typed is not among the tokens. A name after FROM, JOIN, INTO and UPDATE, and after a comma in a FROM clause, is a table.
 * Parentheses are only distinguished for commas: a name of an inner query is also offered in the outer one. SQL does not
 * allow that, but it does no harm.
 */
#include "tools/cli/sql/complete-sql.h"

#include <string.h>

#include "tools/cli/sql/sql-name.h"

typedef struct Statement {
        SqlDialect dialect;
        const char *text;
        GArray *tokens; /* SqlToken */
        size_t cursor;  /* index of the cursor's token */
} Statement;

typedef struct Table {
        char *name, *alias; /* owned; .alias equals .name if there is none */
        size_t position;    /* index of its token */
        unsigned depth;     /* of parentheses */
} Table;

static void clear_table(void *table) {
        g_free(((Table *) table)->name);
        g_free(((Table *) table)->alias);
}

/* A query in parentheses that can be read as a table: in WITH, or in a FROM clause. */
typedef struct Query {
        char *name;     /* owned; NULL: no name */
        bool is_common; /* of WITH */
        size_t list;    /* the "(" of its column list; 0: no list */
        size_t start;   /* its "(" */
        unsigned depth; /* of parentheses, within it */
        bool visited;   /* its columns were added; prevents an endless recursion into a query that reads itself */
} Query;

static void clear_query(void *query) {
        g_free(((Query *) query)->name);
}

/* Returns NULL beyond both ends. */
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

static char *name_of(const Statement *statement, size_t i) {
        const SqlToken *token = token_at(statement, i);
        const char *text = statement->text + token->start;

        if (token->type != SQL_QUOTED)
                return g_strndup(text, token->size);
        return sql_name_unquote(text + 1, token->size - (token->open ? 1 : 2), *text == '[' ? ']' : *text);
}

/* ---- The statement ------------------------------------------------------------------------------------------------ */

static bool counts(const SqlToken *token) {
        return token->type != SQL_SPACE && token->type != SQL_COMMENT;
}

/* Reads the tokens of the statement before the cursor. The last one may be the word that is being typed. Returns false if
 * the cursor is inside something that contains no names. */
static bool read_before(Statement *statement, size_t cursor, SqlToken *ret_word) {
        size_t position = 0;
        SqlToken token = {};

        *ret_word = (SqlToken) { .start = cursor, .type = SQL_SPACE };
        while (sql_scan_next(statement->dialect, statement->text, cursor, &position, &token)) {
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
        while (sql_scan_next(statement->dialect, statement->text, size, &position, &token) && token.type != SQL_SEMICOLON)
                if (counts(&token))
                        g_array_append_val(statement->tokens, token);
}

/* ---- Tables ------------------------------------------------------------------------------------------------------- */

typedef struct TableReader {
        const Statement *statement;
        GArray *tables;      /* Table */
        GArray *queries;     /* Query */
        bool expected;       /* the next token is a table */
        bool at_cursor;      /* a table is expected at the cursor */
        unsigned depth;      /* of parentheses */
        unsigned cursor_depth;
        uint64_t from;       /* a bit for each depth: a FROM clause is open there */
} TableReader;

static uint64_t depth_bit(const TableReader *reader) {
        return reader->depth < 64 ? (uint64_t) 1 << reader->depth : 0;
}

/* Returns the ")" that matches the "(" at `open`; past the last token if there is none. */
static size_t closing(const Statement *statement, size_t open) {
        size_t depth = 0, i = open;

        for (; i < statement->tokens->len; i++)
                if (is_word(statement, i, "("))
                        depth++;
                else if (is_word(statement, i, ")") && --depth == 0)
                        break;
        return i;
}

/* Reads name AS ( or name(columns) AS ( of a WITH clause. */
static void read_common_table(TableReader *reader, size_t i) {
        static const char *const before[] = { "WITH", "RECURSIVE", ",", NULL };
        const Statement *statement = reader->statement;
        Query query = { .is_common = true, .depth = reader->depth + 1 };
        size_t next = i + 1;

        if (!is_name(statement, i) || !is_any_of(statement, i - 1, before))
                return;
        if (is_word(statement, next, "(")) {
                query.list = next;
                next = closing(statement, next) + 1;
        }
        if (!is_word(statement, next, "AS"))
                return;
        while (is_word(statement, ++next, "NOT") || is_word(statement, next, "MATERIALIZED"))
                ;
        if (!is_word(statement, next, "("))
                return;
        query.start = next;
        query.name = name_of(statement, i);
        g_array_append_val(reader->queries, query);
}

/* Reads (SELECT ...) [[AS] name] at a position that expects a table. */
static void read_subquery(TableReader *reader, size_t i) {
        static const char *const beginnings[] = { "SELECT", "WITH", "VALUES", NULL };
        const Statement *statement = reader->statement;
        Query query = { .start = i, .depth = reader->depth + 1 };
        size_t name = closing(statement, i) + 1;

        if (!is_any_of(statement, i + 1, beginnings))
                return;
        name += is_word(statement, name, "AS");
        query.name = is_name(statement, name) ? name_of(statement, name) : NULL;
        g_array_append_val(reader->queries, query);
}

/* Reads [schema.]name [[AS] alias]. Returns its last token. */
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
        table = (Table) { .name = name_of(statement, i), .position = i, .depth = reader->depth };
        if (is_word(statement, i + 1, "AS") && is_name(statement, i + 2))
                i += 2;
        else if (is_name(statement, i + 1))
                i++;
        table.alias = name_of(statement, i);
        g_array_append_val(reader->tables, table);
        return i;
}

/* Reads a keyword or an operator, and decides whether a table comes next. */
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
                if (reader->expected)
                        read_subquery(reader, i);
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
                else {
                        read_common_table(reader, i);
                        read_word(reader, i);
                }
        }
}

/* ---- Columns ------------------------------------------------------------------------------------------------------ */

/* Takes ownership of `name`. */
static void add_once(GPtrArray *names, char *name) {
        if (g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL))
                g_free(name);
        else
                g_ptr_array_add(names, name);
}

/* Returns true if a value or a name ends with this token. */
static bool ends_operand(const Statement *statement, size_t i) {
        static const char *const values[] = {
                ")", "NULL", "END", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", NULL,
        };
        const SqlToken *token = token_at(statement, i);

        switch (token ? token->type : SQL_OTHER) {
        case SQL_NAME:
        case SQL_QUOTED:
        case SQL_STRING:
        case SQL_BLOB:
        case SQL_NUMBER:
        case SQL_PARAMETER:
                return true;
        default:
                return is_any_of(statement, i, values);
        }
}

static void add_query_columns(const TableReader *reader, Query *query, SqlPlace *place);

static bool is_called(const char *name, const char *other) {
        return name && g_ascii_strcasecmp(name, other) == 0;
}

/* Adds the columns of a table of the database, or of WITH. */
static void add_table_columns(const TableReader *reader, const char *name, SqlPlace *place) {
        bool is_common = false;

        for (size_t i = 0; i < reader->queries->len; i++) {
                Query *query = &g_array_index(reader->queries, Query, i);

                if (query->is_common && is_called(query->name, name)) {
                        add_query_columns(reader, query, place);
                        is_common = true;
                }
        }
        if (!is_common)
                add_once(place->tables, g_strdup(name));
}

/* Adds the columns of a star: those of the tables and queries in the FROM clause of `query`. `name`: only of the one with
 * that name or alias; NULL: of all. */
static void add_star(const TableReader *reader, const Query *query, const char *name, SqlPlace *place) {
        size_t end = closing(reader->statement, query->start);

        for (size_t i = 0; i < reader->tables->len; i++) {
                const Table *table = &g_array_index(reader->tables, Table, i);

                if (table->position > query->start && table->position < end && table->depth == query->depth &&
                    (!name || is_called(table->alias, name)))
                        add_table_columns(reader, table->name, place);
        }
        for (size_t i = 0; i < reader->queries->len; i++) {
                Query *other = &g_array_index(reader->queries, Query, i);

                if (!other->is_common && other->start > query->start && other->start < end &&
                    other->depth == query->depth + 1 && (!name || is_called(other->name, name)))
                        add_query_columns(reader, other, place);
        }
}

/* Adds the name of a result column, tokens [first, end): a star, name.star, value AS name, value name, a column, or a value
 * without a name. */
static void add_result(const TableReader *reader, const Query *query, size_t first, size_t end, SqlPlace *place) {
        const Statement *statement = reader->statement;
        size_t n = end - first, last = end - 1;

        if (n == 1 && is_word(statement, last, "*"))
                add_star(reader, query, NULL, place);
        else if (n == 3 && is_word(statement, last, "*") && is_word(statement, last - 1, ".") && is_name(statement, first)) {
                g_autofree char *name = name_of(statement, first);

                add_star(reader, query, name, place);
        } else if (n > 0 && is_name(statement, last) &&
                   (n == 1 || is_word(statement, last - 1, "AS") || is_word(statement, last - 1, ".") ||
                    ends_operand(statement, last - 1)))
                add_once(place->names, name_of(statement, last));
}

static size_t skip_parentheses(const Statement *statement, size_t i) {
        return is_word(statement, i, "(") ? MIN(closing(statement, i) + 1, statement->tokens->len) : i + 1;
}

/* Adds the columns of the query: of its column list, else of its first SELECT. */
static void add_query_columns(const TableReader *reader, Query *query, SqlPlace *place) {
        static const char *const after_result[] = {
                "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT", NULL,
        };
        const Statement *statement = reader->statement;
        size_t i = query->start + 1, end = closing(statement, query->list ? query->list : query->start), first;

        if (query->visited)
                return;
        query->visited = true;
        for (size_t k = query->list + 1; query->list && k < end; k++)
                if (is_name(statement, k))
                        add_once(place->names, name_of(statement, k));
        if (query->list)
                return;

        while (i < end && !is_word(statement, i, "SELECT"))
                i = skip_parentheses(statement, i);
        i++;
        i += is_word(statement, i, "DISTINCT") || is_word(statement, i, "ALL");
        for (first = i; i < end && !is_any_of(statement, i, after_result); i = skip_parentheses(statement, i))
                if (is_word(statement, i, ",")) {
                        add_result(reader, query, first, i, place);
                        first = i + 1;
                }
        if (first < i && i <= end)
                add_result(reader, query, first, i, place);
}

/* Returns true for CAST(value AS type), in which the word after AS is not a name. */
static bool is_cast(const Statement *statement, size_t as) {
        size_t depth = 0;

        for (size_t i = as; i-- > 0;)
                if (is_word(statement, i, ")"))
                        depth++;
                else if (is_word(statement, i, "(") && depth-- == 0)
                        return i > 0 && is_word(statement, i - 1, "CAST");
        return false;
}

/* Adds names that the statement makes: value AS name, (SELECT ...) AS name, and the columns of its queries. */
static void add_made_names(const TableReader *reader, SqlPlace *place) {
        const Statement *statement = reader->statement;

        for (size_t i = 0; i < statement->tokens->len; i++)
                if (is_word(statement, i, "AS") && is_name(statement, i + 1) && !is_cast(statement, i))
                        add_once(place->names, name_of(statement, i + 1));
        for (size_t i = 0; i < reader->queries->len; i++)
                add_query_columns(reader, &g_array_index(reader->queries, Query, i), place);
}

/* ---- The cursor --------------------------------------------------------------------------------------------------- */

static bool is_beginning(const Statement *statement) {
        size_t i = 0;

        if (is_word(statement, i, "EXPLAIN"))
                i++;
        if (i == 1 && is_word(statement, 1, "QUERY") && is_word(statement, 2, "PLAN"))
                i = 3;
        return statement->cursor == i;
}

/* Adds the columns after "name.": those of the table or query of that name. */
static unsigned columns_of(const TableReader *reader, SqlPlace *place) {
        const Statement *statement = reader->statement;
        g_autofree char *name = name_of(statement, statement->cursor - 2);
        bool found = false;

        for (size_t i = 0; i < reader->tables->len && !found; i++) {
                const Table *table = &g_array_index(reader->tables, Table, i);

                found = is_called(table->alias, name);
                if (found)
                        add_table_columns(reader, table->name, place);
        }
        for (size_t i = 0; i < reader->queries->len && !found; i++) {
                Query *query = &g_array_index(reader->queries, Query, i);

                found = !query->is_common && is_called(query->name, name);
                if (found)
                        add_query_columns(reader, query, place);
        }
        if (!found && is_called(name, "main"))
                return WANTS_TABLES;
        if (!found)
                add_table_columns(reader, name, place);
        return (place->tables->len > 0 ? WANTS_COLUMNS : 0) | (place->names->len > 0 ? WANTS_NAMES : 0);
}

static void take_tables(const TableReader *reader, SqlPlace *place) {
        for (size_t i = 0; i < reader->tables->len; i++) {
                const Table *table = &g_array_index(reader->tables, Table, i);

                g_ptr_array_add(place->tables, g_strdup(table->name));
                g_ptr_array_add(place->names, g_strdup(table->alias));
        }
        for (size_t i = 0; i < reader->queries->len; i++) {
                const Query *query = &g_array_index(reader->queries, Query, i);

                if (query->is_common)
                        add_once(place->names, g_strdup(query->name));
        }
}

/* Returns true if a new name is defined here, for which there are no candidates. */
static bool is_new_name(const Statement *statement) {
        return is_word(statement, statement->cursor - 1, "AS") && !is_word(statement, statement->cursor - 2, ")");
}

/* Completes PRAGMA [schema.]name, and its argument, which is a table for most of them. */
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
                return reader->at_cursor ? WANTS_TABLES : columns_of(reader, place);
        if (is_beginning(statement))
                return WANTS_BEGINNINGS;
        if (is_new_name(statement))
                return 0;
        take_tables(reader, place);
        if (reader->at_cursor) {
                g_ptr_array_set_size(place->tables, 0);
                return WANTS_TABLES | WANTS_NAMES | (is_word(statement, statement->cursor - 1, "(") ? WANTS_BEGINNINGS : 0);
        }
        if (ends_operand(statement, statement->cursor - 1)) /* only a keyword or an operator can follow */
                return WANTS_KEYWORDS;
        add_made_names(reader, place);
        if (place->tables->len == 0)
                return WANTS_ALL_COLUMNS | WANTS_TABLES | WANTS_NAMES | WANTS_FUNCTIONS | WANTS_KEYWORDS;
        if (*place->word == '\0')
                return WANTS_COLUMNS | WANTS_NAMES;
        return WANTS_COLUMNS | WANTS_NAMES | WANTS_FUNCTIONS | WANTS_KEYWORDS;
}

/* Returns true if the word, or else the statement, begins in small letters. */
static bool uses_small_letters(const Statement *statement, const char *word) {
        const SqlToken *first = token_at(statement, 0);

        if (*word)
                return g_ascii_islower(*word);
        return first && first->type == SQL_KEYWORD && g_ascii_islower(statement->text[first->start]);
}

void sql_place_find(SqlDialect dialect, const char *text, size_t cursor, SqlPlace *ret) {
        g_autoptr(GArray) tokens = g_array_new(false, false, sizeof(SqlToken));
        g_autoptr(GArray) tables = g_array_new(false, false, sizeof(Table));
        Statement statement = { .dialect = dialect, .text = text, .tokens = tokens };
        g_autoptr(GArray) queries = g_array_new(false, false, sizeof(Query));
        TableReader reader = { .statement = &statement, .tables = tables, .queries = queries };
        SqlToken word;

        g_array_set_clear_func(tables, clear_table);
        g_array_set_clear_func(queries, clear_query);
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
                ret->word = sql_name_unquote(text + word.start + 1, word.size - 1, ret->quote == '[' ? ']' : ret->quote);
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
