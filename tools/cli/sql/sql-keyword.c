/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SQLite's keywords, see sql-keyword.h. Pure. */
#include "tools/cli/sql/sql-keyword.h"

#include <glib.h>
#include <string.h>

/* Sorted. */
static const char *const keywords[] = {
        "ABORT", "ACTION", "ADD", "AFTER", "ALL", "ALTER", "ALWAYS", "ANALYZE", "AND", "AS", "ASC", "ATTACH",
        "AUTOINCREMENT", "BEFORE", "BEGIN", "BETWEEN", "BY", "CASCADE", "CASE", "CAST", "CHECK", "COLLATE", "COLUMN",
        "COMMIT", "CONFLICT", "CONSTRAINT", "CREATE", "CROSS", "CURRENT", "CURRENT_DATE", "CURRENT_TIME",
        "CURRENT_TIMESTAMP", "DATABASE", "DEFAULT", "DEFERRABLE", "DEFERRED", "DELETE", "DESC", "DETACH", "DISTINCT",
        "DO", "DROP", "EACH", "ELSE", "END", "ESCAPE", "EXCEPT", "EXCLUDE", "EXCLUSIVE", "EXISTS", "EXPLAIN", "FAIL",
        "FILTER", "FIRST", "FOLLOWING", "FOR", "FOREIGN", "FROM", "FULL", "GENERATED", "GLOB", "GROUP", "GROUPS",
        "HAVING", "IF", "IGNORE", "IMMEDIATE", "IN", "INDEX", "INDEXED", "INITIALLY", "INNER", "INSERT", "INSTEAD",
        "INTERSECT", "INTO", "IS", "ISNULL", "JOIN", "KEY", "LAST", "LEFT", "LIKE", "LIMIT", "MATCH", "MATERIALIZED",
        "NATURAL", "NO", "NOT", "NOTHING", "NOTNULL", "NULL", "NULLS", "OF", "OFFSET", "ON", "OR", "ORDER", "OTHERS",
        "OUTER", "OVER", "PARTITION", "PLAN", "PRAGMA", "PRECEDING", "PRIMARY", "QUERY", "RAISE", "RANGE", "RECURSIVE",
        "REFERENCES", "REGEXP", "REINDEX", "RELEASE", "RENAME", "REPLACE", "RESTRICT", "RETURNING", "RIGHT", "ROLLBACK",
        "ROW", "ROWS", "SAVEPOINT", "SELECT", "SET", "TABLE", "TEMP", "TEMPORARY", "THEN", "TIES", "TO", "TRANSACTION",
        "TRIGGER", "UNBOUNDED", "UNION", "UNIQUE", "UPDATE", "USING", "VACUUM", "VALUES", "VIEW", "VIRTUAL", "WHEN",
        "WHERE", "WINDOW", "WITH", "WITHOUT",
        NULL,
};

/* Sorted. REPLACE is left out: it can only be a function here, which is completed with its parenthesis. */
static const char *const reading_keywords[] = {
        "ALL", "AND", "AS", "ASC", "BETWEEN", "BY", "CASE", "CAST", "COLLATE", "CROSS", "CURRENT", "CURRENT_DATE",
        "CURRENT_TIME", "CURRENT_TIMESTAMP", "DESC", "DISTINCT", "ELSE", "END", "ESCAPE", "EXCEPT", "EXCLUDE", "EXISTS",
        "EXPLAIN", "FILTER", "FIRST", "FOLLOWING", "FROM", "FULL", "GLOB", "GROUP", "GROUPS", "HAVING", "IN", "INDEXED",
        "INNER", "INTERSECT", "IS", "ISNULL", "JOIN", "LAST", "LEFT", "LIKE", "LIMIT", "MATCH", "MATERIALIZED",
        "NATURAL", "NO", "NOT", "NOTNULL", "NULL", "NULLS", "OFFSET", "ON", "OR", "ORDER", "OTHERS", "OUTER", "OVER",
        "PARTITION", "PLAN", "PRAGMA", "PRECEDING", "QUERY", "RANGE", "RECURSIVE", "REGEXP", "RIGHT", "ROW", "ROWS",
        "SELECT", "THEN", "TIES", "UNBOUNDED", "UNION", "USING", "VALUES", "WHEN", "WHERE", "WINDOW", "WITH",
        NULL,
};

const char *const *sql_keywords(void) {
        return keywords;
}

const char *const *sql_reading_keywords(void) {
        return reading_keywords;
}

const char *const *sql_reading_pragmas(void) {
        static const char *const pragmas[] = {
                "analysis_limit", "application_id", "auto_vacuum", "automatic_index", "cache_size", "cache_spill",
                "cell_size_check", "checkpoint_fullfsync", "collation_list", "compile_options", "count_changes",
                "data_version", "default_cache_size", "defer_foreign_keys", "empty_result_callbacks", "encoding",
                "foreign_key_check", "foreign_key_list", "freelist_count", "full_column_names", "fullfsync", "function_list",
                "hard_heap_limit", "ignore_check_constraints", "index_info", "index_list", "index_xinfo", "integrity_check",
                "journal_mode", "journal_size_limit", "legacy_alter_table", "locking_mode", "max_page_count", "mmap_size",
                "module_list", "page_count", "page_size", "pragma_list", "query_only", "quick_check", "read_uncommitted",
                "recursive_triggers", "reverse_unordered_selects", "schema_version", "secure_delete", "short_column_names",
                "soft_heap_limit", "table_info", "table_list", "table_xinfo", "temp_store", "threads", "trusted_schema",
                "user_version", "wal_autocheckpoint", "writable_schema",
                NULL,
        };

        return pragmas;
}

bool sql_is_keyword(const char *word, size_t size) {
        size_t low = 0, high = G_N_ELEMENTS(keywords) - 1;

        while (low < high) {
                size_t middle = (low + high) / 2;
                int order = g_ascii_strncasecmp(word, keywords[middle], size);

                if (order == 0 && keywords[middle][size] == '\0')
                        return true;
                if (order > 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return false;
}
