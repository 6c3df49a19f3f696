/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcctl list: the databases that the caller may use. */
#include "tools/ctl/bus.h"
#include "tools/ctl/listing.h"

static const Column columns[] = {
        { "name", "NAME", SHOWN_TEXT },
        { "mode", "MODE", SHOWN_TEXT },
        { "authorization", "AUTHORIZATION", SHOWN_TEXT, .optional = true },
        { "description", "DESCRIPTION", SHOWN_TEXT, .gives_way = true },
        { "engine", "ENGINE", SHOWN_TEXT }, /* if it differs at all */
};

static GVariant *rows_of(GVariant *databases) {
        g_auto(GVariantBuilder) rows = {};
        const char *name, *object;
        GVariantIter i;
        GVariant *more;

        g_variant_builder_init(&rows, G_VARIANT_TYPE("aa{sv}"));
        g_variant_iter_init(&i, databases);
        while (g_variant_iter_loop(&i, "(&s&o@a{sv})", &name, &object, &more)) {
                g_variant_builder_open(&rows, G_VARIANT_TYPE("a{sv}"));
                entry(&rows, "name", g_variant_new_string(name));
                entry(&rows, "object", g_variant_new_object_path(object));
                entries_of(&rows, more);
                g_variant_builder_close(&rows);
        }
        return g_variant_ref_sink(g_variant_builder_end(&rows));
}

static bool has_server(GVariant *rows) {
        GVariantIter i;
        GVariant *row;
        bool found = false;

        g_variant_iter_init(&i, rows);
        while ((row = g_variant_iter_next_value(&i))) {
                const char *engine;

                found = found || (g_variant_lookup(row, "engine", "&s", &engine) && !g_str_equal(engine, "sqlite"));
                g_variant_unref(row);
        }
        return found;
}

static int run(Context *c, char **words) {
        g_autoptr(GVariant) reply = NULL, databases = NULL, info = NULL, broken = NULL, rows = NULL;

        if (bus_call_manager(c, "ListDatabases", REPLY_DATABASES, &reply) < 0)
                return CTL_FAILED;
        g_variant_get(reply, "(@a(soa{sv})@a{sv})", &databases, &info);
        rows = rows_of(databases);
        listing_print(c, rows, columns, G_N_ELEMENTS(columns) - !has_server(rows), "database");

        broken = g_variant_lookup_value(info, "broken", G_VARIANT_TYPE("a{ss}"));
        if (broken && g_variant_n_children(broken) > 0)
                complain("%" G_GSIZE_FORMAT " entries of the configuration are wrong: 'sqlipcctl status' says what.",
                         g_variant_n_children(broken));
        return CTL_OK;
}

const Verb verb_list = { "list", "", "List the databases that you may use", 0, 0, false, NULL, NULL, run };
