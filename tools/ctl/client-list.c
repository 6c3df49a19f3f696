/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The clients, see client-list.h. */
#include "tools/ctl/client-list.h"

#include "dbus-interfaces/sqlipc-names.h"

int client_list_read(Context *c, bool must_be_there, GVariant **ret) {
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        g_autoptr(GVariant) reply = NULL;
        int r = bus_open(c);

        if (r < 0)
                return CTL_FAILED;
        r = bus_call(c, START_NOTHING, SQLIPC_MANAGER_PATH, SQLIPC_MANAGER_INTERFACE, "ListClients", REPLY_CLIENTS, &error,
                     &reply, "a{sv}", 0);
        if (r >= 0)
                g_variant_get(reply, "(@a(sa{sv})@a{sv})", ret, NULL);
        else if (bus_is_absent(&error) && (!must_be_there || bus_can_start(c)))
                *ret = g_variant_ref_sink(g_variant_new_array(G_VARIANT_TYPE("(sa{sv})"), NULL, 0));
        else
                return bus_failed(c, &error, r);
        return CTL_OK;
}
