/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One published database. Supervisor. */
#include <stdlib.h>
#include <systemd/sd-bus.h>

#include "daemon/supervisor/base/database.h"
#include "dbus-interfaces/sqlipc-names.h"

int database_new(Context *context, DatabaseConfig *config, Database **ret) {
        char *path;
        int r = sd_bus_path_encode(SQLIPC_DATABASE_PATH, config->name, &path);

        if (r < 0)
                return r;
        Database *d = g_new(Database, 1);
        *d = (Database) { .context = context, .n_ref = 1, .config = config, .object_path = path, .published = true };
        *ret = d;
        return 0;
}

Database *database_find(const Context *context, const char *name) {
        return g_hash_table_lookup(context->databases, name);
}

Database *database_ref(Database *d) {
        d->n_ref++;
        return d;
}

Database *database_unref(Database *d) {
        if (!d || --d->n_ref > 0)
                return NULL;
        database_config_free(d->config);
        free(d->object_path);
        g_free(d);
        return NULL;
}
