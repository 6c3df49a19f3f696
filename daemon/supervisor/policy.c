/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who may use which database. Supervisor. */
#include "manager.h"
#include "policy.h"

static bool has_group(const Peer *p, gid_t gid) {
        for (size_t i = 0; i < p->n_gids; i++)
                if (p->gids[i] == gid)
                        return true;
        return false;
}

PolicyVerdict policy_verdict(const Manager *m, const Peer *p, const Database *d) {
        const DatabaseConfig *c = d->config;

        if (peer_is_administrator(m, p) || c->allow_everybody)
                return POLICY_YES;
        for (size_t i = 0; i < c->n_uids; i++)
                if (c->uids[i] == p->uid)
                        return POLICY_YES;
        for (size_t i = 0; i < c->n_gids; i++)
                if (has_group(p, c->gids[i]))
                        return POLICY_YES;
        return c->polkit ? POLICY_ASK : POLICY_NO;
}

Database *policy_find_database(Manager *m, sd_bus_message *message, const char *name) {
        Database *d = manager_find_database(m, name);
        const Peer *p = peer_of(m, message);

        return d && p && policy_verdict(m, p, d) == POLICY_YES ? d : NULL;
}

int policy_watch(Manager *m) {
        return 0;
}
