/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sqlipcctl security: shows which users may read or write which data. The users come from the configuration files, even if
 * the service has not read these yet. The tables and columns come from the running service, as it shows them to the caller.
 */
#include <stdio.h>

#include "daemon/configuration/configuration-files.h"
#include "tools/ctl/access-list.h"
#include "tools/ctl/configuration-check.h"
#include "tools/ctl/exposed.h"
#include "tools/ctl/listing.h"
#include "tools/ctl/stdout-pager.h"

static GVariant *document_of(Context *c, const DatabaseConfig *d, bool ask) {
        g_auto(GVariantBuilder) document = {};
        g_autofree char *problem = NULL;

        g_variant_builder_init(&document, G_VARIANT_TYPE_VARDICT);
        entry(&document, "database", g_variant_new_string(d->name));
        access_list(d, &document);
        access_list_writers(d, &document);
        entry(&document, "restricted", g_variant_new_boolean(*d->expose != NULL));
        entry(&document, "objects", exposed_objects(c, d->name, d->expose, ask, &problem));
        if (problem)
                entry(&document, "problem", g_variant_new_string(problem));
        return g_variant_builder_end(&document);
}

/* ---- For people --------------------------------------------------------------------------------------------------- */

static void print_names(GVariant *document, const char *key, const char *title) {
        g_autoptr(GVariant) list = g_variant_lookup_value(document, key, NULL);
        gsize n = g_variant_n_children(list);

        for (gsize i = 0; i < n; i++) {
                g_autoptr(GVariant) one = g_variant_get_child_value(list, i);
                g_autofree const char **members = NULL;
                g_autofree char *text = NULL;

                (void) g_variant_lookup(one, "members", "^a&s", &members);
                text = members && members[0] ? g_strjoinv(", ", (char **) members) : NULL;
                field_print(title, "%s%s%s%s", lookup_text(one, "name", ""), text ? " (" : members ? " (no members)" : "",
                            text ?: "", text ? ")" : "");
        }
}

/* Writing needs reading: each writer is one of the readers, too. */
static void print_writers(GVariant *document) {
        gboolean writable = false, all = false, polkit = false, schema = false;
        g_autofree const char **tables = NULL;

        (void) g_variant_lookup(document, "writable", "b", &writable);
        (void) g_variant_lookup(document, "write-all", "b", &all);
        (void) g_variant_lookup(document, "write-polkit", "b", &polkit);
        (void) g_variant_lookup(document, "write-schema", "b", &schema);
        if (!writable) {
                field_print("Writers", "none: the database is read-only");
                return;
        }
        field_print("Writers", "root, and the service's own user%s", all ? "; all users who may read" : "");
        print_names(document, "write-users", "Writer");
        print_names(document, "write-groups", "Write group");
        if (polkit && !all)
                field_print("Write polkit", "asked about all other users who may read");
        if (g_variant_lookup(document, "write-tables", "^a&s", &tables)) {
                g_autofree char *text = g_strjoinv(", ", (char **) tables);

                field_print("They write", "%s%s", tables[0] ? text : "all tables", schema ? ", and the schema" : "");
        }
}

static void print_objects(GVariant *document) {
        g_autoptr(GVariant) objects = g_variant_lookup_value(document, "objects", NULL);
        gsize n = g_variant_n_children(objects);

        for (gsize i = 0; i < n; i++) {
                g_autoptr(GVariant) one = g_variant_get_child_value(objects, i);
                const char *kind = lookup_text(one, "kind", NULL), *problem = lookup_text(one, "problem", NULL);
                g_autofree const char **columns = NULL;
                g_autofree char *text = NULL;

                if (g_variant_lookup(one, "columns", "^a&s", &columns))
                        text = g_strjoinv(", ", (char **) columns);
                field_print(i == 0 ? "Shows" : "", "%s%s%s%s%s%s%s%s", kind ?: "", kind ? " " : "",
                            lookup_text(one, "name", ""), text ? " (" : "", text ?: "", text ? ")" : "",
                            problem ? ": " : "", problem ?: "");
        }
}

static void print_database(GVariant *document) {
        const char *problem = lookup_text(document, "problem", NULL);
        gboolean everybody = false, polkit = false, restricted = false;

        (void) g_variant_lookup(document, "everybody", "b", &everybody);
        (void) g_variant_lookup(document, "polkit", "b", &polkit);
        (void) g_variant_lookup(document, "restricted", "b", &restricted);
        field_print("Database", "%s", lookup_text(document, "database", ""));
        field_print("Always", "root, and the service's own user");
        if (everybody)
                field_print("Users", "everybody");
        print_names(document, "users", "User");
        print_names(document, "groups", "Group");
        if (polkit)
                field_print("Polkit", "asked about all other users");
        print_writers(document);
        field_print("What", restricted ? "what Expose= names, and nothing else" : "all that there is");
        print_objects(document);
        if (problem)
                field_print("Not told", "%s", problem);
}

static void print_all(GVariant *documents) {
        gsize n = g_variant_n_children(documents);

        for (gsize i = 0; i < n; i++) {
                g_autoptr(GVariant) document = g_variant_get_child_value(documents, i);

                if (i > 0)
                        putchar('\n');
                print_database(document);
        }
}

/* ---- The verb ----------------------------------------------------------------------------------------------------- */

static bool can_ask(Context *c) {
        g_autoptr(GVariant) reply = NULL;

        return bus_call_manager(c, "ListDatabases", REPLY_DATABASES, &reply) >= 0;
}

static int run(Context *c, char **words) {
        g_auto(GStrv) directories = context_directories(c);
        g_autoptr(Config) config = config_load((const char *const *) directories);
        g_autoptr(GList) names = configuration_names(config);
        g_auto(GVariantBuilder) documents = {};
        g_autoptr(GVariant) all = NULL;
        bool ask;

        configuration_resolve(config);
        if (words[0] && !g_hash_table_contains(config->databases, words[0])) {
                const char *problem = g_hash_table_lookup(config->broken, words[0]);

                if (problem)
                        complain("Nobody may read \"%s\", since its configuration is broken: %s", words[0], problem);
                else
                        complain("The configuration in %s has no database \"%s\".", directories[0], words[0]);
                return CTL_FAILED;
        }
        ask = can_ask(c); /* it has printed the reason if not; the users who may read are known in any case */
        g_variant_builder_init(&documents, G_VARIANT_TYPE("aa{sv}"));
        for (GList *i = names; i; i = i->next)
                if (!words[0] || g_str_equal(words[0], i->data))
                        g_variant_builder_add_value(&documents,
                                                    document_of(c, g_hash_table_lookup(config->databases, i->data), ask));
        all = g_variant_ref_sink(g_variant_builder_end(&documents));
        stdout_pager_open(!c->no_pager);
        if (c->json)
                document_print(c, all);
        else if (names || c->no_legend)
                print_all(all);
        else
                printf("No database is published by the configuration in %s.\n", directories[0]);
        return CTL_OK;
}

const Verb verb_security = {
        "security", "[DATABASE]", "Show who may read and write what, by the configuration's files", 0, 1, true, NULL, NULL,
        run,
};
