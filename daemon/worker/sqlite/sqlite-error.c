/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See sqlite-error.h. A few primary codes have several causes that need different actions of a user, so this
 * file distinguishes them.
 */
#include "daemon/worker/sqlite/sqlite-error.h"

#include <sqlite3.h>
#include <string.h>

static bool starts_with(const char *s, const char *prefix) {
        return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* SQLite has sentences but no codes for its compile limits (parse.y, expr.c, resolve.c, select.c, func.c of 3.40). Returns
 * the key that sets the limit, "" if there is no key; NULL: the message is about something else. */
static const char *limit_key(const char *message) {
        static const struct {
                const char *prefix, *key;
        } limits[] = {
                { "Expression tree is too large", "ExpressionDepthMax=" },
                { "too many terms in compound SELECT", "CompoundSelectsMax=" },
                { "too many SQL variables", "VariablesMax=" },
                { "variable number must be between ", "VariablesMax=" },
                { "too many attached databases", NULL }, /* no compile limit */
                { "too many ", "" },
                { "at most ", "" },
                { "parser stack overflow", "" },
                { "LIKE or GLOB pattern too complex", "" },
        };

        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
                if (starts_with(message, limits[i].prefix))
                        return limits[i].key;
        return NULL;
}

static ErrorNumber number_of(int extended_code, const char *message) {
        /* SQLite has one code for "the SQL is wrong". Some causes cannot be fixed by the author of the SQL, and two of them
         * have no extended code, so only the sentence tells them apart (resolve.c, build.c of 3.40). */
        if (extended_code == SQLITE_ERROR_MISSING_COLLSEQ)
                return ERROR_MISSING_COLLATION;
        if ((extended_code & 0xff) == SQLITE_ERROR) {
                if (starts_with(message, "no such function: "))
                        return ERROR_MISSING_FUNCTION;
                if (starts_with(message, "no such module: "))
                        return ERROR_MISSING_MODULE;
                if (starts_with(message, "no such collation sequence: "))
                        return ERROR_MISSING_COLLATION;
        }
        if (extended_code == SQLITE_READONLY_ROLLBACK)
                return ERROR_NEEDS_RECOVERY;
        if (extended_code == SQLITE_READONLY_CANTINIT || extended_code == SQLITE_READONLY_RECOVERY ||
            extended_code == SQLITE_READONLY_CANTLOCK || extended_code == SQLITE_READONLY_DIRECTORY)
                return ERROR_NEEDS_OWNER;
        if (extended_code == SQLITE_IOERR_NOMEM)
                return ERROR_OUT_OF_MEMORY;

        switch (extended_code & 0xff) {
#define X(code, symbol)                                                                                               \
        case code:                                                                                                    \
                return ERROR_##symbol;
                SQLIPC_ERROR_SQLITE_TABLE(X)
#undef X
        default:
                return ERROR_INTERNAL;
        }
}

bool sqlite_error_take(SqlError *e, sqlite3 *db, int rc, size_t offset_base) {
        bool own = db && (sqlite3_errcode(db) & 0xff) == (rc & 0xff);
        const char *message = own ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
        int extended_code = own ? sqlite3_extended_errcode(db) : rc, offset = own ? sqlite3_error_offset(db) : -1;
        const char *key = (rc & 0xff) == SQLITE_ERROR ? limit_key(message) : NULL;

        /* an interrupt is ours, and its reason has already been set */
        if ((rc & 0xff) == SQLITE_INTERRUPT && e->error != ERROR_NONE)
                return false;
        if (key)
                (void) sql_error_set(e, ERROR_LIMITS_EXCEEDED, "%s%s%s: make the statement simpler", message,
                                     *key ? ", by " : "", key);
        else
                (void) sql_error_set(e, number_of(extended_code, message), "%s", message);
        e->extended_code = extended_code;
        if (offset >= 0)
                e->sql_offset = (int32_t) ((size_t) offset + offset_base);
        return false;
}
