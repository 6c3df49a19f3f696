/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Connections (glib-connection.h). GLib library. */
#include "client-lib/glib/glib-connection.h"

#include <errno.h>
#include <sqlipc-glib-enums.h>

#include "client-lib/glib/glib-error.h"

/**
 * SqlipcConnection:
 *
 * A connection to the service on one bus.
 *
 * The connection belongs to the main context that was the thread's default when it was created (see
 * [method@GLib.MainContext.push_thread_default]). It and its objects may be used by that thread only; callbacks of
 * asynchronous functions run there. Any number of asynchronous calls may be under way. A synchronous function waits without
 * running the main loop.
 *
 * If the service or the bus connection is lost, what is under way fails, and the next call works again.
 */
struct _SqlipcConnection {
        GObject parent;
        SqlipcBus bus;         /* FOUND once open: that of an address in $SQLIPC_BUS */
        char *database;        /* must exist when the connection opens; NULL: any */
        char *address;         /* NULL: `bus` */
        char *host;            /* NULL: this machine */
        sqlipc_connection *handle;
        GMainContext *context;
        GSource *source;
        GQueue queue;          /* of operations to try again */
        GQueue pending;        /* all asynchronous operations */
        guint64 run_timeout;
        SqlipcTransport transport;
        gboolean interactive;
        bool closed;
        GError *last;          /* the last error that the program got */
};

typedef struct ConnectionSource {
        GSource source;
        SqlipcConnection *connection; /* destroys the source before it ends */
} ConnectionSource;

enum { PROPERTY_0, PROPERTY_BUS, PROPERTY_DATABASE, PROPERTY_ADDRESS, PROPERTY_HOST, PROPERTY_RUN_TIMEOUT,
       PROPERTY_TRANSPORT, PROPERTY_INTERACTIVE, N_PROPERTIES };

static GParamSpec *properties[N_PROPERTIES];

static void initable_init(GInitableIface *iface);
static void async_initable_init(GAsyncInitableIface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(SqlipcConnection, sqlipc_glib_connection, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(G_TYPE_INITABLE, initable_init)
                              G_IMPLEMENT_INTERFACE(G_TYPE_ASYNC_INITABLE, async_initable_init))

/* ---- The source --------------------------------------------------------------------------------------------------- */

/* Milliseconds until `until`, rounded up so that the loop does not wake too early; -1: no limit. */
static int milliseconds_left(guint64 until) {
        guint64 now = (guint64) g_get_monotonic_time();

        if (until == UINT64_MAX)
                return -1;
        return until > now ? (int) MIN((until - now + 999) / 1000, G_MAXINT) : 0;
}

static int timeout(SqlipcConnection *self) {
        guint64 until;

        if (!g_queue_is_empty(&self->queue))
                return 0;
        return sqlipc_get_timeout(self->handle, &until) < 0 ? -1 : milliseconds_left(until);
}

static gboolean source_prepare(GSource *source, int *ret_timeout) {
        *ret_timeout = timeout(((ConnectionSource *) source)->connection);
        return *ret_timeout == 0;
}

static void step_all(SqlipcConnection *self) {
        /* Operations that are added now belong to the next turn, so that other sources have theirs. */
        for (guint n = g_queue_get_length(&self->queue); n > 0; n--) {
                GList *first = g_queue_peek_head_link(&self->queue);

                if (!first)
                        return;
                connection_forget(self, first->data);
                operation_step(first->data);
        }
}

/* The descriptor is ready again and again for nothing. No operation learns of that, and with the source in it the main loop
 * would never rest. So the connection is closed, which ends all operations. */
static void give_up(SqlipcConnection *self) {
        g_critical("%s", sqlipc_error_message(self->handle));
        sqlipc_glib_connection_close(self);
}

static gboolean source_dispatch(GSource *source, GSourceFunc callback, gpointer user_data) {
        g_autoptr(SqlipcConnection) self = g_object_ref(((ConnectionSource *) source)->connection);

        (void) callback;
        (void) user_data;
        /* Other failures are told by the operations. */
        if (sqlipc_process(self->handle) == -ELOOP)
                give_up(self);
        step_all(self);
        return G_SOURCE_CONTINUE;
}

static gboolean source_check(GSource *source) {
        SqlipcConnection *self = ((ConnectionSource *) source)->connection;
        GPollFD fd = { .fd = sqlipc_get_fd(self->handle), .events = G_IO_IN };

        return timeout(self) == 0 || g_poll(&fd, 1, 0) > 0;
}

static GSourceFuncs source_functions = { .prepare = source_prepare, .check = source_check, .dispatch = source_dispatch };

static void attach(SqlipcConnection *self) {
        self->source = g_source_new(&source_functions, sizeof(ConnectionSource));
        ((ConnectionSource *) self->source)->connection = self;
        g_source_set_static_name(self->source, "sqlipc connection");
        /* A callback of the program may run a loop of its own. */
        g_source_set_can_recurse(self->source, TRUE);
        (void) g_source_add_unix_fd(self->source, sqlipc_get_fd(self->handle), G_IO_IN);
        (void) g_source_attach(self->source, self->context);
}

static void detach(SqlipcConnection *self) {
        if (self->source)
                g_source_destroy(self->source);
        g_clear_pointer(&self->source, g_source_unref);
}

/* ---- For the other classes ---------------------------------------------------------------------------------------- */

sqlipc_connection *connection_handle(SqlipcConnection *self) { return self->handle; }

GMainContext *connection_context(SqlipcConnection *self) { return self->context; }

void connection_queue(SqlipcConnection *self, Operation *o) {
        o->queued = true;
        g_queue_push_tail_link(&self->queue, &o->queue_link);
}

void connection_forget(SqlipcConnection *self, Operation *o) {
        if (o->queued)
                g_queue_unlink(&self->queue, &o->queue_link);
        o->queued = false;
}

void connection_add(SqlipcConnection *self, Operation *o) {
        o->pending = true;
        g_queue_push_tail_link(&self->pending, &o->pending_link);
}

void connection_remove(SqlipcConnection *self, Operation *o) {
        connection_forget(self, o);
        if (o->pending)
                g_queue_unlink(&self->pending, &o->pending_link);
        o->pending = false;
}

static gboolean step_all_once(gpointer data) {
        step_all(data);
        return G_SOURCE_REMOVE;
}

/* The connection's own source may be gone. */
void connection_wake_all(SqlipcConnection *self) {
        g_autoptr(GSource) source = g_idle_source_new();

        for (GList *i = self->pending.head; i; i = i->next)
                operation_wake(i->data);
        g_source_set_priority(source, G_PRIORITY_DEFAULT);
        g_source_set_callback(source, step_all_once, g_object_ref(self), g_object_unref);
        (void) g_source_attach(source, self->context);
}

bool connection_wait(SqlipcConnection *self, bool again, GCancellable *cancellable, gint64 until, GError **error) {
        GPollFD fds[2] = { { .fd = sqlipc_get_fd(self->handle), .events = G_IO_IN } };
        guint64 wake = 0;
        bool cancels = cancellable && g_cancellable_make_pollfd(cancellable, &fds[1]);
        int r = 0;

        if (!again)
                r = sqlipc_get_timeout(self->handle, &wake);
        if (until != G_MAXINT64)
                wake = MIN(wake, (guint64) until);
        if (r >= 0 && g_poll(fds, cancels ? 2 : 1, milliseconds_left(wake)) < 0 && errno != EINTR)
                r = -errno;
        if (cancels)
                g_cancellable_release_fd(cancellable);
        if (r >= 0)
                r = sqlipc_process(self->handle);
        if (r < 0)
                error_set_last(error, self->handle, r);
        return r >= 0;
}

void connection_note_error(SqlipcConnection *self, const GError *error) {
        g_clear_error(&self->last);
        self->last = g_error_copy(error);
}

/* ---- Opening and closing ------------------------------------------------------------------------------------------ */

/* True if the services are asked for the database, which takes until they answer. */
static bool opening_waits(const SqlipcConnection *self) {
        return !self->address && !self->host && (self->database || self->bus == SQLIPC_GLIB_BUS_FOUND);
}

static int open_handle(const SqlipcConnection *self, const char *database, sqlipc_connection **ret) {
        static const char *const names[] = { [SQLIPC_GLIB_BUS_SYSTEM] = "system", [SQLIPC_GLIB_BUS_USER] = "user",
                                             [SQLIPC_GLIB_BUS_FOUND] = NULL };

        if (self->address)
                return sqlipc_open_address(self->address, ret);
        if (self->host && self->bus == SQLIPC_GLIB_BUS_FOUND)
                return -EINVAL;
        if (self->host)
                return self->bus == SQLIPC_GLIB_BUS_SYSTEM ? sqlipc_open_system_remote(self->host, ret)
                                                           : sqlipc_open_user_remote(self->host, ret);
        if (database || self->bus == SQLIPC_GLIB_BUS_FOUND)
                return sqlipc_open(database, names[self->bus], ret);
        return self->bus == SQLIPC_GLIB_BUS_SYSTEM ? sqlipc_open_system(ret) : sqlipc_open_user(ret);
}

/* The connection stays on the bus that was found. */
static void keep_bus(SqlipcConnection *self) {
        const char *name = self->bus == SQLIPC_GLIB_BUS_FOUND ? sqlipc_get_bus_name(self->handle) : NULL;

        if (name)
                self->bus = g_str_equal(name, "system") ? SQLIPC_GLIB_BUS_SYSTEM : SQLIPC_GLIB_BUS_USER;
}

static gboolean initialise(GInitable *initable, GCancellable *cancellable, GError **error) {
        SqlipcConnection *self = SQLIPC_CONNECTION(initable);
        int r;

        if (self->handle)
                return TRUE;
        if (g_cancellable_set_error_if_cancelled(cancellable, error))
                return FALSE;
        r = open_handle(self, self->database, &self->handle);
        if (r >= 0)
                r = sqlipc_set_blocking(self->handle, 0);
        if (r < 0) {
                error_set_last(error, self->handle, r);
                self->handle = sqlipc_close(self->handle);
                return FALSE;
        }
        keep_bus(self);
        (void) sqlipc_set_run_timeout(self->handle, self->run_timeout ? self->run_timeout : UINT64_MAX);
        (void) sqlipc_set_transport(self->handle, (sqlipc_transport) self->transport);
        (void) sqlipc_set_allow_interactive_authorization(self->handle, self->interactive);
        attach(self);
        return TRUE;
}

static void initable_init(GInitableIface *iface) { iface->init = initialise; }

static void initialise_task(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
        GError *error = NULL;

        (void) data;
        if (initialise(G_INITABLE(source), cancellable, &error))
                g_task_return_boolean(task, TRUE);
        else
                g_task_return_error(task, error);
}

static void initialise_async(GAsyncInitable *initable, int io_priority, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data) {
        g_autoptr(GTask) task = g_task_new(initable, cancellable, callback, user_data);

        g_task_set_priority(task, io_priority);
        g_task_set_source_tag(task, initialise_async);
        if (!opening_waits(SQLIPC_CONNECTION(initable))) {
                initialise_task(task, initable, NULL, cancellable);
                return;
        }
        (void) g_task_set_return_on_cancel(task, TRUE);
        g_task_run_in_thread(task, initialise_task);
}

static gboolean initialise_finish(GAsyncInitable *initable, GAsyncResult *result, GError **error) {
        g_return_val_if_fail(g_task_is_valid(result, initable), FALSE);
        return g_task_propagate_boolean(G_TASK(result), error);
}

static void async_initable_init(GAsyncInitableIface *iface) {
        iface->init_async = initialise_async;
        iface->init_finish = initialise_finish;
}

/**
 * sqlipc_glib_library_version:
 *
 * Returns: the version of libsqlipc that runs, such as `0.2.0`
 */
const char *sqlipc_glib_library_version(void) { return sqlipc_version(); }

/**
 * sqlipc_glib_connection_new: (constructor)
 * @bus: the bus
 * @error: return location for an error
 *
 * Opens a connection to the service on a bus of this machine. This neither waits for the bus nor starts the service: the
 * first call does.
 *
 * Returns: (transfer full): the connection
 */
SqlipcConnection *sqlipc_glib_connection_new(SqlipcBus bus, GError **error) {
        return g_initable_new(SQLIPC_TYPE_CONNECTION, NULL, error, "bus", bus, NULL);
}

/**
 * sqlipc_glib_connection_new_for_database: (constructor)
 * @database: the name of a database
 * @bus: %SQLIPC_GLIB_BUS_FOUND, or the bus that must have the database
 * @error: return location for an error
 *
 * Opens a connection to the service that has @database. This waits for the answers of the services, and starts them;
 * [func@Sqlipc.Connection.new_for_database_async] does not wait. The connection keeps the bus that was found,
 * [property@Sqlipc.Connection:bus]. If @bus is chosen and does not have the database, the error says if the
 * other bus has it.
 *
 * Returns: (transfer full): the connection
 *
 * Since: 0.2
 */
SqlipcConnection *sqlipc_glib_connection_new_for_database(const char *database, SqlipcBus bus, GError **error) {
        g_return_val_if_fail(database, NULL);
        return g_initable_new(SQLIPC_TYPE_CONNECTION, NULL, error, "database", database, "bus", bus, NULL);
}

/**
 * sqlipc_glib_connection_new_for_database_async:
 * @database: the name of a database
 * @bus: %SQLIPC_GLIB_BUS_FOUND, or the bus that must have the database
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async): called when the connection is there
 * @user_data: data of @callback
 *
 * Opens a connection to the service that has @database, without waiting.
 *
 * Since: 0.2
 */
void sqlipc_glib_connection_new_for_database_async(const char *database, SqlipcBus bus, GCancellable *cancellable,
                                                   GAsyncReadyCallback callback, gpointer user_data) {
        g_return_if_fail(database);
        g_async_initable_new_async(SQLIPC_TYPE_CONNECTION, G_PRIORITY_DEFAULT, cancellable, callback, user_data, "database",
                                   database, "bus", bus, NULL);
}

/**
 * sqlipc_glib_connection_new_for_database_finish: (constructor)
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Returns: (transfer full): the connection, see [ctor@Sqlipc.Connection.new_for_database]
 *
 * Since: 0.2
 */
SqlipcConnection *sqlipc_glib_connection_new_for_database_finish(GAsyncResult *result, GError **error) {
        g_autoptr(GObject) source = g_async_result_get_source_object(result);
        GObject *connection;

        g_return_val_if_fail(G_IS_ASYNC_INITABLE(source), NULL);
        connection = g_async_initable_new_finish(G_ASYNC_INITABLE(source), result, error);
        return connection ? SQLIPC_CONNECTION(connection) : NULL;
}

/**
 * sqlipc_glib_connection_new_for_address: (constructor)
 * @address: a D-Bus address, such as `unix:path=/run/user/1000/bus`
 * @error: return location for an error
 *
 * Opens a connection to the service on the bus at @address.
 *
 * Returns: (transfer full): the connection
 */
SqlipcConnection *sqlipc_glib_connection_new_for_address(const char *address, GError **error) {
        return g_initable_new(SQLIPC_TYPE_CONNECTION, NULL, error, "address", address, NULL);
}

/**
 * sqlipc_glib_connection_new_remote: (constructor)
 * @host: `[USER@]HOST[:PORT]`
 * @bus: the bus of that machine
 * @error: return location for an error
 *
 * Opens a connection to the service of another machine, over ssh. Statements cannot be prepared there, nor loads begun.
 *
 * Returns: (transfer full): the connection
 */
SqlipcConnection *sqlipc_glib_connection_new_remote(const char *host, SqlipcBus bus, GError **error) {
        return g_initable_new(SQLIPC_TYPE_CONNECTION, NULL, error, "host", host, "bus", bus, NULL);
}

/**
 * sqlipc_glib_connection_close:
 * @self: a connection
 *
 * Closes the connection at once. Calls under way end with %G_IO_ERROR_CLOSED, as does each later call. A call under way may
 * have written something nevertheless.
 */
void sqlipc_glib_connection_close(SqlipcConnection *self) {
        g_return_if_fail(SQLIPC_IS_CONNECTION(self));
        if (self->closed || !self->handle)
                return;
        self->closed = true;
        /* sqlipc_close() drops a reference; ours stays, because objects may still ask. */
        (void) sqlipc_close(sqlipc_connection_ref(self->handle));
        detach(self);
        connection_wake_all(self);
}

/**
 * sqlipc_glib_connection_is_closed:
 * @self: a connection
 *
 * Returns: whether [method@Sqlipc.Connection.close] was called
 */
gboolean sqlipc_glib_connection_is_closed(SqlipcConnection *self) {
        g_return_val_if_fail(SQLIPC_IS_CONNECTION(self), TRUE);
        return self->closed;
}

/**
 * sqlipc_glib_connection_interrupt:
 * @self: a connection
 *
 * Ends everything under way on the connection: these calls fail with %SQLIPC_GLIB_ERROR_CANCELLED or %G_IO_ERROR_CANCELLED.
 * If [method@Sqlipc.Load.complete] has sent all rows, it fails with %SQLIPC_GLIB_ERROR_OUTCOME_UNKNOWN: call it again to
 * learn the outcome. Later calls are not affected.
 */
void sqlipc_glib_connection_interrupt(SqlipcConnection *self) {
        g_return_if_fail(SQLIPC_IS_CONNECTION(self));
        (void) sqlipc_interrupt(self->handle);
}

/* ---- Details of the last error ------------------------------------------------------------------------------------ */

/**
 * sqlipc_glib_connection_get_error_sqlite_code:
 * @self: a connection
 *
 * Gets SQLite's extended result code of the last error that a function of the connection or its objects returned. This is
 * for languages that cannot pass an error to `sqlipc_glib_error_get_sqlite_code()`.
 *
 * Returns: the code; 0 if SQLite did not fail
 */
int sqlipc_glib_connection_get_error_sqlite_code(SqlipcConnection *self) {
        g_return_val_if_fail(SQLIPC_IS_CONNECTION(self), 0);
        return sqlipc_glib_error_get_sqlite_code(self->last);
}

/**
 * sqlipc_glib_connection_get_error_sql_offset:
 * @self: a connection
 *
 * Gets the place in the SQL of the last error that a function of the connection or its objects returned.
 *
 * Returns: the offset in bytes, from 0; -1 if it is unknown
 */
int sqlipc_glib_connection_get_error_sql_offset(SqlipcConnection *self) {
        g_return_val_if_fail(SQLIPC_IS_CONNECTION(self), -1);
        return sqlipc_glib_error_get_sql_offset(self->last);
}

/**
 * sqlipc_glib_connection_get_error_name:
 * @self: a connection
 *
 * Gets the D-Bus name of the last error that a function of the connection or its objects returned.
 *
 * Returns: (nullable): the name, such as `org.sqlipc1.Error.Sql`
 */
const char *sqlipc_glib_connection_get_error_name(SqlipcConnection *self) {
        g_return_val_if_fail(SQLIPC_IS_CONNECTION(self), NULL);
        return sqlipc_glib_error_get_name(self->last);
}

/* ---- The list of databases ---------------------------------------------------------------------------------------- */

static int add_database(const sqlipc_database *database, void *userdata) {
        g_variant_builder_add(userdata, "(sss)", sqlipc_database_name(database), sqlipc_database_description(database),
                              sqlipc_database_mode(database));
        return 0;
}

static void interrupt_handle(GCancellable *cancellable, sqlipc_connection *handle) {
        (void) cancellable;
        (void) sqlipc_interrupt(handle);
}

/* libsqlipc waits here in any case. So the list has a connection of its own, which a thread may wait on, and which a
 * cancellation may interrupt without ending anything else. */
static GVariant *list_databases(SqlipcConnection *self, GCancellable *cancellable, GError **error) {
        g_auto(GVariantBuilder) builder = G_VARIANT_BUILDER_INIT(G_VARIANT_TYPE("a(sss)"));
        __attribute__((cleanup(sqlipc_connection_unrefp))) sqlipc_connection *handle = NULL;
        gulong connected = 0;
        int r;

        r = open_handle(self, NULL, &handle);
        if (r >= 0) {
                if (cancellable)
                        connected = g_cancellable_connect(cancellable, G_CALLBACK(interrupt_handle), handle, NULL);
                r = g_cancellable_is_cancelled(cancellable) ? -ECANCELED
                                                            : sqlipc_list_databases(handle, add_database, &builder);
                g_cancellable_disconnect(cancellable, connected);
        }
        if (r >= 0)
                return g_variant_ref_sink(g_variant_builder_end(&builder));
        if (!g_cancellable_set_error_if_cancelled(cancellable, error))
                error_set_last(error, handle, r);
        return NULL;
}

/**
 * sqlipc_glib_connection_list_databases:
 * @self: a connection
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Lists the databases that the caller may use, ordered by name.
 *
 * Returns: (transfer full): an array `a(sss)` of name, description and mode, which is `read-only` or `read-write`
 */
GVariant *sqlipc_glib_connection_list_databases(SqlipcConnection *self, GCancellable *cancellable, GError **error) {
        GError *failure = NULL;
        GVariant *list;

        g_return_val_if_fail(SQLIPC_IS_CONNECTION(self), NULL);
        list = list_databases(self, cancellable, &failure);
        if (!list) {
                connection_note_error(self, failure);
                g_propagate_error(error, failure);
        }
        return list;
}

static void list_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
        GError *error = NULL;
        GVariant *list = list_databases(source, cancellable, &error);

        (void) data;
        if (list)
                g_task_return_pointer(task, list, (GDestroyNotify) g_variant_unref);
        else
                g_task_return_error(task, error);
}

/**
 * sqlipc_glib_connection_list_databases_async:
 * @self: a connection
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async): called when the list is there
 * @user_data: data of @callback
 *
 * Lists the databases, without waiting.
 */
void sqlipc_glib_connection_list_databases_async(SqlipcConnection *self, GCancellable *cancellable,
                                                 GAsyncReadyCallback callback, gpointer user_data) {
        g_autoptr(GTask) task = NULL;

        g_return_if_fail(SQLIPC_IS_CONNECTION(self));
        task = g_task_new(self, cancellable, callback, user_data);
        g_task_set_source_tag(task, sqlipc_glib_connection_list_databases_async);
        g_task_run_in_thread(task, list_in_thread);
}

/**
 * sqlipc_glib_connection_list_databases_finish:
 * @self: a connection
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Returns: (transfer full): the list, see [method@Sqlipc.Connection.list_databases]
 */
GVariant *sqlipc_glib_connection_list_databases_finish(SqlipcConnection *self, GAsyncResult *result, GError **error) {
        GError *failure = NULL;
        GVariant *list;

        g_return_val_if_fail(g_task_is_valid(result, self), NULL);
        list = g_task_propagate_pointer(G_TASK(result), &failure);
        if (!list) {
                connection_note_error(self, failure);
                g_propagate_error(error, failure);
        }
        return list;
}

/* ---- The class ---------------------------------------------------------------------------------------------------- */

static void set_property(GObject *object, guint id, const GValue *value, GParamSpec *pspec) {
        SqlipcConnection *self = SQLIPC_CONNECTION(object);

        switch (id) {
        case PROPERTY_BUS:
                self->bus = g_value_get_enum(value);
                return;
        case PROPERTY_DATABASE:
                self->database = g_value_dup_string(value);
                return;
        case PROPERTY_ADDRESS:
                self->address = g_value_dup_string(value);
                return;
        case PROPERTY_HOST:
                self->host = g_value_dup_string(value);
                return;
        case PROPERTY_RUN_TIMEOUT:
                self->run_timeout = g_value_get_uint64(value);
                if (self->handle)
                        (void) sqlipc_set_run_timeout(self->handle, self->run_timeout ? self->run_timeout : UINT64_MAX);
                return;
        case PROPERTY_TRANSPORT:
                self->transport = g_value_get_enum(value);
                if (self->handle)
                        (void) sqlipc_set_transport(self->handle, (sqlipc_transport) self->transport);
                return;
        case PROPERTY_INTERACTIVE:
                self->interactive = g_value_get_boolean(value);
                if (self->handle)
                        (void) sqlipc_set_allow_interactive_authorization(self->handle, self->interactive);
                return;
        default:
                G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, pspec);
        }
}

static void get_property(GObject *object, guint id, GValue *value, GParamSpec *pspec) {
        SqlipcConnection *self = SQLIPC_CONNECTION(object);

        switch (id) {
        case PROPERTY_BUS:
                g_value_set_enum(value, (int) self->bus);
                return;
        case PROPERTY_DATABASE:
                g_value_set_string(value, self->database);
                return;
        case PROPERTY_ADDRESS:
                g_value_set_string(value, self->address);
                return;
        case PROPERTY_HOST:
                g_value_set_string(value, self->host);
                return;
        case PROPERTY_RUN_TIMEOUT:
                g_value_set_uint64(value, self->run_timeout);
                return;
        case PROPERTY_TRANSPORT:
                g_value_set_enum(value, (int) self->transport);
                return;
        case PROPERTY_INTERACTIVE:
                g_value_set_boolean(value, self->interactive);
                return;
        default:
                G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, pspec);
        }
}

static void sqlipc_glib_connection_init(SqlipcConnection *self) {
        g_queue_init(&self->queue);
        g_queue_init(&self->pending);
        self->context = g_main_context_ref_thread_default();
}

static void finalize(GObject *object) {
        SqlipcConnection *self = SQLIPC_CONNECTION(object);

        detach(self);
        if (!self->closed)
                self->handle = sqlipc_close(self->handle);
        else
                self->handle = sqlipc_connection_unref(self->handle);
        g_clear_pointer(&self->context, g_main_context_unref);
        g_clear_error(&self->last);
        g_free(self->database);
        g_free(self->address);
        g_free(self->host);
        G_OBJECT_CLASS(sqlipc_glib_connection_parent_class)->finalize(object);
}

static void sqlipc_glib_connection_class_init(SqlipcConnectionClass *class) {
        const GParamFlags once = G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS;
        const GParamFlags any_time = G_PARAM_READWRITE | G_PARAM_CONSTRUCT | G_PARAM_STATIC_STRINGS;
        GObjectClass *object_class = G_OBJECT_CLASS(class);

        object_class->set_property = set_property;
        object_class->get_property = get_property;
        object_class->finalize = finalize;

        /**
         * SqlipcConnection:bus:
         *
         * The bus, if there is no address. If it was to be found, this is the bus that was found, after the connection is
         * open.
         */
        properties[PROPERTY_BUS] = g_param_spec_enum("bus", NULL, NULL, SQLIPC_GLIB_TYPE_BUS, SQLIPC_GLIB_BUS_USER, once);
        /**
         * SqlipcConnection:database:
         *
         * The database whose service the connection is opened to; %NULL: opening asks for none. Without effect if there is
         * an address or another machine.
         *
         * Since: 0.2
         */
        properties[PROPERTY_DATABASE] = g_param_spec_string("database", NULL, NULL, NULL, once);
        /**
         * SqlipcConnection:address:
         *
         * The D-Bus address of the bus; %NULL: see [property@Sqlipc.Connection:bus].
         */
        properties[PROPERTY_ADDRESS] = g_param_spec_string("address", NULL, NULL, NULL, once);
        /**
         * SqlipcConnection:host:
         *
         * The other machine, as `[USER@]HOST[:PORT]`; %NULL: this one.
         */
        properties[PROPERTY_HOST] = g_param_spec_string("host", NULL, NULL, NULL, once);
        /**
         * SqlipcConnection:run-timeout:
         *
         * How long a run may take at the service, in microseconds; 0: only the service's own limit. Applies to later calls.
         */
        properties[PROPERTY_RUN_TIMEOUT] = g_param_spec_uint64("run-timeout", NULL, NULL, 0, G_MAXUINT64, 0, any_time);
        /**
         * SqlipcConnection:transport:
         *
         * How requests and rows travel. Applies to later calls.
         */
        properties[PROPERTY_TRANSPORT] = g_param_spec_enum("transport", NULL, NULL, SQLIPC_GLIB_TYPE_TRANSPORT,
                                                           SQLIPC_GLIB_TRANSPORT_AUTO, any_time);
        /**
         * SqlipcConnection:allow-interactive-authorization:
         *
         * If the user may be asked to authenticate, if the administrator requires that.
         */
        properties[PROPERTY_INTERACTIVE] = g_param_spec_boolean("allow-interactive-authorization", NULL, NULL, FALSE,
                                                                any_time);
        g_object_class_install_properties(object_class, N_PROPERTIES, properties);
}
