/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pragma.h. Pure.
 */
#include "daemon/worker/sqlite/pragma.h"

#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <strings.h>

#include "daemon/worker/core/engine.h"

#define CHANGES_RESULTS "it would change the results of all programs, which share connections"

/* Sorted. SQLite returns a row for some settings, and none for others, and so does the service. */
static const PragmaRule rules[] = {
        { "analysis_limit", PRAGMA_RUNS, PRAGMA_READS, NULL, NULL },
        { "application_id", PRAGMA_RUNS, PRAGMA_NUMBER, NULL, NULL },
        { "auto_vacuum", PRAGMA_RUNS, PRAGMA_IGNORED, NULL, NULL },
        { "automatic_index", PRAGMA_RUNS, PRAGMA_IGNORED, NULL, NULL },
        { "busy_timeout", PRAGMA_BUSY_TIMEOUT, PRAGMA_BUSY_TIMEOUT, NULL, NULL },
        { "cache_size", PRAGMA_RUNS, PRAGMA_IGNORED, NULL, NULL },
        { "cache_spill", PRAGMA_RUNS, PRAGMA_IGNORED, NULL, NULL },
        { "case_sensitive_like", PRAGMA_IGNORED, PRAGMA_NEEDS_OFF, NULL, CHANGES_RESULTS ": use GLOB" },
        { "cell_size_check", PRAGMA_RUNS, PRAGMA_IGNORED, NULL, NULL },
        { "checkpoint_fullfsync", PRAGMA_RUNS, PRAGMA_IGNORED, NULL, NULL },
        { "collation_list", PRAGMA_RUNS, PRAGMA_READS, NULL, NULL },
        { "compile_options", PRAGMA_RUNS, PRAGMA_READS, NULL, NULL },
        { "count_changes", PRAGMA_RUNS, PRAGMA_PIN_UNLESS_OFF, NULL, CHANGES_RESULTS ": use RETURNING or changes()" },
        { "data_version", PRAGMA_RUNS, PRAGMA_READS, NULL, NULL },
        /* SQLite's own row names the file */
        { "database_list", PRAGMA_DATABASE_LIST, PRAGMA_DATABASE_LIST, "SELECT 0 AS seq, 'main' AS name, '' AS file", NULL },
        { "default_cache_size", PRAGMA_RUNS, PRAGMA_IGNORED, NULL, NULL },
        { "defer_foreign_keys", PRAGMA_RUNS, PRAGMA_DEFER_FOREIGN_KEYS, NULL, "it needs a transaction that writes" },
        { "empty_result_callbacks", PRAGMA_RUNS, PRAGMA_IGNORED, NULL, NULL },
        { "encoding", PRAGMA_RUNS, PRAGMA_IGNORED, NULL, NULL },
        { "foreign_key_check", PRAGMA_RUNS, PRAGMA_RUNS, NULL, NULL },
        { "foreign_key_list", PRAGMA_RUNS, PRAGMA_RUNS, NULL, NULL },
        { "foreign_keys", PRAGMA_FOREIGN_KEYS, PRAGMA_FOREIGN_KEYS, NULL,
          ENGINE_NO_FOREIGN_KEYS "; in a transaction PRAGMA defer_foreign_keys = ON has keys checked by its commit" },
        { "freelist_count", PRAGMA_RUNS, PRAGMA_READS, NULL, NULL },
        { "full_column_names", PRAGMA_RUNS, PRAGMA_PIN_UNLESS_OFF, NULL, CHANGES_RESULTS ": name the columns with AS" },
        { "fullfsync", PRAGMA_RUNS, PRAGMA_IGNORED, NULL, NULL },
        { "function_list", PRAGMA_RUNS, PRAGMA_READS, NULL, NULL },
        { "hard_heap_limit", PRAGMA_RUNS, PRAGMA_READS, NULL, NULL },
        { "ignore_check_constraints", PRAGMA_RUNS, PRAGMA_NEEDS_OFF, NULL,
          "all programs that write to this database keep its CHECK constraints" },
        { "incremental_vacuum", PRAGMA_REFUSED, PRAGMA_REFUSED, NULL,
          "VACUUM and \"sqlipcctl vacuum\" give free pages back" },
        { "index_info", PRAGMA_RUNS, PRAGMA_RUNS, NULL, NULL },
        { "index_list", PRAGMA_RUNS, PRAGMA_RUNS, NULL, NULL },
        { "index_xinfo", PRAGMA_RUNS, PRAGMA_RUNS, NULL, NULL },
        { "integrity_check", PRAGMA_RUNS, PRAGMA_RUNS, NULL, NULL },
        { "journal_mode", PRAGMA_RUNS, PRAGMA_READS, NULL, NULL },
        { "journal_size_limit", PRAGMA_RUNS, PRAGMA_READS, NULL, NULL },
        { "legacy_alter_table", PRAGMA_RUNS, PRAGMA_PIN_UNLESS_OFF, NULL, CHANGES_RESULTS },
        { "locking_mode", PRAGMA_RUNS, PRAGMA_READS, NULL, NULL },
        { "max_page_count", PRAGMA_RUNS, PRAGMA_REFUSED, NULL, "DatabaseSizeMax= limits the size of this database" },
        { "mmap_size", PRAGMA_RUNS, PRAGMA_READS, NULL, NULL },
        { "module_list", PRAGMA_RUNS, PRAGMA_READS, NULL, NULL },
        { "optimize", PRAGMA_ANSWERS, PRAGMA_ANSWERS, "SELECT 0 AS optimize WHERE false", NULL },
        { "page_count", PRAGMA_RUNS, PRAGMA_READS, NULL, NULL },
        { "page_size", PRAGMA_RUNS, PRAGMA_IGNORED, NULL, NULL },
        { "pragma_list", PRAGMA_RUNS, PRAGMA_READS, NULL, NULL },
        { "query_only", PRAGMA_RUNS, PRAGMA_QUERY_ONLY, NULL,
          "the connection is shared with programs that write: begin a transaction that reads, or connect as a user who may "
          "only read" },
        { "quick_check", PRAGMA_RUNS, PRAGMA_RUNS, NULL, NULL },
        { "read_uncommitted", PRAGMA_RUNS, PRAGMA_IGNORED, NULL, NULL },
        { "recursive_triggers", PRAGMA_RUNS, PRAGMA_PIN_UNLESS_OFF, NULL, CHANGES_RESULTS },
        { "reverse_unordered_selects", PRAGMA_RUNS, PRAGMA_PIN_UNLESS_OFF, NULL, CHANGES_RESULTS ": use ORDER BY" },
        { "schema_version", PRAGMA_RUNS, PRAGMA_REFUSED, NULL, "a wrong number would make programs misread the file" },
        { "secure_delete", PRAGMA_RUNS, PRAGMA_SECURE_DELETE, NULL,
          "the SQLite of the service does not overwrite what is deleted" },
        { "short_column_names", PRAGMA_RUNS, PRAGMA_PIN_UNLESS_ON, NULL, CHANGES_RESULTS ": name the columns with AS" },
        { "shrink_memory", PRAGMA_IGNORED, PRAGMA_IGNORED, NULL, NULL },
        { "soft_heap_limit", PRAGMA_RUNS, PRAGMA_READS, NULL, NULL },
        { "synchronous", PRAGMA_SYNCHRONOUS, PRAGMA_IGNORED, NULL, NULL },
        { "table_info", PRAGMA_RUNS, PRAGMA_RUNS, NULL, NULL },
        { "table_list", PRAGMA_RUNS, PRAGMA_RUNS, NULL, NULL },
        { "table_xinfo", PRAGMA_RUNS, PRAGMA_RUNS, NULL, NULL },
        { "temp_store", PRAGMA_RUNS, PRAGMA_IGNORED, NULL, NULL },
        { "temp_store_directory", PRAGMA_ANSWERS, PRAGMA_REFUSED, "SELECT '' AS temp_store_directory WHERE false",
          "the service chooses the folder of its temporary files" },
        { "threads", PRAGMA_RUNS, PRAGMA_READS, NULL, NULL },
        { "trusted_schema", PRAGMA_RUNS, PRAGMA_IGNORED, NULL, NULL }, /* trusted-schema.h */
        { "user_version", PRAGMA_RUNS, PRAGMA_NUMBER, NULL, NULL },
        { "wal_autocheckpoint", PRAGMA_RUNS, PRAGMA_READS, NULL, NULL },
        { "wal_checkpoint", PRAGMA_ANSWERS, PRAGMA_ANSWERS, "SELECT 0 AS busy, -1 AS log, -1 AS checkpointed", NULL },
        { "writable_schema", PRAGMA_RUNS, PRAGMA_WRITABLE_SCHEMA, NULL,
          "a direct change of sqlite_schema can damage the database: use CREATE, ALTER and DROP" },
};

static int compare(const void *name, const void *rule) {
        return strcasecmp(name, ((const PragmaRule *) rule)->name);
}

const PragmaRule *pragma_find(const char *name) {
        return bsearch(name, rules, sizeof rules / sizeof *rules, sizeof *rules, compare);
}

int pragma_integer(const char *argument) {
        bool negative = *argument == '-';
        const char *digits = argument + (*argument == '-' || *argument == '+');
        int base = strncasecmp(digits, "0x", 2) == 0 && isxdigit((unsigned char) digits[2]) ? 16 : 10;
        unsigned long long n = isdigit((unsigned char) digits[0]) ? strtoull(digits, NULL, base) : 0;

        if (n > INT32_MAX)
                return 0;
        return negative ? -(int) n : (int) n;
}

bool pragma_is_on(const char *argument) {
        if (*argument >= '0' && *argument <= '9') /* of a larger number SQLite takes the last eight bits */
                return (pragma_integer(argument) & 0xff) != 0;
        return strcasecmp(argument, "on") == 0 || strcasecmp(argument, "yes") == 0 || strcasecmp(argument, "true") == 0;
}
