/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The system's unit and its drop-ins, see service-unit.h. */
#include "tools/ctl/service-unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-bus.h>

#define UNIT "sqlipcd.service"
#define STATE_FOLDER "/var/lib"
#define SYSTEMD "org.freedesktop.systemd1"
#define SERVICE SYSTEMD ".Service"

G_DEFINE_AUTOPTR_CLEANUP_FUNC(sd_bus, sd_bus_flush_close_unref)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(sd_bus_message, sd_bus_message_unref)

/* ---- From the service manager ------------------------------------------------------------------------------------- */

/* The unit's object on the bus, to read its properties. */
typedef struct Object {
        sd_bus *bus;
        const char *path;
} Object;

static char *get_string(const Object *o, const char *interface, const char *property) {
        g_autofree char *copy = NULL;
        char *value = NULL;

        if (sd_bus_get_property_string(o->bus, SYSTEMD, o->path, interface, property, NULL, &value) >= 0)
                copy = g_strdup(value);
        free(value);
        return g_steal_pointer(&copy);
}

/* The caller frees the result with g_strfreev(); NULL if there is no such property. */
static char **get_strings(const Object *o, const char *interface, const char *property) {
        char **values = NULL, **copy;

        if (sd_bus_get_property_strv(o->bus, SYSTEMD, o->path, interface, property, NULL, &values) < 0)
                return NULL;
        copy = g_strdupv(values);
        for (char **value = values; value && *value; value++)
                free(*value);
        free(values);
        return copy;
}

static uint64_t get_number(const Object *o, char type, const char *property) {
        union {
                uint32_t u;
                uint64_t t;
        } value = {};

        if (sd_bus_get_property_trivial(o->bus, SYSTEMD, o->path, SERVICE, property, NULL, type, &value) < 0)
                return 0;
        return type == 'u' ? value.u : value.t;
}

static bool is_outdated(const Object *o) {
        g_auto(GStrv) files = get_strings(o, SYSTEMD ".Unit", "DropInPaths");
        uint64_t started_usec = get_number(o, 't', "ExecMainStartTimestamp");
        struct stat st;

        if (get_number(o, 'u', "MainPID") == 0)
                return false;
        for (char **file = files; file && *file; file++)
                if (stat(*file, &st) == 0 &&
                    (uint64_t) st.st_ctim.tv_sec * 1000000 + (uint64_t) st.st_ctim.tv_nsec / 1000 > started_usec)
                        return true;
        return false;
}

static void read_bound(const Object *o, const char *property, GPtrArray *ret, GPtrArray *ret_too) {
        g_autoptr(sd_bus_message) reply = NULL;
        const char *folder;

        if (sd_bus_get_property(o->bus, SYSTEMD, o->path, SERVICE, property, NULL, &reply, "a(ssbt)") < 0 ||
            sd_bus_message_enter_container(reply, 'a', "(ssbt)") < 0)
                return;
        while (sd_bus_message_read(reply, "(ssbt)", NULL, &folder, NULL, NULL) > 0) {
                g_ptr_array_add(ret, g_strdup(folder));
                if (ret_too)
                        g_ptr_array_add(ret_too, g_strdup(folder));
        }
}

/* Replaces the folders of the installed unit. A path of ReadWritePaths= may begin with "-" and "+". */
static void read_writable(const Object *o, ServiceUnit *unit) {
        g_auto(GStrv) state = get_strings(o, SERVICE, "StateDirectory"), paths = get_strings(o, SERVICE, "ReadWritePaths");

        g_ptr_array_set_size(unit->writable, 0);
        for (char **name = state; name && *name; name++)
                g_ptr_array_add(unit->writable, g_build_filename(STATE_FOLDER, *name, NULL));
        for (char **path = paths; path && *path; path++)
                g_ptr_array_add(unit->writable, g_strdup(*path + strspn(*path, "-+")));
}

/* Does not change `text` if there is no such property. */
static void read_string(const Object *o, const char *property, char **text) {
        char *value = get_string(o, SERVICE, property);

        if (value) {
                g_free(*text);
                *text = value;
        }
}

static void read_settings(const Object *o, ServiceUnit *unit) {
        g_autofree char *state = get_string(o, SYSTEMD ".Unit", "LoadState");
        int private_tmp;

        if (g_strcmp0(state, "loaded") != 0)
                return;
        read_string(o, "User", &unit->user);
        read_string(o, "ProtectHome", &unit->protect_home);
        read_string(o, "ProtectSystem", &unit->protect_system);
        if (sd_bus_get_property_trivial(o->bus, SYSTEMD, o->path, SERVICE, "PrivateTmp", NULL, 'b', &private_tmp) >= 0)
                unit->private_tmp = private_tmp;
        unit->groups = get_strings(o, SERVICE, "SupplementaryGroups");
        read_writable(o, unit);
        read_bound(o, "BindPaths", unit->bound, unit->writable);
        read_bound(o, "BindReadOnlyPaths", unit->bound, NULL);
        unit->is_outdated = is_outdated(o);
}

ServiceUnit *service_unit_new(void) {
        g_autoptr(sd_bus_message) reply = NULL;
        g_autoptr(sd_bus) bus = NULL;
        ServiceUnit *unit = g_new(ServiceUnit, 1);
        Object object = {};

        *unit = (ServiceUnit) {
                .user = g_strdup(SERVICE_USER),
                .protect_home = g_strdup("yes"),
                .protect_system = g_strdup("strict"),
                .private_tmp = true,
                .bound = g_ptr_array_new_with_free_func(g_free),
                .writable = g_ptr_array_new_with_free_func(g_free),
        };
        g_ptr_array_add(unit->writable, g_strdup(SERVICE_STATE));
        if (sd_bus_open_system(&bus) >= 0 &&
            sd_bus_call_method(bus, SYSTEMD, "/org/freedesktop/systemd1", SYSTEMD ".Manager", "LoadUnit", NULL, &reply, "s",
                               UNIT) >= 0 &&
            sd_bus_message_read(reply, "o", &object.path) >= 0) {
                object.bus = bus;
                read_settings(&object, unit);
        }
        return unit;
}

ServiceUnit *service_unit_free(ServiceUnit *unit) {
        if (!unit)
                return NULL;
        g_free(unit->user);
        g_free(unit->protect_home);
        g_free(unit->protect_system);
        g_strfreev(unit->groups);
        g_ptr_array_unref(unit->bound);
        g_ptr_array_unref(unit->writable);
        g_free(unit);
        return NULL;
}

/* ---- Hidden folders ----------------------------------------------------------------------------------------------- */

static bool is_below(const char *path, const char *folder) {
        size_t size = strlen(folder);

        return strncmp(path, folder, size) == 0 && (path[size] == '/' || path[size] == 0);
}

static bool is_below_one(const char *path, const GPtrArray *folders) {
        for (guint i = 0; i < folders->len; i++)
                if (is_below(path, folders->pdata[i]))
                        return true;
        return false;
}

const char *service_unit_hides(const ServiceUnit *unit, const char *path) {
        static const char *const homes[] = { "/home", "/root", "/run/user" }, *const temporary[] = { "/tmp", "/var/tmp" };

        if (is_below_one(path, unit->bound))
                return NULL;
        if (g_str_equal(unit->protect_home, "yes") || g_str_equal(unit->protect_home, "tmpfs"))
                for (size_t i = 0; i < G_N_ELEMENTS(homes); i++)
                        if (is_below(path, homes[i]))
                                return "ProtectHome=";
        if (unit->private_tmp)
                for (size_t i = 0; i < G_N_ELEMENTS(temporary); i++)
                        if (is_below(path, temporary[i]))
                                return "PrivateTmp=";
        return NULL;
}

const char *service_unit_protects(const ServiceUnit *unit, const char *path) {
        static const char *const homes[] = { "/home", "/root", "/run/user" };
        static const char *const system[] = { "/usr", "/boot", "/efi", "/etc" };
        size_t n = g_str_equal(unit->protect_system, "full")  ? G_N_ELEMENTS(system)
                   : g_str_equal(unit->protect_system, "yes") ? G_N_ELEMENTS(system) - 1
                                                              : 0;

        if (is_below_one(path, unit->writable))
                return NULL;
        if (g_str_equal(unit->protect_home, "read-only"))
                for (size_t i = 0; i < G_N_ELEMENTS(homes); i++)
                        if (is_below(path, homes[i]))
                                return "ProtectHome=";
        for (size_t i = 0; i < n; i++)
                if (is_below(path, system[i]))
                        return "ProtectSystem=";
        if (g_str_equal(unit->protect_system, "strict"))
                return "ProtectSystem=";
        return is_below_one(path, unit->bound) ? "BindReadOnlyPaths=" : NULL;
}
