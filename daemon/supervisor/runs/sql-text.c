/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The SQL of statements and runs. Supervisor. */
#include <string.h>

#include "daemon/supervisor/access/pacing.h"
#include "daemon/supervisor/base/quota.h"
#include "daemon/supervisor/runs/sql-text.h"

int sql_text_check(User *u, const Database *d, const char *sql, size_t *ret_size, Refusal *refusal) {
        size_t size = strlen(sql), max = (size_t) quota_limits(u, d).sql_size_max;

        if (size > max) {
                pacing_charge(u, size);
                return refuse(refusal, ERROR_LIMITS_EXCEEDED,
                              "The SQL has %zu bytes: at most %zu are taken (SQLSizeMax=); pass values as parameters.", size,
                              max);
        }
        *ret_size = size;
        return 0;
}

char *sql_text_excerpt_of_file(const ArgumentFile *file) {
        char text[SQL_EXCERPT_LENGTH * 6]; /* the longest character that g_utf8_make_valid() makes of a byte has fewer */
        size_t size = argument_file_read_sql(file, text, sizeof text);
        g_autofree char *valid = g_utf8_make_valid(text, (gssize) size);
        g_autoptr(GBytes) bytes = g_bytes_new_static(valid, strlen(valid));

        return sql_text_excerpt(bytes);
}

char *sql_text_excerpt(GBytes *sql) {
        size_t size;
        const char *text = g_bytes_get_data(sql, &size) ?: "", *end = text; /* GBytes returns NULL for empty SQL */

        /* the SQL came as a D-Bus string, so it is valid UTF-8 and a part of it can be sent as a string */
        for (unsigned n = 0; n < SQL_EXCERPT_LENGTH && end < text + size; n++)
                end = g_utf8_next_char(end);
        return g_strndup(text, (size_t) (end - text));
}
