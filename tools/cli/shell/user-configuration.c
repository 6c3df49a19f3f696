/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the user's own files (user-configuration.h). */
#include "tools/cli/shell/user-configuration.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli/shell/loop.h"


#define GROUP "ipcq"

char *user_configuration_path(const char *name) {
        return g_build_filename(g_get_user_config_dir(), "ipcq", name, NULL);
}

char *user_configuration_history_path(void) {
        g_autofree char *folder = g_build_filename(g_get_user_state_dir(), "ipcq", NULL);

        return g_mkdir_with_parents(folder, 0700) == 0 ? g_build_filename(folder, "history", NULL) : NULL;
}

/* ---- Settings ----------------------------------------------------------------------------------------------------- */

static void take_key(Shell *shell, GKeyFile *file, const char *path, const char *key) {
        g_autofree char *message = NULL;
        g_autoptr(GError) error = NULL;
        g_autofree char *value = g_key_file_get_string(file, GROUP, key, &error);

        if (!value)
                shell_complain(shell, "%s: %s: %s", path, key, error->message);
        else if (settings_set(&shell->settings, key, value, &message) < 0)
                shell_complain(shell, "%s: %s=%s: %s", path, key, value, message);
}

static void take_keys(Shell *shell, GKeyFile *file, const char *path) {
        g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);
        g_auto(GStrv) keys = g_key_file_get_keys(file, GROUP, NULL, NULL);

        for (char **group = groups; *group; group++)
                if (!g_str_equal(*group, GROUP))
                        shell_complain(shell, "%s: [%s] is ignored, settings belong in [" GROUP "]", path, *group);
        for (char **key = keys; key && *key; key++)
                take_key(shell, file, path, *key);
}

void user_configuration_read(Shell *shell) {
        g_autofree char *path = user_configuration_path("config");
        g_autoptr(GKeyFile) file = g_key_file_new();
        g_autoptr(GError) error = NULL;

        if (g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, &error))
                take_keys(shell, file, path);
        else if (!g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT))
                shell_complain(shell, "%s: %s", path, error->message);
}

/* ---- init.sql ----------------------------------------------------------------------------------------------------- */

void user_configuration_run_init(Shell *shell) {
        g_autofree char *path = user_configuration_path("init.sql");
        FILE *file = fopen(path, "re");

        if (file)
                (void) loop_run_script(shell, script_new_file(file, true, path));
        else if (errno != ENOENT)
                shell_complain(shell, "%s: %s", path, g_strerror(errno));
}
