/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The changes of a database file: which listeners are told of which commit, and the numbers of changes. The workers are
 * stubs, the observer too. The test's clock does not advance by itself.
 */
#include <signal.h>
#include <string.h>

#include "daemon/supervisor/base/database.h"
#include "daemon/supervisor/workers/changes.h"
#include "dbus-interfaces/sqlipc-names.h"
#include "tests/rigs/bus-rig.h"
#include "tests/rigs/stub-worker.h"
#include "tests/unit/test.h"

#define SECOND UINT64_C(1000000)

typedef struct Listener {
        ChangeListener base;
        unsigned n_ready, n_changes;
        uint64_t sequence;
} Listener;

static Changes *changes;
static unsigned writer;           /* the number of the stub */
static uint32_t counter;          /* of the file */

static void on_ready(ChangeListener *base) {
        ((Listener *) base)->n_ready++;
        changes_arm(base, base->changes->sequence);
}

static void on_change(ChangeListener *base, uint64_t sequence) {
        Listener *l = (Listener *) base;

        l->n_changes++;
        l->sequence = sequence;
}

static void hear(void) {
        for (unsigned i = 0; i < 3; i++) {
                for (unsigned n = 0; n < stub_workers_alive(); n++)
                        stub_worker_hear(n);
                rig_pump();
        }
}

static void add(Listener *l, const char *table) {
        char **tables = NULL;

        if (table) {
                tables = g_new0(char *, 2);
                tables[0] = g_strdup(table);
        }
        *l = (Listener) { .base = { .on_ready = on_ready, .on_change = on_change } };
        CHECK_INT(changes_add(changes, &l->base, tables, changes->n_schemas), 0);
        hear();
}

static FileState state_of(uint32_t n) {
        return (FileState) { .kind = FILE_STATE_ROLLBACK, .counter = n };
}

/* A commit of the writer that changes the tables. */
static void commit(const char *tables, size_t size, uint64_t sequence, bool schema) {
        stub_worker_say(writer, &(Message) {
                .kind = MESSAGE_COMMITTED,
                .committed = { .sequence = sequence, .any = true, .schema = schema, .before = state_of(counter),
                               .after = state_of(counter + 1), .tables = { tables, size } },
        });
        counter++;
        hear();
}

/* Says that the writer has told all of its commits. */
static void answer(void) {
        stub_worker_say(writer, &(Message) { .kind = MESSAGE_COMMITTED, .committed.answers = true });
        hear();
}

/* The observer sees a state; it was asked after so many commits. */
static void observe_after(uint64_t n_committed, uint32_t n) {
        changes_on_observed(changes, &(ObservedState) { .state = state_of(n), .n_committed = n_committed }, false);
}

static void observe(uint32_t n) {
        observe_after(changes->n_committed, n);
}

/* A worker has the lease of the database. */
static void begin(void) {
        rig_begin_users();
        rig_set_mode("open", "read-write");
        rig_query(0, "open");
        rig_pass_time(SECOND / 10);
        writer = 0;
        CHECK(stub_worker_take(writer));
        rig_pump();
        stub_worker_say(writer, &(Message) { .kind = MESSAGE_LEASE_WANTED });
        hear();
        counter = 7;
        stub_observed.state = state_of(counter);
        const Database *d = database_find(&rig.manager->context, "open");
        CHECK(d);
        changes = changes_of(&rig.manager->context, d->config->path, false);
}

/* After a while without listeners the observer ends. */
static void end(void) {
        rig_pass_time(31 * SECOND);
        CHECK(!changes->watched);
        rig_check_nothing_left();
}

static void test_tables(void) {
        Listener a, b, all;

        begin();
        add(&a, "a");
        CHECK_INT(stub_workers_alive(), 2);
        CHECK_INT(stub_worker_watch(writer).n_told, 2); /* that clients watch, and when the first state is found */
        CHECK(stub_worker_watch(writer).on);
        CHECK_INT(a.n_ready, 1);
        add(&b, "b");
        add(&all, NULL);
        uint64_t first = changes->sequence;
        commit("a", 2, first + 1, false);
        CHECK_INT(a.n_changes, 1);
        CHECK_INT(a.sequence, first + 1);
        CHECK_INT(b.n_changes, 0);
        CHECK_INT(all.n_changes, 1);
        commit("a", 2, first + 2, false); /* not armed: it costs nothing */
        CHECK_INT(a.n_changes, 1);
        changes_arm(&a.base, a.sequence);
        rig_pump();
        CHECK_INT(a.n_changes, 2);
        CHECK_INT(a.sequence, first + 2);
        changes_arm(&a.base, a.sequence);
        commit("c\0b", 4, first + 3, false);
        CHECK_INT(a.n_changes, 2);
        CHECK_INT(b.n_changes, 1);
        changes_remove(&a.base);
        changes_remove(&b.base);
        changes_remove(&all.base);
        end();
}

/* A table that was not named before counts as changed by the last commit to any such table. */
static void test_since(void) {
        Listener a, b;

        begin();
        add(&a, "a");
        uint64_t first = changes->sequence;
        commit("b", 2, first + 1, false);
        add(&b, "b");
        changes_remove(&b.base);
        add(&b, "b"); /* it was armed with the present number */
        CHECK_INT(b.n_changes, 0);
        changes_remove(&b.base);
        b.base.changes = NULL;
        add(&b, "c");
        changes_remove(&b.base);
        CHECK_INT(a.n_changes, 0);
        changes_remove(&a.base);
        end();
}

/* Two programs write, and the numbers of their commits differ. */
static void test_foreign(void) {
        Listener a;

        begin();
        add(&a, "a");
        uint64_t first = changes->sequence;
        commit("b", 2, first + 1, false);
        counter++; /* by another program */
        commit("b", 2, first + 2, false);
        CHECK_INT(a.n_changes, 1);
        CHECK(changes->sequence > first + CHANGE_STEP);
        changes_arm(&a.base, changes->sequence);
        observe(++counter);
        CHECK_INT(a.n_changes, 1); /* the writer is asked first */
        hear();
        CHECK_INT(a.n_changes, 2);
        changes_arm(&a.base, changes->sequence);
        observe(counter); /* it is known */
        hear();
        CHECK_INT(a.n_changes, 2);
        changes_remove(&a.base);
        end();
}

/* The observer has seen an own commit before the writer told of it. */
static void test_own_seen_first(void) {
        Listener a;

        begin();
        add(&a, "a");
        stub_watch_silent = true;
        observe(counter + 1);
        commit("b", 2, changes->sequence + 1, false);
        stub_watch_silent = false;
        answer();
        CHECK_INT(a.n_changes, 0);
        changes_remove(&a.base);
        end();
}

/* The observer has seen an older state than the writer told of; or sees a commit that is not in the writer's answer. */
static void test_own_seen_twice(void) {
        uint64_t n_at_question;
        Listener a;

        begin();
        add(&a, "a");
        stub_watch_silent = true;
        n_at_question = changes->n_committed;
        commit("b", 2, changes->sequence + 1, false);
        observe_after(n_at_question, counter - 1);
        answer();
        CHECK_INT(a.n_changes, 0);

        observe(counter + 1);
        commit("b", 2, changes->sequence + 1, false);
        observe(counter + 1);
        answer();
        commit("b", 2, changes->sequence + 1, false);
        answer();
        CHECK_INT(a.n_changes, 0);

        observe(++counter); /* by another program, and the writer has nothing to tell */
        answer();
        CHECK_INT(a.n_changes, 1);
        stub_watch_silent = false;
        changes_remove(&a.base);
        end();
}

/* A writer that has returned the lease is not asked: it would not answer. */
static void test_asked_writer_leaves(void) {
        Listener a;

        begin();
        add(&a, "a");
        stub_watch_silent = true;
        observe(counter + 1);
        observe(counter + 1);
        commit("b", 2, changes->sequence + 1, false);
        commit("b", 2, changes->sequence + 1, false);
        stub_worker_say(writer, &(Message) { .kind = MESSAGE_LEASE_RETURNED });
        hear();
        stub_watch_silent = false;
        CHECK_INT(a.n_changes, 0);
        observe(++counter); /* by another program */
        hear();
        CHECK_INT(a.n_changes, 1);
        changes_remove(&a.base);
        end();
}

/* A listener is told ready although the writer commits again and again, and each commit is seen before it is told. */
static void test_ready_beside_commits(void) {
        Listener a;

        begin();
        stub_watch_silent = true;
        add(&a, "a");
        CHECK_INT(a.n_ready, 0);
        observe(counter + 1);
        for (unsigned i = 0; i < 5; i++) {
                commit("b", 2, changes->sequence + 1, false);
                observe(counter + 1);
                answer();
        }
        CHECK_INT(a.n_ready, 1);
        stub_watch_silent = false;
        changes_remove(&a.base);
        end();
}

static void test_schema(void) {
        Listener a;

        begin();
        add(&a, "a");
        commit("", 0, changes->sequence + 1, true);
        CHECK_INT(a.n_changes, 1);
        changes_arm(&a.base, changes->sequence);
        commit("b", 2, changes->sequence + 1, false); /* a view may read it now */
        CHECK_INT(a.n_changes, 2);
        changes_remove(&a.base);
        end();
}

static void test_writer_lost(void) {
        Listener a;

        begin();
        add(&a, "a");
        stub_worker_die(writer, CLD_KILLED, SIGKILL);
        rig_pump();
        (void) stub_workers_reap();
        rig_pump();
        CHECK_INT(a.n_changes, 1);
        changes_remove(&a.base);
        rig_pass_time(31 * SECOND);
        rig_check_nothing_left();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_tables), TEST(test_since), TEST(test_foreign), TEST(test_own_seen_first),
                TEST(test_own_seen_twice), TEST(test_asked_writer_leaves), TEST(test_ready_beside_commits),
                TEST(test_schema),
                TEST(test_writer_lost),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
