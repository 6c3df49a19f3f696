/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/shell/settings: converts names and texts to settings of the shell, and back. */
#include <errno.h>
#include <glib.h>

#include "tools/cli/shell/settings.h"

#define _cleanup_settings_ __attribute__((cleanup(settings_done)))

static void set(Settings *settings, const char *name, const char *value) {
        g_autofree char *message = NULL;

        g_assert_cmpint(settings_set(settings, name, value, &message), ==, 0);
        g_assert_null(message);
}

/* Refused with a sentence, and nothing is changed. */
static void refuse(Settings *settings, const char *name, const char *value, int expected) {
        g_autofree char *message = NULL, *before = settings_get(settings, name), *after = NULL;

        g_assert_cmpint(settings_set(settings, name, value, &message), ==, expected);
        g_assert_nonnull(message);
        after = settings_get(settings, name);
        g_assert_cmpstr(after, ==, before);
}

/* `value` is read, and written as `expected`. */
static void check(const char *name, const char *value, const char *expected) {
        _cleanup_settings_ Settings settings;
        g_autofree char *written = NULL;

        settings_init(&settings);
        set(&settings, name, value);
        written = settings_get(&settings, name);
        g_assert_cmpstr(written, ==, expected);
}

static void test_values(void) {
        check("mode", "csv", "csv");
        check("mode", "vertical", "vertical");
        check("headers", "ON", "on");
        check("headers", "no", "off");
        check("headers", "Auto", "auto");
        check("nullvalue", "", "");
        check("nullvalue", "a b", "a b");
        check("nullvalue", "auto", "auto");
        check("separator", "\t", "\t");
        check("width", "10 -5  0", "10 -5 0");
        check("width", "", "auto");
        check("color", "yes", "on");
        check("pager", "more -d", "more -d");
        check("pager", "", "off");
        check("pager", "off", "off");
        check("timeout", "0.5", "0.5");
        check("timeout", "30", "30");
        check("timeout", "off", "off");
        check("rows", "1000", "1000");
        check("rows", "0", "off");
        check("transport", "dbus", "dbus");
}

static void test_refused(void) {
        _cleanup_settings_ Settings settings;

        settings_init(&settings);
        set(&settings, "width", "3 4");
        refuse(&settings, "mode", "xml", -EINVAL);
        refuse(&settings, "mode", "", -EINVAL);
        refuse(&settings, "timer", "auto", -EINVAL);
        refuse(&settings, "headers", "maybe", -EINVAL);
        refuse(&settings, "width", "3 x", -EINVAL);
        refuse(&settings, "width", "100000", -EINVAL);
        refuse(&settings, "timeout", "-1", -EINVAL);
        refuse(&settings, "timeout", "nan", -EINVAL);
        refuse(&settings, "timeout", "1e300", -EINVAL);
        refuse(&settings, "timeout", "5 s", -EINVAL);
        refuse(&settings, "timeout", "", -EINVAL);
        refuse(&settings, "rows", "-1", -EINVAL);
        refuse(&settings, "rows", "99999999999999999999", -EINVAL);
        refuse(&settings, "transport", "pigeon", -EINVAL);
        refuse(&settings, "nosuch", "on", -ENOENT);
}

/* The values that the rest of the shell reads. */
static void test_fields(void) {
        _cleanup_settings_ Settings settings;

        settings_init(&settings);
        g_assert_null(settings.null);
        g_assert_null(settings.pager);
        g_assert_true(settings.footer);
        set(&settings, "mode", "tabs"); /* sqlite3's name for it */
        g_assert_cmpint(settings.mode, ==, RENDER_TSV);
        set(&settings, "nullvalue", "-");
        g_assert_cmpstr(settings.null, ==, "-");
        set(&settings, "pager", "off");
        g_assert_cmpstr(settings.pager, ==, "");
        set(&settings, "timeout", "0.25");
        g_assert_cmpuint(settings.timeout_usec, ==, 250000);
        set(&settings, "rows", "7");
        g_assert_cmpuint(settings.rows_max, ==, 7);
        set(&settings, "eqp", "on");
        g_assert_true(settings.explain);
        set(&settings, "transport", "channel");
        g_assert_cmpint(settings.transport, ==, SQLIPC_TRANSPORT_CHANNEL);
        set(&settings, "width", "1 -2");
        g_assert_cmpuint(settings.n_widths, ==, 2);
        g_assert_cmpint(settings.widths[1], ==, -2);
        set(&settings, "width", "auto");
        g_assert_cmpuint(settings.n_widths, ==, 0);
}

/* The text of each setting is read back as the same value; each value that is offered is valid. */
static void test_round_trip(void) {
        _cleanup_settings_ Settings settings;

        settings_init(&settings);
        for (const char *const *name = settings_names(); *name; name++) {
                g_autofree char *written = settings_get(&settings, *name), *again = NULL;

                set(&settings, *name, written);
                again = settings_get(&settings, *name);
                g_assert_cmpstr(again, ==, written);
                for (const char *const *value = settings_values(*name); value && *value; value++)
                        set(&settings, *name, *value);
        }
        g_assert_null(settings_get(&settings, "nosuch"));
        g_assert_null(settings_values("nosuch"));
        g_assert_true(g_strv_contains(settings_values("mode"), "insert"));
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/settings/values", test_values);
        g_test_add_func("/settings/refused", test_refused);
        g_test_add_func("/settings/fields", test_fields);
        g_test_add_func("/settings/round-trip", test_round_trip);
        return g_test_run();
}
