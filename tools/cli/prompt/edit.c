/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Edits text in the user's editor (edit.h). */
#include "tools/cli/prompt/edit.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/output/files.h"
#include "tools/cli/output/program.h"

/* Finds the editor, as a command for sh, so that EDITOR="code --wait" works. On Debian, the program `editor` is the
 * administrator's choice. */
static const char *find_editor(void) {
        static const char *const variables[] = { "VISUAL", "EDITOR" };
        static const char *const programs[] = { "editor", "vi", "nano" };

        for (size_t i = 0; i < G_N_ELEMENTS(variables); i++) {
                const char *value = g_getenv(variables[i]);

                if (value && *value)
                        return value;
        }
        for (size_t i = 0; i < G_N_ELEMENTS(programs); i++) {
                g_autofree char *path = g_find_program_in_path(programs[i]);

                if (path)
                        return programs[i];
        }
        return NULL;
}

static int run_editor(const char *editor, const char *path, char **ret_message) {
        g_autofree char *command = g_strconcat(editor, " \"$1\"", NULL);
        int r;

        r = program_run_shell(command, path);
        if (r == 0)
                return 0;
        *ret_message = r < 0 ? g_strdup_printf("%s: %s", editor, g_strerror(-r))
                             : g_strdup_printf("%s ended with exit code %d: nothing is taken from it", editor, r);
        return r < 0 ? r : -ECANCELED;
}

/* Reads the file by its name, because an editor may have replaced it with a new file. */
static int read_file(const char *path, char **ret, char **ret_message) {
        g_autofree char *text = NULL;
        g_autoptr(GError) error = NULL;
        size_t size;

        if (!g_file_get_contents(path, &text, &size, &error)) {
                *ret_message = g_strdup(error->message);
                return -EIO;
        }
        if (!g_utf8_validate(text, (gssize) size, NULL)) {
                *ret_message = g_strdup("what came back is no UTF-8 text");
                return -EILSEQ;
        }
        *ret = g_steal_pointer(&text);
        return 0;
}

int edit_text(const char *text, char **ret, char **ret_message) {
        g_autofree char *path = g_build_filename(g_get_tmp_dir(), "ipcq-XXXXXX.sql", NULL);
        const char *editor = find_editor();
        int fd, r;

        if (!editor) {
                *ret_message = g_strdup("there is no editor; $EDITOR can name one");
                return -ENOENT;
        }
        fd = mkostemps(path, (int) strlen(".sql"), O_CLOEXEC);
        r = fd < 0 ? -errno : write_all(fd, text, strlen(text));
        if (r < 0)
                *ret_message = g_strdup_printf("%s: %s", path, g_strerror(-r));
        else
                r = run_editor(editor, path, ret_message);
        if (r >= 0)
                r = read_file(path, ret, ret_message);
        if (fd >= 0) {
                (void) close(fd);
                (void) unlink(path);
        }
        return r;
}
