/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sqlipcctl backup: copies a database into a file. The caller makes the file, and a child with the service's user fills it,
 * so each of them needs only its own rights.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/ctl/copy-database.h"
#include "tools/ctl/listing.h"
#include "tools/ctl/open-database.h"
#include "tools/ctl/service-child.h"
#include "tools/ctl/variant.h"
#include "tools/terminal/format.h"
#include "tools/terminal/target-file.h"

static char *arg_service_user;
static gboolean arg_force;

static const GOptionEntry options[] = {
        { "force", 0, 0, G_OPTION_ARG_NONE, &arg_force, "Replace the file", NULL },
        { "service-user", 0, 0, G_OPTION_ARG_STRING, &arg_service_user, "The user that the service runs as", "USER" },
        {},
};

typedef struct Work {
        const DatabaseConfig *d;
        int fd;
        bool progress;
} Work;

/* Runs in the child. */
static int copy(void *userdata) {
        const Work *work = userdata;

        return copy_database(work->d, work->fd, work->progress);
}

static void complain_of_file(const char *path, int error) {
        if (error == -EEXIST)
                complain("%s is there already: --force replaces it.", path);
        else if (error == -EINVAL)
                complain("%s is no regular file.", path);
        else
                complain("%s cannot be written: %s", path, g_strerror(-error));
}

/* SQLite would take a log or journal beside the copy for its own, and so damage the copy. */
static bool check_place(const DatabaseConfig *d, const char *path) {
        static const char *const suffixes[] = { "-wal", "-journal" };
        struct stat st, there;

        for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
                g_autofree char *beside = g_strconcat(path, suffixes[i], NULL);

                if (lstat(beside, &st) == 0) {
                        complain("%s is there: a program uses a database %s, or left it behind.", beside, path);
                        return false;
                }
        }
        if (stat(path, &there) == 0 && stat(d->path, &st) == 0 && st.st_dev == there.st_dev && st.st_ino == there.st_ino) {
                complain("%s is the database itself.", path);
                return false;
        }
        return true;
}

static void print(const Context *c, const DatabaseConfig *d, const char *path, uint64_t size) {
        g_autofree char *valid = g_utf8_make_valid(path, -1);
        g_autoptr(GString) text = g_string_new(NULL);

        if (c->json) {
                g_auto(GVariantBuilder) document = {};

                g_variant_builder_init(&document, G_VARIANT_TYPE_VARDICT);
                entry(&document, "database", g_variant_new_string(d->name));
                entry(&document, "file", g_variant_new_string(valid));
                entry(&document, "bytes", g_variant_new_uint64(size));
                document_print(c, g_variant_builder_end(&document));
                return;
        }
        format_shown_text(text, path, strlen(path), SIZE_MAX);
        g_string_append(text, ": ");
        shown_append(text, g_variant_new_uint64(size), SHOWN_SIZE);
        printf("Wrote %s.\n", text->str);
}

static int back_up(const Context *c, const DatabaseConfig *d, const char *path, const ServiceUser *user) {
        ServiceChild child = { .user = user, .heap_max = OPEN_DATABASE_HEAP_MAX };
        TargetFile target;
        struct stat st = {};
        int r = target_file_begin_private(&target, path, arg_force);

        if (r < 0) {
                complain_of_file(path, r);
                return CTL_FAILED;
        }
        child.kept_fd = target.fd;
        if (service_child_run(&child, copy, &(Work) { .d = d, .fd = target.fd, .progress = !c->json }) != CTL_OK ||
            !check_place(d, path)) {
                target_file_drop(&target);
                return CTL_FAILED;
        }
        (void) fstat(target.fd, &st);
        r = target_file_keep(&target);
        if (r < 0) {
                complain_of_file(path, r);
                return CTL_FAILED;
        }
        print(c, d, path, (uint64_t) st.st_size);
        return CTL_OK;
}

/* A signal ends the child only. One that arrives after the child ended is delivered when the file is complete or removed. */
static void block_signals(int how) {
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGHUP);
        (void) sigaddset(&set, SIGINT);
        (void) sigaddset(&set, SIGTERM);
        (void) sigprocmask(how, &set, NULL);
}

static int run(Context *c, char **words) {
        g_autofree char *path = g_canonicalize_filename(words[1], NULL);
        g_autoptr(ServiceUnit) unit = context_is_unit(c) ? service_unit_new() : NULL;
        g_auto(ServiceUser) user = {};
        g_autoptr(Config) config = NULL;
        const DatabaseConfig *d;
        int r;

        config = open_database_find(c, words[0], &d);
        if (!config || service_child_user(arg_service_user, context_is_system(c), unit, &user) < 0 || !check_place(d, path))
                return CTL_FAILED;
        block_signals(SIG_BLOCK);
        r = back_up(c, d, path, &user);
        block_signals(SIG_UNBLOCK);
        return r;
}

const Verb verb_backup = {
        "backup", "NAME FILE", "Copy a database into a file, while programs write to it", 2, 2, true, options,
        "The copy belongs to you, and only you may read it.\n", run,
};
