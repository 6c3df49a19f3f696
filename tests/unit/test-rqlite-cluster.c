/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine for rqlite with a cluster of three nodes: redirects, consistency, and a leader that is killed under load. The
 * nodes are rqlite if SQLIPC_RQLITED names the program, or "rqlited" is on the PATH; otherwise they are its imitation.
 */
#include <signal.h>

#include "daemon/worker/rqlite/rqlite-engine.h"
#include "tests/rigs/rqlite-rig.h"

static RqliteNodes nodes;
static RqliteRig rig;

static void set_up(void) {
        rqlite_nodes_start(&nodes, 3, NULL);
        rqlite_rig_begin(&rig, rqlite_nodes_urls(&nodes, NULL));
        rig.setup.busy_usec = 60000000;
}

static void tear_down(void) {
        rqlite_rig_end(&rig);
        rqlite_nodes_stop(&nodes);
}

static void must(const char *sql) {
        bool ok = rqlite_rig_execute(&rig, sql);

        g_assert_cmpstr(rig.error.message, ==, NULL);
        g_assert_true(ok);
}

static char *must_query(RqliteRig *r, const char *sql) {
        char *rows = rqlite_rig_query(r, sql, NULL, 0);

        if (!rows)
                g_error("%s: %s", sql, rig.error.message);
        return rows;
}

static unsigned wait_for_leader(void) {
        int leader;

        while ((leader = rqlite_nodes_leader(&nodes)) < 0)
                g_usleep(20000);
        return (unsigned) leader;
}

/* Each node passes on or redirects, whichever the client asks first, and even if it knows one follower only. */
static void test_any_node(void) {
        set_up();
        must("CREATE TABLE t(x)");
        must("INSERT INTO t VALUES(1)");
        for (unsigned i = 0; i < nodes.n; i++) {
                g_autofree char *rows = NULL;
                RqliteRig other;

                rqlite_rig_begin(&other, g_strdup_printf("http://127.0.0.1:%d", nodes.ports[i]));
                rows = must_query(&other, "SELECT * FROM t");
                g_assert_cmpstr(rows, ==, "i1\n");
                g_assert_true(rqlite_rig_execute(&other, "UPDATE t SET x = 1"));
                rqlite_rig_end(&other);
        }
        tear_down();
}

/* At each level except "none" a read sees the write before it, whichever node is asked. */
static void test_levels(void) {
        static const Consistency levels[] = { CONSISTENCY_WEAK, CONSISTENCY_STRONG, CONSISTENCY_LINEARIZABLE };

        set_up();
        must("CREATE TABLE t(x)");
        must("INSERT INTO t VALUES(0)");
        for (unsigned i = 1; i < 30; i++) {
                g_autofree char *sql = g_strdup_printf("UPDATE t SET x = %u", i), *rows = NULL,
                                *expected = g_strdup_printf("i%u\n", i);

                rig.setup.consistency = levels[i % G_N_ELEMENTS(levels)];
                must(sql);
                rows = must_query(&rig, "SELECT x FROM t");
                g_assert_cmpstr(rows, ==, expected);
        }
        rig.setup.consistency = CONSISTENCY_NONE;
        for (unsigned i = 0; i < 6; i++) {
                g_autofree char *rows = must_query(&rig, "SELECT count(*) FROM sqlite_schema");

                g_assert_cmpstr(rows, ==, "i1\n");
        }
        tear_down();
}

enum { N = 300 };             /* writes */
static gint n_written;        /* of them, read by the other thread */

static gpointer kill_leader(gpointer leader) {
        while (g_atomic_int_get(&n_written) < N / 3)
                g_usleep(100);
        g_assert_cmpint(kill(nodes.pids[GPOINTER_TO_UINT(leader)], SIGKILL), ==, 0);
        return NULL;
}

/* Every write that was acknowledged is there; every one that was refused is not; of others nothing is promised. */
static void test_leader_dies(void) {
        static bool acknowledged[N], refused[N];
        g_autofree char *rows = NULL;
        unsigned n_acknowledged = 0, n_unknown = 0;
        g_auto(GStrv) lines = NULL;
        GThread *killer;

        set_up();
        must("CREATE TABLE t(x)");
        killer = g_thread_new("killer", kill_leader, GUINT_TO_POINTER(wait_for_leader()));
        for (unsigned i = 0; i < N; i++) {
                g_autofree char *sql = g_strdup_printf("INSERT INTO t VALUES(%u)", i);

                acknowledged[i] = rqlite_rig_execute(&rig, sql);
                refused[i] = !acknowledged[i] && rig.error.error != ERROR_OUTCOME_UNKNOWN;
                n_acknowledged += acknowledged[i];
                n_unknown += !acknowledged[i] && !refused[i];
                g_atomic_int_inc(&n_written);
        }
        g_thread_join(killer);
        g_test_message("%u acknowledged, %u with an unknown outcome", n_acknowledged, n_unknown);
        rig.setup.consistency = CONSISTENCY_LINEARIZABLE;
        rows = must_query(&rig, "SELECT x FROM t ORDER BY x");
        lines = g_strsplit(rows, "\n", -1);
        for (unsigned i = 0; lines[i] && *lines[i]; i++) {
                unsigned x = (unsigned) g_ascii_strtoull(lines[i] + 1, NULL, 10);

                g_assert_cmpuint(x, <, N);
                g_assert_false(refused[x]);
                if (i > 0)
                        g_assert_cmpstr(lines[i], !=, lines[i - 1]);
                acknowledged[x] = false;
        }
        for (unsigned i = 0; i < N; i++)
                if (acknowledged[i])
                        g_error("write %u was acknowledged and is lost", i);
        g_assert_cmpuint(n_acknowledged, >, N / 2);
        tear_down();
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/rqlite/cluster/any-node", test_any_node);
        g_test_add_func("/rqlite/cluster/levels", test_levels);
        g_test_add_func("/rqlite/cluster/leader-dies", test_leader_dies);
        return g_test_run();
}
