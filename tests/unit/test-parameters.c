/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * D-Bus values -> parameters and options: every type, every limit reached and exceeded by one, the refused values;
 * and the text that D-Bus carries, compared with sd-bus's rules.
 */
#include <errno.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "daemon/configuration/dbus-text.h"
#include "daemon/supervisor/base/sd-autoptr.h"
#include "daemon/supervisor/calls/options.h"
#include "daemon/supervisor/calls/parameters.h"
#include "dbus-interfaces/wire/page-decoder.h"
#include "dbus-interfaces/wire/page-payload.h"
#include "tests/unit/test.h"

/* A connection that messages can be built for; nothing is ever sent. */
static sd_bus *bus;
static int peer_fd;

static void open_bus(void) {
        sd_id128_t id = {};
        int fds[2];

        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        CHECK(sd_bus_new(&bus) >= 0);
        CHECK(sd_bus_set_fd(bus, fds[0], fds[0]) >= 0);
        CHECK(sd_bus_set_server(bus, true, id) >= 0);
        CHECK(sd_bus_start(bus) >= 0);
        peer_fd = fds[1];
}

static void close_bus(void) {
        bus = sd_bus_close_unref(bus);
        close(peer_fd);
}

static sd_bus_message *new_message(void) {
        sd_bus_message *m;

        CHECK(sd_bus_message_new_method_call(bus, &m, "a.b", "/", "a.b", "C") >= 0);
        return m;
}

static void seal(sd_bus_message *m) {
        CHECK(sd_bus_message_seal(m, 1, 0) >= 0);
        CHECK(sd_bus_message_rewind(m, true) >= 0);
}

/* ---- Parameters ---- */

static PageValue value(const Parameters *p, unsigned n, unsigned i) {
        size_t size;
        PageDecoder d = { .types = p->row, .ends = p->row + n, .data = p->row + ROW_HEAD_SIZE(n) };

        CHECK_INT(page_check_row(p->row, p->row_size, n, &size), 0);
        CHECK_INT(size, p->row_size);
        return page_decoder_value(&d, i);
}

static void check_integer(PageValue v, int64_t expected) {
        CHECK_INT(v.type, VALUE_INTEGER);
        CHECK_INT((int64_t) load_le64(v.bytes), expected);
}

static void check_bytes(PageValue v, ValueType type, const char *expected, size_t size) {
        CHECK_INT(v.type, type);
        CHECK_INT(v.size, size);
        CHECK(memcmp(v.bytes, expected, size) == 0);
        CHECK(type != VALUE_TEXT || v.bytes[size] == 0);
}

static void test_types(void) {
        g_autoptr(sd_bus_message) m = new_message();
        Parameters p = PARAMETERS_INIT;
        Refusal refusal = REFUSAL_INIT;
        enum { N = 16 };

        CHECK(sd_bus_message_append(m, "ava{sv}", N, "y", 255, "b", 1, "n", -32768, "q", 65535, "i", INT32_MIN, "u",
                                    UINT32_MAX, "x", INT64_MIN, "t", (uint64_t) INT64_MAX, "d", -0.5, "s", "ä", "o", "/a",
                                    "g", "as", "g", "", "ay", 2, 0, 255, "a{sv}", 0, "a{sv}", 1, "text", "ay", 3, 'a', 0,
                                    0xff, 0) >= 0);
        seal(m);
        CHECK_INT(parameters_read(m, &p, &refusal), 0);
        CHECK_INT(p.n_positional, N);
        CHECK_INT(p.n_named, 0);
        check_integer(value(&p, N, 0), 255);
        check_integer(value(&p, N, 1), 1);
        check_integer(value(&p, N, 2), -32768);
        check_integer(value(&p, N, 3), 65535);
        check_integer(value(&p, N, 4), INT32_MIN);
        check_integer(value(&p, N, 5), UINT32_MAX);
        check_integer(value(&p, N, 6), INT64_MIN);
        check_integer(value(&p, N, 7), INT64_MAX);
        CHECK_INT(value(&p, N, 8).type, VALUE_REAL);
        CHECK(load_le_double(value(&p, N, 8).bytes) == -0.5);
        check_bytes(value(&p, N, 9), VALUE_TEXT, "ä", 2);
        check_bytes(value(&p, N, 10), VALUE_TEXT, "/a", 2);
        check_bytes(value(&p, N, 11), VALUE_TEXT, "as", 2);
        CHECK_INT(value(&p, N, 12).type, VALUE_NULL);
        check_bytes(value(&p, N, 13), VALUE_BLOB, "\0\xff", 2);
        CHECK_INT(value(&p, N, 14).type, VALUE_NULL);
        check_bytes(value(&p, N, 15), VALUE_TEXT, "a\0\xff", 3);
        parameters_done(&p);
}

static void test_named(void) {
        g_autoptr(sd_bus_message) m = new_message();
        Parameters p = PARAMETERS_INIT;
        Refusal refusal = REFUSAL_INIT;

        CHECK(sd_bus_message_append(m, "ava{sv}", 1, "i", 1, 2, ":a", "i", 2, "b", "s", "") >= 0);
        seal(m);
        CHECK_INT(parameters_read(m, &p, &refusal), 0);
        CHECK_INT(p.n_positional, 1);
        CHECK_INT(p.n_named, 2);
        check_bytes(value(&p, 5, 1), VALUE_TEXT, ":a", 2);
        check_integer(value(&p, 5, 2), 2);
        check_bytes(value(&p, 5, 3), VALUE_TEXT, "b", 1);
        check_bytes(value(&p, 5, 4), VALUE_TEXT, "", 0);
        parameters_done(&p);
}

static void test_none(void) {
        g_autoptr(sd_bus_message) m = new_message();
        Parameters p = PARAMETERS_INIT;
        Refusal refusal = REFUSAL_INIT;

        CHECK(sd_bus_message_append(m, "ava{sv}", 0, 0) >= 0);
        seal(m);
        CHECK_INT(parameters_read(m, &p, &refusal), 0);
        CHECK_INT(p.row_size, 0);
        parameters_done(&p);
}

static void check_refused(sd_bus_message *m, ErrorNumber error) {
        Parameters p = PARAMETERS_INIT;
        Refusal refusal = REFUSAL_INIT;

        seal(m);
        CHECK_INT(parameters_read(m, &p, &refusal), -error_to_errno(error));
        CHECK_INT(refusal.error, error);
        CHECK(!p.row);
        refusal_done(&refusal);
        sd_bus_message_unref(m);
}

#define CHECK_REFUSED(error, ...)                                                                                     \
        do {                                                                                                          \
                sd_bus_message *m_ = new_message();                                                                   \
                CHECK(sd_bus_message_append(m_, __VA_ARGS__) >= 0);                                                   \
                check_refused(m_, error);                                                                             \
        } while (0)

static void test_refused(void) {
        CHECK_REFUSED(ERROR_PARAMETER_TYPE, "ava{sv}", 1, "t", (uint64_t) INT64_MAX + 1, 0);
        CHECK_REFUSED(ERROR_PARAMETER_TYPE, "ava{sv}", 1, "as", 0, 0);
        CHECK_REFUSED(ERROR_PARAMETER_TYPE, "ava{sv}", 1, "v", "i", 1, 0);
        CHECK_REFUSED(ERROR_PARAMETER_TYPE, "ava{sv}", 1, "(i)", 1, 0);
        CHECK_REFUSED(ERROR_PARAMETER_TYPE, "ava{sv}", 1, "h", 0, 0);
        CHECK_REFUSED(ERROR_PARAMETER_TYPE, "ava{sv}", 1, "a{sv}", 1, "blob", "ay", 0, 0);
        CHECK_REFUSED(ERROR_PARAMETER_TYPE, "ava{sv}", 1, "a{sv}", 1, "text", "s", "x", 0);
        CHECK_REFUSED(ERROR_PARAMETER_TYPE, "ava{sv}", 1, "a{sv}", 2, "text", "ay", 0, "text", "ay", 0, 0);
        CHECK_REFUSED(ERROR_UNKNOWN_PARAMETER, "ava{sv}", 0, 1, "", "i", 1);
}

static sd_bus_message *message_with(unsigned n_positional, unsigned n_named) {
        sd_bus_message *m = new_message();

        CHECK(sd_bus_message_open_container(m, 'a', "v") >= 0);
        for (unsigned i = 0; i < n_positional; i++)
                CHECK(sd_bus_message_append(m, "v", "y", 1) >= 0);
        CHECK(sd_bus_message_close_container(m) >= 0);
        CHECK(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
        for (unsigned i = 0; i < n_named; i++)
                CHECK(sd_bus_message_append(m, "{sv}", "n", "y", 1) >= 0);
        CHECK(sd_bus_message_close_container(m) >= 0);
        return m;
}

static void test_count(void) {
        g_autoptr(sd_bus_message) m = message_with(PARAMETERS_MAX - 1, 1);
        Parameters p = PARAMETERS_INIT;
        Refusal refusal = REFUSAL_INIT;

        seal(m);
        CHECK_INT(parameters_read(m, &p, &refusal), 0);
        CHECK_INT(p.n_positional + p.n_named, PARAMETERS_MAX);
        parameters_done(&p);
        check_refused(message_with(PARAMETERS_MAX, 1), ERROR_LIMITS_EXCEEDED);
        check_refused(message_with(PARAMETERS_MAX + 1, 0), ERROR_LIMITS_EXCEEDED);
}

static sd_bus_message *message_with_blob(size_t size) {
        sd_bus_message *m = new_message();
        void *room;

        CHECK(sd_bus_message_open_container(m, 'a', "v") >= 0);
        CHECK(sd_bus_message_open_container(m, 'v', "ay") >= 0);
        CHECK(sd_bus_message_append_array_space(m, 'y', size, &room) >= 0);
        memset(room, 7, size);
        CHECK(sd_bus_message_close_container(m) >= 0);
        CHECK(sd_bus_message_close_container(m) >= 0);
        CHECK(sd_bus_message_append(m, "a{sv}", 0) >= 0);
        return m;
}

static void test_size(void) {
        size_t most = PARAMETERS_SIZE_MAX - ROW_HEAD_SIZE(1);
        g_autoptr(sd_bus_message) m = message_with_blob(most);
        Parameters p = PARAMETERS_INIT;
        Refusal refusal = REFUSAL_INIT;

        seal(m);
        CHECK_INT(parameters_read(m, &p, &refusal), 0);
        CHECK_INT(p.row_size, PARAMETERS_SIZE_MAX);
        parameters_done(&p);
        check_refused(message_with_blob(most + 1), ERROR_LIMITS_EXCEEDED);
        check_refused(message_with_blob(4 * PARAMETERS_SIZE_MAX), ERROR_LIMITS_EXCEEDED);
}

/* ---- Options ---- */

enum { OPTIONS_ALL = OPTION_PAGES | OPTION_TIMEOUT | OPTION_MAX_BYTES };

static int read_options(sd_bus_message *m, unsigned allowed, Options *ret) {
        Refusal refusal = REFUSAL_INIT;

        seal(m);
        int r = options_read(m, allowed, ret, &refusal);
        CHECK_INT(r, refusal.error == ERROR_NONE ? 0 : -error_to_errno(refusal.error));
        r = (int) refusal.error;
        refusal_done(&refusal);
        sd_bus_message_unref(m);
        return r;
}

static sd_bus_message *one_option(const char *key, const char *type, uint64_t number) {
        sd_bus_message *m = new_message();

        if (type[0] == 't')
                CHECK(sd_bus_message_append(m, "a{sv}", 1, key, "t", number) >= 0);
        else
                CHECK(sd_bus_message_append(m, "a{sv}", 1, key, type, (uint32_t) number) >= 0);
        return m;
}

static void test_options(void) {
        sd_bus_message *m = new_message();
        Options o;

        CHECK(sd_bus_message_append(m, "a{sv}", 0) >= 0);
        CHECK_INT(read_options(m, 0, &o), ERROR_NONE);
        CHECK_INT(o.page_size, SQLIPC_PAGE_SIZE_DEFAULT);
        CHECK_INT(o.max_bytes, ROWS_SIZE_DEFAULT);
        CHECK(o.timeout_usec == UINT64_MAX);

        m = new_message();
        CHECK(sd_bus_message_append(m, "a{sv}", 4, "page-size", "u", 4096, "timeout-usec", "t", (uint64_t) 5, "max-bytes",
                                    "u", 1, "x-mine", "as", 1, "y") >= 0);
        CHECK_INT(read_options(m, OPTIONS_ALL, &o), ERROR_NONE);
        CHECK_INT(o.page_size, 4096);
        CHECK_INT(o.timeout_usec, 5);
        CHECK_INT(o.max_bytes, 1);
}

static void test_options_refused(void) {
        Options o;

        CHECK_INT(read_options(one_option("pagesize", "u", 4096), OPTIONS_ALL, &o), ERROR_UNKNOWN_OPTION);
        CHECK_INT(read_options(one_option("page-size", "u", 4096), OPTION_TIMEOUT, &o), ERROR_UNKNOWN_OPTION);
        CHECK_INT(read_options(one_option("page-size", "t", 4096), OPTIONS_ALL, &o), ERROR_INVALID_OPTION);
        CHECK_INT(read_options(one_option("page-version", "u", 0), OPTIONS_ALL, &o), ERROR_INVALID_OPTION);
        CHECK_INT(read_options(one_option("page-version", "u", 2), OPTION_TIMEOUT, &o), ERROR_UNKNOWN_OPTION);
        CHECK_INT(read_options(one_option("page-size", "u", 2048), OPTIONS_ALL, &o), ERROR_INVALID_OPTION);
        CHECK_INT(read_options(one_option("page-size", "u", 4097), OPTIONS_ALL, &o), ERROR_INVALID_OPTION);
        CHECK_INT(read_options(one_option("page-size", "u", 2097152), OPTIONS_ALL, &o), ERROR_INVALID_OPTION);
        CHECK_INT(read_options(one_option("timeout-usec", "t", 0), OPTIONS_ALL, &o), ERROR_INVALID_OPTION);
        CHECK_INT(read_options(one_option("timeout-usec", "u", 1), OPTIONS_ALL, &o), ERROR_INVALID_OPTION);
        CHECK_INT(read_options(one_option("max-bytes", "u", 0), OPTIONS_ALL, &o), ERROR_INVALID_OPTION);
        CHECK_INT(read_options(one_option("max-bytes", "u", ROWS_SIZE_MAX), OPTIONS_ALL, &o), ERROR_NONE);
        CHECK_INT(read_options(one_option("max-bytes", "u", ROWS_SIZE_MAX + 1), OPTIONS_ALL, &o), ERROR_INVALID_OPTION);
}

/* ---- Text ---- */

static bool sd_bus_takes(const char *text) {
        g_autoptr(sd_bus_message) m = new_message();

        return sd_bus_message_append_basic(m, 's', text) >= 0;
}

/* UTF-8 of any number up to 0x1fffff, also of those that are no characters. */
static void encode(uint32_t code, char text[static 5]) {
        size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        static const unsigned char heads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

        text[n] = 0;
        for (size_t i = n; i-- > 1; code >>= 6)
                text[i] = (char) (0x80 | (code & 0x3f));
        text[0] = (char) (heads[n] | code);
}

static void test_every_character(void) {
        char text[5];

        for (uint32_t code = 1; code < 0x1fffff; code += code > 0x30000 && (code & 0xffff) < 0xff00 ? 251 : 1) {
                encode(code, text);
                if (dbus_text_is_valid(text, strlen(text)) != sd_bus_takes(text))
                        CHECK_INT(code, -1);
        }
        CHECK(!dbus_text_is_valid("a\0b", 3));
        CHECK(dbus_text_is_valid("", 0));
}

static void test_every_two_bytes(void) {
        for (unsigned i = 1; i < 65536; i++) {
                char text[] = { (char) (i & 0xff), (char) (i >> 8), 0 };

                if ((i & 0xff) == 0)
                        continue;
                if (dbus_text_is_valid(text, strlen(text)) != sd_bus_takes(text))
                        CHECK_INT(i, -1);
        }
}

static void check_replaced(const char *text, size_t size, const char *expected) {
        char *copy = dbus_text_replace(text, size);

        CHECK(copy);
        CHECK_STRING(copy, expected);
        CHECK(sd_bus_takes(copy));
        free(copy);
}

#define FFFD "\xef\xbf\xbd"

static void test_replace(void) {
        check_replaced("", 0, "");
        check_replaced("ok ä", 5, "ok ä");
        check_replaced("a\0b", 3, "a" FFFD "b");
        check_replaced("\xff\xfe", 2, FFFD FFFD);
        check_replaced("a\xe2\x82", 3, "a" FFFD);         /* cut */
        check_replaced("\xe2\x82z", 3, FFFD "z");
        check_replaced("\xed\xa0\x80!", 4, FFFD "!");     /* a surrogate */
        check_replaced("\xef\xbf\xbe", 3, FFFD);          /* U+FFFE */
        check_replaced("\xef\xb7\x90", 3, FFFD);          /* U+FDD0 */
        check_replaced("\xc0\x80", 2, FFFD);              /* overlong */
}

int main(void) {
        static const Test tests[] = {
                TEST(test_types), TEST(test_named), TEST(test_none), TEST(test_refused), TEST(test_count), TEST(test_size),
                TEST(test_options), TEST(test_options_refused), TEST(test_every_character), TEST(test_every_two_bytes),
                TEST(test_replace),
        };

        open_bus();
        int r = test_main(tests, N_ELEMENTS(tests));
        close_bus();
        return r;
}
