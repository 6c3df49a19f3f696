/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Stand-ins for calls, without the data that came with them. Supervisor. */
#include <string.h>

#include "daemon/supervisor/base/sd-autoptr.h"
#include "daemon/supervisor/calls/waiting-call.h"

/* The size of a value in a message without the bytes of a string: at most 8 bytes, 8 more for alignment, and a variant's
 * signature. */
#define VALUE_SIZE ((size_t) 32)

static int begin(sd_bus_message *call, sd_bus_message **ret) {
        g_autoptr(sd_bus_message) m = NULL;
        int r = sd_bus_message_new_method_call(sd_bus_message_get_bus(call), &m, sd_bus_message_get_destination(call),
                                               sd_bus_message_get_path(call), sd_bus_message_get_interface(call),
                                               sd_bus_message_get_member(call));

        if (r < 0)
                return r;
        r = sd_bus_message_set_sender(m, sd_bus_message_get_sender(call));
        if (r < 0)
                return r;
        r = sd_bus_message_set_allow_interactive_authorization(
                m, sd_bus_message_get_allow_interactive_authorization(call) > 0);
        if (r < 0)
                return r;
        r = sd_bus_message_set_expect_reply(m, sd_bus_message_get_expect_reply(call) > 0);
        if (r < 0)
                return r;
        *ret = g_steal_pointer(&m);
        return 0;
}

/* Seals the stand-in with the cookie of the call, because replies take it from there. The stand-in is never sent. */
static int end(sd_bus_message *m, sd_bus_message *call) {
        uint64_t cookie;
        int r = sd_bus_message_get_cookie(call, &cookie);

        return r < 0 ? r : sd_bus_message_seal(m, cookie, 0);
}

int waiting_call_new(sd_bus_message *call, sd_bus_message **ret) {
        g_autoptr(sd_bus_message) m = NULL;
        int r = begin(call, &m);

        if (r >= 0)
                r = end(m, call);
        if (r < 0)
                return r;
        *ret = g_steal_pointer(&m);
        return 0;
}

/* A descriptor counts as so many bytes: calls that wait may have 512 of them for each user. */
#define DESCRIPTOR_SIZE ((size_t) 64 * 1024)

/* Adds the size of the rest of the container, or of the body. sd-bus does not tell it. */
static int measure(sd_bus_message *m, size_t size_max, size_t *size, unsigned *n_descriptors, Refusal *refusal) {
        const char *contents;
        char type;
        int r;

        while ((r = sd_bus_message_peek_type(m, &type, &contents)) > 0) {
                const void *bytes = NULL;
                uint64_t value;
                size_t n = 0;
                int fd;

                if (type == 'h') {
                        r = sd_bus_message_read_basic(m, 'h', &fd);
                        n = DESCRIPTOR_SIZE;
                        if (r >= 0 && (*n_descriptors)++ > 0)
                                return refuse(refusal, ERROR_INVALID_OPTION, "A call may have one descriptor at most.");
                } else if (type == 'a' && strcmp(contents, "y") == 0)
                        r = sd_bus_message_read_array(m, 'y', &bytes, &n);
                else if (strchr("arev", type)) {
                        r = sd_bus_message_enter_container(m, type, contents);
                        if (r >= 0)
                                r = measure(m, size_max, size, n_descriptors, refusal);
                        if (r >= 0)
                                r = sd_bus_message_exit_container(m);
                } else if (strchr("sog", type)) {
                        r = sd_bus_message_read_basic(m, type, &bytes);
                        n = r >= 0 ? strlen(bytes) : 0;
                } else
                        r = sd_bus_message_read_basic(m, type, &value);
                if (r < 0)
                        return r;
                *size += VALUE_SIZE + n;
                if (*size > size_max)
                        return refuse(refusal, ERROR_LIMITS_EXCEEDED,
                                      "A call that has to wait may have %zu MiB at most: call again.", size_max >> 20);
        }
        return r;
}

int waiting_call_copy(sd_bus_message *call, size_t size_max, sd_bus_message **ret, size_t *ret_size, Refusal *refusal) {
        g_autoptr(sd_bus_message) m = NULL;
        unsigned n_descriptors = 0;
        size_t size = 0;
        int r = sd_bus_message_rewind(call, true);

        if (r >= 0)
                r = measure(call, size_max, &size, &n_descriptors, refusal);
        if (r >= 0)
                r = sd_bus_message_rewind(call, true);
        if (r >= 0)
                r = begin(call, &m);
        if (r >= 0)
                r = sd_bus_message_copy(m, call, true);
        if (r >= 0)
                r = end(m, call);
        if (r < 0)
                return r;
        *ret = g_steal_pointer(&m);
        *ret_size = size;
        return 0;
}
