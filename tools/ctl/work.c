/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Statements, runs, transactions, channels and watches, see work.h. */
#include "tools/ctl/work.h"

#include "dbus-interfaces/sqlipc-names.h"

static const struct {
        const char *method, *number_key;
} works[] = {
        [WORK_STATEMENTS] = { "ListStatements", "statement" },
        [WORK_RUNS] = { "ListRuns", "run" },
        [WORK_TRANSACTIONS] = { "ListTransactions", "transaction" },
        [WORK_CHANNELS] = { "ListChannels", "channel" },
        [WORK_WATCHES] = { "ListWatches", "watch" },
};

static GVariant *rows_of(GVariant *list, const char *number_key) {
        g_auto(GVariantBuilder) rows = {};
        const char *object, *client;
        GVariantIter i;
        GVariant *more;
        guint64 number;

        g_variant_builder_init(&rows, G_VARIANT_TYPE("aa{sv}"));
        g_variant_iter_init(&i, list);
        while (g_variant_iter_loop(&i, "(t&o&s@a{sv})", &number, &object, &client, &more)) {
                g_autofree char *database = database_of(object);

                g_variant_builder_open(&rows, G_VARIANT_TYPE("a{sv}"));
                entry(&rows, number_key, g_variant_new_uint64(number));
                entry(&rows, "database", g_variant_new_string(database));
                entry(&rows, "client", g_variant_new_string(client));
                entries_of(&rows, more);
                g_variant_builder_close(&rows);
        }
        return g_variant_ref_sink(g_variant_builder_end(&rows));
}

int work_list(Context *c, Work work, GVariant **ret) {
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        g_autoptr(GVariant) reply = NULL, list = NULL, info = NULL;
        gboolean truncated = FALSE;
        int r = bus_open(c);

        if (r < 0)
                return CTL_FAILED;
        r = bus_call(c, START_NOTHING, SQLIPC_MANAGER_PATH, SQLIPC_MANAGER_INTERFACE,
                     works[work].method, REPLY_WORK, &error, &reply, "a{sv}", 0);
        if (r < 0 && bus_is_absent(&error) && bus_can_start(c)) {
                *ret = g_variant_ref_sink(g_variant_new_array(G_VARIANT_TYPE_VARDICT, NULL, 0));
                return CTL_OK;
        }
        if (r < 0)
                return bus_failed(c, &error, r);
        g_variant_get(reply, "(@a(tosa{sv})@a{sv})", &list, &info);
        if (g_variant_lookup(info, "truncated", "b", &truncated) && truncated)
                complain("there are more than the %zu that the service lists", g_variant_n_children(list));
        *ret = rows_of(list, works[work].number_key);
        return CTL_OK;
}

GVariant *work_on_database(GVariant *rows, const char *database) {
        g_auto(GVariantBuilder) found = {};
        gsize n = g_variant_n_children(rows);

        g_variant_builder_init(&found, G_VARIANT_TYPE("aa{sv}"));
        for (gsize i = 0; i < n; i++) {
                g_autoptr(GVariant) row = g_variant_get_child_value(rows, i);

                if (g_str_equal(lookup_text(row, "database", ""), database))
                        g_variant_builder_add_value(&found, row);
        }
        return g_variant_ref_sink(g_variant_builder_end(&found));
}
