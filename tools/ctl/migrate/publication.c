/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The target under a name of its own, see publication.h. */
#include "tools/ctl/migrate/publication.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "daemon/configuration/configuration-database.h"
#include "daemon/configuration/configuration-files.h"
#include "daemon/configuration/configuration-main.h"
#include "tools/ctl/configuration-write.h"
#include "tools/ctl/reload.h"

#define SUFFIX "-migration"

/* Limits that would end the work on a large table: the longest times, and rows of any size. */
#define OVERRIDE_TEXT                                                          \
        "# Written by sqlipcctl migrate, which removes it.\n"                  \
        "[Database]\n"                                                         \
        "Mode=read-write\nWriteSchema=yes\n"                                   \
        "AllowUsers=\nAllowGroups=\nWriteUsers=\nWriteGroups=\n"               \
        "AllowUsers=%u\nWriteUsers=%u\n"                                       \
        "%s%s%s%s%s%s"                                                         \
        "[Limits]\n"                                                           \
        "RunTimeoutSec=31622400\nParkTimeoutSec=31622400\n"                    \
        "TransactionTimeoutSec=31622400\nTransactionIdleSec=31622400\n"        \
        "BusyTimeoutSec=60\nRowSizeMax=1G\n"

/* ---- FILE.conf ---------------------------------------------------------------------------------------------------- */

static int lock_file(Publication *p) {
        p->fd = open(p->file, O_RDONLY | O_CLOEXEC);
        if (p->fd < 0) {
                complain("%s cannot be read: %s", p->file, g_strerror(errno));
                return -errno;
        }
        if (flock(p->fd, LOCK_EX | LOCK_NB) < 0) {
                complain("%s is in use by another sqlipcctl.", p->file);
                return -EBUSY;
        }
        return 0;
}

static int parse(Publication *p, const char *database) {
        const ConfigText text = { p->file, p->text, strlen(p->text) };
        const char *problem;

        p->config = config_new();
        config_add_database(p->config, database, &text, 1);
        problem = g_hash_table_lookup(p->config->broken, database);
        for (guint i = 0; i < p->config->warnings->len; i++)
                complain("warning: %s", (const char *) p->config->warnings->pdata[i]);
        if (problem)
                complain("error: %s", problem);
        p->d = g_hash_table_lookup(p->config->databases, database);
        return p->d ? 0 : -EINVAL;
}

/* The directory of the configuration that lasts until the next restart of the machine. */
static char *find_directory(const Context *c) {
        g_auto(GStrv) directories = context_directories(c);
        const char *directory = directories[0];

        for (char **i = directories; !c->config_directories && *i; i++)
                if (g_str_has_prefix(*i, context_is_system(c) ? "/run/" : g_get_user_runtime_dir()))
                        directory = *i;
        return g_build_filename(directory, DATABASES, NULL);
}

int publication_open(Context *c, const char *database, const char *file, Publication *ret) {
        g_autoptr(GError) error = NULL;
        int r;

        *ret = (Publication) {
                .c = c,
                .name = g_strdup_printf("%.*s" SUFFIX, (int) (DATABASE_NAME_SIZE_MAX - strlen(SUFFIX)), database),
                .directory = find_directory(c),
                .file = g_canonicalize_filename(file, NULL),
                .fd = -1,
        };
        r = lock_file(ret);
        if (r < 0)
                return r;
        if (!g_file_get_contents(ret->file, &ret->text, NULL, &error)) {
                complain("%s.", error->message);
                return -EIO;
        }
        return parse(ret, database);
}

/* ---- The files ---------------------------------------------------------------------------------------------------- */

static char *override_folder(const Publication *p) {
        return g_strdup_printf("%s/%s.conf.d", p->directory, p->name);
}

static char *override_text(const Publication *p) {
        const DatabaseConfig *d = p->d;

        /* Keys that would have no effect, or that an engine does not know, are left out. */
        return g_strdup_printf(OVERRIDE_TEXT, (unsigned) geteuid(), (unsigned) geteuid(), d->polkit ? "Polkit=no\n" : "",
                               d->write_polkit ? "WritePolkit=no\n" : "", *d->expose ? "Expose=\n" : "",
                               d->immutable ? "Immutable=no\n" : "", *d->write_tables ? "WriteTables=\n" : "",
                               database_config_is_server(d) ? "" : "ForeignKeys=no\n");
}

/* A database that the administrator has given this name is left alone. */
static int check_name(const Publication *p) {
        g_auto(GStrv) directories = context_directories(p->c);
        g_autofree char *other = configuration_find(directories, p->name), *folder = override_folder(p);

        if (!other || g_file_test(folder, G_FILE_TEST_IS_DIR))
                return 0;
        complain("%s is there already, and its name is needed for the migration.", other);
        return -EEXIST;
}

static int write_files(const Publication *p) {
        g_autofree char *folder = override_folder(p), *text = override_text(p);
        g_autofree char *file_name = g_strconcat(p->name, ".conf", NULL);
        int r = check_name(p);

        if (r < 0)
                return r;
        r = configuration_write(p->c, folder, OVERRIDE, text, true); /* first, so that it holds from the beginning */
        if (r >= 0)
                r = configuration_write(p->c, p->directory, file_name, p->text, true);
        if (r < 0)
                complain("%s/%s cannot be written: %s", p->directory, file_name, g_strerror(-r));
        return r;
}

void publication_remove(Publication *p) {
        g_autofree char *folder = override_folder(p), *override = g_build_filename(folder, OVERRIDE, NULL);
        g_autofree char *file = g_strdup_printf("%s/%s.conf", p->directory, p->name);

        (void) unlink(file);
        (void) unlink(override);
        (void) rmdir(folder);
        p->is_published = false;
}

/* Errors of other databases do not matter here. */
static int reload(const Publication *p) {
        g_autoptr(GVariant) info = NULL, broken = NULL;
        const char *problem;

        if (reload_service(p->c, &info) != CTL_OK)
                return -EACCES;
        broken = g_variant_lookup_value(info, "broken", G_VARIANT_TYPE("a{ss}"));
        if (broken && g_variant_lookup(broken, p->name, "&s", &problem)) {
                complain("error: %s", problem);
                return -EINVAL;
        }
        return 0;
}

int publication_begin(Publication *p) {
        int r = write_files(p);

        if (r >= 0) {
                p->is_published = true;
                r = reload(p);
        }
        return r;
}

void publication_close(Publication *p) {
        g_autoptr(GVariant) info = NULL;

        if (p->is_published) {
                publication_remove(p);
                (void) reload_service(p->c, &info);
        }
        if (p->fd >= 0)
                (void) close(p->fd);
        g_clear_pointer(&p->config, config_free);
        g_free(p->name);
        g_free(p->directory);
        g_free(p->file);
        g_free(p->text);
        *p = (Publication) { .fd = -1 };
}
