/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The words of a script about writing, in the supervisor of bus-rig.h: clients call, and the oldest worker answers them. The
 * checks are those of test.h. Tests only.
 */
#ifndef SQLIPC_TESTS_RIGS_SCRIPT_H
#define SQLIPC_TESTS_RIGS_SCRIPT_H

#include <signal.h>

#include "daemon/supervisor/base/database.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/service/invariants.h"
#include "daemon/supervisor/workers/worker.h"
#include "dbus-interfaces/sqlipc-names.h"
#include "tests/rigs/bus-rig.h"
#include "tests/rigs/stub-worker.h"
#include "tests/unit/test.h"

#define OPEN SQLIPC_DATABASE_PATH "/open"
#define SECOND UINT64_C(1000000)
#define ERROR(name) (SQLIPC_ERROR_PREFIX name)

enum { A, B, C }; /* peers, each of a user of its own */

static inline void begin(void) {
        rig_begin_users();
        rig_set_mode("open", "read-write");
}

static inline void end(void) {
        rig_check_nothing_left();
}

static inline void pump(void) {
        rig_pump();
        invariants_check(&rig.manager->context);
}

static inline Worker *worker(unsigned n) {
        Worker *w = g_queue_peek_nth(&rig.manager->context.workers, n);

        CHECK(w);
        return w;
}

static inline Run *find(uint64_t number) {
        return g_hash_table_lookup(rig.manager->context.runs, &number);
}

static inline unsigned n_runs(void) {
        return g_hash_table_size(rig.manager->context.runs);
}

static inline Run *only_run(void) {
        GHashTableIter i;
        void *value = NULL;

        CHECK_INT(n_runs(), 1);
        g_hash_table_iter_init(&i, rig.manager->context.runs);
        CHECK(g_hash_table_iter_next(&i, NULL, &value));
        return value;
}

/* Cancels the run; the worker has not heard of it yet. */
static inline void cancel_run(void) {
        run_end(only_run(), RUN_END_BY_ADMINISTRATOR, ERROR_CANCELLED, "An administrator cancelled it.");
}

static inline void cancel(void) {
        cancel_run();
        pump();
        CHECK_INT(stub_worker_cancels(0), 1);
}

/* No user may write any more. */
static inline void lose_right(void) {
        database_find(&rig.manager->context, "open")->config->write_everybody = false;
        rig.manager->context.events->rights_changed(&rig.manager->context);
        pump();
}

/* ---- The client ---- */

static inline const RigCall *send_call(unsigned peer, sd_bus_message *m) {
        rig_send_call(peer, m, true);
        pump();
        return &rig.calls[rig.n_calls - 1];
}

/* A method whose arguments are the number of a run or a transaction, and options. */
static inline const RigCall *call_with_number(unsigned peer, const char *method, uint64_t number) {
        sd_bus_message *m = rig_new_call(peer, OPEN, SQLIPC_DATABASE_INTERFACE, method);

        CHECK(sd_bus_message_append(m, "ta{sv}", number, 0) >= 0);
        return send_call(peer, m);
}

/* Cancel by the serial of another call. */
static inline const RigCall *call_cancel_of(unsigned peer, uint64_t cookie) {
        sd_bus_message *m = rig_new_call(peer, OPEN, SQLIPC_DATABASE_INTERFACE, "Cancel");

        CHECK(sd_bus_message_append(m, "ta{sv}", (uint64_t) 0, 1, "call", "u", (uint32_t) cookie) >= 0);
        return send_call(peer, m);
}

static inline const RigCall *call_begin(unsigned peer, const char *mode) {
        sd_bus_message *m = rig_new_call(peer, OPEN, SQLIPC_DATABASE_INTERFACE, "Begin");

        CHECK(sd_bus_message_append(m, "a{sv}", 1, "mode", "s", mode) >= 0);
        return send_call(peer, m);
}

static inline void check_waits(const RigCall *c) {
        CHECK_INT(c->n_replies, 0);
}

static inline void check_error(const RigCall *c, const char *name) {
        CHECK_INT(c->n_replies, 1);
        CHECK_STRING(c->error, name);
}

/* ---- The worker ---- */

static inline void take(unsigned n) {
        CHECK(stub_worker_take(n));
        pump();
}

static inline void say(const Message *m) {
        stub_worker_say(0, m);
        pump();
}

static inline void say_started(uint64_t number) {
        say(&(Message) { .kind = MESSAGE_STARTED, .started = { .number = number, .described = true } });
}

static inline void say_committing(uint64_t number) {
        uint8_t bytes[8];

        store_le64(bytes, number);
        say(&(Message) { .kind = MESSAGE_COMMITTING, .committing.numbers = { (const char *) bytes, sizeof bytes } });
}

/* It gets the lease, and commits the run. */
static inline void commit(uint64_t number) {
        say(&(Message) { .kind = MESSAGE_LEASE_WANTED });
        CHECK_INT(stub_worker_lease(0).n_granted, 1);
        say_committing(number);
}

static inline void say_failed(uint64_t number, ErrorNumber error) {
        say(&(Message) { .kind = MESSAGE_ENDED,
                         .ended = { .number = number, .drained = true,
                                    .failure = { .error = error, .sql_offset = -1, .message = "It failed." } } });
}

static inline void die(void) {
        stub_worker_die(0, CLD_KILLED, SIGSEGV);
        pump();
}

/* Messages to the worker that it does not react to, until its socket is full. */
static inline void fill_socket(void) {
        while (message_send(worker(0)->control_fd, &(Message) { .kind = MESSAGE_RETIRE }, -1) >= 0)
                ;
}

#endif
