/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcctl integrity: finds damage in the file of a database. */
#include <stdio.h>
#include <string.h>

#include "tools/ctl/find-damage.h"
#include "tools/ctl/listing.h"
#include "tools/ctl/open-database.h"
#include "tools/ctl/service-child.h"
#include "tools/ctl/variant.h"
#include "tools/terminal/format.h"

enum { LOCK_SECONDS = 30 };

static char *arg_service_user;

static const GOptionEntry options[] = {
        { "service-user", 0, 0, G_OPTION_ARG_STRING, &arg_service_user, "The user that the service runs as", "USER" },
        {},
};

typedef struct Work {
        const Context *c;
        const DatabaseConfig *d;
} Work;

static void print_document(const Work *work, const GPtrArray *problems) {
        g_auto(GVariantBuilder) document = {};

        g_variant_builder_init(&document, G_VARIANT_TYPE_VARDICT);
        entry(&document, "database", g_variant_new_string(work->d->name));
        entry(&document, "ok", g_variant_new_boolean(problems->len == 0));
        entry(&document, "problems",
              g_variant_new_strv((const char *const *) problems->pdata, (gssize) problems->len));
        document_print(work->c, g_variant_builder_end(&document));
}

static void print_lines(const Work *work, const GPtrArray *problems) {
        for (guint i = 0; i < problems->len; i++) {
                g_autoptr(GString) shown = g_string_new(NULL);

                format_shown_text(shown, problems->pdata[i], strlen(problems->pdata[i]), SIZE_MAX);
                printf("%s: %s\n", work->d->name, shown->str);
        }
        if (problems->len == 0 && !work->c->no_legend)
                printf("%s: no problems.\n", work->d->name);
}

/* Runs in the child. */
static int check(void *userdata) {
        const Work *work = userdata;
        g_autoptr(GPtrArray) problems = g_ptr_array_new_with_free_func(g_free);
        sqlite3 *db = open_database(work->d, false, LOCK_SECONDS);
        int rc;

        if (!db)
                return CTL_FAILED;
        rc = find_damage(db, "integrity_check", problems);
        if (rc == SQLITE_OK && problems->len == 0) /* keys of a damaged file would only repeat it */
                rc = find_orphans(db, problems);
        if (rc != SQLITE_OK) {
                (void) complain_of_sqlite(work->d, "checked completely", db, rc);
                (void) sqlite3_close(db);
                return CTL_FAILED;
        }
        (void) sqlite3_close(db);
        if (work->c->json)
                print_document(work, problems);
        else
                print_lines(work, problems);
        return problems->len == 0 ? CTL_OK : CTL_FAILED;
}

static int run(Context *c, char **words) {
        g_autoptr(ServiceUnit) unit = context_is_unit(c) ? service_unit_new() : NULL;
        g_auto(ServiceUser) user = {};
        g_autoptr(Config) config = NULL;
        Work work = { .c = c };

        config = open_database_find(c, words[0], &work.d);
        if (!config || service_child_user(arg_service_user, context_is_system(c), unit, &user) < 0)
                return CTL_FAILED;
        const ServiceChild child = { .user = &user, .kept_fd = -1, .heap_max = OPEN_DATABASE_HEAP_MAX };

        return service_child_run(&child, check, &work) == CTL_OK ? CTL_OK : CTL_FAILED;
}

const Verb verb_integrity = {
        "integrity", "NAME", "Check the file of a database for damage", 1, 1, true, options,
        "Exit status: 0 there is no damage, 1 there is, or the check failed.\n", run,
};
