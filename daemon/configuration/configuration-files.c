/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where the configuration lies. Supervisor and sqlipcctl. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "configuration-files.h"

#define FILE_SIZE_MAX ((size_t) 65536)

/* Reads `file`, NUL-terminated. O_NONBLOCK: a FIFO that somebody put there does not stop us. */
static int read_text(const char *file, char **ret_text, size_t *ret_size) {
        g_autofree char *text = g_malloc(FILE_SIZE_MAX + 1);
        struct stat st;
        size_t fill = 0;
        ssize_t n = 1;
        int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                n = -errno;
        else if (!S_ISREG(st.st_mode))
                n = -ENOTSUP;
        while (n > 0 && fill <= FILE_SIZE_MAX) {
                n = read(fd, text + fill, FILE_SIZE_MAX + 1 - fill);
                if (n < 0)
                        n = -errno;
                else
                        fill += (size_t) n;
        }
        close(fd);
        if (n < 0)
                return (int) n;
        if (fill > FILE_SIZE_MAX)
                return -EFBIG;
        text[fill] = 0;
        *ret_text = g_steal_pointer(&text);
        *ret_size = fill;
        return 0;
}

static const char *why(int r) {
        return r == -ENOTSUP ? "it is no regular file" : r == -EFBIG ? "it is larger than 64 KiB" : strerror(-r);
}

static void load_limits(Config *c, const char *directory) {
        g_autofree char *file = g_build_filename(directory, "sqlipcd.conf", NULL), *text = NULL;
        size_t size;
        int r = read_text(file, &text, &size);

        if (r >= 0)
                config_add_main(c, &(ConfigText) { file, text, size }, 1);
        else if (r != -ENOENT)
                config_add_broken(c, "sqlipcd.conf", "%s cannot be read: %s", file, why(r));
}

static void load_database(Config *c, const char *directory, const char *file_name) {
        g_autofree char *name = g_strndup(file_name, strlen(file_name) - strlen(".conf"));
        g_autofree char *file = g_build_filename(directory, file_name, NULL), *text = NULL;
        size_t size;
        int r = read_text(file, &text, &size);

        if (r >= 0)
                config_add_database(c, name, &(ConfigText) { file, text, size }, 1);
        else if (r != -ENOENT) /* removed since we listed the directory */
                config_add_broken(c, name, "%s cannot be read: %s", file, why(r));
}

Config *config_load(const char *const *directories) {
        const char *directory = directories[0];
        Config *c = config_new();
        g_autofree char *databases = g_build_filename(directory, "databases.d", NULL);
        g_autoptr(GError) error = NULL;
        const char *name;

        load_limits(c, directory);
        GDir *dir = g_dir_open(databases, 0, &error);
        if (!dir && !g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT))
                g_ptr_array_add(c->warnings, g_strdup(error->message));
        while (dir && (name = g_dir_read_name(dir)))
                if (g_str_has_suffix(name, ".conf") && name[0] != '.')
                        load_database(c, databases, name);
        if (dir)
                g_dir_close(dir);
        return c;
}

char **config_default_directories(bool user) {
        const char *const system[] = { SQLIPC_CONFIG_DIR, "/run/sqlipc", SQLIPC_VENDOR_DIR, NULL };

        if (!user)
                return g_strdupv((char **) system);
        char **directories = g_new0(char *, 5);
        directories[0] = g_build_filename(g_get_user_config_dir(), "sqlipc", NULL);
        directories[1] = g_build_filename(g_get_user_runtime_dir(), "sqlipc", NULL);
        directories[2] = g_strdup(SQLIPC_CONFIG_DIR "/user");
        directories[3] = g_strdup(SQLIPC_VENDOR_DIR "/user");
        return directories;
}
