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
        source->cancelling = call_free(source->cancelling);
        source->cancel_state = CANCEL_NONE;
        source->call = call;
}

void source_cancel_call(Source *source, call_handler on_reply) {
        if (!source->call || source->cancel_state != CANCEL_NONE)
                return;
        source->cancel_state = call_cancel(&source->cancelling, source->call, on_reply, source) < 0 ? CANCEL_REFUSED
                                                                                                    : CANCEL_SENT;
        event_loop_update(source->connection);
}

void source_note_cancel(Source *source, sd_bus_message *reply) {
        source->cancelling = call_free(source->cancelling);
        source->cancel_state = call_cancel_result(reply);
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
