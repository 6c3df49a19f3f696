/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcctl vacuum: rebuilds the file of a database, so that it needs less space. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "daemon/configuration/configuration-database.h"
#include "tools/ctl/listing.h"
#include "tools/ctl/open-database.h"
#include "tools/ctl/service-child.h"
#include "tools/ctl/variant.h"

#define TIMEOUT_MAX 86400

static char *arg_service_user;
static double arg_timeout = 30;

static const GOptionEntry options[] = {
        { "timeout", 0, 0, G_OPTION_ARG_DOUBLE, &arg_timeout, "Wait SEC seconds for the locks of others (30)", "SEC" },
        { "service-user", 0, 0, G_OPTION_ARG_STRING, &arg_service_user, "The user that the service runs as", "USER" },
        {},
};

typedef struct Work {
        const Context *c;
        const DatabaseConfig *d;
} Work;

typedef struct Outcome {
        int64_t before, after;   /* bytes of the database */
        bool readers_keep_log;   /* the file shrinks when readers have ended */
} Outcome;

static int64_t size_of(sqlite3 *db) {
        return pragma_number(db, "PRAGMA page_count") * pragma_number(db, "PRAGMA page_size");
}

/* The first column of the PRAGMA is 1 if a reader or writer was in the way. In rollback mode there is no log. */
static int vacuum(sqlite3 *db, Outcome *ret) {
        int rc;

        ret->before = size_of(db);
        rc = sqlite3_exec(db, "VACUUM", NULL, NULL, NULL);
        if (rc != SQLITE_OK)
                return rc;
        ret->after = size_of(db);
        ret->readers_keep_log = is_in_wal_mode(db) && pragma_number(db, "PRAGMA wal_checkpoint(TRUNCATE)") != 0;
        return SQLITE_OK;
}

static void print(const Work *work, const Outcome *outcome) {
        int64_t gained = outcome->before - outcome->after;
        g_autoptr(GString) text = g_string_new(NULL);

        if (work->c->json) {
                g_auto(GVariantBuilder) document = {};

                g_variant_builder_init(&document, G_VARIANT_TYPE_VARDICT);
                entry(&document, "database", g_variant_new_string(work->d->name));
                entry(&document, "bytes-before", g_variant_new_int64(outcome->before));
                entry(&document, "bytes", g_variant_new_int64(outcome->after));
                entry(&document, "log-kept-by-readers", g_variant_new_boolean(outcome->readers_keep_log));
                document_print(work->c, g_variant_builder_end(&document));
                return;
        }
        shown_append(text, g_variant_new_uint64((uint64_t) outcome->after), SHOWN_SIZE);
        g_string_append(text, ", ");
        shown_append(text, g_variant_new_uint64((uint64_t) ABS(gained)), SHOWN_SIZE);
        printf("%s: %s %s than before.\n", work->d->name, text->str, gained >= 0 ? "less" : "more");
        if (outcome->readers_keep_log)
                printf("Readers still use the log: the file shrinks when the service writes to it after they have ended.\n");
}

/* Runs in the child. */
static int work_on(void *userdata) {
        const Work *work = userdata;
        sqlite3 *db = open_database(work->d, true, arg_timeout);
        Outcome outcome = {};
        int rc, r = CTL_OK;

        if (!db)
                return CTL_FAILED;
        rc = vacuum(db, &outcome);
        if (rc != SQLITE_OK)
                r = complain_of_sqlite(work->d, "vacuumed", db, rc);
        else
                print(work, &outcome);
        (void) sqlite3_close(db);
        return r;
}

static int run(Context *c, char **words) {
        g_autoptr(ServiceUnit) unit = context_is_unit(c) ? service_unit_new() : NULL;
        g_auto(ServiceUser) user = {};
        g_autoptr(Config) config = NULL;
        Work work = { .c = c };

        if (!isfinite(arg_timeout) || arg_timeout < 0 || arg_timeout > TIMEOUT_MAX)
                return complain_usage("--timeout takes 0 to %d seconds.", TIMEOUT_MAX);
        config = open_database_find(c, words[0], &work.d);
        if (!config || service_child_user(arg_service_user, context_is_system(c), unit, &user) < 0)
                return CTL_FAILED;
        if (!database_config_is_writable(work.d)) {
                complain("%s is not published with Mode=read-write, so it is not changed.", work.d->name);
                return CTL_FAILED;
        }
        const ServiceChild child = { .user = &user, .kept_fd = -1, .heap_max = OPEN_DATABASE_HEAP_MAX };

        return service_child_run(&child, work_on, &work) == CTL_OK ? CTL_OK : CTL_FAILED;
}

const Verb verb_vacuum = {
        "vacuum", "NAME", "Rebuild the file of a database, so that it needs less space", 1, 1, true, options,
        "Meanwhile no other program writes to it, and in rollback mode none reads it.\n", run,
};
