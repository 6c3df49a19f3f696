/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* org.sqlipc1.Manager on the bus: unpack, call, reply. Supervisor. The XML documents each method. */
#include <errno.h>
#include <string.h>

#include "config.h"
#include "daemon/supervisor/access/held-call.h"
#include "daemon/supervisor/access/listing.h"
#include "daemon/supervisor/access/manage.h"
#include "daemon/supervisor/access/policy.h"
#include "daemon/supervisor/base/sd-autoptr.h"
#include "daemon/supervisor/bus/clients-bus.h"
#include "daemon/supervisor/bus/lists-bus.h"
#include "daemon/supervisor/bus/manager-bus.h"
#include "daemon/supervisor/calls/bus-error.h"
#include "daemon/supervisor/calls/options.h"
#include "daemon/supervisor/calls/waiting-call.h"
#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/counts.h"
#include "daemon/supervisor/runs/run.h"
#include "dbus-interfaces/sqlipc-names.h"

/* ---- Databases ---- */

static int append_broken(Reply *reply, const Config *c) {
        sd_bus_message *m = reply->message;
        GHashTableIter i;
        void *name, *problem;
        int r = sd_bus_message_open_container(m, 'e', "sv");

        if (r >= 0)
                r = sd_bus_message_append(m, "s", "broken");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', "a{ss}");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "{ss}");
        g_hash_table_iter_init(&i, c->broken);
        while (r >= 0 && g_hash_table_iter_next(&i, &name, &problem)) {
                r = reply_count(reply, REPLY_ENTRY_OVERHEAD + strlen(name) + strlen(problem));
                if (r >= 0)
                        r = sd_bus_message_append(m, "{ss}", name, problem);
        }
        for (int k = 0; k < 3 && r >= 0; k++)
                r = sd_bus_message_close_container(m);
        return r;
}

static int begin_databases(Listing *l) {
        return sd_bus_message_open_container(l->reply.message, 'a', "(soa{sv})");
}

static int add_database(Listing *l, const Database *d, PolicyVerdict view) {
        sd_bus_message *m = l->reply.message;
        const char *name = database_name(d), *description = d->config->description;
        size_t size = strlen(name) + strlen(d->object_path) + strlen(description);
        int r = reply_count(&l->reply, 4 * REPLY_ENTRY_OVERHEAD + size);

        if (r >= 0)
                r = sd_bus_message_open_container(m, 'r', "soa{sv}");
        if (r >= 0)
                r = sd_bus_message_append(m, "so", name, d->object_path);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}{sv}{sv}", "description", "s", description, "mode", "s",
                                          d->config->mode, "engine", "s", engine_kind_name(d->config->engine));
        if (r >= 0 && view == POLICY_ASK)
                r = sd_bus_message_append(m, "{sv}", "authorization", "s", "challenge");
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int end_databases(Listing *l) {
        sd_bus_message *m = l->reply.message;
        int r = sd_bus_message_close_container(m);

        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r >= 0 && peer_is_administrator(l->context, l->peer))
                r = append_broken(&l->reply, l->context->config);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int list_databases(sd_bus_message *m, Context *context, Refusal *refusal) {
        static const ListingKind databases = { begin_databases, add_database, end_databases };
        Options options;
        int r = options_read(m, 0, &options, refusal);

        return r < 0 ? r : listing_new(context, m, &databases, refusal);
}

static int get_database(sd_bus_message *m, Context *context, Refusal *refusal) {
        const char *name;
        Options options;
        int r = sd_bus_message_read_basic(m, 's', &name);

        if (r < 0)
                return r;
        r = options_read(m, 0, &options, refusal);
        if (r < 0)
                return r;
        const Database *d = database_find(context, name);
        switch (d ? policy_view(context, m, d) : POLICY_NO) {
        case POLICY_NO: return policy_refuse_unknown(name, refusal);
        case POLICY_YES: return sd_bus_reply_method_return(m, "oa{sv}", d->object_path, 0);
        case POLICY_ASK: break;
        }
        return sd_bus_reply_method_return(m, "oa{sv}", d->object_path, 1, "authorization", "s", "challenge");
}

static int append_warnings(Reply *reply, const Config *c) {
        sd_bus_message *m = reply->message;
        int r = sd_bus_message_open_container(m, 'e', "sv");

        if (r >= 0)
                r = sd_bus_message_append(m, "s", "warnings");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', "as");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "s");
        for (guint i = 0; r >= 0 && i < c->warnings->len; i++)
                r = reply_append_string(reply, c->warnings->pdata[i]);
        for (int k = 0; k < 3 && r >= 0; k++)
                r = sd_bus_message_close_container(m);
        return r;
}

static int reply_reload(sd_bus_message *call, const Context *context) {
        g_auto(Reply) reply = REPLY_INIT;
        uint32_t n = g_hash_table_size(context->databases);
        int r = reply_new(call, &reply);

        if (r >= 0)
                r = sd_bus_message_open_container(reply.message, 'a', "{sv}");
        if (r >= 0)
                r = sd_bus_message_append(reply.message, "{sv}", "databases", "u", n);
        if (r >= 0)
                r = append_broken(&reply, context->config);
        if (r >= 0)
                r = append_warnings(&reply, context->config);
        if (r >= 0)
                r = sd_bus_message_close_container(reply.message);
        return r < 0 ? r : reply_send(&reply);
}

static void on_reloaded(Context *context, int r, void *userdata) {
        g_autoptr(sd_bus_message) call = userdata;
        g_auto(Refusal) refusal = REFUSAL_INIT;

        if (r == -ESHUTDOWN)
                r = refuse(&refusal, ERROR_SHUTTING_DOWN, "The service is stopping.");
        else if (r < 0)
                r = refuse(&refusal, ERROR_LIMITS_EXCEEDED,
                           "The service lacks what it needs to read its configuration (%s); what held before holds. "
                           "Try again later.", strerror(-r));
        else
                r = reply_reload(call, context);
        if (r < 0)
                (void) bus_error_reply_refusal(call, r, &refusal); /* the caller may have left */
}

static int reload_now(sd_bus_message *m, Context *context, uint64_t number, Refusal *refusal) {
        sd_bus_message *call;
        int r = waiting_call_new(m, &call);

        if (r >= 0)
                context->events->reload(context, on_reloaded, call);
        return r;
}

static int reload(sd_bus_message *m, Context *context, Refusal *refusal) {
        Options options;
        int r = options_read(m, 0, &options, refusal);

        return r < 0 ? r : manage_call(context, m, reload_now, 0, refusal);
}

/* ---- Lists ---- */

/* This list has no limit of its own: the bus bounds the number of connections, and so of clients. */
static int append_clients(Reply *reply, Context *context, const Peer *peer, bool *ret_truncated) {
        return clients_bus_append(reply, context, peer);
}

/* Appends a list, up to its limit. */
typedef int (*ListAppend)(Reply *reply, Context *context, const Peer *peer, bool *ret_truncated);

static int reply_list(sd_bus_message *m, Context *context, ListAppend append, Refusal *refusal) {
        g_auto(Reply) reply = REPLY_INIT;
        bool truncated = false;
        Options options;
        int r = options_read(m, 0, &options, refusal);

        if (r >= 0)
                r = reply_new(m, &reply);
        if (r >= 0)
                r = append(&reply, context, peer_of(context, m), &truncated);
        if (r >= 0 && truncated)
                r = sd_bus_message_append(reply.message, "a{sv}", 1, "truncated", "b", true);
        else if (r >= 0)
                r = sd_bus_message_append(reply.message, "a{sv}", 0);
        return r < 0 ? r : reply_send(&reply);
}

static int list_statements(sd_bus_message *m, Context *context, Refusal *refusal) {
        return reply_list(m, context, lists_bus_append_statements, refusal);
}

static int list_clients(sd_bus_message *m, Context *context, Refusal *refusal) {
        return reply_list(m, context, append_clients, refusal);
}

static int list_runs(sd_bus_message *m, Context *context, Refusal *refusal) {
        return reply_list(m, context, lists_bus_append_runs, refusal);
}

static int list_transactions(sd_bus_message *m, Context *context, Refusal *refusal) {
        return reply_list(m, context, lists_bus_append_transactions, refusal);
}

static int list_watches(sd_bus_message *m, Context *context, Refusal *refusal) {
        return reply_list(m, context, lists_bus_append_watches, refusal);
}

static int list_channels(sd_bus_message *m, Context *context, Refusal *refusal) {
        return reply_list(m, context, lists_bus_append_channels, refusal);
}

/* Finds the run or channel of this number that CancelRun can end, and returns its user. Both are NULL if there is none. */
static const User *find_running(const Context *context, uint64_t number, Run **ret_run, Channel **ret_channel) {
        Run *run = g_hash_table_lookup(context->runs, &number);
        Channel *channel = g_hash_table_lookup(context->channels, &number);

        *ret_run = run && run->kind != RUN_PREPARE ? run : NULL;
        *ret_channel = channel && channel->run.state != CHANNEL_RUN_NONE ? channel : NULL;
        return *ret_run ? run->user : *ret_channel ? channel->user : NULL;
}

static int cancel_now(sd_bus_message *m, Context *context, uint64_t number, Refusal *refusal) {
        Channel *channel;
        Run *run;
        const User *owner = find_running(context, number, &run, &channel);
        const Peer *peer = peer_of(context, m);
        const char *sentence = owner && peer->uid == owner->uid ? "The query was cancelled." :
                                                                  "The administrator cancelled the query.";

        if (run)
                run_end(run, RUN_END_BY_ADMINISTRATOR, ERROR_CANCELLED, sentence);
        else if (channel)
                channel_cancel(channel, ERROR_CANCELLED, sentence);
        else
                return refuse(refusal, ERROR_UNKNOWN_RUN, "There is no run %" PRIu64 "; it may have ended.", number);
        return sd_bus_reply_method_return(m, "a{sv}", 0);
}

/* polkit is asked about unknown numbers, too: otherwise its answer would tell which numbers other users have. */
static int cancel_run(sd_bus_message *m, Context *context, Refusal *refusal) {
        uint64_t number;
        Channel *channel;
        Options options;
        Run *run;
        int r = sd_bus_message_read_basic(m, 't', &number);

        if (r < 0)
                return r;
        r = options_read(m, 0, &options, refusal);
        if (r < 0)
                return r;
        const User *owner = find_running(context, number, &run, &channel);
        if (owner && owner->uid == peer_of(context, m)->uid)
                return cancel_now(m, context, number, refusal);
        return manage_call(context, m, cancel_now, number, refusal);
}

BUS_METHOD(list_databases)
BUS_METHOD(get_database)
BUS_METHOD(list_statements)
BUS_METHOD(list_runs)
BUS_METHOD(list_transactions)
BUS_METHOD(list_channels)
BUS_METHOD(list_watches)
BUS_METHOD(list_clients)
BUS_METHOD(cancel_run)
BUS_METHOD(reload)

/* ---- Properties ---- */

static int property_version(sd_bus *bus, const char *path, const char *interface, const char *property,
                            sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", SQLIPC_VERSION);
}

static int property_features(sd_bus *bus, const char *path, const char *interface, const char *property,
                             sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "as", 15, "channel", "write", "batch", "transaction", "load",
                                     "describe", "channel-memory", "watch", "deferred", "cancel-call", "lock-wait",
                                     "foreign-keys", "time-zone", "pin", "lock-wait-of-runs");
}

static int begin_paths(Listing *l) {
        int r = sd_bus_message_open_container(l->reply.message, 'v', "ao");

        return r < 0 ? r : sd_bus_message_open_container(l->reply.message, 'a', "o");
}

static int add_path(Listing *l, const Database *d, PolicyVerdict view) {
        int r = reply_count(&l->reply, REPLY_VALUE_OVERHEAD + strlen(d->object_path));

        return r < 0 ? r : sd_bus_message_append_basic(l->reply.message, 'o', d->object_path);
}

static int end_paths(Listing *l) {
        int r = sd_bus_message_close_container(l->reply.message);

        return r < 0 ? r : sd_bus_message_close_container(l->reply.message);
}

static int get_databases(sd_bus_message *m, Context *context, Refusal *refusal) {
        static const ListingKind paths = { begin_paths, add_path, end_paths };

        return listing_new(context, m, &paths, refusal);
}

BUS_METHOD(get_databases)

/* A getter of sd-bus would have to build the whole list at once, so Get of Databases becomes a listing here. */
static int on_manager_call(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return held_call_gets_databases(m) ? method_get_databases(m, userdata, error) : 0;
}

/* Never called: on_manager_call() answers Get, and GetAll leaves out explicit properties. sd-bus requires a getter. */
static int property_databases(sd_bus *bus, const char *path, const char *interface, const char *property,
                              sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return -EOPNOTSUPP;
}

static int property_counter(sd_bus *bus, const char *path, const char *interface, const char *property,
                            sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Context *context = userdata;
        uint64_t n = strcmp(property, "NStatements") == 0 ? g_hash_table_size(context->statements)
                     : strcmp(property, "NRuns") == 0     ? counts_runs(context)
                     : strcmp(property, "NWorkers") == 0  ? context->workers.length
                     : strcmp(property, "NParked") == 0   ? counts_parked(context)
                     : strcmp(property, "NChannels") == 0 ? g_hash_table_size(context->channels)
                     : strcmp(property, "NWatches") == 0  ? g_hash_table_size(context->watches)
                     : strcmp(property, "TotalRuns") == 0 ? context->total_runs
                     : strcmp(property, "TotalRows") == 0 ? context->total_rows
                                                          : context->total_bytes;

        return sd_bus_message_append(reply, "t", n);
}

static const sd_bus_vtable manager_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD_WITH_ARGS("ListDatabases", SD_BUS_ARGS("a{sv}", options),
                                SD_BUS_RESULT("a(soa{sv})", databases, "a{sv}", info), method_list_databases,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetDatabase", SD_BUS_ARGS("s", name, "a{sv}", options),
                                SD_BUS_RESULT("o", path, "a{sv}", info), method_get_database, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListStatements", SD_BUS_ARGS("a{sv}", options),
                                SD_BUS_RESULT("a(tosa{sv})", statements, "a{sv}", info),
                                method_list_statements, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListRuns", SD_BUS_ARGS("a{sv}", options), SD_BUS_RESULT("a(tosa{sv})", runs, "a{sv}", info),
                                method_list_runs, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListTransactions", SD_BUS_ARGS("a{sv}", options),
                                SD_BUS_RESULT("a(tosa{sv})", transactions, "a{sv}", info), method_list_transactions,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListChannels", SD_BUS_ARGS("a{sv}", options),
                                SD_BUS_RESULT("a(tosa{sv})", channels, "a{sv}", info), method_list_channels,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListWatches", SD_BUS_ARGS("a{sv}", options),
                                SD_BUS_RESULT("a(tosa{sv})", watches, "a{sv}", info),
                                method_list_watches, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListClients", SD_BUS_ARGS("a{sv}", options),
                                SD_BUS_RESULT("a(sa{sv})", clients, "a{sv}", info), method_list_clients,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("CancelRun", SD_BUS_ARGS("t", run, "a{sv}", options), SD_BUS_RESULT("a{sv}", info),
                                method_cancel_run, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_ARGS("a{sv}", options), SD_BUS_RESULT("a{sv}", info), method_reload,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_SIGNAL_WITH_ARGS("DatabaseAdded", SD_BUS_ARGS("s", name, "o", path), 0),
        SD_BUS_SIGNAL_WITH_ARGS("DatabaseRemoved", SD_BUS_ARGS("s", name, "o", path), 0),
        SD_BUS_PROPERTY("DaemonVersion", "s", property_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Features", "as", property_features, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Databases", "ao", property_databases, 0, SD_BUS_VTABLE_PROPERTY_EXPLICIT),
        SD_BUS_PROPERTY("NStatements", "t", property_counter, 0, 0),
        SD_BUS_PROPERTY("NRuns", "t", property_counter, 0, 0),
        SD_BUS_PROPERTY("NWorkers", "t", property_counter, 0, 0),
        SD_BUS_PROPERTY("NParked", "t", property_counter, 0, 0),
        SD_BUS_PROPERTY("NChannels", "t", property_counter, 0, 0),
        SD_BUS_PROPERTY("NWatches", "t", property_counter, 0, 0),
        SD_BUS_PROPERTY("TotalRuns", "t", property_counter, 0, 0),
        SD_BUS_PROPERTY("TotalRows", "t", property_counter, 0, 0),
        SD_BUS_PROPERTY("TotalBytes", "t", property_counter, 0, 0),
        SD_BUS_VTABLE_END,
};

int manager_bus_export(Context *context) {
        int r = sd_bus_add_object_vtable(context->bus, NULL, SQLIPC_MANAGER_PATH, SQLIPC_MANAGER_INTERFACE, manager_vtable,
                                         context);

        return r < 0 ? r : sd_bus_add_object(context->bus, NULL, SQLIPC_MANAGER_PATH, on_manager_call, context);
}
