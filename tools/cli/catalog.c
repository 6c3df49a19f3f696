/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names that completion offers, see catalog.h. */
#include "catalog.h"

#include <glib.h>

struct Catalog {
        Session *session; /* borrowed */
};

static const char *const none[] = { NULL };

Catalog *catalog_new(Session *session) {
        Catalog *catalog = g_new0(Catalog, 1);

        catalog->session = session;
        return catalog;
}

Catalog *catalog_free(Catalog *catalog) {
        g_free(catalog);
        return NULL;
}

const char *const *catalog_databases(Catalog *catalog) {
        return none;
}

const char *const *catalog_tables(Catalog *catalog) {
        return none;
}

const char *const *catalog_columns(Catalog *catalog, const char *table) {
        return none;
}

const char *const *catalog_functions(Catalog *catalog) {
        return none;
}
