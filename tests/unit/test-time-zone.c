/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The zone that the library sends, the zones that the service accepts, and the zone of a worker's process.
 */
#include <glib.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "client-lib/client-zone.h"
#include "daemon/worker/sqlite/local-time.h"

static void test_valid(void) {
        static const char *const valid[] = { "",        "Europe/Berlin",  "America/Argentina/Buenos_Aires", "Etc/GMT+5",
                                             "EST5EDT", "<-0330>3:30:15", "CET-1CEST,M3.5.0,M10.5.0/3",     "a.b" };
        static const char *const invalid[] = { "/",    "/etc/localtime", ":UTC", "..", "../x",  "Europe/../../x",
                                               "a..b", "a b",            "a\n",  "~",  "$HOME", "Z\303\274rich" };
        char longest[TIME_ZONE_SIZE_MAX + 1];

        for (size_t i = 0; i < G_N_ELEMENTS(valid); i++)
                g_assert_true(time_zone_is_valid(valid[i], strlen(valid[i])));
        for (size_t i = 0; i < G_N_ELEMENTS(invalid); i++)
                g_assert_false(time_zone_is_valid(invalid[i], strlen(invalid[i])));
        g_assert_false(time_zone_is_valid("UTC", 4)); /* with its NUL */
        memset(longest, 'x', sizeof longest);
        g_assert_true(time_zone_is_valid(longest, TIME_ZONE_SIZE_MAX));
        g_assert_false(time_zone_is_valid(longest, TIME_ZONE_SIZE_MAX + 1));
}

static void expect_sent(ClientZone *z, const char *variable, const char *zone) {
        variable ? g_setenv("TZ", variable, true) : g_unsetenv("TZ");
        g_assert_cmpstr(client_zone_get(z), ==, zone);
        g_assert_cmpstr(client_zone_get(z), ==, zone);
}

static void test_sent(void) {
        g_autofree char *folder = g_dir_make_tmp("sqlipc-zone-XXXXXX", NULL);
        g_autofree char *zones = g_build_filename(folder, "zoneinfo", "Area", NULL);
        g_autofree char *zone = NULL, *link = NULL, *colon = NULL;
        char too_long[TIME_ZONE_SIZE_MAX + 2] = {};
        ClientZone z = {};

        expect_sent(&z, "Europe/Berlin", "Europe/Berlin");
        expect_sent(&z, ":Europe/Berlin", "Europe/Berlin");
        expect_sent(&z, "CET-1CEST,M3.5.0,M10.5.0/3", "CET-1CEST,M3.5.0,M10.5.0/3");
        expect_sent(&z, "", "UTC");
        expect_sent(&z, ":", "UTC");
        expect_sent(&z, "no zone?", "UTC");
        memset(too_long, 'x', sizeof too_long - 1);
        expect_sent(&z, too_long, "UTC");
        expect_sent(&z, "/no/such/file", "UTC");
        expect_sent(&z, "/etc/passwd", "");
        expect_sent(&z, "../../etc/passwd", "");

        g_assert_cmpint(g_mkdir_with_parents(zones, 0700), ==, 0);
        zone = g_build_filename(zones, "Town", NULL);
        link = g_build_filename(folder, "localtime", NULL);
        colon = g_strconcat(":", link, NULL);
        g_assert_true(g_file_set_contents(zone, "TZif", -1, NULL));
        g_assert_cmpint(symlink("zoneinfo/Area/Town", link), ==, 0);
        expect_sent(&z, zone, "Area/Town");
        expect_sent(&z, link, "Area/Town");
        expect_sent(&z, colon, "Area/Town");
        (void) g_unlink(link);
        (void) g_unlink(zone);
        expect_sent(&z, "UTC", "UTC");
        expect_sent(&z, link, "UTC"); /* it is looked up again */
        g_assert_true(g_file_set_contents(link, "TZif", -1, NULL));
        expect_sent(&z, "UTC", "UTC");
        expect_sent(&z, link, ""); /* a file of its own: no name */
        (void) g_unlink(link);
        (void) g_rmdir(zones);
        *strrchr(zones, '/') = 0;
        (void) g_rmdir(zones);
        (void) g_rmdir(folder);
        client_zone_done(&z);
}

/* Without $TZ the zone of the machine is sent, if it has a name. */
static void test_machine(void) {
        g_autofree char *file = realpath("/etc/localtime", NULL);
        const char *zone = file ? strstr(file, "/zoneinfo/") : NULL;
        ClientZone z = {};

        expect_sent(&z, NULL, zone ? zone + strlen("/zoneinfo/") : file ? "" : "UTC");
        client_zone_done(&z);
}

static void expect_local(const char *zone, const char *expected) {
        const time_t noon = 1720000000; /* 2024-07-03 09:46:40 UTC */
        char text[32];
        struct tm tm;

        g_assert_true(local_time_set_zone(zone));
        g_assert_nonnull(localtime_r(&noon, &tm));
        g_assert_cmpuint(strftime(text, sizeof text, "%H:%M", &tm), ==, 5);
        g_assert_cmpstr(text, ==, expected);
}

static void test_worker(void) {
        struct rlimit before;

        for (unsigned own = 0; own < 2; own++) {
                own ? g_setenv("TZ", "Asia/Tokyo", true) : g_unsetenv("TZ");
                tzset();
                for (unsigned i = 0; i < 2; i++) {
                        expect_local("Europe/Berlin", "11:46");
                        expect_local("America/New_York", "05:46");
                        expect_local("XYZ-3:30", "13:16");
                        expect_local("Not/Known", "09:46");
                        expect_local("UTC", "09:46");
                        g_assert_true(local_time_set_zone(NULL));
                        g_assert_cmpstr(g_getenv("TZ"), ==, own ? "Asia/Tokyo" : NULL);
                        if (own)
                                expect_local(NULL, "18:46");
                }
        }

        /* without a descriptor the C library would take UTC */
        g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &before), ==, 0);
        g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &(struct rlimit) { 0, before.rlim_max }), ==, 0);
        g_assert_false(local_time_set_zone("Europe/Berlin"));
        g_assert_false(local_time_set_zone("Europe/Berlin"));
        g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &before), ==, 0);
        expect_local("Europe/Berlin", "11:46");
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/time-zone/valid", test_valid);
        g_test_add_func("/time-zone/sent", test_sent);
        g_test_add_func("/time-zone/sent-without-tz", test_machine);
        g_test_add_func("/time-zone/worker", test_worker);
        return g_test_run();
}
