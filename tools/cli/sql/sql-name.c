/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names in SQL, see sql-name.h. Pure. */
#include "tools/cli/sql/sql-name.h"

#include "tools/cli/sql/sql-keyword.h"
#include "tools/terminal/sql-literal.h"

bool sql_name_is_plain(const char *name) {
        if (!g_ascii_isalpha(*name) && *name != '_')
                return false;
        for (const char *p = name; *p; p++)
                if (!g_ascii_isalnum(*p) && *p != '_')
                        return false;
        return !sql_is_keyword(name, strlen(name));
}

void sql_name_append_quoted(GString *sql, const char *name, char quote) {
        char buffer[SINK_SIZE_MIN];
        Sink sink = { .string = sql, .buffer = buffer, .size = sizeof buffer };

        sql_literal_quoted(&sink, name, strlen(name), quote);
        sink_finish(&sink);
}

void sql_name_write(Sink *sink, const char *name) {
        if (sql_name_is_plain(name))
                sink_string(sink, name);
        else
                sql_literal_quoted(sink, name, strlen(name), '"');
}

char *sql_name_unquote(const char *text, size_t size, char quote) {
        GString *name = g_string_sized_new(size);

        for (size_t i = 0; i < size; i++) {
                g_string_append_c(name, text[i]);
                if (text[i] == quote && i + 1 < size && text[i + 1] == quote)
                        i++;
        }
        return g_string_free(name, false);
}
