/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/sql/parameter: converts NAME=VALUE to the value that a statement binds. */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "tools/cli/sql/parameter.h"

#define _cleanup_list_ __attribute__((cleanup(parameter_list_freep)))

static const sqlipc_parameter *only(ParameterList *list, const char *argument) {
        g_autofree char *message = NULL;
        const sqlipc_parameter *parameters;
        size_t n;

        g_assert_cmpint(parameter_list_add(list, argument, &message), ==, 0);
        parameters = parameter_list_get(list, &n);
        g_assert_cmpuint(n, ==, 1);
        return parameters;
}

static void check_integer(const char *value, int64_t expected) {
        _cleanup_list_ ParameterList *list = parameter_list_new();
        g_autofree char *argument = g_strconcat("a=", value, NULL);
        const sqlipc_parameter *parameter = only(list, argument);

        g_assert_cmpint(parameter->type, ==, SQLIPC_INTEGER);
        g_assert_cmpint(parameter->integer, ==, expected);
}

static void check_real(const char *value, double expected) {
        _cleanup_list_ ParameterList *list = parameter_list_new();
        g_autofree char *argument = g_strconcat("a=", value, NULL);
        const sqlipc_parameter *parameter = only(list, argument);

        g_assert_cmpint(parameter->type, ==, SQLIPC_REAL);
        g_assert_true(parameter->real == expected);
}

static void check_bytes(const char *value, sqlipc_type type, const void *expected, size_t size) {
        _cleanup_list_ ParameterList *list = parameter_list_new();
        g_autofree char *argument = g_strconcat("a=", value, NULL);
        const sqlipc_parameter *parameter = only(list, argument);

        g_assert_cmpint(parameter->type, ==, type);
        g_assert_cmpmem(parameter->bytes, parameter->size, expected, size);
}

static void check_text(const char *value, const char *expected) {
        check_bytes(value, SQLIPC_TEXT, expected, strlen(expected));
}

static void test_values(void) {
        check_integer("12", 12);
        check_integer("-7", -7);
        check_integer("+7", 7);
        check_integer("9223372036854775807", INT64_MAX);
        check_integer("-9223372036854775808", INT64_MIN);
        check_real("9223372036854775808", 9223372036854775808.0);
        check_real("1.5", 1.5);
        check_real(".5", 0.5);
        check_real("5.", 5.0);
        check_real("-1e-3", -1e-3);
        check_bytes("x'00fF'", SQLIPC_BLOB, "\x00\xff", 2);
        check_bytes("X''", SQLIPC_BLOB, "", 0);
        check_bytes("null", SQLIPC_NULL, NULL, 0);
        check_bytes("NULL", SQLIPC_NULL, NULL, 0);
        check_text("", "");
        check_text("''", "");
        check_text("'12'", "12");
        check_text("'null'", "null");
        check_text("'it''s'", "it's");
        check_text("it's", "it's");
        check_text("1e", "1e");
        check_text("1 ", "1 ");
        check_text("0x10", "0x10");
        check_text("inf", "inf");
        check_text("nan", "nan");
        check_text("-", "-");
        check_text(".", ".");
        check_text("a=b", "a=b");
        check_text("'", "'");
        check_text("x'", "x'");
}

static void refuse(ParameterList *list, const char *argument) {
        g_autofree char *message = NULL;

        g_assert_cmpint(parameter_list_add(list, argument, &message), ==, -EINVAL);
        g_assert_nonnull(message);
}

static void test_refused(void) {
        _cleanup_list_ ParameterList *list = parameter_list_new();
        size_t n;

        refuse(list, "");
        refuse(list, "name");
        refuse(list, "=1");
        refuse(list, "0=1");
        refuse(list, "32767=1");
        refuse(list, "a=x'0'");
        refuse(list, "a=x'0g'");
        refuse(list, "a='it's'");
        (void) parameter_list_get(list, &n);
        g_assert_cmpuint(n, ==, 0);
        (void) only(list, "2=1");
        refuse(list, "2=1");
        refuse(list, "?2=1");
        refuse(list, "02=1");
}

/* By position, and then as they were given. */
static void test_positions(void) {
        static const char *const arguments[] = { ":b=1", "5=5", "2=2", "a=3", "1=1" };
        static const char *const names[] = { "?1", "?2", "?5", ":b", "a" };
        _cleanup_list_ ParameterList *list = parameter_list_new();
        const sqlipc_parameter *parameters;
        size_t n;

        for (size_t i = 0; i < G_N_ELEMENTS(arguments); i++) {
                g_autofree char *message = NULL;

                g_assert_cmpint(parameter_list_add(list, arguments[i], &message), ==, 0);
        }
        parameters = parameter_list_get(list, &n);
        g_assert_cmpuint(n, ==, G_N_ELEMENTS(names));
        for (size_t i = 0; i < n; i++)
                g_assert_cmpstr(parameters[i].name, ==, names[i]);
        g_assert_cmpint(parameters[0].integer, ==, 1);
        g_assert_cmpint(parameters[1].integer, ==, 2);
        g_assert_cmpint(parameters[4].integer, ==, 3);
}

static void set(ParameterList *list, const char *name, const char *value) {
        g_autofree char *message = NULL;

        g_assert_cmpint(parameter_list_set(list, name, value, &message), ==, 0);
}

static void test_set(void) {
        _cleanup_list_ ParameterList *list = parameter_list_new(), *copy = NULL;
        const sqlipc_parameter *parameters;
        g_autofree char *message = NULL;
        size_t n;

        set(list, "a", "1");
        set(list, "a", "2");
        set(list, ":a", "3");
        set(list, "3", "'x'");
        g_assert_cmpint(parameter_list_set(list, "a", "x'0'", &message), ==, -EINVAL);
        parameters = parameter_list_get(list, &n);
        g_assert_cmpuint(n, ==, 3);
        g_assert_cmpint(parameters[1].integer, ==, 2);
        g_assert_cmpint(parameters[2].integer, ==, 3);

        copy = parameter_list_copy(list);
        g_assert_false(parameter_list_unset(list, "b"));
        g_assert_true(parameter_list_unset(list, "?3"));
        g_assert_true(parameter_list_unset(list, "a"));
        g_assert_false(parameter_list_unset(list, ":a")); /* which "a" stands for, too */
        (void) parameter_list_get(list, &n);
        g_assert_cmpuint(n, ==, 0);
        set(list, "@a", "5");
        parameter_list_clear(list);
        (void) parameter_list_get(list, &n);
        g_assert_cmpuint(n, ==, 0);

        parameters = parameter_list_get(copy, &n);
        g_assert_cmpuint(n, ==, 3);
        g_assert_cmpmem(parameters[0].bytes, parameters[0].size, "x", 1);
        set(copy, "a", "6"); /* or ":a", which is looked for first, would hide it */
        parameters = parameter_list_for(copy, SQL_DIALECT_SQLITE, "SELECT :a", &n);
        g_assert_cmpuint(n, ==, 1);
        g_assert_cmpint(parameters[0].integer, ==, 6);
}

/* `expected`: the values by position, "-" for NULL. */
static void check_for_dialect(ParameterList *list, SqlDialect dialect, const char *sql, const char *expected) {
        g_autoptr(GString) found = g_string_new(NULL);
        size_t n;
        const sqlipc_parameter *parameters = parameter_list_for(list, dialect, sql, &n);

        for (size_t i = 0; i < n; i++) {
                g_assert_null(parameters[i].name);
                if (parameters[i].type == SQLIPC_NULL)
                        g_string_append(found, "- ");
                else
                        g_string_append_printf(found, "%d ", (int) parameters[i].integer);
        }
        g_assert_cmpstr(g_strchomp(found->str), ==, expected);
}

static void check_for(ParameterList *list, const char *sql, const char *expected) {
        check_for_dialect(list, SQL_DIALECT_SQLITE, sql, expected);
}

/* The positions that SQLite gives them. */
static void test_for_statement(void) {
        _cleanup_list_ ParameterList *list = parameter_list_new();

        set(list, "1", "1");
        set(list, "2", "2");
        set(list, "4", "4");
        set(list, "name", "10");
        set(list, "$name", "11");
        set(list, ":other", "12");
        check_for(list, "SELECT 1", "");
        check_for(list, "SELECT ?", "1");
        check_for(list, "SELECT ?, ?", "1 2");
        check_for(list, "SELECT ?2", "- 2");
        check_for(list, "SELECT ?4, ?, ?1", "1 - - 4 -");
        check_for(list, "SELECT :name, @name, $name, :name", "10 10 11");
        check_for(list, "SELECT :other, @other, ?", "12 2 -");
        check_for(list, "SELECT :unset, :also", "1 2"); /* by position, which has no other value */
        check_for(list, "SELECT ':name', \":name\" -- :name\n /* ? */, :name", "10");
        check_for(list, "SELECT ?99999999999999999999, ?0, :name", "10"); /* SQLite refuses the others */
}

static void test_for_postgresql(void) {
        _cleanup_list_ ParameterList *list = parameter_list_new();

        set(list, "1", "1");
        set(list, "2", "2");
        set(list, "name", "10");
        check_for_dialect(list, SQL_DIALECT_POSTGRESQL, "SELECT 1::text", "");
        check_for_dialect(list, SQL_DIALECT_POSTGRESQL, "SELECT $2, $1, $name", "1 2 10");
        check_for_dialect(list, SQL_DIALECT_POSTGRESQL, "SELECT $$ ? $$, ?::int, a ?? 'b', E'\\' ?', /* /* */ ? */ :name",
                          "1 10");
}

static void test_unused(void) {
        _cleanup_list_ ParameterList *list = parameter_list_new(), *copy = NULL;
        g_autofree char *message = NULL;
        size_t n;

        g_assert_null(parameter_list_unused(list));
        g_assert_cmpint(parameter_list_add(list, "one=1", &message), ==, 0);
        g_assert_cmpint(parameter_list_add(list, "two=2", &message), ==, 0);
        set(list, "three", "3");
        (void) parameter_list_for(list, SQL_DIALECT_SQLITE, "SELECT :one", &n);
        g_assert_cmpstr(parameter_list_unused(list), ==, "two");
        copy = parameter_list_copy(list);
        (void) parameter_list_for(copy, SQL_DIALECT_SQLITE, "SELECT @two", &n);
        g_assert_cmpstr(parameter_list_unused(list), ==, "two");
        parameter_list_note_use(list, copy);
        g_assert_null(parameter_list_unused(list));
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/parameter/values", test_values);
        g_test_add_func("/parameter/refused", test_refused);
        g_test_add_func("/parameter/positions", test_positions);
        g_test_add_func("/parameter/set", test_set);
        g_test_add_func("/parameter/for-statement", test_for_statement);
        g_test_add_func("/parameter/for-postgresql", test_for_postgresql);
        g_test_add_func("/parameter/unused", test_unused);
        return g_test_run();
}
