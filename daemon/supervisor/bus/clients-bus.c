/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Manager.ListClients. Supervisor. */
#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/bus/clients-bus.h"
#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/runs/session.h"

typedef struct ClientSums {
        uint32_t n_runs, n_parked, n_queued;
        uint64_t n_rows, n_bytes; /* of runs that ended, and the known part of those under way */
} ClientSums;

static ClientSums sums_of(const Session *s) {
        ClientSums sums = { .n_rows = s->total_rows, .n_bytes = s->total_bytes };

        for (GList *i = s->runs.head; i; i = i->next) {
                const Run *run = i->data;

                if (!run_is_execution(run))
                        continue;
                sums.n_runs++;
                sums.n_queued += run_is_queued(run);
                if (!run_is_under_way(run)) /* runs that have ended are in the totals */
                        continue;
                sums.n_parked += run->state == RUN_PARKED;
                sums.n_rows += run->n_rows;
                sums.n_bytes += run->n_bytes;
        }
        for (GList *i = s->channels.head; i; i = i->next) { /* the work of channels is in the totals as it is reported */
                const Channel *c = i->data;

                sums.n_runs += c->run.state != CHANNEL_RUN_NONE;
                sums.n_parked += c->run.state == CHANNEL_RUN_PARKED;
        }
        return sums;
}

static int append_client(Reply *reply, const Session *s) {
        const Peer *peer = g_hash_table_lookup(s->context->peers, s->name);
        const ClientSums sums = sums_of(s);
        int r = reply_count(reply, 12 * REPLY_ENTRY_OVERHEAD);

        if (r >= 0)
                r = sd_bus_message_open_container(reply->message, 'r', "sa{sv}");
        if (r >= 0)
                r = reply_append_string(reply, s->name);
        if (r >= 0)
                r = sd_bus_message_open_container(reply->message, 'a', "{sv}");
        if (r >= 0)
                r = sd_bus_message_append(reply->message, "{sv}", "uid", "u", (uint32_t) s->user->uid);
        if (r >= 0 && peer && peer->pid > 0)
                r = sd_bus_message_append(reply->message, "{sv}", "pid", "u", (uint32_t) peer->pid);
        if (r >= 0)
                r = sd_bus_message_append(reply->message, "{sv}{sv}{sv}{sv}{sv}", "statements", "u", s->statements.length,
                                          "channels", "u", s->channels.length, "runs", "u", sums.n_runs, "parked", "u",
                                          sums.n_parked, "queued", "u", sums.n_queued);
        if (r >= 0)
                r = sd_bus_message_append(reply->message, "{sv}{sv}{sv}{sv}", "total-runs", "t", s->total_runs, "rows", "t",
                                          sums.n_rows, "bytes", "t", sums.n_bytes, "since-usec", "t",
                                          clock_usec() - s->began_usec);
        if (r >= 0)
                r = sd_bus_message_close_container(reply->message);
        return r < 0 ? r : sd_bus_message_close_container(reply->message);
}

int clients_bus_append(Reply *reply, Context *context, const Peer *peer) {
        GHashTableIter i;
        void *value;
        int r = sd_bus_message_open_container(reply->message, 'a', "(sa{sv})");

        g_hash_table_iter_init(&i, context->sessions);
        while (r >= 0 && g_hash_table_iter_next(&i, NULL, &value)) {
                const Session *s = value;

                if (peer->uid == 0 || peer->uid == s->user->uid)
                        r = append_client(reply, s);
        }
        return r < 0 ? r : sd_bus_message_close_container(reply->message);
}
