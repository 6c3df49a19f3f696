/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/supervisor/service/invariants: consistent counts pass, and each inconsistent count is found. */
#include <glib.h>
#include <stdlib.h>

#include "config.h"
#include "daemon/configuration/configuration.h"
#include "daemon/supervisor/runs/session-close.h"
#include "daemon/supervisor/runs/statement.h"
#include "daemon/supervisor/service/invariants.h"
#include "daemon/supervisor/service/manager.h"

typedef struct Rig {
        Manager *manager;
        Peer peer;
        Database *database;
        Statement *statement;
} Rig;

/* A client with one statement, as if it had been compiled. */
static void rig_init(Rig *rig) {
        static char *no_directories[] = { NULL };
        DatabaseConfig *config = g_new0(DatabaseConfig, 1);
        Refusal refusal = REFUSAL_INIT;

        *rig = (Rig) { .peer = { .name = (char *) ":1.7", .uid = 1000 } };
        config->name = g_strdup("chinook");
        config->limits.statements_max = 10;
        g_assert_cmpint(manager_new(BUS_ADDRESS, no_directories, &rig->manager), ==, 0);
        g_assert_cmpint(database_new(&rig->manager->context, config, &rig->database), ==, 0);
        g_assert_cmpint(statement_new(session_get(&rig->manager->context, &rig->peer), rig->database, "SELECT 1", 4096,
                                      false, &rig->statement, &refusal), ==, 0);
        rig->statement->state = STATEMENT_READY;
}

static void test_hold(void) {
        Rig rig;

        rig_init(&rig);
        invariants_check(&rig.manager->context);
        (void) statement_free(rig.statement);
        invariants_check(&rig.manager->context);
        Session *session = g_hash_table_lookup(rig.manager->context.sessions, rig.peer.name);
        (void) session_close(session, ERROR_CANCELLED, "It is over.");
        invariants_check(&rig.manager->context);
        (void) database_unref(rig.database);
        (void) manager_free(rig.manager);
}

static void break_count(Rig *rig) {
        rig->statement->session->user->n_statements++;
}

static void break_transactions(Rig *rig) {
        rig->statement->session->user->n_transactions++;
}

static void break_database(Rig *rig) {
        rig->database->n_channels++;
}

static void break_held(Rig *rig) {
        rig->statement->session->user->held_size--;
}

static void break_pages(Rig *rig) {
        rig->manager->pipes.budget.granted++;
}

static void break_session(Rig *rig) {
        g_queue_unlink(&rig->statement->session->statements, &rig->statement->session_link);
}

static void break_state(Rig *rig) {
        rig->statement->state = STATEMENT_PREPARING;
}

static void break_number(Rig *rig) {
        rig->statement->number = UINT64_C(1) << 53;
}

static const struct {
        void (*how)(Rig *);
        const char *found;
} ways[] = {
        { break_count, "*u->n_statements == s->n_statements*" },
        { break_transactions, "*u->n_transactions == s->n_transactions + n_groups*" },
        { break_database, "*d->n_channels == s->n_channels*" },
        { break_held, "*u->held_size == s->held_size*" },
        { break_pages, "*granted == context->pipes->budget.granted*" },
        { break_session, "*n_statements == c->n_statements*" },
        { break_state, "*s->state != STATEMENT_PREPARING*" },
        { break_number, "*number < NUMBER_END*" },
};

static char *name_of(size_t way) {
        return g_strdup_printf("/invariants/broken/subprocess/%zu", way);
}

static void test_broken(void) {
        for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
                g_autofree char *name = name_of(i);

                g_test_trap_subprocess(name, 0, 0);
                g_test_trap_assert_failed();
                g_test_trap_assert_stderr(ways[i].found);
        }
}

static void break_it(const void *way) {
        Rig rig;

        rig_init(&rig);
        ways[GPOINTER_TO_SIZE(way)].how(&rig);
        invariants_check(&rig.manager->context);
}

/* Builds with the option check in each turn of the loop, even if nothing happens. */
static void test_watched(void) {
        if (!SQLIPC_INVARIANTS) {
                g_test_skip("a build without -Dinvariants=true looks at nothing by itself");
                return;
        }
        g_test_trap_subprocess("/invariants/watched/subprocess", 0, 0);
        g_test_trap_assert_failed();
        g_test_trap_assert_stderr(ways[0].found);
}

static void turn_with_broken_books(void) {
        Rig rig;

        rig_init(&rig);
        ways[0].how(&rig);
        (void) sd_event_run(rig.manager->context.event, 0);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/invariants/hold", test_hold);
        g_test_add_func("/invariants/broken", test_broken);
        g_test_add_func("/invariants/watched", test_watched);
        g_test_add_func("/invariants/watched/subprocess", turn_with_broken_books);
        for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
                g_autofree char *name = name_of(i);

                g_test_add_data_func(name, GSIZE_TO_POINTER(i), break_it);
        }
        return g_test_run();
}
