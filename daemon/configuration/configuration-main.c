/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcd.conf (configuration-main.h). Pure. */
#include "daemon/configuration/configuration-main.h"

#include "daemon/configuration/configuration-limits.h"

static void database_config_destroy(void *d) {
        database_config_free(d);
}

Config *config_new(void) {
        Config *c = g_new(Config, 1);

        *c = (Config) {
                .service = service_config_default(),
                .limits = limits_default(),
                .databases = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, database_config_destroy),
                .broken = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
                .warnings = g_ptr_array_new_with_free_func(g_free),
        };
        return c;
}

void config_add_main(Config *c, const ConfigText *texts, size_t n_texts) {
        static const SectionRow sections[] = {
                { "Service", service_config_set, service_config_key },
                { "Limits", limits_set, limits_key },
                { NULL },
        };

        for (size_t i = 0; i < n_texts; i++)
                (void) config_walk(c, "sqlipcd.conf", &texts[i], sections, c);
}
