/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random values of PostgreSQL's types. The engine reads them in the binary and in the text form. Both must be the text that
 * another client gets from the server, changed by the rules of sqlipc-postgresql(7). Then the values are sent back as
 * parameters of a statement and in a load, and the server must find that they are equal. GLib prints the second seed;
 * "--seed" repeats it.
 */
#include <glib.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/postgresql/postgresql-engine.h"
#include "tests/rigs/engine-rows.h"
#include "tests/rigs/postgres-rig.h"

#define FIXED_SEED 19
#define N_VALUES 100 /* of each type */

static PostgresRig rig;
static GRand *dice;

static const Engine *const engine = &postgresql_engine;
static EnginePool *pool;
static EngineConnection *connection;
static SqlError error;

/* ---- dice ---- */

static int64_t below(int64_t n) {
        uint64_t word = (uint64_t) g_rand_int(dice) << 32 | g_rand_int(dice);

        return (int64_t) (word % (uint64_t) n);
}

static bool one_in(int n) {
        return below(n) == 0;
}

/* Small numbers are as frequent as large ones. */
static int64_t number(unsigned bits) {
        uint64_t word = (uint64_t) g_rand_int(dice) << 32 | g_rand_int(dice);
        int64_t half = (int64_t) (word >> (64 - (unsigned) below(bits) - 1)) - one_in(2);

        return one_in(2) ? half : -half - 1;
}

/* Not more than `lowest` to `highest`. */
static int64_t between(int64_t lowest, int64_t highest) {
        int64_t n = number(63);

        return n >= lowest && n <= highest ? n : one_in(2) ? lowest + below(1000) : highest - below(1000);
}

/* ---- expressions of SQL that are values ---- */

static void add_bool(GString *sql) {
        g_string_append(sql, one_in(2) ? "true" : "false");
}

static void add_quoted(GString *sql, const char *text) {
        g_string_append_c(sql, '\'');
        for (; *text; text++) {
                if (*text == '\'')
                        g_string_append_c(sql, '\'');
                g_string_append_c(sql, *text);
        }
        g_string_append_c(sql, '\'');
}

static void add_int2(GString *sql) {
        g_string_append_printf(sql, "'%" PRId64 "'::int2", number(15));
}

static void add_int4(GString *sql) {
        g_string_append_printf(sql, "'%" PRId64 "'::int4", number(31));
}

static void add_int8(GString *sql) {
        g_string_append_printf(sql, "'%" PRId64 "'::int8", number(63));
}

static void add_unsigned(GString *sql) {
        g_string_append_printf(sql, "'%u'", g_rand_int(dice));
}

/* Each pattern of bits is as frequent as any other. */
static void add_float4(GString *sql) {
        uint32_t word = g_rand_int(dice);
        float v;

        memcpy(&v, &word, sizeof v);
        g_string_append_printf(sql, "'%.9g'::float4", (double) v);
}

static void add_float8(GString *sql) {
        uint64_t word = (uint64_t) number(63);
        double v;

        memcpy(&v, &word, sizeof v);
        g_string_append_printf(sql, "'%.17g'::float8", v);
}

static void add_digits(GString *sql, int64_t n) {
        while (n-- > 0)
                g_string_append_c(sql, (char) ('0' + (one_in(3) ? 0 : below(10))));
}

static void add_numeric(GString *sql) {
        g_string_append(sql, one_in(2) ? "'-" : "'");
        add_digits(sql, 1 + below(1 + below(40)));
        if (one_in(2)) {
                g_string_append_c(sql, '.');
                add_digits(sql, below(1 + below(40)));
        }
        if (one_in(3))
                g_string_append_printf(sql, "e%d", (int) below(60) - 30);
        g_string_append(sql, "'::numeric");
}

/* Fits each declared numeric of the table below. */
static void add_small_numeric(GString *sql) {
        g_string_append_printf(sql, "(%" PRId64 "::numeric / 1000)", number(30));
}

/* Any characters but NUL. */
static char *random_text(int64_t n) {
        static const gunichar limits[] = { 0x20, 0x80, 0x800, 0xd800, 0x110000 };
        GString *text = g_string_new(NULL);

        while (n-- > 0) {
                gunichar c = 1 + (gunichar) below(limits[below(G_N_ELEMENTS(limits))] - 1);

                g_string_append_unichar(text, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
        }
        return g_string_free(text, FALSE);
}

static void add_text(GString *sql) {
        g_autofree char *text = random_text(below(12));

        add_quoted(sql, text);
}

static void add_letter(GString *sql) {
        g_string_append_printf(sql, "'%c'", (char) ('a' + below(26)));
}

static void add_hex(GString *sql, int64_t n) {
        while (n-- > 0)
                g_string_append_printf(sql, "%02x", (unsigned) below(256));
}

static void add_bytea(GString *sql) {
        g_string_append(sql, "'\\x");
        add_hex(sql, below(20));
        g_string_append(sql, "'::bytea");
}

static void add_date(GString *sql) {
        g_string_append_printf(sql, "('2000-01-01'::date + '%" PRId64 "'::int)", between(-2451000, 2145031000));
}

static void add_time(GString *sql) {
        g_string_append_printf(sql, "('00:00'::time + '%" PRId64 " microseconds'::interval)",
                               between(0, INT64_C(86399999999)));
}

static void add_timetz(GString *sql) {
        g_string_append_printf(sql, "'%02d:%02d:%02d.%06d%+03d:%02d'", (int) below(24), (int) below(60), (int) below(60),
                               (int) below(1000000), (int) below(31) - 15, (int) below(60));
}

static void add_moment(GString *sql, const char *type) {
        g_string_append_printf(sql, "('2000-01-01'::%s + '%" PRId64 " microseconds'::interval)", type,
                               between(INT64_C(-211813000000000000), INT64_C(9223371331000000000)));
}

static void add_timestamp(GString *sql) {
        add_moment(sql, "timestamp");
}

static void add_timestamptz(GString *sql) {
        add_moment(sql, "timestamptz");
}

static void add_interval(GString *sql) {
        g_string_append_printf(sql, "'%" PRId64 " months %" PRId64 " days %" PRId64 " microseconds'::interval", number(30),
                               number(31), number(62));
}

static void add_uuid(GString *sql) {
        g_string_append_c(sql, '\'');
        add_hex(sql, 16);
        g_string_append_c(sql, '\'');
}

static void add_json(GString *sql) {
        g_autofree char *text = random_text(below(8));

        g_string_append(sql, "json_build_object(");
        add_quoted(sql, text);
        g_string_append(sql, ", ");
        add_numeric(sql);
        g_string_append(sql, ", 'list', ARRAY[NULL, ");
        add_quoted(sql, text);
        g_string_append(sql, "])");
}

static void add_jsonb(GString *sql) {
        add_json(sql);
        g_string_append(sql, "::jsonb");
}

static void add_bits(GString *sql, int64_t n) {
        g_string_append(sql, "B'");
        while (n-- > 0)
                g_string_append_c(sql, one_in(2) ? '0' : '1');
        g_string_append_c(sql, '\'');
}

static void add_bit(GString *sql) {
        add_bits(sql, 11);
}

static void add_varbit(GString *sql) {
        add_bits(sql, below(30));
}

static void add_inet(GString *sql) {
        if (one_in(2))
                g_string_append_printf(sql, "'%d.%d.%d.%d/%d'::inet", (int) below(256), (int) below(256), (int) below(256),
                                       (int) below(256), (int) below(33));
        else
                g_string_append_printf(sql, "'%x:%x::%x/%d'::inet", (unsigned) below(65536), (unsigned) below(65536),
                                       (unsigned) below(65536), (int) below(129));
}

static void add_cidr(GString *sql) {
        add_inet(sql);
        g_string_append(sql, "::cidr");
}

static void add_macaddr(GString *sql) {
        g_string_append_c(sql, '\'');
        add_hex(sql, 6);
        g_string_append_c(sql, '\'');
}

static void add_macaddr8(GString *sql) {
        g_string_append_c(sql, '\'');
        add_hex(sql, 8);
        g_string_append_c(sql, '\'');
}

static void add_money(GString *sql) {
        g_string_append_printf(sql, "('%" PRId64 "'::numeric / 100)::money", number(62));
}

static void add_xml(GString *sql) {
        g_string_append(sql, "xmlelement(name \"a b\", xmlattributes(");
        add_numeric(sql);
        g_string_append(sql, " AS n), '<>&\"''\xc3\xa4')");
}

static void add_tsvector(GString *sql) {
        g_string_append(sql, "to_tsvector('simple', 'it''s ' || ");
        add_numeric(sql);
        g_string_append(sql, " || ' \\ \xc3\xa4')");
}

static void add_point(GString *sql) {
        g_string_append(sql, "point(");
        add_float8(sql);
        g_string_append_c(sql, ',');
        add_float8(sql);
        g_string_append_c(sql, ')');
}

static void add_box(GString *sql) {
        g_string_append(sql, "box(");
        add_point(sql);
        g_string_append_c(sql, ',');
        add_point(sql);
        g_string_append_c(sql, ')');
}

static void add_circle(GString *sql) {
        g_string_append(sql, "circle(");
        add_point(sql);
        g_string_append(sql, ", abs(");
        add_float8(sql);
        g_string_append(sql, "))");
}

static void add_path(GString *sql) {
        g_string_append_printf(sql, "'$.*[%d] ? (@ > %d.50)'", (int) below(9), (int) below(99));
}

static void add_lsn(GString *sql) {
        g_string_append_printf(sql, "'%X/%X'", g_rand_int(dice), g_rand_int(dice));
}

static void add_mood(GString *sql) {
        static const char *const moods[] = { "plain", "a,b", "\"quoted\"", "\xc3\xbc", " ", "NULL" };

        add_quoted(sql, moods[below(G_N_ELEMENTS(moods))]);
}

static void add_pair(GString *sql) {
        g_string_append(sql, "ROW(");
        add_numeric(sql);
        g_string_append_c(sql, ',');
        add_text(sql);
        g_string_append_c(sql, ',');
        add_timestamptz(sql);
        g_string_append(sql, ", NULL)");
}

/* ---- arrays and ranges of them ---- */

typedef void (*AddValue)(GString *sql);

static void add_list(GString *sql, AddValue add, int64_t n) {
        g_string_append_c(sql, '[');
        for (int64_t i = 0; i < n; i++) {
                if (i > 0)
                        g_string_append_c(sql, ',');
                if (one_in(5))
                        g_string_append(sql, "NULL");
                else
                        add(sql);
        }
        g_string_append_c(sql, ']');
}

static void add_array(GString *sql, AddValue add) {
        int64_t n = 1 + below(4);

        g_string_append(sql, "ARRAY");
        if (one_in(2))
                add_list(sql, add, below(5));
        else {
                g_string_append_c(sql, '[');
                add_list(sql, add, n);
                g_string_append_c(sql, ',');
                add_list(sql, add, n);
                g_string_append_c(sql, ']');
        }
}

static void add_range(GString *sql, AddValue add, const char *type) {
        static const char *const bounds[] = { "[]", "[)", "(]", "()" };
        GString *one = g_string_new(NULL), *two = g_string_new(NULL);

        add(one);
        add(two);
        if (one_in(6))
                g_string_append_printf(sql, "%s(NULL, %s)", type, two->str);
        else
                g_string_append_printf(sql, "%s(least(%s, %s), greatest(%s, %s), '%s')", type, one->str, two->str, one->str,
                                       two->str, bounds[below(G_N_ELEMENTS(bounds))]);
        g_string_free(one, TRUE);
        g_string_free(two, TRUE);
}

/* ---- the types ---- */

typedef struct Type {
        const char *name;
        AddValue add;
        const char *range;          /* NULL: values, else ranges of values, by this function */
        bool array;                 /* arrays of values */
        const char *const *special; /* expressions besides, up to NULL; NULL: none */
} Type;

#define SPECIAL(...) (const char *const[]) { __VA_ARGS__, NULL }

static const Type types[] = {
        { "boolean", add_bool },
        { "smallint", add_int2, .special = SPECIAL("32767", "-32768") },
        { "integer", add_int4, .special = SPECIAL("2147483647", "-2147483648") },
        { "bigint", add_int8, .special = SPECIAL("9223372036854775807", "-9223372036854775808") },
        { "oid", add_unsigned, .special = SPECIAL("'4294967295'", "'0'") },
        { "real", add_float4,
          .special = SPECIAL("'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "'1e-45'", "'3.4028235e38'", "0.1") },
        { "double precision", add_float8,
          .special = SPECIAL("'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "'5e-324'", "'1.7976931348623157e308'", "0.1",
                             "'9007199254740993'") },
        { "numeric", add_numeric,
          .special = SPECIAL("'NaN'", "'Infinity'", "'-Infinity'", "0", "0.0", "-0.000", "9223372036854775807",
                             "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "10000", "1e18", "1e19",
                             "'1e-1000'", "'1e1000'", "'-9.99e-16000'", "'1e20000'", "0.0001", "10000.00010000",
                             "9223372036854775807.0") },
        { "numeric(18, 5)", add_small_numeric, .special = SPECIAL("0") },
        { "numeric(30, 0)", add_small_numeric },
        { "numeric(30, 20)", add_small_numeric },
        { "text", add_text, .special = SPECIAL("''", "E'\\r\\n\\t'", "'NULL'") },
        { "varchar(20)", add_text, .special = SPECIAL("' trailing  '") },
        { "char(15)", add_text, .special = SPECIAL("' trailing  '", "''") },
        { "name", add_text },
        { "\"char\"", add_letter },
        { "bytea", add_bytea, .special = SPECIAL("''", "'\\x00'", "'\\x5c78'") },
        { "date", add_date,
          .special = SPECIAL("'infinity'", "'-infinity'", "'4713-11-24 BC'", "'5874897-12-31'", "'0001-12-31 BC'",
                             "'0001-01-01'",
                             "'0005-02-29 BC'", "'9999-12-31'", "'10000-01-01'", "'2000-02-29'", "'1900-03-01'") },
        { "time", add_time, .special = SPECIAL("'24:00:00'", "'00:00:00.000001'", "'23:59:59.999999'") },
        { "time(3)", add_time },
        { "timetz", add_timetz, .special = SPECIAL("'24:00:00+00'", "'12:00:00-15:59:59'") },
        { "timestamp", add_timestamp,
          .special = SPECIAL("'infinity'", "'-infinity'", "'4713-11-24 00:00:00 BC'", "'294276-12-31 23:59:59.999999'",
                             "'1999-12-31 23:59:59.999999'", "'0001-12-31 23:59:59.9 BC'") },
        { "timestamp(0)", add_timestamp },
        { "timestamptz", add_timestamptz,
          .special = SPECIAL("'infinity'", "'-infinity'", "'4713-11-24 00:00:00 BC'", "'294276-12-31 23:59:59.999999'",
                             "'1999-12-31 23:59:59.999999'", "'0001-12-31 23:59:59.9 BC'", "'2024-02-29 12:00:00-07:30'") },
        { "interval", add_interval, .special = SPECIAL("'0'", "'-1 year 2 months -3 days 00:00:00.000001'") },
        { "uuid", add_uuid },
        { "json", add_json, .special = SPECIAL("'{\"a\" :  [1.50, 1e400, \"\\u0041\"], \"a\": null}'", "'null'") },
        { "jsonb", add_jsonb, .special = SPECIAL("'{\"b\": 1.50, \"a\": [true, 1e400]}'", "'null'", "'\"\"'") },
        { "mood", add_mood },
        { "some_int", add_int4 },
        { "some_text", add_text },
        { "some_numeric", add_numeric, .special = SPECIAL("'NaN'", "5", "5.0") },
        { "some_bytea", add_bytea },
        { "some_timestamptz", add_timestamptz },
        { "some_bool", add_bool },
        { "pair", add_pair },
        { "inet", add_inet, .special = SPECIAL("'10.0.0.1'", "'::1'") },
        { "cidr", add_cidr },
        { "macaddr", add_macaddr },
        { "macaddr8", add_macaddr8 },
        { "bit(11)", add_bit },
        { "varbit", add_varbit, .special = SPECIAL("B''") },
        { "money", add_money, .special = SPECIAL("'-92233720368547758.08'") },
        { "xml", add_xml, .special = SPECIAL("'<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a/>'", "'text only'") },
        { "tsvector", add_tsvector, .special = SPECIAL("''") },
        { "tsquery", add_letter, .special = SPECIAL("'a & !''b c'' <2> d:*'") },
        { "jsonpath", add_path, .special = SPECIAL("'$.a[*] ? (@ > 1.50)'") },
        { "point", add_point, .special = SPECIAL("'(1.5,-0)'") },
        { "box", add_box },
        { "circle", add_circle, .special = SPECIAL("'<(1,2),3.25>'") },
        { "polygon", add_box },
        { "xid", add_unsigned },
        { "xid8", add_unsigned, .special = SPECIAL("'18446744073709551615'") },
        { "pg_lsn", add_lsn },
        { "regclass", add_unsigned, .special = SPECIAL("'pg_class'", "'information_schema.tables'") },
        { "int4range", add_int4, "int4range", .special = SPECIAL("'empty'", "'(,)'") },
        { "int8range", add_int8, "int8range" },
        { "numrange", add_numeric, "numrange", .special = SPECIAL("'[1.50,2.00]'") },
        { "daterange", add_date, "daterange", .special = SPECIAL("'[infinity,]'") },
        { "tsrange", add_timestamp, "tsrange" },
        { "tstzrange", add_timestamptz, "tstzrange" },
        { "int4multirange", add_int4, "int4multirange(int4range", .special = SPECIAL("'{[1,3),[5,7)}'", "'{}'") },
        { "boolean[]", add_bool, .array = true },
        { "bigint[]", add_int8, .array = true, .special = SPECIAL("'[-2:0]={1,NULL,3}'") },
        { "real[]", add_float4, .array = true },
        { "double precision[]", add_float8, .array = true },
        { "numeric[]", add_numeric, .array = true },
        { "text[]", add_text, .array = true, .special = SPECIAL("'{\"NULL\",NULL,\"\",\"a,b\"}'") },
        { "bytea[]", add_bytea, .array = true },
        { "date[]", add_date, .array = true },
        { "timestamptz[]", add_timestamptz, .array = true },
        { "interval[]", add_interval, .array = true },
        { "uuid[]", add_uuid, .array = true },
        { "jsonb[]", add_jsonb, .array = true },
        { "mood[]", add_mood, .array = true },
        { "pair[]", add_pair, .array = true },
        { "inet[]", add_inet, .array = true },
};

static void add_random(GString *sql, const Type *type) {
        if (one_in(20))
                g_string_append(sql, "NULL");
        else if (type->array)
                add_array(sql, type->add);
        else if (type->range) {
                add_range(sql, type->add, type->range);
                if (strchr(type->range, '('))
                        g_string_append_c(sql, ')');
        } else
                type->add(sql);
}

static void fill_table(const Type *type) {
        g_autofree char *create = g_strdup_printf("DROP TABLE IF EXISTS probe; CREATE TABLE probe(i serial, v %s)",
                                                  type->name);
        g_autoptr(GString) sql = g_string_new(NULL);

        postgres_rig_exec(&rig, create);
        for (unsigned i = 0; type->special && type->special[i]; i++)
                g_string_append_printf(sql, "INSERT INTO probe(v) VALUES((%s)::%s);", type->special[i], type->name);
        for (unsigned i = 0; i < N_VALUES; i++) {
                g_string_append(sql, "INSERT INTO probe(v) VALUES((");
                add_random(sql, type);
                g_string_append_printf(sql, ")::%s);", type->name);
        }
        postgres_rig_exec(&rig, sql->str);
}

/* ---- the rules of sqlipc-postgresql(7) ---- */

static bool is_integer(const char *text) {
        gint64 v;

        return g_ascii_string_to_signed(text, 10, INT64_MIN, INT64_MAX, &v, NULL);
}

/* Returns the value that clients get if the server writes this text. */
static char *rule(Oid type, const char *text) {
        const char *bc = g_str_has_suffix(text, " BC") ? " BC" : "";

        switch (type) {
        case 16:
                return g_strdup(text[0] == 't' ? "i:1" : "i:0");
        case 20:
        case 21:
        case 23:
        case 26:
                return g_strdup_printf("i:%s", text);
        case 700:
        case 701:
                if (strcmp(text, "NaN") == 0)
                        break;
                return g_strdup_printf("r:%.17g", type == 700 ? (double) strtof(text, NULL) : g_ascii_strtod(text, NULL));
        case 1700:
                return g_strdup_printf("%c:%s", is_integer(text) ? 'i' : 't', text);
        case 17:
                return g_strdup_printf("b:%s", text + 2);
        case 1184:
                if (strstr(text, "infinity"))
                        break;
                return g_strdup_printf("t:%.*s:00%s", (int) (strlen(text) - strlen(bc)), text, bc);
        default:
                break;
        }
        return g_strdup_printf("t:%s", text);
}

static GPtrArray *expected(void) {
        GPtrArray *values = g_ptr_array_new_with_free_func(g_free);
        PGresult *result = PQexec(rig.connection, "SELECT v FROM probe ORDER BY i");

        g_assert_cmpint(PQresultStatus(result), ==, PGRES_TUPLES_OK);
        for (int i = 0; i < PQntuples(result); i++)
                g_ptr_array_add(values, PQgetisnull(result, i, 0) ? g_strdup("null")
                                                                  : rule(PQftype(result, 0), PQgetvalue(result, i, 0)));
        PQclear(result);
        return values;
}

/* ---- the engine ---- */

static int on_progress(void *userdata) {
        (void) userdata;
        return 0;
}

/* The error of a statement that fails is kept. */
static char *run(const char *sql, const char *const *values, unsigned n) {
        g_autoptr(GByteArray) row = engine_rows_parameters(values, n);
        JobSpec spec = { .sql = sql, .sql_size = strlen(sql), .n_positional = n, .parameters = row->data,
                         .parameters_size = row->len, .deadline_usec = UINT64_MAX };
        EngineStatement *statement = NULL;
        char *rows = NULL;

        sql_error_done(&error);
        if (!engine->compile(connection, sql, spec.sql_size, false, NULL, &statement, &error))
                return NULL;
        if (engine->bind(statement, &spec, &error))
                rows = engine_rows_read(engine, statement, &error);
        engine->release(statement);
        return rows;
}

/* ---- the comparison ---- */

/* `tail` is after each value. */
static void compare_read(const Type *type, const char *sql, const GPtrArray *values, const char *tail) {
        g_autofree char *got = run(sql, NULL, 0);
        const char *at = got;

        if (!got)
                g_error("%s: %s", type->name, error.message);
        for (unsigned i = 0; i < values->len; i++) {
                g_autofree char *line = g_strdup_printf("%s%s%s", (const char *) values->pdata[i], tail,
                                                        i + 1 < values->len ? "\n" : "");

                if (!g_str_has_prefix(at, line)) {
                        g_test_message("%s, %s, row %u: expected %.300s, got %.300s", type->name, sql, i + 1, line, at);
                        g_test_fail();
                        return;
                }
                at += strlen(line);
        }
        g_assert_cmpstr(at, ==, "");
}

/* The cast gives the parameter its type. format() calls the output function, which no cast does for each type. */
static void compare_sent(const Type *type, const GPtrArray *values) {
        g_autofree char *sql = g_strdup_printf("SELECT format('%%s', v) = format('%%s', $1::%s) FROM probe"
                                               " WHERE i = $2::int",
                                               type->name);

        for (unsigned i = 0; i < values->len; i++) {
                g_autofree char *number_text = g_strdup_printf("i:%u", i + 1);
                g_autofree char *got = run(sql, (const char *const[]) { values->pdata[i], number_text }, 2);

                if (g_strcmp0(got, "i:1") != 0) {
                        g_test_message("%s, row %u: %.300s comes back as another value: %s", type->name, i + 1,
                                       (const char *) values->pdata[i], got ? got : error.message);
                        g_test_fail();
                        return;
                }
        }
}

static void row_for(void *userdata, unsigned i, const char **values) {
        values[0] = ((const GPtrArray *) userdata)->pdata[i];
}

/* By COPY. */
static void compare_loaded(const Type *type, GPtrArray *values) {
        static unsigned n_tables;
        g_autofree char *table = g_strdup_printf("loaded_%u", ++n_tables), *n_different = NULL;
        g_autofree char *create = g_strdup_printf("CREATE TABLE %s(i serial, v %s)", table, type->name);
        g_autofree char *sql = g_strdup_printf("INSERT INTO %s(v) VALUES(?)", table);
        g_autofree char *count = g_strdup_printf("SELECT count(*) FROM probe LEFT JOIN %s AS loaded USING (i)"
                                                 " WHERE format('%%s', probe.v) <> format('%%s', loaded.v)"
                                                 " OR (probe.v IS NULL) <> (loaded.v IS NULL)", table);
        EngineStatement *statement;
        EngineConnection *writer;
        RowSource source;

        postgres_rig_exec(&rig, create);
        engine_rows_feed(&source, values->len, 1, row_for, values);
        if (!engine->begin(pool, true, &writer, &error) ||
            !engine->compile(writer, sql, strlen(sql), false, NULL, &statement, &error))
                g_error("%s: %s", type->name, error.message);
        g_assert_true(engine->takes_rows(statement, &error));
        if (!engine->load(statement, &source, &error)) {
                g_test_message("%s, row %u of a load: %s", type->name, (unsigned) source.n_rows + 1, error.message);
                g_test_fail();
        }
        engine->release(statement);
        page_decoder_done(&source.decoder);
        if (error.error == ERROR_NONE)
                g_assert_true(engine->commit(writer, &error));
        engine->disconnect(pool, writer);
        sql_error_done(&error);
        n_different = postgres_rig_value(&rig, count);
        if (strcmp(n_different, "0") != 0) {
                g_test_message("%s: a load changes %s values", type->name, n_different);
                g_test_fail();
        }
}

static void compare_all(uint32_t seed) {
        dice = g_rand_new_with_seed(seed);
        g_test_message("seed %u", seed);
        for (unsigned i = 0; i < G_N_ELEMENTS(types); i++) {
                g_autoptr(GPtrArray) values = NULL;

                fill_table(&types[i]);
                values = expected();
                compare_read(&types[i], "SELECT v FROM probe ORDER BY i", values, "");
                /* a column that has no binary form here has the server write all of them as text */
                compare_read(&types[i], "SELECT v, '{}'::int[] FROM probe ORDER BY i", values, "|t:{}");
                compare_sent(&types[i], values);
                compare_loaded(&types[i], values);
        }
        g_rand_free(dice);
}

static void test_fixed(void) {
        compare_all(FIXED_SEED);
}

static void test_random(void) {
        compare_all((uint32_t) g_test_rand_int());
}

int main(int argc, char **argv) {
        g_autofree char *text = NULL;
        Setup setup;
        int r;

        g_test_init(&argc, &argv, NULL);
        if (!postgres_rig_init(&rig)) {
                g_print("1..0 # SKIP PostgreSQL is not installed, or has no user\n");
                return 0;
        }
        postgres_rig_exec(&rig, "CREATE TYPE mood AS ENUM ('plain', 'a,b', '\"quoted\"', '\xc3\xbc', ' ', 'NULL');"
                                "CREATE TYPE pair AS (n numeric, t text, at timestamptz, b bytea);"
                                "CREATE DOMAIN some_int AS int; CREATE DOMAIN some_text AS text;"
                                "CREATE DOMAIN some_numeric AS numeric; CREATE DOMAIN some_bytea AS bytea;"
                                "CREATE DOMAIN some_timestamptz AS timestamptz; CREATE DOMAIN some_bool AS bool;");
        postgres_rig_exec(&rig, "SET datestyle = ISO; SET timezone = 'UTC'; SET intervalstyle = postgres;"
                                "SET bytea_output = hex; SET extra_float_digits = 1; SET xmloption = content");
        text = postgres_rig_connection(&rig, "postgres");
        setup = (Setup) {
                .engine = ENGINE_KIND_POSTGRESQL,
                .connection = text,
                .connections_max = 2,
                .writes = true,
                .sql_size_max = 10000,
                .variables_max = 1000,
        };
        error = SQL_ERROR_INIT;
        g_assert_cmpint(engine->init(&setup), ==, 0);
        g_assert_cmpint(engine->start(&setup, on_progress, NULL, &pool), ==, 0);
        g_assert_true(engine->connect(pool, "SELECT 1", 8, NULL, &connection, &error));
        g_test_add_func("/postgresql-types/fixed", test_fixed);
        g_test_add_func("/postgresql-types/random", test_random);
        r = g_test_run();
        engine->disconnect(pool, connection);
        engine->stop(pool);
        sql_error_done(&error);
        postgres_rig_done(&rig);
        return r;
}
