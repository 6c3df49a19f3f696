/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The activity of clients between two samples, see rates.h. Pure. */
#include "tools/ctl/rates.h"

#include <stdbool.h>
#include <string.h>

#include "tools/ctl/variant.h"

/* Name -> dictionary. */
static GHashTable *index_clients(GVariant *clients) {
        GHashTable *index = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify) g_variant_unref);
        gsize n = clients ? g_variant_n_children(clients) : 0;

        for (gsize i = 0; i < n; i++) {
                GVariant *more;
                char *name;

                g_variant_get_child(clients, i, "(s@a{sv})", &name, &more);
                g_hash_table_replace(index, name, more);
        }
        return index;
}

static guint64 rate(GVariant *before, GVariant *now, const char *key, guint64 elapsed_usec) {
        guint64 was = before ? lookup_number(before, key) : 0, is = lookup_number(now, key);

        /* daemon and bus were restarted, so the name may belong to another client */
        if (is < was || elapsed_usec == 0)
                return 0;
        return (guint64) ((double) (is - was) * G_USEC_PER_SEC / (double) elapsed_usec);
}

static GVariant *make_row(const char *name, GVariant *before, GVariant *now, bool first, guint64 elapsed_usec) {
        g_auto(GVariantBuilder) row = {};

        g_variant_builder_init(&row, G_VARIANT_TYPE_VARDICT);
        entry(&row, "client", g_variant_new_string(name));
        entries_of(&row, now);
        if (!first) {
                entry(&row, "rows-per-second", g_variant_new_uint64(rate(before, now, "rows", elapsed_usec)));
                entry(&row, "bytes-per-second", g_variant_new_uint64(rate(before, now, "bytes", elapsed_usec)));
        }
        return g_variant_ref_sink(g_variant_builder_end(&row));
}

static int compare_rows(const void *a, const void *b, void *sort_key) {
        GVariant *x = *(GVariant *const *) a, *y = *(GVariant *const *) b;
        guint64 of_x = lookup_number(x, sort_key), of_y = lookup_number(y, sort_key);

        if (of_x != of_y)
                return of_x < of_y ? 1 : -1;
        return strcmp(lookup_text(x, "client", ""), lookup_text(y, "client", ""));
}

GVariant *rates_of(GVariant *before, GVariant *now, guint64 elapsed_usec, const char *sort_key) {
        g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func((GDestroyNotify) g_variant_unref);
        g_autoptr(GHashTable) earlier = index_clients(before);
        gsize n = g_variant_n_children(now);

        for (gsize i = 0; i < n; i++) {
                g_autoptr(GVariant) more = NULL;
                const char *name;

                g_variant_get_child(now, i, "(&s@a{sv})", &name, &more);
                g_ptr_array_add(rows, make_row(name, g_hash_table_lookup(earlier, name), more, !before, elapsed_usec));
        }
        g_ptr_array_sort_with_data(rows, compare_rows, (void *) sort_key);
        return g_variant_ref_sink(
                g_variant_new_array(G_VARIANT_TYPE_VARDICT, (GVariant *const *) rows->pdata, rows->len));
}

guint64 rates_sum(GVariant *rows, const char *key) {
        gsize n = g_variant_n_children(rows);
        guint64 sum = 0;

        for (gsize i = 0; i < n; i++) {
                g_autoptr(GVariant) row = g_variant_get_child_value(rows, i);

                sum += lookup_number(row, key);
        }
        return sum;
}
