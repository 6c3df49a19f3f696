/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as a configuration file, and as the answer about names: what comes out can be sent over D-Bus, names its file,
 * and a database that is published has what a database needs.
 *
 * The corpus is files as one would write them, and files with one thing wrong under a name that says what; one that broke
 * something joins them.
 *
 * About: daemon/configuration/configuration*.c daemon/configuration/dbus-text.c
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "configuration-names.h"
#include "dbus-text.h"
#include "replay.h"

static void check_message(const char *text) {
        demand(dbus_text_is_valid(text, strlen(text)));
        demand(strstr(text, "/x.conf") != NULL);
}

static void check_list(char **list, size_t size_max) {
        for (char **i = list; *i; i++)
                demand(**i != 0 && strlen(*i) <= size_max && dbus_text_is_valid(*i, strlen(*i)));
}

static void check_database(const Config *c, const DatabaseConfig *d, size_t size) {
        demand(d->path[0] == '/' && dbus_text_is_valid(d->description, strlen(d->description)));
        demand(g_strv_length(d->allow_users) == g_strv_length(d->allow_users_at));
        demand(g_strv_length(d->allow_groups) == g_strv_length(d->allow_groups_at));
        check_list(d->allow_users, size);
        check_list(d->allow_groups, size);
        check_list(d->expose, 1024);
        demand(d->n_uids <= g_strv_length(d->allow_users) && d->n_gids <= g_strv_length(d->allow_groups));
        for (size_t i = 1; i < d->n_uids; i++)
                demand(d->uids[i - 1] < d->uids[i]);
        demand(config_limits(c, d).heap_max >= 1048576);
        demand(database_config_equal(d, d));
}

static void check(Config *c, const char *answer, size_t size) {
        g_autofree char *question = names_question(c);
        GHashTableIter i;
        void *key, *value;

        names_apply(c, answer);
        g_hash_table_iter_init(&i, c->databases);
        while (g_hash_table_iter_next(&i, NULL, &value))
                check_database(c, value, size);
        g_hash_table_iter_init(&i, c->broken);
        while (g_hash_table_iter_next(&i, &key, &value)) {
                demand(!g_hash_table_contains(c->databases, key) || strcmp(key, "sqlipcd.conf") == 0);
                check_message(value);
        }
        for (guint k = 0; k < c->warnings->len; k++)
                check_message(c->warnings->pdata[k]);
        g_auto(GStrv) lines = g_strsplit(question, "\n", -1);
        for (char **line = lines; *line; line++)
                demand(**line == 0 || (strlen(*line) > 2 && ((*line)[0] == 'u' || (*line)[0] == 'g') &&
                                       strcspn(*line, "\t\r\v\f") == strlen(*line)));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
        /* of exactly its size, so that AddressSanitizer sees a look behind the NUL */
        g_autofree char *text = g_malloc(size + 1);
        g_autoptr(Config) c = config_new();

        if (size > 0)
                memcpy(text, bytes, size);
        text[size] = 0;
        const ConfigText texts[] = { { "/x.conf", text, size }, { "/x.conf.d/x.conf", text, size } };
        config_add_main(c, texts, G_N_ELEMENTS(texts));
        config_add_database(c, "one", texts, 1);
        config_add_database(c, "two", texts, 2);
        check(c, text, size);
        return 0;
}
