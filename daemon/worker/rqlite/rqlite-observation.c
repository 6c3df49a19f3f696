/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See rqlite-observation.h.
 */
#include "daemon/worker/rqlite/rqlite-observation.h"

#include "daemon/worker/rqlite/rqlite-schema.h"

/* The counter of a rollback journal is one for each commit, as the index is. */
void rqlite_observation_state(uint64_t index, FileState *ret) {
        *ret = (FileState) {};
        if (index > 0)
                *ret = (FileState) { .kind = FILE_STATE_ROLLBACK, .counter = (uint32_t) index, .content = index };
}

static bool connect_observer(RqlitePool *p) {
        SqlError error = SQL_ERROR_INIT;
        bool ok = p->observer || rqlite_pool_take(p, &p->observer, &error);

        sql_error_done(&error);
        return ok;
}

/* The first node that tells its index. It is asked first the next time: others may be behind it. */
static bool find_index(RqlitePool *p, uint64_t *ret) {
        NodeList *nodes = &p->cluster.nodes;

        for (unsigned i = 0; i < nodes->n; i++) {
                unsigned node = (nodes->first + i) % nodes->n;

                if (cluster_applied_index(&p->observer->exchange, (int) node, ret)) {
                        nodes->first = node;
                        return true;
                }
        }
        return false;
}

void rqlite_observation_look(RqlitePool *p, Observed *ret) {
        uint64_t index;
        int64_t schema;

        *ret = (Observed) { .polls = true, .name = "" };
        if (!connect_observer(p) || !find_index(p, &index))
                return;
        if (index != p->observed_index && rqlite_schema_version(p->observer, (int) p->cluster.nodes.first, &schema)) {
                p->observed_index = index;
                p->observed_schema = (uint32_t) schema;
        }
        ret->inode = 1;
        ret->schema = p->observed_schema;
        rqlite_observation_state(index, &ret->state);
}
