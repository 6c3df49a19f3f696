/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* OpenRows (open-rows.h). Library. */
#include <string.h>

#include "client-lib/call.h"
#include "client-lib/connection-bus.h"
#include "client-lib/cursor-event.h"
#include "client-lib/cursor.h"
#include "client-lib/dictionary.h"
#include "client-lib/error.h"
#include "client-lib/fetch.h"
#include "client-lib/open-rows.h"
#include "client-lib/query-call.h"
#include "client-lib/source-rows.h"
#include "client-lib/source.h"

static int read_info(sd_bus_message *reply, const char *key, const char *type, void *userdata) {
        if (strcmp(key, "readonly") != 0 || strcmp(type, "b") != 0)
                return 0;
        return dictionary_read_bool(reply, userdata);
}

static int read_reply(sqlipc_cursor *c, sd_bus_message *reply) {
        Source *source = c->fetch->source;
        bool read_only = false;
        int r;

        r = source_set_owner(source, reply);
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "t", &source->number);
        if (r < 0)
                return r;
        r = sd_bus_message_skip(reply, "a(ssa{sv})");
        if (r < 0)
                return r;
        r = dictionary_read(reply, read_info, &read_only);
        if (r < 0)
                return r;
        cursor_set_read_only(c, read_only);
        source_rows_begin(&c->fetch->rows);
        fetch_set_number(c->fetch, source->number);
        return 0;
}

static void on_reply(sd_bus_message *reply, void *userdata) {
        sqlipc_cursor *c = userdata;
        Fetch *fetch = c->fetch;
        int r;

        fetch->source->call = call_free(fetch->source->call);
        if (sd_bus_message_get_error(reply)) {
                if (cursor_event_ask_if_it_reads(c, reply))
                        return;
                fetch_set_ended(fetch);
                cursor_fail_reply(c, reply);
                return;
        }
        r = read_reply(c, reply);
        if (r >= 0)
                return;
        (void) error_set_errno(&c->error, r, NULL);
        cursor_end(c, CURSOR_END_FAILED);
}

int open_rows_send(sqlipc_cursor *c, sd_bus_message *m) {
        fetch_use_rows(c->fetch);
        return query_call_send(c, m, on_reply, SQLIPC_TRANSPORT_DBUS);
}

static int send_call(sqlipc_cursor *c, const char *sql, const Parameter *parameters, size_t n_parameters,
                     size_t n_positional_min) {
        _cleanup_message_ sd_bus_message *m = NULL;
        int r = query_call_new(c, &m, "OpenRows", sql, parameters, n_parameters, n_positional_min);

        return r < 0 ? r : open_rows_send(c, m);
}

int open_rows(sqlipc_cursor *c, const char *sql, const Parameter *parameters, size_t n_parameters,
              size_t n_positional_min) {
        int r = send_call(c, sql, parameters, n_parameters, n_positional_min);

        if (!c->transaction && connection_bus_may_send_again(c->connection, r))
                r = send_call(c, sql, parameters, n_parameters, n_positional_min);
        return r;
}
