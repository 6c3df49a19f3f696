/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The prompt, see editor.h. */
#include "editor.h"

#include <errno.h>
#include <glib.h>
#include <stdio.h>

struct Editor {
        EditorOptions options;
};

int editor_new(const EditorOptions *options, Editor **ret) {
        Editor *editor = g_new0(Editor, 1);

        editor->options = *options;
        *ret = editor;
        return 0;
}

Editor *editor_free(Editor *editor) {
        g_free(editor);
        return NULL;
}

char *editor_prompt(const Editor *editor) {
        return g_strdup("ipcq> ");
}

int editor_read_line(Editor *editor, const char *prompt, const char *before, char **ret, bool *ret_typed) {
        char *line = NULL;
        size_t size = 0;
        ssize_t n;

        fputs(prompt, stderr);
        n = getline(&line, &size, stdin);
        *ret_typed = false;
        if (n < 0) {
                free(line);
                return 0;
        }
        *ret = g_strndup(line, n > 0 && line[n - 1] == '\n' ? (size_t) n - 1 : (size_t) n);
        free(line);
        return 1;
}

void editor_add_history(Editor *editor, const char *text) {
}

void editor_set_colors(Editor *editor, bool colors) {
        editor->options.colors = colors;
}
