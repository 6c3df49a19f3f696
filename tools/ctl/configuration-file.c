/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One file of a configuration, see configuration-file.h. */
#include "tools/ctl/configuration-file.h"

#include <string.h>
#include <sys/stat.h>

#include "daemon/configuration/configuration-database.h"
#include "daemon/configuration/configuration-main.h"
#include "tools/ctl/complain.h"

#define MAIN_FILE "sqlipcd.conf"

static bool read_file(const char *file, char **ret_text, size_t *ret_size) {
        g_autoptr(GError) error = NULL;
        struct stat st;

        if (stat(file, &st) == 0 && !S_ISREG(st.st_mode)) {
                complain("%s is no regular file.", file);
                return false;
        }
        if (g_file_get_contents(file, ret_text, ret_size, &error))
                return true;
        complain("%s.", error->message);
        return false;
}

/* The file that a drop-in changes: "X.conf" for "X.conf.d/NAME.conf". NULL if `file` is not a drop-in. The caller frees
 * it. */
static char *base_of(const char *file) {
        g_autofree char *folder = g_path_get_dirname(file);

        return g_str_has_suffix(folder, ".conf.d") ? g_strndup(folder, strlen(folder) - strlen(".d")) : NULL;
}

/* True for sqlipcd.conf: decided by the file's name, then by its folder, then by its sections. */
static bool is_main(const char *file, const char *text) {
        g_autofree char *name = g_path_get_basename(file), *folder = g_path_get_dirname(file);

        return g_str_equal(name, MAIN_FILE) || (!g_str_has_suffix(folder, "/databases.d") && !strstr(text, "[Database]"));
}

static char *database_name(const char *file) {
        g_autofree char *name = g_path_get_basename(file);

        return g_strndup(name, g_str_has_suffix(name, ".conf") ? strlen(name) - strlen(".conf") : strlen(name));
}

Config *configuration_of_file(const char *file) {
        g_autofree char *absolute = g_canonicalize_filename(file, NULL), *base = base_of(absolute);
        g_autofree char *text = NULL, *base_text = NULL, *name = NULL;
        ConfigText texts[2];
        size_t size, base_size, n = 0;
        Config *config;

        if (base && !read_file(base, &base_text, &base_size))
                return NULL;
        if (!read_file(absolute, &text, &size))
                return NULL;
        if (base)
                texts[n++] = (ConfigText) { base, base_text, base_size };
        texts[n++] = (ConfigText) { absolute, text, size };

        config = config_new();
        name = database_name(texts[0].file);
        if (is_main(texts[0].file, texts[0].text))
                config_add_main(config, texts, n);
        else
                config_add_database(config, name, texts, n);
        return config;
}
