/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Events of a run (cursor-event.h). Library. */
#include <string.h>

#include "client-lib/call.h"
#include "client-lib/connection-bus.h"
#include "client-lib/connection.h"
#include "client-lib/cursor-event.h"
#include "client-lib/cursor-life.h"
#include "client-lib/cursor.h"
#include "client-lib/description.h"
#include "client-lib/error.h"
#include "client-lib/fetch.h"
#include "client-lib/prepared-channel.h"
#include "client-lib/prepared.h"
#include "client-lib/query-call.h"
#include "client-lib/repeat.h"
#include "dbus-interfaces/sqlipc-names.h"

/* How long a living daemon may take to answer that it lives. */
#define ASK_TIMEOUT_USEC USEC_PER_SEC

/* ---- ERROR frames ------------------------------------------------------------------------------------------------- */

/* Handles the failure of the PREPARE that was sent with the run. */
static void on_prepare_failed(sqlipc_cursor *c) {
        sqlipc_statement *s = c->statement;

        s->channel_number = 0;
        (void) error_set_frame(&s->error, &c->fetch->decoder);
        prepared_fail(s);
        cursor_fail(c, &s->error);
}

/* Repeats the run after an error of a channel that says nothing about the run itself, so that it may succeed the next
 * time. */
static bool retry_after_error(sqlipc_cursor *c) {
        uint32_t number = c->fetch->decoder.error_number;
        bool prepare = !fetch_is_of_run(c->fetch);
        bool full = number == ERROR_LIMITS_EXCEEDED && prepare && !c->needs_channel; /* the bus may have room for it */

        if (!c->fetch->source->operations->shared || c->delivered || cursor_is_cancelled(c) ||
            !repeat_take(&c->repeats, full ? FATE_NOT_BEGUN : repeat_fate_of_frame(number), c->read_only))
                return false;
        if (c->statement)
                c->statement->channel_number = 0;
        cursor_restart(c, full || (number == ERROR_SHUTTING_DOWN && !c->needs_channel));
        return true;
}

/* Runs a read again that brought no result, unless the program knows of the run, or it was repeated before. */
static bool run_again(sqlipc_cursor *c, Fate fate) {
        if (!c->read_only || c->delivered || c->transaction || cursor_is_cancelled(c) ||
            !(c->statement || c->sent || c->query) || !repeat_take(&c->repeats, fate, true))
                return false;
        cursor_restart(c, !c->needs_channel);
        if (c->statement)
                prepared_lose(c->statement);
        return true;
}

static void on_error_frame(sqlipc_cursor *c) {
        uint32_t number = c->fetch->decoder.error_number;
        Error e;

        if (number == ERROR_NEEDS_PIN) {
                (void) error_set_frame(&e, &c->fetch->decoder);
                if (c->statement)
                        c->statement->channel_number = fetch_is_of_run(c->fetch) ? c->statement->channel_number : 0;
                if (cursor_take_pin(c, &e))
                        return;
        }
        if (retry_after_error(c))
                return;
        if (number == ERROR_DAEMON_LOST && run_again(c, FATE_UNKNOWN)) /* its worker noticed that before we did */
                return;
        if (c->statement && !fetch_is_of_run(c->fetch)) {
                on_prepare_failed(c);
                return;
        }
        if (cursor_is_cancelled(c) && (number == ERROR_CANCELLED || number == ERROR_WORKER_LOST)) {
                cursor_end(c, CURSOR_END_CANCELLED);
                return;
        }
        (void) error_set_frame(&c->error, &c->fetch->decoder);
        /* The daemon cancels the runs of a client that has left the bus, so report the lost connection instead. */
        if (number == ERROR_CANCELLED && !connection_bus_is_open(c->connection))
                (void) error_set(&c->error, ERROR_DAEMON_LOST, "The connection to the bus was lost, and the run with it.");
        cursor_end(c, CURSOR_END_FAILED);
}

/* ---- Sources that end before the run ------------------------------------------------------------------------------ */

/* The fate of a run whose source ended before the run did. */
static Fate fate_of_stream(const sqlipc_cursor *c) {
        return c->fetch->source->never_sent ? FATE_NOT_BEGUN : FATE_UNKNOWN;
}

static void fail_lost(sqlipc_cursor *c, bool daemon_lives) {
        if (daemon_lives && c->fetch->source->operations->shared && !c->delivered)
                (void) error_set(&c->error, ERROR_WORKER_LOST, "The service closed one channel after another without an "
                                 "answer: its worker is lost each time, or cannot be had; another transport tells more.");
        else if (daemon_lives)
                (void) error_set(&c->error, ERROR_WORKER_LOST, "The worker that computed this result is gone; the result "
                                 "is incomplete.");
        else
                (void) error_set(&c->error, ERROR_DAEMON_LOST, "The service is gone; the result is incomplete.");
        cursor_set_outcome(c, &c->error, fate_of_stream(c));
        cursor_end(c, CURSOR_END_LOST);
}

/* Only an answer from the same instance that served the run shows that it lives; an error from the bus, or from sd-bus
 * itself, does not. On a connection without a bus only the daemon can answer. */
static bool service_lives(const Source *source, sd_bus_message *reply) {
        const char *sender = sd_bus_message_get_sender(reply);

        return source->owner ? sender && strcmp(sender, source->owner) == 0 : !sender;
}

static void on_alive_reply(sd_bus_message *reply, void *userdata) {
        Source *source = userdata;
        sqlipc_cursor *c = source->fetch->cursor;
        bool lives = service_lives(source, reply);

        source->call = call_free(source->call);
        if (c && (lives || !run_again(c, FATE_UNKNOWN))) /* if only the worker is lost, the run may have killed it */
                fail_lost(c, lives);
}

/* Sends Finalize or Cancel to the daemon instance that served the run, to see if it still answers. */
static int ask_if_service_lives(sqlipc_cursor *c) {
        _cleanup_message_ sd_bus_message *m = NULL;
        Source *source = c->fetch->source;
        bool finalize = c->statement && c->statement->number > 0;
        uint64_t number = source->operations->shared ? 0 : source->number; /* no run has the number 0 */
        int r;

        if (!connection_bus_is_open(c->connection))
                return -ENOTCONN;
        r = sd_bus_message_new_method_call(c->connection->bus, &m, source->owner, source->path, SQLIPC_DATABASE_INTERFACE,
                                           finalize ? "Finalize" : "Cancel");
        if (r < 0)
                return r;
        r = sd_bus_message_set_auto_start(m, false);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "ta{sv}", finalize ? c->statement->number : number, 0);
        if (r < 0)
                return r;
        r = call_new(&source->call, c->connection, m, on_alive_reply, NULL, source, ASK_TIMEOUT_USEC);
        if (r < 0)
                return r;
        if (finalize)
                c->statement->number = 0;
        return 0;
}

/* ---- Reads that run again ----------------------------------------------------------------------------------------- */

/* 1: the statement changes nothing. */
static int read_if_it_reads(const Source *source, sd_bus_message *reply) {
        _cleanup_(description_done) Description description = { .page_size = 0 };
        uint64_t number;
        int fd, r;

        r = sd_bus_message_read(reply, "th", &number, &fd);
        if (r < 0)
                return r;
        call_notify(source->connection->bus, sd_bus_message_get_sender(reply), source->path, "Finalize", number);
        r = description_read(&description, reply);
        return r < 0 ? r : description.read_only;
}

static bool ask_if_it_reads(sqlipc_cursor *c, sd_bus_message *failure);

/* True if the service was lost again, before it had compiled the SQL, and is asked again. */
static bool ask_again(sqlipc_cursor *c, sd_bus_message *failure, sd_bus_message *reply) {
        Error e;

        if (!sd_bus_message_get_error(reply) || cursor_is_cancelled(c) || c->retries_left == 0 ||
            error_set_reply(&e, reply) >= 0 || repeat_fate_of_reply(reply, &e) == FATE_ENDED)
                return false;
        c->retries_left--;
        return ask_if_it_reads(c, failure);
}

/* The service, or its next instance, has compiled the SQL, or has not. */
static void on_compiled(sd_bus_message *reply, void *userdata) {
        Source *source = userdata;
        _cleanup_message_ sd_bus_message *failure = steal(source->failure);
        sqlipc_cursor *c = source->fetch->cursor;
        bool reads = !sd_bus_message_get_error(reply) && read_if_it_reads(source, reply) > 0;
        bool lives = !failure && !source->operations->shared && service_lives(source, reply);

        source->call = call_free(source->call);
        if (!c)
                return;
        if (ask_again(c, failure, reply))
                return;
        c->reads = c->read_only = reads;
        if (lives)
                fail_lost(c, true);
        else if (run_again(c, FATE_UNKNOWN))
                return;
        else if (failure)
                cursor_fail_reply(c, failure);
        else if (ask_if_service_lives(c) < 0)
                fail_lost(c, false);
}

/* Has the service compile the SQL. False: it cannot be asked. */
static bool ask_if_it_reads(sqlipc_cursor *c, sd_bus_message *failure) {
        _cleanup_message_ sd_bus_message *m = NULL;
        Source *source = c->fetch->source;

        if (!connection_bus_is_open(c->connection) || query_call_prepare(c, &m) < 0 ||
            call_new(&source->call, c->connection, m, on_compiled, prepared_undo, source, UINT64_MAX) < 0)
                return false;
        source->failure = sd_bus_message_ref(failure);
        return true;
}

bool cursor_event_ask_if_it_reads(sqlipc_cursor *c, sd_bus_message *failure) {
        Error e;

        if (c->read_only || c->transaction || cursor_is_cancelled(c) || (c->statement && c->statement->described))
                return false;
        if (failure && (!sd_bus_message_get_error(failure) || error_set_reply(&e, failure) >= 0 ||
                        repeat_fate_of_reply(failure, &e) != FATE_UNKNOWN))
                return false;
        if (!ask_if_it_reads(c, failure))
                return false;
        fetch_set_ended(c->fetch);
        cursor_life_move(&c->state, CURSOR_ASKING);
        return true;
}

/* The worker was killed, because it could not be interrupted. */
static void on_killed(sqlipc_cursor *c) {
        (void) error_set(&c->error, ERROR_CANCELLED, "The run was cancelled, and its worker ended without an answer.");
        cursor_set_outcome(c, &c->error, fate_of_stream(c));
        cursor_end(c, c->error.number == ERROR_CANCELLED ? CURSOR_END_KILLED : CURSOR_END_LOST);
}

static void on_end_of_file(sqlipc_cursor *c) {
        c->n_values = 0;
        if (c->fetch->source->operations->shared && !c->delivered && !cursor_is_cancelled(c) && c->retries_left > 0 &&
            repeat_is_allowed(fate_of_stream(c), c->read_only)) {
                c->retries_left--;
                cursor_restart(c, !c->needs_channel);
                return;
        }
        if (fate_of_stream(c) == FATE_UNKNOWN && cursor_event_ask_if_it_reads(c, NULL))
                return;
        fetch_set_ended(c->fetch);
        if (cursor_is_cancelled(c))
                on_killed(c);
        else if (ask_if_service_lives(c) < 0)
                fail_lost(c, false);
        else
                cursor_life_move(&c->state, CURSOR_ASKING);
}

/* True if the failure is that of a cancelled run. The service forgets such a run, so that it no longer knows if it had
 * written. */
static bool is_cancellation(sqlipc_cursor *c) {
        return cursor_is_cancelled(c) &&
               (c->error.number == ERROR_CANCELLED || (c->error.number == ERROR_UNKNOWN_RUN && c->read_only));
}

/* The service said why nothing more comes. */
static void on_failure_reply(sqlipc_cursor *c, sd_bus_message *failure) {
        Fate fate;

        (void) error_set_reply(&c->error, failure);
        fetch_set_ended(c->fetch);
        fate = repeat_fate_of_reply(failure, &c->error);
        if (fate != FATE_WORKER_LOST && run_again(c, fate))
                return;
        if (is_cancellation(c))
                cursor_end(c, CURSOR_END_CANCELLED);
        else if (c->error.number == ERROR_DAEMON_LOST && connection_bus_is_open(c->connection))
                fail_lost(c, false);
        else {
                cursor_set_outcome(c, &c->error, c->error.number == ERROR_UNKNOWN_RUN ? FATE_UNKNOWN : fate);
                cursor_end(c, CURSOR_END_FAILED);
        }
}

/* ---- Events ------------------------------------------------------------------------------------------------------- */

static bool may_restart(const sqlipc_cursor *c) {
        return c && c->state == CURSOR_RUNNING && !c->delivered && repeat_is_allowed(FATE_UNKNOWN, c->read_only);
}

/* In front of the answer to this run is one that the program does not read, and that is too large to be kept. One of the
 * two runs moves to a pipe. If both may write, the library keeps more of the answer: most of these runs only read, but it
 * cannot know that, and must not fail them lightly. */
static void on_crowded(sqlipc_cursor *c) {
        Source *source = c->fetch->source, *ahead = source->operations->ahead(source);
        sqlipc_cursor *other = ahead ? ahead->fetch->cursor : NULL;
        Error e;

        if (may_restart(other))
                cursor_restart(other, true);
        else if (may_restart(c))
                cursor_restart(c, true);
        else if (!source->operations->keep_more(source)) {
                (void) error_set_errno(&e, -ENOBUFS,
                                       "The answer comes after one that the program has not read, and is too large to be "
                                       "kept.");
                repeat_set_outcome(&e, FATE_UNKNOWN, c->read_only);
                cursor_fail(c, &e);
        }
}

static void on_statement(sqlipc_cursor *c) {
        int r = prepared_channel_read_description(c->statement);

        if (r < 0)
                cursor_fail_errno(c, r);
        else
                c->read_only |= c->statement->description.read_only;
}

static void on_end(sqlipc_cursor *c) {
        c->totals = c->fetch->decoder.end_counters;
        cursor_note_result(c, c->totals.n_bytes, c->totals.usec);
        cursor_note_setting(c);
        cursor_end(c, CURSOR_END_COMPLETE);
}

static int on_reset(sqlipc_cursor *c) {
        Source *source = c->fetch->source;

        if (source->call) /* the reply that is still to come has the reason */
                return -EAGAIN;
        if (source->failure)
                on_failure_reply(c, source->failure);
        else
                on_end_of_file(c);
        return 0;
}

int cursor_event(sqlipc_cursor *c, int event) {
        switch (event) {
        case PAGE_ROW:
                c->n_values = c->fetch->decoder.n_columns;
                c->delivered = true;
                return 1;
        case -EAGAIN:
                c->n_values = 0;
                return -EAGAIN;
        case -ECONNRESET:
                return on_reset(c);
        case PAGE_COLUMNS:
                break;
        case PAGE_STATEMENT:
                on_statement(c);
                break;
        case PAGE_END:
                on_end(c);
                break;
        case PAGE_ERROR:
                on_error_frame(c);
                break;
        case -ENOBUFS:
                on_crowded(c);
                break;
        case -EMSGSIZE:
                (void) error_set(&c->error, ERROR_ROW_TOO_LARGE,
                                 "A row is larger than this library reads: select fewer or shorter columns.");
                cursor_end(c, CURSOR_END_LOST);
                break;
        default:
                cursor_fail_errno(c, event);
        }
        return 0;
}
