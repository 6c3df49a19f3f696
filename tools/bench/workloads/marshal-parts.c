/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes integers into a D-Bus message and reads them, see marshal-parts.h. */
#include "tools/bench/workloads/marshal-parts.h"

#include <errno.h>
#include <gio/gio.h>
#include <stdbool.h>
#include <string.h>

#define PATH "/org/sqlipc1"
#define INTERFACE "org.sqlipc1.BenchmarkPeer"
#define MEMBER "GetInteger"

static size_t array_size(const MarshalParts *parts) {
        return (size_t) parts->n * sizeof *parts->integers;
}

/* ---- sd-bus ------------------------------------------------------------------------------------------------------- */

static int append_each(sd_bus_message *message, const MarshalParts *parts) {
        int r;

        r = sd_bus_message_open_container(message, 'a', "i");
        for (int32_t i = 0; r >= 0 && i < parts->n; i++)
                r = sd_bus_message_append_basic(message, 'i', &parts->integers[i]);
        return r < 0 ? r : sd_bus_message_close_container(message);
}

static int marshal(MarshalParts *parts, bool at_once) {
        __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *message = NULL;
        int r;

        r = sd_bus_message_new_method_call(parts->bus, &message, NULL, PATH, INTERFACE, MEMBER);
        if (r >= 0)
                r = at_once ? sd_bus_message_append_array(message, 'i', parts->integers, array_size(parts))
                            : append_each(message, parts);
        if (r >= 0)
                r = sd_bus_message_seal(message, 1, 0);
        if (r < 0)
                return r;
        sd_bus_message_unref(parts->message);
        parts->message = g_steal_pointer(&message);
        return 0;
}

int marshal_array(void *userdata) {
        return marshal(userdata, true);
}

int marshal_each(void *userdata) {
        return marshal(userdata, false);
}

int unmarshal_array(void *userdata) {
        MarshalParts *parts = userdata;
        const void *array;
        size_t size;
        int r;

        r = sd_bus_message_rewind(parts->message, true);
        if (r >= 0)
                r = sd_bus_message_read_array(parts->message, 'i', &array, &size);
        if (r < 0)
                return r;
        if (size != array_size(parts))
                return -EPROTO;
        memcpy(parts->copied, array, size);
        return 0;
}

int unmarshal_each(void *userdata) {
        MarshalParts *parts = userdata;
        int32_t n = 0;
        int r;

        r = sd_bus_message_rewind(parts->message, true);
        if (r >= 0)
                r = sd_bus_message_enter_container(parts->message, 'a', "i");
        while (r > 0 && n < parts->n)
                r = sd_bus_message_read_basic(parts->message, 'i', &parts->copied[n++]);
        if (r > 0)
                r = sd_bus_message_exit_container(parts->message); /* -EBUSY: there are more integers */
        return r < 0 ? r : r > 0 ? 0 : -EPROTO;
}

/* ---- GDBus -------------------------------------------------------------------------------------------------------- */

int marshal_gdbus(void *userdata) {
        MarshalParts *parts = userdata;
        g_autoptr(GDBusMessage) message = g_dbus_message_new_method_call(NULL, PATH, INTERFACE, MEMBER);
        GVariant *array = g_variant_new_fixed_array(G_VARIANT_TYPE_INT32, parts->integers, (gsize) parts->n,
                                                    sizeof *parts->integers);
        guchar *blob;
        gsize size;

        g_dbus_message_set_serial(message, 1);
        g_dbus_message_set_body(message, g_variant_new_tuple(&array, 1));
        blob = g_dbus_message_to_blob(message, &size, G_DBUS_CAPABILITY_FLAGS_NONE, NULL);
        if (!blob)
                return -EIO;
        g_free(parts->blob);
        parts->blob = blob;
        parts->blob_size = size;
        return 0;
}

int unmarshal_gdbus(void *userdata) {
        MarshalParts *parts = userdata;
        g_autoptr(GDBusMessage) message = g_dbus_message_new_from_blob(parts->blob, parts->blob_size,
                                                                       G_DBUS_CAPABILITY_FLAGS_NONE, NULL);
        g_autoptr(GVariant) array = NULL;
        const void *integers;
        gsize n;

        if (!message)
                return -EIO;
        array = g_variant_get_child_value(g_dbus_message_get_body(message), 0);
        integers = g_variant_get_fixed_array(array, &n, sizeof *parts->copied);
        if (n != (gsize) parts->n)
                return -EPROTO;
        memcpy(parts->copied, integers, array_size(parts));
        return 0;
}

/* ---- Both --------------------------------------------------------------------------------------------------------- */

int marshal_parts_init(MarshalParts *parts, sd_bus *bus, const int32_t *integers, int32_t n, int32_t *copied) {
        int r;

        *parts = (MarshalParts) { .bus = bus, .integers = integers, .n = n, .copied = copied };
        r = marshal_array(parts);
        return r < 0 ? r : marshal_gdbus(parts);
}

void marshal_parts_done(MarshalParts *parts) {
        parts->message = sd_bus_message_unref(parts->message);
        g_clear_pointer(&parts->blob, g_free);
}
