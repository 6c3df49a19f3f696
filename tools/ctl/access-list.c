/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The users who may use a database, see access-list.h. */
#include "tools/ctl/access-list.h"

#include <grp.h>
#include <pwd.h>

#include "tools/ctl/listing.h"
#include "tools/ctl/variant.h"

static GVariant *users_of(const uid_t *uids, size_t n_uids) {
        g_auto(GVariantBuilder) users = {};

        g_variant_builder_init(&users, G_VARIANT_TYPE("aa{sv}"));
        for (size_t i = 0; i < n_uids; i++) {
                g_autofree char *name = user_name(uids[i]);

                g_variant_builder_open(&users, G_VARIANT_TYPE_VARDICT);
                entry(&users, "uid", g_variant_new_uint32(uids[i]));
                entry(&users, "name", g_variant_new_string(name));
                g_variant_builder_close(&users);
        }
        return g_variant_builder_end(&users);
}

static int compare(const void *a, const void *b) {
        return g_strcmp0(*(const char *const *) a, *(const char *const *) b);
}

static void add_unique(GPtrArray *names, const char *name) {
        for (guint i = 0; i < names->len; i++)
                if (g_str_equal(names->pdata[i], name))
                        return;
        g_ptr_array_add(names, g_strdup(name));
}

/* The users that the group lists, and the users whose primary group it is. A directory on the network may not enumerate the
 * latter. */
static GVariant *members_of(const struct group *group, gid_t gid) {
        g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
        const struct passwd *user;

        for (char **name = group ? group->gr_mem : NULL; name && *name; name++)
                add_unique(names, *name);
        setpwent();
        while ((user = getpwent()))
                if (user->pw_gid == gid)
                        add_unique(names, user->pw_name);
        endpwent();
        g_ptr_array_sort(names, compare);
        return g_variant_new_strv((const char *const *) names->pdata, names->len);
}

static GVariant *groups_of(const gid_t *gids, size_t n_gids) {
        g_auto(GVariantBuilder) groups = {};

        g_variant_builder_init(&groups, G_VARIANT_TYPE("aa{sv}"));
        for (size_t i = 0; i < n_gids; i++) {
                const struct group *group = getgrgid(gids[i]);
                g_autofree char *number = g_strdup_printf("%u", (unsigned) gids[i]);

                g_variant_builder_open(&groups, G_VARIANT_TYPE_VARDICT);
                entry(&groups, "gid", g_variant_new_uint32(gids[i]));
                entry(&groups, "name", g_variant_new_string(group ? group->gr_name : number));
                entry(&groups, "members", members_of(group, gids[i]));
                g_variant_builder_close(&groups);
        }
        return g_variant_builder_end(&groups);
}

void access_list(const DatabaseConfig *config, GVariantBuilder *document) {
        entry(document, "everybody", g_variant_new_boolean(config->allow_everybody));
        entry(document, "users", users_of(config->uids, config->n_uids));
        entry(document, "groups", groups_of(config->gids, config->n_gids));
        entry(document, "polkit", g_variant_new_boolean(config->polkit));
}

void access_list_writers(const DatabaseConfig *config, GVariantBuilder *document) {
        bool writable = database_config_is_writable(config);

        entry(document, "writable", g_variant_new_boolean(writable));
        if (!writable)
                return;
        entry(document, "write-all", g_variant_new_boolean(config->write_everybody));
        entry(document, "write-users", users_of(config->write_uids, config->n_write_uids));
        entry(document, "write-groups", groups_of(config->write_gids, config->n_write_gids));
        entry(document, "write-polkit", g_variant_new_boolean(config->write_polkit));
        entry(document, "write-tables", g_variant_new_strv((const char *const *) config->write_tables, -1));
        entry(document, "write-schema", g_variant_new_boolean(config->write_schema));
}
