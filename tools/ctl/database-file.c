/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The text of databases.d/NAME.conf, see database-file.h. Pure. */
#include "tools/ctl/database-file.h"

#include <string.h>

/* A value that is only for people. Blanks at its ends would be lost, and a newline would end it. */
static void append_value(GString *text, const char *key, const char *value) {
        size_t size = strlen(value);

        g_string_append_printf(text, "%s=", key);
        for (size_t i = 0; i < size; i++)
                switch (value[i]) {
                case '\\': g_string_append(text, "\\\\"); break;
                case '\n': g_string_append(text, "\\n"); break;
                case '\r': g_string_append(text, "\\r"); break;
                case '\t': g_string_append(text, "\\t"); break;
                case ' ': g_string_append(text, i == 0 || i == size - 1 ? "\\s" : " "); break;
                default: g_string_append_c(text, value[i]);
                }
        g_string_append_c(text, '\n');
}

/* One word of a list. */
static void append_word(GString *text, const char *word) {
        if (*word && !strpbrk(word, " \t\"'\\")) {
                g_string_append(text, word);
                return;
        }
        g_string_append_c(text, '"');
        for (; *word; word++) {
                if (*word == '"' || *word == '\\')
                        g_string_append_c(text, '\\');
                g_string_append_c(text, *word);
        }
        g_string_append_c(text, '"');
}

static void append_list(GString *text, const char *key, char **words) {
        if (!words || !*words)
                return;
        g_string_append_printf(text, "%s=", key);
        for (char **word = words; *word; word++) {
                if (word > words)
                        g_string_append_c(text, ' ');
                append_word(text, *word);
        }
        g_string_append_c(text, '\n');
}

char *database_file_text(const DatabaseFile *file) {
        GString *text = g_string_new("[Database]\n");

        append_value(text, "Path", file->path);
        if (file->description)
                append_value(text, "Description", file->description);
        if (file->mode)
                append_value(text, "Mode", file->mode);
        if (file->immutable)
                g_string_append(text, "Immutable=yes\n");
        append_list(text, "AllowUsers", file->allow_users);
        append_list(text, "AllowGroups", file->allow_groups);
        if (file->polkit)
                g_string_append(text, "Polkit=yes\n");
        append_list(text, "WriteUsers", file->write_users);
        append_list(text, "WriteGroups", file->write_groups);
        if (file->write_polkit)
                g_string_append(text, "WritePolkit=yes\n");
        if (file->foreign_keys)
                append_value(text, "ForeignKeys", file->foreign_keys);
        append_list(text, "Expose", file->expose);
        return g_string_free(text, FALSE);
}
