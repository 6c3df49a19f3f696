/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Changes SQL by its tokens, for fuzz-sql: words are replaced by words, pieces are taken out, doubled, moved, or come from
 * another query of the corpus. The bytes after the first NUL, and sometimes all bytes, are changed byte by byte. With an
 * engine only. Tests only.
 */
#ifdef WITH_FUZZING_ENGINE
#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TOKENS_MAX 512

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t size_max, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
                                 size_t out_size, unsigned seed);

/* Words and pieces of grammar, and names in the databases of fuzz-sql. */
static const char *const words[] = {
        "SELECT", "DISTINCT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET", "DESC", "NULLS LAST",
        "WITH", "RECURSIVE", "MATERIALIZED", "NOT MATERIALIZED", "AS", "UNION", "UNION ALL", "INTERSECT", "EXCEPT",
        "VALUES(1,2)", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "NATURAL JOIN", "ON", "USING(title)",
        "USING(id)", "AND", "OR", "NOT", "IS", "IS NOT", "IN", "NOT IN", "BETWEEN", "LIKE", "GLOB", "MATCH", "REGEXP",
        "ESCAPE", "ISNULL", "NOTNULL", "EXISTS", "CASE WHEN", "THEN", "ELSE", "END", "CAST(", "AS TEXT)", "AS BLOB)",
        "AS INT)", "AS NUMERIC)", "COLLATE NOCASE", "COLLATE BINARY", "COLLATE RTRIM", "INDEXED BY by_title", "NOT INDEXED",
        "EXPLAIN", "EXPLAIN QUERY PLAN", "OVER()", "OVER(ORDER BY id)", "PARTITION BY",
        "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "FILTER(WHERE id > 3)", "count(*)", "sum(", "total(", "avg(", "min(",
        "max(", "group_concat(", "row_number()", "lag(", "ntile(3)", "first_value(", "abs(", "coalesce(", "hex(", "quote(",
        "typeof(", "length(", "substr(", "instr(", "replace(", "printf('%s %d %q',", "zeroblob(5000)", "randomblob(100)",
        "char(0,65,65533)", "unicode(", "likelihood(1, 0.5)", "nullif(", "iif(", "round(", "date('now')", "strftime('%s',",
        "last_insert_rowid()", "json(", "json_each(", "json_tree(", "json_object('a',", "json_array(", "->", "->>",
        "json_group_array(", "load_extension('x')", "fts3_tokenizer('x')", "raise(ABORT, 'x')", "sqlite_offset(",
        "highlight(words, 0, 'a', 'b')", "bm25(words)", "snippet(words, 0, 'a', 'b', 'c', 3)", "PRAGMA",
        "table_info(album)", "integrity_check", "journal_mode", "journal_mode = DELETE", "writable_schema = 1",
        "pragma_table_info('album')", "pragma_table_list", "sqlite_schema", "sqlite_temp_schema", "sqlite_stmt", "dbstat",
        "ATTACH", "DETACH", "'x.db'", "VACUUM", "VACUUM INTO 'y'", "BEGIN", "COMMIT", "SAVEPOINT a", "RELEASE a",
        "ROLLBACK", "INSERT INTO", "UPDATE", "SET id = 1", "DELETE FROM", "RETURNING *", "REPLACE INTO",
        "CREATE TABLE x(y)", "CREATE TEMP TABLE x AS", "CREATE INDEX i ON album(n)", "CREATE VIRTUAL TABLE v USING fts5(a)",
        "DROP TABLE album", "ALTER TABLE album RENAME TO z", "REINDEX", "ANALYZE", "album", "track", "cheap", "sums",
        "words", "box", "secret", "main.", "temp.", "id", "title", "price", "cover", "n", "no", "name", "len", "names",
        "body", "x0", "password", "rowid", "_rowid_", "oid", "*", "album.*", "1", "0", "-1", "9223372036854775807",
        "-9223372036854775808", "1e999", "0x7f", "1.5", "NULL", "''", "'a'", "'Title 3'", "x'00ff'", "\"title\"", "[n]",
        "`id`", "?", "?1", "?99", ":a", "@b", "$c", "$c::d(e)", "(", ")", ",", ";", "--\n", "/*", "*/", "+", "-", "||", "/",
        "%", "<<", "&", "|", "~", "<", "<=", "=", "==", "<>", ".", "'", "\"",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 50)", "(SELECT title FROM album)",
        "(SELECT * FROM track)", "FROM album a, track b", "WHERE a.id = b.album", "WINDOW w AS (ORDER BY id)", "OVER w",
        "json_each('[1,2,{\"a\":3}]')", "(1, 2) IN (SELECT id, n FROM album)", "CURRENT_TIMESTAMP", "TRUE", "FALSE",
};

#define N_WORDS (sizeof words / sizeof *words)

typedef struct Random {
        uint32_t state;
} Random;

static uint32_t next(Random *r) {
        r->state = r->state * UINT32_C(1664525) + UINT32_C(1013904223);
        return r->state >> 8;
}

static size_t below(Random *r, size_t n) {
        return n > 0 ? next(r) % n : 0;
}

typedef struct Tokens {
        size_t at[TOKENS_MAX + 1]; /* where each begins; behind the last, the end */
        size_t n;
} Tokens;

static bool is_word(uint8_t c) {
        return isalnum(c) || c == '_' || c == '$' || c >= 128;
}

static size_t end_of_token(const uint8_t *sql, size_t size, size_t i) {
        uint8_t first = sql[i++];

        if (is_word(first))
                while (i < size && is_word(sql[i]))
                        i++;
        else if (isspace(first))
                while (i < size && isspace(sql[i]))
                        i++;
        else if (first == '\'' || first == '"') {
                while (i < size && sql[i] != first)
                        i++;
                i += i < size;
        }
        return i;
}

static void split(Tokens *t, const uint8_t *sql, size_t size) {
        size_t i = 0;

        t->n = 0;
        while (i < size && t->n < TOKENS_MAX) {
                t->at[t->n++] = i;
                i = end_of_token(sql, size, i);
        }
        t->at[t->n] = i;
}

/* Replaces the bytes from `from` to `to` by `with`. The new size; the same as before if there is no room. */
static size_t replace(uint8_t *bytes, size_t size, size_t size_max, size_t from, size_t to, const void *with, size_t n) {
        if (size - (to - from) + n > size_max)
                return size;
        memmove(bytes + from + n, bytes + to, size - to);
        if (n > 0)
                memcpy(bytes + from, with, n);
        return size - (to - from) + n;
}

static size_t put_word(Random *r, uint8_t *bytes, size_t size, size_t size_max, size_t from, size_t to) {
        const char *word = words[below(r, N_WORDS)];
        char spaced[128];
        size_t n = strlen(word);

        spaced[0] = ' ';
        memcpy(spaced + 1, word, n);
        spaced[n + 1] = ' ';
        return replace(bytes, size, size_max, from, to, spaced, n + 2);
}

static size_t change(Random *r, uint8_t *bytes, size_t size, size_t size_max) {
        const uint8_t *end = size > 0 ? memchr(bytes, 0, size) : NULL;
        uint8_t piece[512];
        Tokens t;
        size_t i, from, to, n;

        split(&t, bytes, end ? (size_t) (end - bytes) : size);
        i = below(r, t.n);
        from = t.n > 0 ? t.at[i] : 0;
        to = t.n > 0 ? t.at[i + 1] : 0;
        switch (next(r) % 6) {
        case 0:
        case 1:
                return put_word(r, bytes, size, size_max, from, to);
        case 2:
                return put_word(r, bytes, size, size_max, from, from);
        case 3: /* some tokens are gone */
                to = t.n > 0 ? t.at[i + 1 + below(r, t.n - i) % 8] : 0;
                return replace(bytes, size, size_max, from, to, NULL, 0);
        default: /* some tokens move to other places, or replace others */
                to = t.n > 0 ? t.at[i + 1 + below(r, t.n - i) % 16] : 0;
                n = to - from < sizeof piece ? to - from : sizeof piece;
                memcpy(piece, bytes + from, n);
                i = below(r, t.n);
                from = t.n > 0 ? t.at[i] : 0;
                return replace(bytes, size, size_max, from, next(r) % 2 && t.n > 0 ? t.at[i + 1] : from, piece, n);
        }
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t size_max, unsigned seed) {
        Random r = { .state = seed };
        const uint8_t *end = size > 0 ? memchr(bytes, 0, size) : NULL;
        size_t n_sql = end ? (size_t) (end - bytes) : size;

        switch (next(&r) % 8) {
        case 0:
                return LLVMFuzzerMutate(bytes, size, size_max);
        case 1: /* how it is run */
                if (n_sql == size) {
                        if (size < size_max)
                                bytes[size++] = 0;
                        return size;
                }
                return n_sql + LLVMFuzzerMutate(bytes + n_sql, size - n_sql, size_max - n_sql);
        default:
                for (size_t n = 1 + below(&r, 4); n > 0; n--)
                        size = change(&r, bytes, size, size_max);
                return size;
        }
}

/* Tokens of `b` in the middle of `a`. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
                                 size_t out_size, unsigned seed) {
        const uint8_t *a_end = a_size > 0 ? memchr(a, 0, a_size) : NULL, *b_end = b_size > 0 ? memchr(b, 0, b_size) : NULL;
        Random r = { .state = seed };
        size_t size = a_size < out_size ? a_size : out_size, i;
        Tokens to, from;

        if (size > 0)
                memcpy(out, a, size);
        split(&to, out, a_end && (size_t) (a_end - a) < size ? (size_t) (a_end - a) : size);
        split(&from, b, b_end ? (size_t) (b_end - b) : b_size);
        if (from.n == 0)
                return size;
        i = below(&r, from.n);
        size_t begin = from.at[i], end = from.at[i + 1 + below(&r, from.n - i)];
        size_t at = to.n > 0 ? to.at[below(&r, to.n)] : 0;
        return replace(out, size, out_size, at, at, b + begin, end - begin);
}
#endif
