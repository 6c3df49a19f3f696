/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls without what came with them. Supervisor. */
#include "sd-autoptr.h"
#include "waiting-call.h"

int waiting_call_new(sd_bus_message *call, sd_bus_message **ret) {
        g_autoptr(sd_bus_message) m = NULL;
        uint64_t cookie;
        int r = sd_bus_message_get_cookie(call, &cookie);

        if (r < 0)
                return r;
        r = sd_bus_message_new_method_call(sd_bus_message_get_bus(call), &m, NULL, sd_bus_message_get_path(call),
                                           sd_bus_message_get_interface(call), sd_bus_message_get_member(call));
        if (r < 0)
                return r;
        r = sd_bus_message_set_sender(m, sd_bus_message_get_sender(call));
        if (r < 0)
                return r;
        r = sd_bus_message_set_expect_reply(m, sd_bus_message_get_expect_reply(call) > 0);
        if (r < 0)
                return r;
        r = sd_bus_message_seal(m, cookie, 0); /* it is never sent: replies take the cookie from here */
        if (r < 0)
                return r;
        *ret = g_steal_pointer(&m);
        return 0;
}
