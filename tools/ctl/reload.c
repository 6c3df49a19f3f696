/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reloading the service, see reload.h. */
#include "tools/ctl/reload.h"

#include "dbus-interfaces/sqlipc-names.h"
#include "tools/ctl/bus.h"
#include "tools/ctl/listing.h"

static GVariant *not_running(void) {
        g_auto(GVariantBuilder) info = {};

        g_variant_builder_init(&info, G_VARIANT_TYPE_VARDICT);
        entry(&info, "running", g_variant_new_boolean(false));
        return g_variant_ref_sink(g_variant_builder_end(&info));
}

int reload_service(Context *c, GVariant **ret_info) {
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        g_autoptr(GVariant) reply = NULL;
        int r = bus_open(c);

        if (r < 0)
                return CTL_FAILED;
        r = bus_call(c, START_AUTHENTICATION, SQLIPC_MANAGER_PATH, SQLIPC_MANAGER_INTERFACE, "Reload",
                     REPLY_DICTIONARY, &error, &reply, "a{sv}", 0);
        if (r < 0 && bus_is_absent(&error) && bus_can_start(c)) {
                *ret_info = not_running();
                return CTL_OK;
        }
        if (r < 0)
                return bus_failed(c, &error, r);
        g_variant_get(reply, "(@a{sv})", ret_info);
        return CTL_OK;
}

int reload_complain(GVariant *info) {
        g_autoptr(GVariant) broken = g_variant_lookup_value(info, "broken", G_VARIANT_TYPE("a{ss}"));
        g_autofree const char **warnings = NULL;
        const char *name, *problem;
        GVariantIter i;

        (void) g_variant_lookup(info, "warnings", "^a&s", &warnings);
        for (const char **warning = warnings; warning && *warning; warning++)
                complain("warning: %s", *warning);
        if (!broken)
                return CTL_OK;
        g_variant_iter_init(&i, broken);
        while (g_variant_iter_loop(&i, "{&s&s}", &name, &problem))
                complain("error: %s: %s", name, problem);
        return g_variant_n_children(broken) > 0 ? CTL_FAILED : CTL_OK;
}

int reload_print(const Context *c, GVariant *info) {
        gboolean running = true;

        (void) g_variant_lookup(info, "running", "b", &running);
        if (c->json)
                document_print(c, info);
        else if (!running)
                puts("The service does not run; it reads its configuration when it starts.");
        else {
                g_autofree char *databases = counted(lookup_number(info, "databases"), "database");

                printf("Published: %s.\n", databases);
        }
        return reload_complain(info);
}
