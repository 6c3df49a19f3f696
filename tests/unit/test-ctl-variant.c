/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/ctl/variant: converts messages to documents, documents to JSON, and values to text for people. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/test.h"
#include "tools/ctl/listing.h"
#include "tools/ctl/variant.h"

static sd_bus *bus; /* its peer says nothing: messages are made, sealed and read here */

static GVariant *document(const char *types, ...) {
        sd_bus_message *m = NULL;
        GVariant *value = NULL;
        va_list arguments;

        CHECK_INT(sd_bus_message_new_method_call(bus, &m, "a.b", "/", "a.b", "C"), 0);
        va_start(arguments, types);
        CHECK(sd_bus_message_appendv(m, types, arguments) >= 0);
        va_end(arguments);
        CHECK(sd_bus_message_seal(m, 1, 0) >= 0);
        CHECK_INT(variant_from_message(m, &value), 0);
        sd_bus_message_unref(m);
        return value;
}

static void check_json(GVariant *value, const char *expected) {
        g_autoptr(GVariant) held = value;
        g_autoptr(GString) json = g_string_new(NULL);

        json_append_variant(json, held, JSON_IN_A_LINE);
        CHECK_STRING(json->str, expected);
}

static void test_basic_types(void) {
        check_json(document(""), "[]");
        check_json(document("ybnqiuxtd", 255, true, -1, 65535, -2, UINT32_MAX, INT64_MIN, UINT64_MAX, 0.375),
                   "[255,true,-1,65535,-2,4294967295,-9223372036854775808,18446744073709551615,0.375]");
        check_json(document("sog", "a \"b\"\\\n\x1b[31m", "/x", "a{sv}"),
                   "[\"a \\\"b\\\"\\\\\\n\\u001b[31m\",\"/x\",\"a{sv}\"]");
}

static void test_containers(void) {
        check_json(document("a{sv}", 2, "a", "u", 1, "b", "as", 2, "x", "y"), "[{\"a\":1,\"b\":[\"x\",\"y\"]}]");
        check_json(document("a(sa{sv})", 1, ":1", 1, "k", "v", "t", UINT64_C(5)), "[[[\":1\",{\"k\":5}]]]");
        check_json(document("a{sv}a{ss}as", 0, 0, 0), "[{},{},[]]");
        check_json(document("aav", 1, 2, "x", INT64_C(1), "s", "b"), "[[[1,\"b\"]]]");
}

static void test_maybe(void) {
        check_json(g_variant_ref_sink(g_variant_new("(msms)", NULL, "x")), "[null,\"x\"]");
}

static void test_pretty(void) {
        g_autoptr(GVariant) value = document("a{sv}", 2, "a", "u", 1, "b", "as", 0);
        g_autoptr(GString) json = g_string_new(NULL);

        json_append_variant(json, value, 0);
        CHECK_STRING(json->str, "[\n  {\n    \"a\": 1,\n    \"b\": []\n  }\n]");
}

static void test_properties(void) {
        g_autoptr(GVariant) from = g_variant_ref_sink(
                g_variant_new_parsed("{'NRuns': <1>, 'DaemonVersion': <2>, 'x': <3>}"));
        g_auto(GVariantBuilder) builder = {};

        g_variant_builder_init(&builder, G_VARIANT_TYPE_VARDICT);
        properties_of(&builder, from);
        check_json(g_variant_ref_sink(g_variant_builder_end(&builder)),
                   "{\"n-runs\":1,\"daemon-version\":2,\"x\":3}");
}

/* Columns that do not fit are left out, the highest rank first. */
static void test_narrow(void) {
        static const Column columns[] = {
                { "a", "FIRST", SHOWN_TEXT },
                { "b", "SECOND", SHOWN_TEXT, .rank = 2 },
                { "c", "THIRD", SHOWN_TEXT, .rank = 1 },
        };
        g_autoptr(GVariant) rows = g_variant_ref_sink(g_variant_new_parsed("[{'a': <'x'>, 'b': <'yyyyyyyy'>}]"));
        g_autofree char *wide = listing_to_text(rows, columns, 3, true, 24);
        g_autofree char *narrow = listing_to_text(rows, columns, 3, true, 20);
        g_autofree char *least = listing_to_text(rows, columns, 3, true, 1);

        CHECK(strstr(wide, "SECOND") && strstr(wide, "THIRD"));
        CHECK(!strstr(narrow, "SECOND") && strstr(narrow, "THIRD"));
        CHECK(!strstr(least, "SECOND") && !strstr(least, "THIRD"));
}

static void check_shown(GVariant *value, Shown as, const char *expected) {
        g_autoptr(GVariant) held = g_variant_ref_sink(value);
        g_autoptr(GString) shown = g_string_new(NULL);

        shown_append(shown, held, as);
        CHECK_STRING(shown->str, expected);
}

static void test_shown(void) {
        check_shown(g_variant_new_uint64(0), SHOWN_SIZE, "0B");
        check_shown(g_variant_new_uint64(1023), SHOWN_SIZE, "1023B");
        check_shown(g_variant_new_uint64(1024), SHOWN_SIZE, "1.0K");
        check_shown(g_variant_new_uint64(1536 * 1024), SHOWN_SIZE, "1.5M");
        check_shown(g_variant_new_uint64(UINT64_MAX), SHOWN_SIZE, "15.9E");
        check_shown(g_variant_new_uint64(1999), SHOWN_TIME, "1ms");
        check_shown(g_variant_new_uint64(59999999), SHOWN_TIME, "59.9s");
        check_shown(g_variant_new_uint64(UINT64_C(3599000000)), SHOWN_TIME, "59min 59s");
        check_shown(g_variant_new_uint64(UINT64_C(86399000000)), SHOWN_TIME, "23h 59min");
        check_shown(g_variant_new_uint64(UINT64_C(90000000000)), SHOWN_TIME, "1d 1h");
        check_shown(g_variant_new_uint32(0), SHOWN_USER, "root");
        check_shown(g_variant_new_uint32(4123456789), SHOWN_USER, "4123456789");
        check_shown(g_variant_new_string("\x1b]0;x\a\n\u202e"), SHOWN_TEXT, "\\x1b]0;x\\a\\n\\u202e");
}

int main(void) {
        static const Test tests[] = {
                TEST(test_basic_types), TEST(test_containers), TEST(test_maybe), TEST(test_narrow), TEST(test_pretty),
                TEST(test_properties), TEST(test_shown),
        };

        int fds[2], r;

        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        CHECK(sd_bus_new(&bus) >= 0);
        CHECK(sd_bus_set_fd(bus, fds[0], fds[0]) >= 0);
        CHECK(sd_bus_set_server(bus, true, (sd_id128_t) {}) >= 0);
        CHECK(sd_bus_start(bus) >= 0);
        r = test_main(tests, N_ELEMENTS(tests));
        sd_bus_close_unref(bus);
        close(fds[1]);
        return r;
}
