/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The user of the service, see service-user.h. */
#include "tools/ctl/service-user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include "tools/ctl/complain.h"

static void find_groups(ServiceUser *user, const struct passwd *entry, char **more) {
        int n = 0;

        (void) getgrouplist(entry->pw_name, entry->pw_gid, NULL, &n);
        user->gids = g_new0(gid_t, (gsize) n + (more ? g_strv_length(more) : 0) + 1);
        if (getgrouplist(entry->pw_name, entry->pw_gid, user->gids, &n) >= 0)
                user->n_gids = (size_t) n;
        for (; more && *more; more++) {
                const struct group *group = getgrnam(*more);
                guint64 gid;

                if (group)
                        user->gids[user->n_gids++] = group->gr_gid;
                else if (g_ascii_string_to_unsigned(*more, 10, 0, G_MAXUINT32 - 1, &gid, NULL))
                        user->gids[user->n_gids++] = (gid_t) gid;
        }
}

int service_user_find(const char *name, bool system, const ServiceUnit *unit, ServiceUser *ret) {
        const struct passwd *entry;

        if (!name && system)
                name = unit && *unit->user ? unit->user : SERVICE_USER;
        entry = name ? getpwnam(name) : getpwuid(geteuid());
        if (!entry) {
                complain("There is no user %s whom the service could run as: install its units, or name him with "
                         "--service-user=.", name ?: "of yours");
                return -ESRCH;
        }
        *ret = (ServiceUser) { .name = g_strdup(entry->pw_name), .uid = entry->pw_uid, .gid = entry->pw_gid };
        find_groups(ret, entry, unit ? unit->groups : NULL);
        return 0;
}

void service_user_done(ServiceUser *user) {
        g_clear_pointer(&user->name, g_free);
        g_clear_pointer(&user->gids, g_free);
}

static bool has_group(const ServiceUser *user, gid_t gid) {
        for (size_t i = 0; i < user->n_gids; i++)
                if (user->gids[i] == gid)
                        return true;
        return false;
}

/* The bits are those of R_OK, W_OK and X_OK. */
bool service_user_may(const ServiceUser *user, const struct stat *st, int wanted) {
        unsigned shift = st->st_uid == user->uid ? 6 : has_group(user, st->st_gid) ? 3 : 0;

        return user->uid == 0 || (st->st_mode >> shift & (mode_t) wanted) != 0;
}
