/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The common part of all sources (source.h). Library. */
#include <string.h>

#include "client-lib/call.h"
#include "client-lib/connection.h"
#include "client-lib/event-loop.h"
#include "client-lib/source.h"

int source_set_owner(Source *source, sd_bus_message *reply) {
        const char *sender = sd_bus_message_get_sender(reply);
        char *owner = NULL;

        if (sender && !(owner = strdup(sender)))
                return -ENOMEM;
        free(source->owner);
        source->owner = owner;
        return 0;
}

void source_cancel_on_bus(Source *source) {
        call_notify(source->connection->bus, source->owner, source->path, "Cancel", source->number);
        event_loop_update(source->connection);
}

void source_set_call(Source *source, Call *call) {
        call_forget_cancel(&source->cancellation);
        source->call = call;
}

bool source_was_answered(const Source *source) {
        return !source->call || source->number;
}

void source_close(Source *source) {
        source->call = call_free(source->call);
        source_set_call(source, NULL);
        source->operations->close(source);
        source->failure = sd_bus_message_unref(source->failure);
        source->never_sent = false;
        source->number = 0;
}

void source_done(Source *source) {
        source_close(source);
        free(steal(source->owner));
}
