/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See bind.h. The parameters arrive as one row in the page format, so the decoder's functions read them.
 */
#include "daemon/worker/sqlite/bind.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/sqlite/sqlite-error.h"
#include "dbus-interfaces/wire/page-decoder.h"

/* The job's parameters as a decoded row. Only the fields that page_decoder_value() uses are set. */
static PageDecoder as_row(const JobSpec *job, unsigned n) {
        return (PageDecoder) {
                .types = job->parameters,
                .ends = job->parameters + n,
                .data = job->parameters + ROW_HEAD_SIZE(n),
        };
}

static int bind_value(sqlite3_stmt *stmt, int index, const PageValue *v) {
        switch (v->type) {
        case VALUE_INTEGER:
                return sqlite3_bind_int64(stmt, index, (int64_t) load_le64(v->bytes));
        case VALUE_REAL:
                return sqlite3_bind_double(stmt, index, load_le_double(v->bytes));
        case VALUE_TEXT:
                return sqlite3_bind_text64(stmt, index, (const char *) v->bytes, v->size, SQLITE_STATIC, SQLITE_UTF8);
        case VALUE_BLOB:
                return sqlite3_bind_blob64(stmt, index, v->bytes, v->size, SQLITE_STATIC);
        case VALUE_NULL:
                return sqlite3_bind_null(stmt, index);
        }
        return SQLITE_MISUSE;
}

int bind_row(sqlite3_stmt *stmt, const PageDecoder *row, unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                PageValue v = page_decoder_value(row, i);
                int rc = bind_value(stmt, (int) i + 1, &v);

                if (rc != SQLITE_OK)
                        return rc;
        }
        return SQLITE_OK;
}

#define N_FEW 64 /* shorter names and fewer parameters than this take no allocation */

/* Results of index_of() other than an index. */
enum { INDEX_NONE = 0, INDEX_SEVERAL = -1, INDEX_NO_MEMORY = -2 };

static int try_name(sqlite3_stmt *stmt, char prefix, const char *name) {
        size_t size = strlen(name) + 1;
        char few[N_FEW], *full = size < sizeof few ? few : malloc(size + 1);
        int index;

        if (!full)
                return INDEX_NO_MEMORY;
        full[0] = prefix;
        memcpy(full + 1, name, size);
        index = sqlite3_bind_parameter_index(stmt, full);
        if (full != few)
                free(full);
        return index;
}

/* Finds the index of `name`, with or without its prefix. INDEX_SEVERAL: without a prefix the name fits several
 * parameters. */
static int index_of(sqlite3_stmt *stmt, const char *name) {
        static const char prefixes[] = { ':', '@', '$', '?' };
        int found = sqlite3_bind_parameter_index(stmt, name);

        if (found > 0 || strchr(":@$?", name[0]))
                return found;
        for (size_t i = 0; i < sizeof prefixes; i++) {
                int index = try_name(stmt, prefixes[i], name);

                if (index < 0)
                        return index;
                if (index > 0 && found > 0 && index != found)
                        return INDEX_SEVERAL;
                if (index > 0)
                        found = index;
        }
        return found;
}

/* A parameter without a name and a value is a forgotten "?", or a number that "?NNN" skipped. SQLite does not tell them
 * apart. If a numbered parameter follows, it counts as skipped and stays NULL, as in SQLite itself. */
static bool may_be_skipped(sqlite3_stmt *stmt, int index, int count) {
        if (sqlite3_bind_parameter_name(stmt, index))
                return false;
        for (int i = index + 1; i <= count; i++) {
                const char *name = sqlite3_bind_parameter_name(stmt, i);

                if (name && name[0] == '?')
                        return true;
        }
        return false;
}

static bool check_all_bound(sqlite3_stmt *stmt, const bool *bound, int count, SqlError *error) {
        for (int i = 1; i <= count; i++)
                if (!bound[i] && !may_be_skipped(stmt, i, count)) {
                        const char *name = sqlite3_bind_parameter_name(stmt, i);

                        return sql_error_set(error, ERROR_PARAMETER_COUNT,
                                             "parameter %d%s%s%s has no value: give each of the %d parameters one", i,
                                             name ? " (" : "", name ?: "", name ? ")" : "", count);
                }
        return true;
}

/* The destination of the values. */
typedef struct BindTarget {
        sqlite3 *db;
        sqlite3_stmt *stmt;
        PageValue *values; /* they are stored here; NULL: they are bound */
} BindTarget;

static bool set_value(const BindTarget *t, int index, const PageValue *v, SqlError *error) {
        int rc;

        if (t->values) {
                t->values[index - 1] = *v;
                return true;
        }
        rc = bind_value(t->stmt, index, v);
        return rc == SQLITE_OK || sqlite_error_take(error, t->db, rc, 0);
}

static bool set_named(const BindTarget *t, const char *name, const PageValue *value, bool *bound, SqlError *error) {
        int index = index_of(t->stmt, name);

        if (index == INDEX_NO_MEMORY)
                return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
        if (index == INDEX_NONE)
                return sql_error_set(error, ERROR_UNKNOWN_PARAMETER, "the statement has no parameter \"%s\"", name);
        if (index == INDEX_SEVERAL)
                return sql_error_set(error, ERROR_UNKNOWN_PARAMETER,
                                     "\"%s\" names several parameters of the statement: write it with its prefix", name);
        if (bound[index])
                return sql_error_set(error, ERROR_PARAMETER_COUNT, "parameter %d (%s) has two values", index, name);
        bound[index] = true;
        return set_value(t, index, value, error);
}

static bool set_all(const BindTarget *t, const JobSpec *job, bool *bound, int count, SqlError *error) {
        unsigned n = job->n_positional + 2 * job->n_named;
        PageDecoder row = n > 0 ? as_row(job, n) : (PageDecoder) {};

        for (unsigned i = 0; i < job->n_positional; i++) {
                PageValue v = page_decoder_value(&row, i);

                if (!set_value(t, (int) i + 1, &v, error))
                        return false;
                bound[i + 1] = true;
        }
        for (unsigned i = job->n_positional; i < n; i += 2) {
                PageValue name = page_decoder_value(&row, i), v = page_decoder_value(&row, i + 1);

                if (!set_named(t, (const char *) name.bytes, &v, bound, error))
                        return false;
        }
        return check_all_bound(t->stmt, bound, count, error);
}

static bool set_parameters(const BindTarget *t, const JobSpec *job, SqlError *error) {
        int count = sqlite3_bind_parameter_count(t->stmt);
        bool few[N_FEW] = {}, *bound = few, ok;

        if (job->n_positional > (unsigned) count)
                return sql_error_set(error, ERROR_PARAMETER_COUNT, "%u values for a statement with %d parameters",
                                     job->n_positional, count);
        if (count == 0 && job->n_named == 0)
                return true;
        if (count >= N_FEW)
                bound = calloc((size_t) count + 1, sizeof *bound);
        if (!bound)
                return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
        ok = set_all(t, job, bound, count, error);
        if (bound != few)
                free(bound);
        return ok;
}

bool bind_parameters(sqlite3 *db, sqlite3_stmt *stmt, const JobSpec *job, SqlError *error) {
        return set_parameters(&(BindTarget) { .db = db, .stmt = stmt }, job, error);
}

bool bind_find(sqlite3_stmt *stmt, const JobSpec *job, PageValue *ret_values, SqlError *error) {
        for (int i = 0; i < sqlite3_bind_parameter_count(stmt); i++)
                ret_values[i] = (PageValue) { .type = VALUE_NULL };
        return set_parameters(&(BindTarget) { .stmt = stmt, .values = ret_values }, job, error);
}
