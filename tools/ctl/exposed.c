/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The objects that a database exposes, see exposed.h. */
#include "tools/ctl/exposed.h"

#include <stdlib.h>

#include "dbus-interfaces/sqlipc-names.h"

/* With Expose= each object is a table of the connection, even if it is a view in the file; then the kind is left out. */
#define OBJECTS "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' " \
                "ESCAPE '\\' ORDER BY name"

#define REPLY_ROWS "(a(ssa{sv})aava{sv})"

/* The reply to QueryRows; NULL on failure, with the reason in `*ret_problem`. */
static GVariant *query(Context *c, const char *database, const char *sql, char **ret_problem) {
        g_auto(sd_bus_error) error = SD_BUS_ERROR_NULL;
        GVariant *reply = NULL;
        char *object = NULL;
        int r = sd_bus_path_encode(SQLIPC_DATABASE_PATH, database, &object);

        if (r >= 0)
                r = bus_call(c, START_SERVICE, object, SQLIPC_DATABASE_INTERFACE, "QueryRows", REPLY_ROWS, &error, &reply,
                             "sava{sv}a{sv}", sql, 0, 0, 0);
        free(object);
        if (r < 0)
                *ret_problem = bus_failure(c, &error, r);
        return r < 0 ? NULL : reply;
}

/* The names of the columns of one object, as a floating `as`; NULL if they cannot be read. */
static GVariant *columns_of(Context *c, const char *database, const char *name, char **ret_problem) {
        g_auto(GStrv) parts = g_strsplit(name, "\"", -1);
        g_autofree char *quoted = g_strjoinv("\"\"", parts);
        g_autofree char *sql = g_strdup_printf("SELECT * FROM \"%s\" LIMIT 0", quoted);
        g_autoptr(GVariant) reply = query(c, database, sql, ret_problem), columns = NULL;
        g_auto(GVariantBuilder) names = {};
        GVariantIter i;
        char *column;

        if (!reply)
                return NULL;
        g_variant_builder_init(&names, G_VARIANT_TYPE_STRING_ARRAY);
        columns = g_variant_get_child_value(reply, 0);
        g_variant_iter_init(&i, columns);
        while (g_variant_iter_loop(&i, "(s@s@a{sv})", &column, NULL, NULL))
                g_variant_builder_add(&names, "s", column);
        return g_variant_builder_end(&names);
}

static void add_entries(const char *name, const char *kind, GVariant *columns, const char *problem,
                        GVariantBuilder *objects) {
        g_variant_builder_open(objects, G_VARIANT_TYPE_VARDICT);
        entry(objects, "name", g_variant_new_string(name));
        if (kind)
                entry(objects, "kind", g_variant_new_string(kind));
        if (columns)
                entry(objects, "columns", columns);
        if (problem)
                entry(objects, "problem", g_variant_new_string(problem));
        g_variant_builder_close(objects);
}

static void add_object(Context *c, const char *database, const char *name, const char *kind, bool ask,
                       GVariantBuilder *objects) {
        g_autofree char *problem = NULL;
        GVariant *columns = ask ? columns_of(c, database, name, &problem) : NULL;

        add_entries(name, kind, columns, problem, objects);
}

/* A name that no D-Bus string may have arrives as its bytes, and no SQL could ask about its columns. */
static void add_unsendable(GVariant *name, const char *kind, GVariantBuilder *objects) {
        g_autoptr(GVariant) text = g_variant_is_of_type(name, G_VARIANT_TYPE_VARDICT)
                                           ? g_variant_lookup_value(name, "text", G_VARIANT_TYPE_BYTESTRING)
                                           : NULL;
        g_autofree char *valid = NULL;
        const char *bytes;
        gsize size;

        if (!text)
                return;
        bytes = g_variant_get_fixed_array(text, &size, 1);
        valid = g_utf8_make_valid(bytes ?: "", (gssize) size);
        add_entries(valid, kind, NULL, "its name has bytes that are not UTF-8, or a noncharacter, so SQL that is sent over "
                    "D-Bus cannot use it: rename it", objects);
}

static void add_all(Context *c, const char *database, GVariantBuilder *objects, char **ret_problem) {
        g_autoptr(GVariant) reply = query(c, database, OBJECTS, ret_problem), rows = NULL;
        gsize n;

        if (!reply)
                return;
        rows = g_variant_get_child_value(reply, 1);
        n = g_variant_n_children(rows);
        for (gsize i = 0; i < n; i++) {
                g_autoptr(GVariant) row = g_variant_get_child_value(rows, i), name = NULL, kind = NULL;

                if (g_variant_n_children(row) != 2)
                        continue;
                g_variant_get_child(row, 0, "v", &name);
                g_variant_get_child(row, 1, "v", &kind);
                if (!g_variant_is_of_type(kind, G_VARIANT_TYPE_STRING))
                        continue;
                if (g_variant_is_of_type(name, G_VARIANT_TYPE_STRING))
                        add_object(c, database, g_variant_get_string(name, NULL), g_variant_get_string(kind, NULL), true,
                                   objects);
                else
                        add_unsendable(name, g_variant_get_string(kind, NULL), objects);
        }
}

GVariant *exposed_objects(Context *c, const char *database, char **expose, bool ask, char **ret_problem) {
        g_auto(GVariantBuilder) objects = {};

        *ret_problem = NULL;
        g_variant_builder_init(&objects, G_VARIANT_TYPE("aa{sv}"));
        for (char **name = expose; *name; name++)
                add_object(c, database, *name, NULL, ask, &objects);
        if (!*expose && ask)
                add_all(c, database, &objects, ret_problem);
        return g_variant_builder_end(&objects);
}
