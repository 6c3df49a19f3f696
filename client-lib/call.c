/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Method calls in progress, also after their owner has gone (call.h). Library. */
#include <string.h>

#include "client-lib/call.h"
#include "client-lib/connection-bus.h"
#include "client-lib/connection.h"
#include "client-lib/error.h"
#include "client-lib/event-loop.h"
#include "client-lib/parameter.h"
#include "client-lib/repeat.h"
#include "dbus-interfaces/never-began.h"
#include "dbus-interfaces/sqlipc-names.h"
#include "dbus-interfaces/wire/sqlipc-page.h"

/* How long a living service may take to answer Cancel, which it does at once. */
#define CANCEL_TIMEOUT_USEC (5 * USEC_PER_SEC)

struct Call {
        sqlipc_connection *connection; /* NULL: abandoned */
        sd_bus_slot *slot;             /* owned; after the call is abandoned the bus owns it */
        call_handler on_reply;
        call_undo undo;
        void *userdata;
        sd_bus_message *again;         /* may be sent again; NULL: is meant for one instance */
        Repeats repeats;
        uint64_t usec;
        uint64_t serial;               /* of the message, as the receiver knows it */
        char *destination;             /* owned; NULL: on a connection without a bus */
        char path[];
};

static void destroy(void *userdata) {
        Call *call = userdata;

        sd_bus_message_unref(call->again);
        free(call->destination);
        free(call);
}

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error);

static int send_message(Call *call, sd_bus_message *m) {
        sd_bus_slot *slot;
        int r;

        r = sd_bus_call_async(call->connection->bus, &slot, m, on_reply, call, call->usec);
        if (r < 0)
                return r;
        (void) sd_bus_message_get_cookie(m, &call->serial);
        if (call->slot) {
                (void) sd_bus_slot_set_destroy_callback(call->slot, NULL);
                sd_bus_slot_unref(call->slot);
        }
        call->slot = slot;
        (void) sd_bus_slot_set_destroy_callback(slot, destroy);
        event_loop_update(call->connection);
        return 0;
}

/* True if the service ended before it answered a call that changes nothing, or only what ended with it. */
static bool is_harmless(sd_bus_message *m, sd_bus_message *reply) {
        static const char *const methods[] = { "Prepare", "OpenChannel", "Watch", "Begin", "ListDatabases" };
        const char *member = sd_bus_message_get_member(m);

        if (!sd_bus_message_is_method_error(reply, SD_BUS_ERROR_NO_REPLY))
                return false;
        for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
                if (member && strcmp(member, methods[i]) == 0)
                        return true;
        return false;
}

/* Sends the call again if that does no harm. The instance that had it has lost its name, so the same call now reaches the
 * next instance, which the bus starts. */
static bool send_again(Call *call, sd_bus_message *reply) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        Fate fate = error && never_began(error->name) ? FATE_NOT_BEGUN : FATE_UNKNOWN;

        return call->again && connection_bus_is_open(call->connection) &&
               repeat_take(&call->repeats, fate, is_harmless(call->again, reply)) && send_message(call, call->again) >= 0;
}

/* Gets the reply to a call that was never sent, because the bus refused the connection. sd-bus answers it as if it had been
 * lost. NULL: it was sent, or there is no memory for the reply. */
static sd_bus_message *new_refusal(const Call *call) {
        _cleanup_message_ sd_bus_message *refusal = NULL;
        Error e;

        if (call->connection->bus_refusal == 0 || !call->again)
                return NULL;
        (void) error_set_bus_refusal(&e, call->connection->bus_refusal);
        if (sd_bus_message_new_method_errorf(call->again, &refusal, e.name, "%s", e.message) < 0 ||
            sd_bus_message_seal(refusal, 1, 0) < 0)
                return NULL;
        return steal(refusal);
}

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        Call *call = userdata;

        if (call->connection)
                turns_step(&call->connection->turns); /* the program's own loop may process the bus */
        if (call->connection && send_again(call, reply))
                return 1;
        if (call->connection) {
                _cleanup_message_ sd_bus_message *refusal = new_refusal(call);

                if (!connection_bus_is_open(call->connection))
                        call->connection->bus_loss_told = true;
                event_loop_wake_if_idle(call->connection);
                call->undo = NULL; /* answered: nothing is left to undo */
                call->on_reply(refusal ?: reply, call->userdata);
        } else if (!sd_bus_message_get_error(reply))
                call->undo(reply, call->path);
        return 1;
}

int call_new(Call **ret, sqlipc_connection *connection, sd_bus_message *m, call_handler handler, call_undo undo,
             void *userdata, uint64_t usec) {
        const char *path = sd_bus_message_get_path(m), *destination = sd_bus_message_get_destination(m);
        /* Compare now: sending moves the memory that holds the names. The destination is NULL on a connection without a
         * bus. */
        bool for_any_instance = destination && strcmp(destination, SQLIPC_BUS_NAME) == 0;
        size_t size = strlen(path) + 1;
        Call *call = malloc(sizeof *call + size);
        int r;

        if (!call)
                return -ENOMEM;
        *call = (Call) { .connection = connection, .on_reply = handler, .undo = undo, .userdata = userdata,
                         .usec = usec };
        memcpy(call->path, path, size);
        if (destination)
                call->destination = strdup(destination);
        r = destination && !call->destination ? -ENOMEM : send_message(call, m);
        if (r < 0) {
                free(call->destination);
                free(call);
                return r;
        }
        if (for_any_instance)
                call->again = sd_bus_message_ref(m);
        *ret = call;
        return 0;
}

/* `bus`: that of the call, whose serial means nothing on another one. */
static int new_cancel(sd_bus_message **ret, sd_bus *bus, const Call *call, bool auto_start) {
        _cleanup_message_ sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(bus, &m, call->destination, call->path, SQLIPC_DATABASE_INTERFACE, "Cancel");
        if (r >= 0)
                r = sd_bus_message_set_auto_start(m, auto_start);
        if (r >= 0)
                r = sd_bus_message_append(m, "ta{sv}", (uint64_t) 0, 1, "call", "u", (uint32_t) call->serial);
        if (r < 0)
                return r;
        *ret = steal(m);
        return 0;
}

static int send_cancel(Call **ret, Call *call, call_handler handler, void *userdata) {
        _cleanup_message_ sd_bus_message *m = NULL;
        sqlipc_connection *c = call->connection;
        int r;

        call->again = sd_bus_message_unref(call->again);
        r = new_cancel(&m, c->bus, call, false);
        return r < 0 ? r : call_new(ret, c, m, handler, NULL, userdata, CANCEL_TIMEOUT_USEC);
}

void call_cancel(Cancellation *c, Call *call, call_handler handler, void *userdata) {
        if (c->state == CANCEL_NONE)
                c->state = send_cancel(&c->call, call, handler, userdata) < 0 ? CANCEL_REFUSED : CANCEL_SENT;
}

void call_note_cancel(Cancellation *c, sd_bus_message *reply) {
        c->call = call_free(c->call);
        c->state = sd_bus_message_get_error(reply) ? CANCEL_REFUSED : CANCEL_OBEYED;
}

void call_forget_cancel(Cancellation *c) {
        c->call = call_free(c->call);
        c->state = CANCEL_NONE;
}

int call_append_foreign_keys(sd_bus_message *m, ForeignKeys foreign_keys) {
        if (foreign_keys == FOREIGN_KEYS_CONFIGURED)
                return 0;
        return sd_bus_message_append(m, "{sv}", "foreign-keys", "b", foreign_keys == FOREIGN_KEYS_ON);
}

int call_append_place(sd_bus_message *m, CallPlace place) {
        return place.option ? sd_bus_message_append(m, "{sv}", place.option, "t", place.number) : 0;
}

static int append_lock_wait(const sqlipc_connection *c, sd_bus_message *m) {
        if (!c || c->lock_wait_usec == UINT64_MAX)
                return 0;
        return sd_bus_message_append(m, "{sv}", "x-lock-wait-usec", "t", c->lock_wait_usec);
}

int call_append_options(sqlipc_connection *c, sd_bus_message *m, bool pages, bool describe, uint64_t run_timeout_usec,
                        CallPlace place, ForeignKeys foreign_keys, int file_fd) {
        const char *zone = c ? client_zone_get(&c->zone) : NULL;
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}", "error-details", "b", 1);
        if (r >= 0 && pages)
                r = sd_bus_message_append(m, "{sv}", "page-version", "u", (uint32_t) SQLIPC_PAGE_VERSION);
        if (r >= 0 && !describe)
                r = sd_bus_message_append(m, "{sv}", "describe", "b", false);
        if (r >= 0 && run_timeout_usec != UINT64_MAX)
                r = sd_bus_message_append(m, "{sv}", "timeout-usec", "t", run_timeout_usec);
        if (r >= 0)
                r = call_append_place(m, place);
        if (r >= 0 && file_fd >= 0)
                r = sd_bus_message_append(m, "{sv}", "arguments", "h", file_fd);
        if (r >= 0)
                r = call_append_foreign_keys(m, foreign_keys);
        if (r >= 0 && zone) /* also "": it tells that this library keeps settings */
                r = sd_bus_message_append(m, "{sv}", "x-time-zone", "s", zone);
        if (r >= 0)
                r = append_lock_wait(c, m);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int call_append_prepare_options(const sqlipc_connection *c, sd_bus_message *m, bool cached, CallPlace place) {
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}{sv}", "error-details", "b", 1, "page-version", "u",
                                          (uint32_t) SQLIPC_PAGE_VERSION);
        if (r >= 0 && cached)
                r = sd_bus_message_append(m, "{sv}", "cached", "b", 1);
        if (r >= 0)
                r = append_lock_wait(c, m);
        if (r >= 0)
                r = call_append_place(m, place);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int call_database_path(const char *database, char **ret) {
        return sd_bus_path_encode(SQLIPC_DATABASE_PATH, database, ret);
}

int call_check_sql(Error *e, const char *sql) {
        size_t bad;
        int r;

        if (parameter_is_bus_string(sql, strlen(sql), &bad))
                return 0;
        r = error_set(e, ERROR_SQL, "The SQL holds bytes that are not UTF-8, or a noncharacter, at byte %zu: bind such "
                      "a value to a parameter.", bad);
        e->sql_offset = bad > INT32_MAX ? -1 : (int) bad;
        return r;
}

int call_check_page_version(uint32_t version) {
        return version >= 1 && version <= SQLIPC_PAGE_VERSION ? 0 : -EBADMSG;
}

Call *call_free(Call *call) {
        sd_bus_slot *slot;

        if (!call)
                return NULL;
        slot = call->slot; /* the call itself is freed with its slot */
        call->connection = NULL;
        /* it will not be sent again, and it would keep the bus alive, which keeps the slot alive */
        call->again = sd_bus_message_unref(call->again);
        if (call->undo)
                (void) sd_bus_slot_set_floating(slot, true);
        sd_bus_slot_unref(slot);
        return NULL;
}

/* The call may still wait for the start of the service, and so must its Cancel: without a service the bus would drop it. */
Call *call_abandon(Call *call) {
        _cleanup_message_ sd_bus_message *m = NULL;
        sqlipc_connection *c;
        sd_bus *bus;

        if (!call)
                return NULL;
        c = call->connection;
        bus = sd_bus_slot_get_bus(call->slot);
        if (!connection_is_foreign(c) && new_cancel(&m, bus, call, true) >= 0 &&
            sd_bus_message_set_expect_reply(m, false) >= 0 && sd_bus_send(bus, m, NULL) >= 0)
                event_loop_update(c);
        return call_free(call);
}

void call_notify(sd_bus *bus, const char *destination, const char *path, const char *method, uint64_t number) {
        _cleanup_message_ sd_bus_message *m = NULL;

        if (sd_bus_message_new_method_call(bus, &m, destination, path, SQLIPC_DATABASE_INTERFACE, method) >= 0 &&
            sd_bus_message_append(m, "ta{sv}", number, 0) >= 0 && sd_bus_message_set_expect_reply(m, false) >= 0 &&
            sd_bus_message_set_auto_start(m, false) >= 0)
                (void) sd_bus_send(bus, m, NULL);
}
