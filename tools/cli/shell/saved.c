/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Saves queries by name (saved.h). */
#include "tools/cli/shell/saved.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

#include "tools/cli/shell/user-configuration.h"

#define SUFFIX ".sql"
enum { SAVED_NAME_MAX = 64 };

static bool is_name(const char *name) {
        size_t size = strlen(name);

        return size > 0 && size <= SAVED_NAME_MAX && *name != '.' && *name != '-' &&
               strspn(name, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "-_.") == size;
}

static int saved_path(const char *name, char **ret, char **ret_message) {
        g_autofree char *file = g_strconcat(name, SUFFIX, NULL);
        g_autofree char *folder = user_configuration_path("queries");

        if (!is_name(name)) {
                *ret_message = g_strdup("a name is of letters, digits, -, _ and .");
                return -EINVAL;
        }
        *ret = g_build_filename(folder, file, NULL);
        return 0;
}

/* Converts GLib's error for a file to a negative code. */
static int file_error(const GError *error, const char *path, char **ret_message) {
        if (g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT)) {
                *ret_message = g_strdup("there is no query of this name; .queries lists them");
                return -ENOENT;
        }
        *ret_message = g_strdup_printf("%s: %s", path, error->message);
        return -EIO;
}

int saved_write(const char *name, const char *sql, char **ret_message) {
        g_autofree char *folder = user_configuration_path("queries"), *text = g_strconcat(sql, "\n", NULL), *path = NULL;
        g_autoptr(GError) error = NULL;
        int r;

        r = saved_path(name, &path, ret_message);
        if (r < 0)
                return r;
        if (g_mkdir_with_parents(folder, 0700) < 0) {
                r = -errno;
                *ret_message = g_strdup_printf("%s: %s", folder, g_strerror(-r));
                return r;
        }
        if (g_file_set_contents_full(path, text, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0600, &error))
                return 0;
        *ret_message = g_strdup(error->message);
        return -EIO;
}

int saved_read(const char *name, char **ret_sql, char **ret_path, char **ret_message) {
        g_autofree char *path = NULL, *text = NULL;
        g_autoptr(GError) error = NULL;
        size_t size;
        int r;

        r = saved_path(name, &path, ret_message);
        if (r < 0)
                return r;
        if (!g_file_get_contents(path, &text, &size, &error))
                return file_error(error, path, ret_message);
        if (strlen(text) != size) {
                *ret_message = g_strdup_printf("%s: it holds a NUL", path);
                return -EILSEQ;
        }
        *ret_sql = g_steal_pointer(&text);
        *ret_path = g_steal_pointer(&path);
        return 0;
}

int saved_remove(const char *name, char **ret_message) {
        g_autofree char *path = NULL;
        int r;

        r = saved_path(name, &path, ret_message);
        if (r < 0)
                return r;
        if (g_unlink(path) == 0)
                return 0;
        r = -errno;
        *ret_message = r == -ENOENT ? g_strdup("there is no query of this name; .queries lists them")
                                    : g_strdup_printf("%s: %s", path, g_strerror(-r));
        return r;
}

static int compare(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

char **saved_list(void) {
        g_autofree char *folder = user_configuration_path("queries");
        g_autoptr(GDir) entries = g_dir_open(folder, 0, NULL);
        GPtrArray *names = g_ptr_array_new();
        const char *entry;

        while (entries && (entry = g_dir_read_name(entries))) {
                g_autofree char *name = g_strndup(entry, strlen(entry) - MIN(strlen(entry), strlen(SUFFIX)));

                if (g_str_has_suffix(entry, SUFFIX) && is_name(name))
                        g_ptr_array_add(names, g_steal_pointer(&name));
        }
        g_ptr_array_sort(names, compare);
        g_ptr_array_add(names, NULL);
        return (char **) g_ptr_array_free(names, FALSE);
}
