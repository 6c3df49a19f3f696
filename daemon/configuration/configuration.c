/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parsed configuration as a whole. Pure. */
#include <stdlib.h>
#include <string.h>

#include "daemon/configuration/configuration-limits.h"
#include "daemon/configuration/dbus-text.h"

/* Limits the number of warnings, because each is logged and all are sent in one message. A directory of users that cannot
 * be reached makes one for each name. */
#define WARNINGS_MAX 1000

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

Config *config_free(Config *c) {
        if (!c)
                return NULL;
        g_hash_table_unref(c->databases);
        g_hash_table_unref(c->broken);
        g_ptr_array_unref(c->warnings);
        g_free(c);
        return NULL;
}

void config_add_main(Config *c, const ConfigText *texts, size_t n_texts) {
        static const SectionRow sections[] = {
                { "Service", service_config_set },
                { "Limits", limits_set },
                { NULL },
        };

        for (size_t i = 0; i < n_texts; i++)
                (void) config_walk(c, "sqlipcd.conf", &texts[i], sections, c);
}

/* Replaces invalid bytes, because these texts are sent over D-Bus, and contain file names, which may have any bytes. */
static char *make_sendable(const char *text) {
        char *clean = dbus_text_replace(text, strlen(text)), *copy = g_strdup(clean ?: "(out of memory)");

        free(clean);
        return copy;
}

void config_add_broken(Config *c, const char *name, const char *format, ...) {
        char *key = make_sendable(name);
        const char *before = g_hash_table_lookup(c->broken, key);
        va_list ap;

        va_start(ap, format);
        g_autofree char *reason = g_strdup_vprintf(format, ap);
        va_end(ap);
        g_autofree char *all = g_strconcat(before ?: "", before ? "; " : "", reason, NULL);
        g_hash_table_replace(c->broken, key, make_sendable(all));
}

void config_add_warning(Config *c, const char *format, ...) {
        va_list ap;

        if (c->warnings->len == WARNINGS_MAX)
                g_ptr_array_add(c->warnings, g_strdup("there is more that is odd, which is not told"));
        if (c->warnings->len > WARNINGS_MAX)
                return;
        va_start(ap, format);
        g_autofree char *sentence = g_strdup_vprintf(format, ap);
        va_end(ap);
        g_ptr_array_add(c->warnings, make_sendable(sentence));
}
