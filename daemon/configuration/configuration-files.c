/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds and reads the configuration files. Used by supervisor and sqlipcctl. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "config.h"
#include "daemon/configuration/configuration-database.h"
#include "daemon/configuration/configuration-files.h"
#include "daemon/configuration/configuration-main.h"

#define FILE_SIZE_MAX ((size_t) 65536)

/* ---- One file ---- */

/* Checks the kind of file. 1: the file masks others of its name. */
static int check_kind(int fd) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) /* /dev/null */
                return 1;
        return S_ISREG(st.st_mode) ? st.st_size == 0 : -ENOTSUP;
}

static int read_all(int fd, char *buffer, size_t size, size_t *ret_fill) {
        size_t fill = 0;

        while (fill < size) {
                ssize_t n = read(fd, buffer + fill, size - fill);
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                fill += (size_t) n;
        }
        *ret_fill = fill;
        return 0;
}

/* Reads `file`, NUL-terminated. 1: it masks others. O_NONBLOCK keeps a FIFO from blocking us. */
static int read_text(const char *file, char **ret_text, size_t *ret_size) {
        int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        size_t size = 0;

        if (fd < 0)
                return -errno;
        int r = check_kind(fd);
        g_autofree char *text = r == 0 ? g_malloc(FILE_SIZE_MAX + 1) : NULL;
        if (r == 0)
                r = read_all(fd, text, FILE_SIZE_MAX + 1, &size);
        close(fd);
        if (r != 0)
                return r;
        if (size > FILE_SIZE_MAX)
                return -EFBIG;
        text[size] = 0;
        *ret_text = g_steal_pointer(&text);
        *ret_size = size;
        return 0;
}

static const char *why(int r) {
        return r == -ENOTSUP  ? "it is no regular file"
               : r == -EFBIG  ? "it is larger than 64 KiB"
               : r == -ENOENT ? "it is a link that leads nowhere"
                              : strerror(-r);
}

/* ---- A file with its drop-ins ---- */

/* The texts under one name, in their order; file names and texts are owned. */
typedef struct Texts {
        Config *config;
        const char *name;
        GArray *texts; /* of ConfigText */
        bool broken;   /* one of them cannot be read */
} Texts;

static void text_clear(void *data) {
        ConfigText *t = data;

        g_free((char *) t->file);
        g_free((char *) t->text);
}

static Texts texts_init(Config *c, const char *name) {
        Texts t = { .config = c, .name = name, .texts = g_array_new(FALSE, FALSE, sizeof(ConfigText)) };

        g_array_set_clear_func(t.texts, text_clear);
        return t;
}

static void texts_done(Texts *t) {
        g_array_unref(t->texts);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Texts, texts_done)

/* Remembers that resources were lacking, which is no fault of the files: another attempt may succeed. */
static void note_lack(Config *c, int r) {
        if (r == -EMFILE || r == -ENFILE || r == -ENOMEM)
                c->lack = r;
}

/* True if `file` has a text, or would have if it could be read. */
static bool texts_add(Texts *t, const char *file) {
        struct stat st;
        size_t size = 0;
        char *text = NULL;
        int r = read_text(file, &text, &size);

        if (r == 0)
                g_array_append_val(t->texts, ((ConfigText) { g_strdup(file), text, size }));
        if (r >= 0)
                return r == 0;
        if (r == -ENOENT && lstat(file, &st) < 0) /* it was removed after it was listed */
                return false;
        note_lack(t->config, r);
        config_add_broken(t->config, t->name, "%s cannot be read: %s", file, why(r));
        t->broken = true;
        return true;
}

/* ---- Directories ---- */

/* True if the directory does not exist, or its parent is not a directory. */
static bool is_absent(const char *directory, const GError *error) {
        struct stat st;

        return g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT) ||
               (g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOTDIR) && lstat(directory, &st) < 0);
}

static int lack_of(const GError *error) {
        return g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_MFILE)   ? -EMFILE
               : g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NFILE) ? -ENFILE
               : g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOMEM) ? -ENOMEM
                                                                          : 0;
}

/* Adds the files of `directory` that end in `suffix`, name -> full path, except names that are in `files` already. If it
 * cannot be read, `problem` gets the reason, unless it has one. */
static void list_directory(Config *c, const char *directory, const char *suffix, GTree *files, char **problem) {
        g_autoptr(GError) error = NULL;
        const char *name;
        GDir *dir = g_dir_open(directory, 0, &error);

        note_lack(c, lack_of(error));
        if (!dir && !is_absent(directory, error) && !*problem)
                *problem = g_strdup(error->message);
        while (dir && (name = g_dir_read_name(dir)))
                if (g_str_has_suffix(name, suffix) && name[0] != '.' && !g_tree_lookup(files, name))
                        g_tree_insert(files, g_strdup(name), g_build_filename(directory, name, NULL));
        if (dir)
                g_dir_close(dir);
}

static int compare_names(const void *a, const void *b, void *userdata) {
        return strcmp(a, b);
}

/* Lists the files in `subdirectory` of all `directories`, sorted by name; for each name the first directory wins.
 * `ret_problem`: why one of them cannot be read, or NULL. */
static GTree *list_all(Config *c, const char *const *directories, const char *subdirectory, const char *suffix,
                       char **ret_problem) {
        GTree *files = g_tree_new_full(compare_names, NULL, g_free, g_free);

        *ret_problem = NULL;
        for (const char *const *i = directories; *i; i++) {
                g_autofree char *directory = g_build_filename(*i, subdirectory, NULL);

                list_directory(c, directory, suffix, files, ret_problem);
        }
        return files;
}

static gboolean add_drop_in(void *name, void *file, void *texts) {
        (void) texts_add(texts, file);
        return FALSE;
}

static void add_drop_ins(Texts *t, const char *const *directories, const char *main_file) {
        g_autofree char *subdirectory = g_strconcat(main_file, ".d", NULL), *problem = NULL;
        g_autoptr(GTree) files = list_all(t->config, directories, subdirectory, ".conf", &problem);

        if (problem) {
                config_add_broken(t->config, t->name, "%s", problem);
                t->broken = true;
        }
        g_tree_foreach(files, add_drop_in, t);
}

/* ---- All ---- */

static void load_main(Config *c, const char *const *directories) {
        g_auto(Texts) t = texts_init(c, "sqlipcd.conf");
        struct stat st;

        for (const char *const *i = directories; *i; i++) {
                g_autofree char *file = g_build_filename(*i, "sqlipcd.conf", NULL);

                if (lstat(file, &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
                        continue;
                (void) texts_add(&t, file);
                break;
        }
        add_drop_ins(&t, directories, "sqlipcd.conf");
        config_add_main(c, (const ConfigText *) (const void *) t.texts->data, t.texts->len);
}

typedef struct Loading {
        Config *config;
        const char *const *directories;
        GTree *files; /* of databases.d: NAME.conf -> path */
} Loading;

static gboolean load_database(void *file_name, void *file, void *userdata) {
        const Loading *l = userdata;
        g_autofree char *name = g_strndup(file_name, strlen(file_name) - strlen(".conf"));
        g_autofree char *main_file = g_build_filename("databases.d", file_name, NULL);
        g_auto(Texts) t = texts_init(l->config, name);

        if (!texts_add(&t, file))
                return FALSE;
        add_drop_ins(&t, l->directories, main_file);
        if (!t.broken)
                config_add_database(l->config, name, (const ConfigText *) (const void *) t.texts->data, t.texts->len);
        return FALSE;
}

/* Drop-ins without a database's file publish nothing, so they are reported: perhaps the name is misspelled. */
static gboolean check_drop_in_directory(void *directory_name, void *directory, void *userdata) {
        const Loading *l = userdata;
        g_autofree char *file_name = g_strndup(directory_name, strlen(directory_name) - strlen(".d"));
        g_autofree char *name = g_strndup(file_name, strlen(file_name) - strlen(".conf"));

        if (!g_tree_lookup(l->files, file_name))
                config_add_broken(l->config, name, "%s: there is no %s to which this could add", (const char *) directory,
                                  file_name);
        return FALSE;
}

Config *config_load(const char *const *directories) {
        Config *c = config_new();
        g_autofree char *problem = NULL, *same_problem = NULL;
        g_autoptr(GTree) files = list_all(c, directories, "databases.d", ".conf", &problem);
        g_autoptr(GTree) drop_ins = list_all(c, directories, "databases.d", ".conf.d", &same_problem);
        Loading l = { .config = c, .directories = directories, .files = files };

        if (problem)
                config_add_warning(c, "%s", problem);
        load_main(c, directories);
        g_tree_foreach(files, load_database, &l);
        g_tree_foreach(drop_ins, check_drop_in_directory, &l);
        return c;
}

/* Adds a directory below the one in an environment variable, if that is set. GLib is not used for this: it would ask NSS
 * for a home directory, and make one in place of a runtime directory. */
static bool add_directory(GStrvBuilder *directories, const char *variable, const char *below) {
        const char *base = getenv(variable);

        if (!base || base[0] != '/')
                return false;
        g_autofree char *directory = g_build_filename(base, below, NULL);
        g_strv_builder_add(directories, directory);
        return true;
}

char **config_default_directories(bool user) {
        g_autoptr(GStrvBuilder) directories = g_strv_builder_new();

        if (user) {
                if (!add_directory(directories, "XDG_CONFIG_HOME", "sqlipc"))
                        (void) add_directory(directories, "HOME", ".config/sqlipc");
                (void) add_directory(directories, "XDG_RUNTIME_DIR", "sqlipc");
                g_strv_builder_add_many(directories, SQLIPC_CONFIG_DIR "/user", SQLIPC_VENDOR_DIR "/user", NULL);
        } else
                g_strv_builder_add_many(directories, SQLIPC_CONFIG_DIR, "/run/sqlipc", SQLIPC_VENDOR_DIR, NULL);
        return g_strv_builder_end(directories);
}
