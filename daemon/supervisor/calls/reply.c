/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A reply that is built from data of any size. Supervisor. */
#include "daemon/supervisor/calls/reply.h"

#include <errno.h>
#include <string.h>

int reply_new(sd_bus_message *call, Reply *ret) {
        *ret = REPLY_INIT;
        return sd_bus_message_new_method_return(call, &ret->message);
}

int reply_count(Reply *r, size_t size) {
        if (r->size > REPLY_SIZE_MAX || size > REPLY_SIZE_MAX - r->size) {
                r->size = REPLY_SIZE_MAX + 1; /* the reply stays too large, even if the caller ignores the error */
                return -EMSGSIZE;
        }
        r->size += size;
        return 0;
}

int reply_append_string(Reply *r, const char *text) {
        int k = reply_count(r, REPLY_VALUE_OVERHEAD + strlen(text));

        return k < 0 ? k : sd_bus_message_append_basic(r->message, 's', text);
}

int reply_append_strings(Reply *r, const char *key, char *const *strings) {
        int k = sd_bus_message_open_container(r->message, 'e', "sv");

        if (k >= 0)
                k = reply_append_string(r, key);
        if (k >= 0)
                k = sd_bus_message_open_container(r->message, 'v', "as");
        if (k >= 0)
                k = sd_bus_message_open_container(r->message, 'a', "s");
        for (; strings && *strings && k >= 0; strings++)
                k = reply_append_string(r, *strings);
        for (int i = 0; i < 3 && k >= 0; i++)
                k = sd_bus_message_close_container(r->message);
        return k;
}

int reply_send(Reply *r) {
        return r->size > REPLY_SIZE_MAX ? -EMSGSIZE : sd_bus_send(NULL, r->message, NULL);
}

void reply_done(Reply *r) {
        (void) sd_bus_message_unref(r->message);
        *r = REPLY_INIT;
}
