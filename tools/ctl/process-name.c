/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program of a client, see process-name.h. */
#include "tools/ctl/process-name.h"

/* A program that claims to be the service could list any number of clients, and each costs a call to the bus. */
enum { NAMES_MAX = 4096 };

G_DEFINE_AUTOPTR_CLEANUP_FUNC(sd_bus_creds, sd_bus_creds_unref)

/* The result is owned by the caller; "": unknown. */
static char *look_up(Context *c, const char *client) {
        g_autoptr(sd_bus_creds) creds = NULL;
        const char *name;

        if (client[0] != ':' || context_is_remote(c) ||
            sd_bus_get_name_creds(c->bus, client, SD_BUS_CREDS_PID | SD_BUS_CREDS_COMM | SD_BUS_CREDS_AUGMENT, &creds) < 0 ||
            sd_bus_creds_get_comm(creds, &name) < 0)
                return g_strdup("");
        return g_utf8_make_valid(name, -1);
}

/* The bus never reuses a unique name, so a result stays valid. */
static const char *name_of(Context *c, const char *client) {
        const char *known;

        if (!c->processes)
                c->processes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        known = g_hash_table_lookup(c->processes, client);
        if (known || g_hash_table_size(c->processes) >= NAMES_MAX)
                return known ?: "";
        g_hash_table_insert(c->processes, g_strdup(client), look_up(c, client));
        return g_hash_table_lookup(c->processes, client);
}

GVariant *process_names_add(Context *c, GVariant *rows) {
        g_auto(GVariantBuilder) named = {};
        gsize n = g_variant_n_children(rows);

        g_variant_builder_init(&named, G_VARIANT_TYPE("aa{sv}"));
        for (gsize i = 0; i < n; i++) {
                g_autoptr(GVariant) row = g_variant_get_child_value(rows, i);
                const char *name = name_of(c, lookup_text(row, "client", ""));

                g_variant_builder_open(&named, G_VARIANT_TYPE_VARDICT);
                entries_of(&named, row);
                if (*name)
                        entry(&named, "process", g_variant_new_string(name));
                g_variant_builder_close(&named);
        }
        return g_variant_ref_sink(g_variant_builder_end(&named));
}
