/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bound values and their D-Bus form: every kind in both directions, which text is a string for sd-bus, and the limits. */
#include <errno.h>
#include <systemd/sd-bus.h>

#include "client-lib/bindings.h"
#include "tests/unit/test.h"

static sd_bus *bus;

/* A message that may be filled and read without being sent. */
static sd_bus_message *new_message(void) {
        sd_bus_message *m = NULL;

        CHECK(sd_bus_message_new_method_call(bus, &m, "a.b", "/", "a.b", "C") >= 0);
        return m;
}

static size_t encode(uint32_t c, uint8_t *p) {
        if (c < 0x80) {
                p[0] = (uint8_t) c;
                return 1;
        }
        if (c < 0x800) {
                p[0] = (uint8_t) (0xC0 | c >> 6);
                p[1] = (uint8_t) (0x80 | (c & 0x3F));
                return 2;
        }
        if (c < 0x10000) {
                p[0] = (uint8_t) (0xE0 | c >> 12);
                p[1] = (uint8_t) (0x80 | (c >> 6 & 0x3F));
                p[2] = (uint8_t) (0x80 | (c & 0x3F));
                return 3;
        }
        p[0] = (uint8_t) (0xF0 | c >> 18);
        p[1] = (uint8_t) (0x80 | (c >> 12 & 0x3F));
        p[2] = (uint8_t) (0x80 | (c >> 6 & 0x3F));
        p[3] = (uint8_t) (0x80 | (c & 0x3F));
        return 4;
}

static void check_as_sd_bus(sd_bus_message *m, const char *text, size_t size) {
        bool theirs = sd_bus_message_append_basic(m, 's', text) >= 0;

        if (parameter_is_bus_string(text, size, NULL) != theirs) {
                for (size_t i = 0; i < size; i++)
                        printf("# byte 0x%02x\n", (uint8_t) text[i]);
                CHECK(!"sd-bus thinks otherwise");
        }
}

/* Every character that four bytes can write, valid or not, against sd-bus itself. */
static void test_characters_as_sd_bus(void) {
        sd_bus_message *m = NULL;

        for (uint32_t c = 1; c < 0x200000; c++) {
                char text[8] = "";
                size_t size = encode(c, (uint8_t *) text);

                if (c % 4096 == 1) { /* one message would grow without end */
                        sd_bus_message_unref(m);
                        m = new_message();
                }
                check_as_sd_bus(m, text, size);
        }
        sd_bus_message_unref(m);
}

/* Every sequence of two bytes, with and without a third behind it: overlong, cut off, stray. */
static void test_sequences_as_sd_bus(void) {
        for (unsigned a = 1; a < 256; a++) {
                sd_bus_message *m = new_message();

                for (unsigned b = 1; b < 256; b++) {
                        const char two[] = { (char) a, (char) b, 0 }, three[] = { (char) a, (char) b, 'x', 0 },
                                   more[] = { (char) a, (char) b, (char) 0x80, 0 };

                        check_as_sd_bus(m, two, 2);
                        check_as_sd_bus(m, three, 3);
                        check_as_sd_bus(m, more, 3);
                }
                sd_bus_message_unref(m);
        }
}

static void test_bad_offset(void) {
        size_t bad = 99;

        CHECK(!parameter_is_bus_string("ab\xef\xbf\xbe", 5, &bad));
        CHECK_INT(bad, 2);
        CHECK(!parameter_is_bus_string("ab\0c", 4, &bad));
        CHECK_INT(bad, 2);
        CHECK(!parameter_is_bus_string("a\xc3", 2, &bad));
        CHECK_INT(bad, 1);
        CHECK(parameter_is_bus_string("", 0, &bad));
}

static void check_blob(sd_bus_message *m, size_t expected) {
        const void *bytes;
        size_t size;

        CHECK(sd_bus_message_enter_container(m, 'v', "ay") > 0);
        CHECK(sd_bus_message_read_array(m, 'y', &bytes, &size) >= 0);
        CHECK_INT(size, expected);
        CHECK(sd_bus_message_exit_container(m) > 0);
}

static void test_values(void) {
        const Parameter parameters[] = {
                { .type = SQLIPC_INTEGER, .integer = INT64_MIN },
                { .type = SQLIPC_REAL, .real = -0.5 },
                { .name = "n", .type = SQLIPC_TEXT, .bytes = "wörd!", .size = 5 }, /* no NUL behind it */
                { .type = SQLIPC_TEXT, .bytes = "", .size = 0 },
                { .type = SQLIPC_TEXT, .bytes = "a\0b", .size = 3 },
                { .type = SQLIPC_BLOB, .bytes = "\1\2", .size = 2 },
                { .type = SQLIPC_BLOB, .bytes = NULL, .size = 0 },
                { .type = SQLIPC_NULL },
        };
        sd_bus_message *m = new_message();
        const char *key, *text, *empty;
        const void *bytes;
        int64_t integer;
        double real;
        size_t size;

        CHECK_INT(parameter_append_all(m, parameters, N_ELEMENTS(parameters), 8), 0);
        CHECK(sd_bus_message_seal(m, 1, 0) >= 0);
        CHECK_STRING(sd_bus_message_get_signature(m, true), "ava{sv}");

        CHECK(sd_bus_message_enter_container(m, 'a', "v") > 0);
        CHECK(sd_bus_message_read(m, "v", "x", &integer) > 0);
        CHECK(integer == INT64_MIN);
        CHECK(sd_bus_message_read(m, "v", "d", &real) > 0);
        CHECK(real == -0.5);
        CHECK(sd_bus_message_read(m, "v", "s", &empty) > 0);
        CHECK_STRING(empty, "");

        CHECK(sd_bus_message_enter_container(m, 'v', "a{sv}") > 0);
        CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
        CHECK(sd_bus_message_enter_container(m, 'e', "sv") > 0);
        CHECK(sd_bus_message_read(m, "s", &key) > 0);
        CHECK_STRING(key, "text");
        CHECK(sd_bus_message_enter_container(m, 'v', "ay") > 0);
        CHECK(sd_bus_message_read_array(m, 'y', &bytes, &size) > 0);
        CHECK(size == 3 && memcmp(bytes, "a\0b", 3) == 0);
        for (int i = 0; i < 4; i++)
                CHECK(sd_bus_message_exit_container(m) > 0);

        check_blob(m, 2);
        check_blob(m, 0);
        CHECK(sd_bus_message_read(m, "v", "a{sv}", 0) > 0); /* NULL */
        CHECK(sd_bus_message_read(m, "v", "a{sv}", 0) > 0); /* what was never bound */
        CHECK_INT(sd_bus_message_at_end(m, false), 1);
        CHECK(sd_bus_message_exit_container(m) > 0);

        CHECK(sd_bus_message_read(m, "a{sv}", 1, &key, "s", &text) > 0);
        CHECK_STRING(key, "n");
        CHECK_STRING(text, "wörd");
        sd_bus_message_unref(m);
}

static void test_limits(void) {
        char *bytes = calloc(1, PARAMETERS_SIZE_MAX + 1);
        Parameter *many = calloc(N_PARAMETERS_MAX + 1, sizeof *many);
        Parameter two[] = {
                { .type = SQLIPC_BLOB, .bytes = bytes, .size = PARAMETERS_SIZE_MAX },
                { .type = SQLIPC_BLOB, .bytes = bytes, .size = 0 },
        };
        sd_bus_message *m = new_message();

        CHECK(bytes && many);
        CHECK_INT(parameter_append_all(m, two, 2, 0), 0);
        two[1].size = 1;
        CHECK_INT(parameter_append_all(m, two, 2, 0), -E2BIG);
        two[1].size = SIZE_MAX;
        CHECK_INT(parameter_append_all(m, two, 2, 0), -E2BIG);
        for (size_t i = 0; i <= N_PARAMETERS_MAX; i++)
                many[i].type = SQLIPC_NULL;
        CHECK_INT(parameter_append_all(m, many, N_PARAMETERS_MAX, 0), 0);
        CHECK_INT(parameter_append_all(m, many, N_PARAMETERS_MAX + 1, 0), -EOVERFLOW);
        sd_bus_message_unref(m);
        free(many);
        free(bytes);
}

static void test_refused(void) {
        const Parameter no_type = { .type = (sqlipc_type) 0 }, no_bytes = { .type = SQLIPC_TEXT, .size = 1 },
                               bad_name = { .name = "\xff", .type = SQLIPC_NULL };
        sd_bus_message *m = new_message();

        CHECK_INT(parameter_append_all(m, &no_bytes, 1, 0), -EINVAL);
        CHECK_INT(parameter_append_all(m, &bad_name, 1, 0), -EINVAL);
        CHECK_INT(parameter_append_all(m, &no_type, 1, 0), -EINVAL);
        sd_bus_message_unref(m);
}

static unsigned look_up(void *userdata, const char *name) {
        (void) userdata;
        return strcmp(name, ":two") == 0 ? 2 : 0;
}

static void test_bindings(void) {
        const Parameter one = { .type = SQLIPC_INTEGER, .integer = 1 },
                               text = { .type = SQLIPC_TEXT, .bytes = "abc", .size = 3 },
                               named = { .name = ":two", .type = SQLIPC_BLOB, .bytes = "xyz", .size = 3 },
                               unknown = { .name = ":what", .type = SQLIPC_NULL };
        Bindings *b = NULL, *shared;
        const char *name = NULL;

        CHECK_INT(bindings_set(&b, 3, &one), 0);
        CHECK_INT(b->n_values, 3);
        CHECK_INT(b->values[0].type, SQLIPC_NULL);
        CHECK_INT(bindings_set(&b, 3, &text), 0);
        CHECK_INT(bindings_set(&b, 0, &named), 0);
        CHECK_INT(bindings_set(&b, 0, &named), 0);
        CHECK_INT(b->n_named, 1);

        shared = bindings_ref(b);
        CHECK_INT(bindings_set(&b, 3, &one), 0); /* into a copy */
        CHECK(b != shared);
        CHECK_INT(shared->values[2].type, SQLIPC_TEXT);
        CHECK(memcmp(shared->values[2].bytes, "abc", 3) == 0);
        CHECK_INT(b->values[2].type, SQLIPC_INTEGER);
        CHECK_INT(b->n_named, 1);

        CHECK_INT(bindings_resolve(shared, look_up, NULL, &name), 0);
        CHECK_INT(shared->n_named, 0);
        CHECK_INT(shared->values[1].type, SQLIPC_BLOB);
        CHECK(!shared->values[1].name);
        CHECK_INT(bindings_set(&b, 0, &unknown), 0);
        CHECK_INT(bindings_resolve(b, look_up, NULL, &name), -ENXIO);
        CHECK_STRING(name, ":what");
        CHECK_INT(bindings_resolve(NULL, look_up, NULL, &name), 0);
        CHECK(!bindings_unref(shared) && !bindings_unref(b) && !bindings_unref(NULL));
}

int main(void) {
        static const Test tests[] = {
                TEST(test_characters_as_sd_bus),
                TEST(test_sequences_as_sd_bus),
                TEST(test_bad_offset),
                TEST(test_values),
                TEST(test_limits),
                TEST(test_refused),
                TEST(test_bindings),
        };

        /* Strings are checked as they are appended; a bus that never connects is enough for that. */
        CHECK(sd_bus_new(&bus) >= 0);
        CHECK(sd_bus_set_address(bus, "unix:path=/nonexistent/bus") >= 0);
        (void) sd_bus_start(bus);
        return test_main(tests, N_ELEMENTS(tests));
}
