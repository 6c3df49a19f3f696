/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See statement-text.h. From top to bottom: parameters, windows, values with their types, RETURNING,
 * statements.
 */
#include "daemon/worker/rqlite/statement-text.h"

#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/rqlite/sql-tokens.h"

#define ROWS "\"sqlipc:rows\"" /* no program gives a table this name */

/* ---- parameters ---- */

/* Parameters on their way into the text of a statement. */
typedef struct TextParameters {
        const StatementText *s;
        TextBuffer json;      /* of those that are not literals, each after a comma */
        unsigned *numbers;    /* owned: by the index in the client's statement, that in ours; 0: none yet */
        unsigned n, last;     /* parameters of the client's statement; the last number that was given */
        int largest;          /* index so far: that of "?" is one more */
} TextParameters;

/* The server takes such a string for a BLOB. */
static bool looks_like_blob(const PageValue *v) {
        return v->size >= 3 && (v->bytes[0] == 'x' || v->bytes[0] == 'X') && v->bytes[1] == '\'' &&
               v->bytes[v->size - 1] == '\'';
}

static bool needs_literal(const PageValue *v) {
        switch (v->type) {
        case VALUE_REAL:
                return isinf(load_le_double(v->bytes));
        case VALUE_TEXT:
                return looks_like_blob(v) || !text_is_utf8((const char *) v->bytes, v->size);
        case VALUE_BLOB:
                return true;
        case VALUE_NULL:
        case VALUE_INTEGER:
                break;
        }
        return false;
}

/* The "+" takes the affinity from the result of CAST: a parameter has none. */
static void add_literal(TextBuffer *sql, const PageValue *v) {
        if (v->type == VALUE_REAL)
                text_buffer_puts(sql, load_le_double(v->bytes) > 0 ? " 9e999" : " -9e999");
        else if (v->type == VALUE_TEXT && text_is_utf8((const char *) v->bytes, v->size) && !memchr(v->bytes, 0, v->size))
                text_buffer_add_sql_string(sql, (const char *) v->bytes, v->size);
        else {
                text_buffer_puts(sql, v->type == VALUE_TEXT ? "(+CAST(x'" : " x'");
                text_buffer_add_hex(sql, v->bytes, v->size);
                text_buffer_puts(sql, v->type == VALUE_TEXT ? "' AS TEXT))" : "'");
        }
}

static void add_json_value(TextBuffer *json, const PageValue *v) {
        double number;

        text_buffer_puts(json, ",");
        switch (v->type) {
        case VALUE_INTEGER:
                text_buffer_printf(json, "%" PRId64, (int64_t) load_le64(v->bytes));
                return;
        case VALUE_REAL:
                number = load_le_double(v->bytes);
                if (isnan(number)) /* as SQLite binds it */
                        break;
                text_buffer_add_json_double(json, number);
                return;
        case VALUE_TEXT:
                text_buffer_add_json_string(json, (const char *) v->bytes, v->size);
                return;
        case VALUE_BLOB:
        case VALUE_NULL:
                break;
        }
        text_buffer_puts(json, "null");
}

/* Finds the index of a parameter as SQLite does. 0: SQLite has not compiled this. */
static int index_of(TextParameters *p, const SqlToken *token) {
        char few[64], *name = token->size < sizeof few ? few : malloc(token->size + 1);
        int index;

        if (!name)
                return 0;
        memcpy(name, token->text, token->size);
        name[token->size] = 0;
        index = token->size == 1 ? p->largest + 1 : sqlite3_bind_parameter_index(p->s->stmt, name);
        if (index == 0 && *name == '?') /* ?007 */
                index = atoi(name + 1);
        if (name != few)
                free(name);
        if (index > p->largest)
                p->largest = index;
        return (unsigned) index <= p->n ? index : 0;
}

static void add_parameter(TextBuffer *sql, TextParameters *p, const SqlToken *token) {
        int index = index_of(p, token);
        const PageValue *v = index > 0 ? &p->s->values[index - 1] : NULL;

        if (!v)
                sql->state = TEXT_NO_MEMORY;
        else if (needs_literal(v))
                add_literal(sql, v);
        else {
                if (p->numbers[index - 1] == 0) {
                        p->numbers[index - 1] = ++p->last;
                        add_json_value(&p->json, v);
                }
                text_buffer_printf(sql, "?%u", p->numbers[index - 1]);
        }
}

static void add_part(TextBuffer *sql, TextParameters *p, const char *at, const char *end) {
        if (p->n == 0) {
                text_buffer_add(sql, at, (size_t) (end - at));
                return;
        }
        for (SqlToken t = sql_token(at, end); t.kind != SQL_TOKEN_END; t = sql_token(t.text + t.size, end))
                if (t.kind == SQL_TOKEN_PARAMETER)
                        add_parameter(sql, p, &t);
                else
                        text_buffer_add(sql, t.text, t.size);
}

static void add_sql(TextBuffer *sql, TextParameters *p) {
        add_part(sql, p, p->s->sql, p->s->sql + p->s->sql_size);
}

static bool parameters_init(TextParameters *p, const StatementText *s, size_t size_max) {
        *p = (TextParameters) {
                .s = s,
                .json.size_max = size_max,
                .n = s->values ? (unsigned) sqlite3_bind_parameter_count(s->stmt) : 0,
        };
        if (p->n > 0)
                p->numbers = calloc(p->n, sizeof *p->numbers);
        return p->n == 0 || p->numbers;
}

static void parameters_done(TextParameters *p) {
        text_buffer_done(&p->json);
        free(p->numbers);
}

/* ---- windows ---- */

/* Adds a SELECT of the window's rows. `key` is in quotes already. */
static void add_rows(TextBuffer *sql, const StatementWindow *w, const char *columns) {
        text_buffer_printf(sql, "SELECT %s FROM main.", columns);
        text_buffer_add_sql_name(sql, w->table);
        if (w->bounded)
                text_buffer_printf(sql, " WHERE %s > %" PRId64, w->key, w->after);
        text_buffer_printf(sql, " ORDER BY %s LIMIT %" PRIu32, w->key, w->n_rows);
}

static void add_window(TextBuffer *sql, const StatementWindow *w) {
        text_buffer_add_sql_name(sql, w->table);
        text_buffer_puts(sql, " AS (");
        add_rows(sql, w, "*");
        text_buffer_puts(sql, ")");
}

void statement_text_window_sql(TextBuffer *sql, const StatementText *s, const StatementWindow *window) {
        text_buffer_puts(sql, "WITH ");
        add_window(sql, window);
        text_buffer_puts(sql, " SELECT * FROM (");
        text_buffer_add(sql, s->sql, s->sql_size);
        text_buffer_puts(sql, "\n)");
}

void statement_text_add_bounds(TextBuffer *json, const StatementWindow *window) {
        TextBuffer sql = { .size_max = json->size_max };

        text_buffer_printf(&sql, "SELECT 'i'||count(*), 'i'||max(%s) FROM (", window->key);
        add_rows(&sql, window, window->key);
        text_buffer_puts(&sql, ")");
        text_buffer_puts(json, "[");
        text_buffer_add_json_string(json, sql.bytes ?: "", sql.size);
        text_buffer_puts(json, "]");
        if (sql.state != TEXT_GOOD)
                json->state = sql.state;
        text_buffer_done(&sql);
}

/* ---- values with their types ---- */

/* A value of column `i` that says its type. The "+" keeps the affinity of the column out of the comparisons. */
static void add_typed(TextBuffer *sql, unsigned i) {
        text_buffer_printf(
                sql,
                "CASE typeof(c%u) WHEN 'integer' THEN 'i'||c%u WHEN 'text' THEN 't'||c%u "
                "WHEN 'blob' THEN 'b'||hex(c%u) WHEN 'real' THEN CASE WHEN +c%u > 1.7976931348623157e308 THEN 'f+' "
                "WHEN +c%u < -1.7976931348623157e308 THEN 'f-' ELSE +c%u END END",
                i, i, i, i, i, i, i);
}

/* ---- RETURNING ---- */

static bool is_star(const char *at, const char *end) {
        SqlToken t = sql_token(at, end);

        while (t.kind == SQL_TOKEN_SPACE)
                t = sql_token(t.text + t.size, end);
        return t.kind != SQL_TOKEN_END && *t.text == '*';
}

/* Returns the number of columns that a "*" is an abbreviation of. */
static unsigned star_width(const char *at, const char *end, unsigned n_columns) {
        unsigned n_stars = 0;

        for (const char *next; at <= end; at = next + 1) {
                next = sql_list_item_end(at, end);
                if (is_star(at, next))
                        n_stars++;
                else
                        n_columns--;
        }
        return n_stars > 0 ? n_columns / n_stars : 0;
}

static void begin_expression(TextBuffer *sql) {
        text_buffer_puts(sql, "(SELECT ");
        add_typed(sql, 0);
        text_buffer_puts(sql, " FROM (SELECT CAST(NULL AS BLOB) AS c0 WHERE 0 UNION ALL SELECT ");
}

/* A comment may be at the end of the expression. */
static void end_expression(TextBuffer *sql) {
        text_buffer_puts(sql, "\n)),");
}

static void add_returning(TextBuffer *sql, TextParameters *p, size_t returning, unsigned n_columns) {
        const char *start = p->s->sql, *at = start + returning, *end = start + p->s->sql_size;
        unsigned width = star_width(at, end, n_columns), column = 0;

        add_part(sql, p, start, at);
        text_buffer_puts(sql, " ");
        for (const char *next; at <= end; at = next + 1) {
                bool star;

                next = sql_list_item_end(at, end);
                star = is_star(at, next);
                for (unsigned i = 0; i < (star ? width : 1); i++, column++) {
                        begin_expression(sql);
                        if (star)
                                text_buffer_add_sql_name(sql, sqlite3_column_name(p->s->stmt, (int) column) ?: "");
                        else
                                add_part(sql, p, at, next);
                        end_expression(sql);
                }
        }
        text_buffer_puts(sql, "last_insert_rowid()");
}

/* ---- statements ---- */

/* Adds the client's SELECT so that its columns have no affinity that its values do not have. */
static void add_client_select(TextBuffer *sql, TextParameters *p, unsigned n_columns) {
        const char *start = p->s->sql, *end = start + p->s->sql_size;
        size_t offset;

        if (!sql_compound(start, p->s->sql_size, &offset)) {
                add_sql(sql, p);
                return;
        }
        add_part(sql, p, start, start + offset);
        for (unsigned i = 0; i < n_columns; i++)
                text_buffer_puts(sql, i > 0 ? ",CAST(NULL AS BLOB)" : "SELECT CAST(NULL AS BLOB)");
        text_buffer_puts(sql, " WHERE 0 UNION ALL ");
        add_part(sql, p, start + offset, end);
}

static void add_select(TextBuffer *sql, TextParameters *p, unsigned n_columns, const StatementWindow *window) {
        text_buffer_puts(sql, "WITH ");
        if (window) {
                add_window(sql, window);
                text_buffer_puts(sql, ", ");
        }
        text_buffer_puts(sql, ROWS "(");
        for (unsigned i = 0; i < n_columns; i++)
                text_buffer_printf(sql, "%sc%u", i > 0 ? "," : "", i);
        text_buffer_puts(sql, ") AS (SELECT * FROM (");
        add_client_select(sql, p, n_columns);
        text_buffer_puts(sql, "\n) LIMIT -1) SELECT ");
        for (unsigned i = 0; i < n_columns; i++) {
                text_buffer_puts(sql, i > 0 ? "," : "");
                add_typed(sql, i);
        }
        text_buffer_puts(sql, " FROM " ROWS " LIMIT -1");
}

/* Provides buffers for the SQL and its parameters, which finish() adds to `json` and frees. False: there is no memory. */
static bool begin(const TextBuffer *json, const StatementText *s, TextBuffer *ret_sql, TextParameters *ret) {
        bool ok = parameters_init(ret, s, json->size_max);

        *ret_sql = (TextBuffer) { .size_max = json->size_max, .state = ok ? TEXT_GOOD : TEXT_NO_MEMORY };
        return ok;
}

/* Adds the finished SQL and the parameters. */
static void finish(TextBuffer *json, TextBuffer *sql, TextParameters *p) {
        text_buffer_puts(json, "[");
        text_buffer_add_json_string(json, sql->bytes ?: "", sql->size);
        text_buffer_add(json, p->json.bytes, p->json.size);
        text_buffer_puts(json, "]");
        if (sql->state != TEXT_GOOD)
                json->state = sql->state;
        if (p->json.state != TEXT_GOOD)
                json->state = p->json.state;
        text_buffer_done(sql);
        parameters_done(p);
}

void statement_text_add(TextBuffer *json, const StatementText *s) {
        TextParameters p;
        TextBuffer sql;

        if (begin(json, s, &sql, &p))
                add_sql(&sql, &p);
        finish(json, &sql, &p);
}

void statement_text_add_select(TextBuffer *json, const StatementText *s, unsigned n_columns, const StatementWindow *window) {
        TextParameters p;
        TextBuffer sql;

        if (begin(json, s, &sql, &p))
                add_select(&sql, &p, n_columns, window);
        finish(json, &sql, &p);
}

void statement_text_add_returning(TextBuffer *json, const StatementText *s, size_t returning, unsigned n_columns) {
        TextParameters p;
        TextBuffer sql;

        if (begin(json, s, &sql, &p))
                add_returning(&sql, &p, returning, n_columns);
        finish(json, &sql, &p);
}
