/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SHA3 of what tables hold, see checksum.h. What is hashed of each table is sqlite3's format:
 *
 *      S<size>:<SELECT>            the statement that reads it, with its semicolon
 *      R                           for each row, followed by its values:
 *          N                       NULL
 *          I<8 bytes>              an integer, big-endian
 *          F<8 bytes>              a real, big-endian
 *          T<size>:<bytes>         text, in UTF-8
 *          B<size>:<bytes>         a blob
 */
#include "checksum.h"

#include <endian.h>
#include <errno.h>
#include <gcrypt.h>
#include <string.h>

#include "cursor-values.h"
#include "query.h"
#include "schema.h"

#define SYSTEM_PREFIX "sqlite_"

typedef struct Checksum {
        gcry_md_hd_t hash;
        GArray *values; /* of Value; as many as the statement under way has columns */
} Checksum;

static void append_sized(gcry_md_hd_t hash, char type, const void *bytes, size_t size) {
        char header[32];
        int n = g_snprintf(header, sizeof header, "%c%zu:", type, size);

        gcry_md_write(hash, header, (size_t) n);
        gcry_md_write(hash, bytes, size);
}

static void append_number(gcry_md_hd_t hash, char type, uint64_t number) {
        number = htobe64(number);
        gcry_md_putc(hash, type);
        gcry_md_write(hash, &number, sizeof number);
}

static void append_value(gcry_md_hd_t hash, const Value *value) {
        uint64_t bits;

        switch (value->type) {
        case SQLIPC_INTEGER:
                append_number(hash, 'I', (uint64_t) value->integer);
                break;
        case SQLIPC_REAL:
                memcpy(&bits, &value->real, sizeof bits);
                append_number(hash, 'F', bits);
                break;
        case SQLIPC_TEXT:
                append_sized(hash, 'T', value->bytes, value->size);
                break;
        case SQLIPC_BLOB:
                append_sized(hash, 'B', value->bytes, value->size);
                break;
        default:
                gcry_md_putc(hash, 'N');
        }
}

static int append_row(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        Checksum *checksum = userdata;

        if (!is_row) {
                g_array_set_size(checksum->values, sqlipc_column_count(cursor));
                return 0;
        }
        cursor_values(cursor, (Value *) checksum->values->data, checksum->values->len);
        gcry_md_putc(checksum->hash, 'R');
        for (guint i = 0; i < checksum->values->len; i++)
                append_value(checksum->hash, &g_array_index(checksum->values, Value, i));
        return 0;
}

static int take_name(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        if (is_row)
                g_ptr_array_add(userdata, g_strdup(sqlipc_column_text(cursor, 0, NULL)));
        return 0;
}

/* Tables with pages of their own, as sqlite3 lists them ("_" of its pattern is any letter); of a database that is exposed in
 * part, everything in it. */
static int read_names(Shell *shell, const ChecksumOptions *options, GPtrArray *names) {
        static const char sql[] =
                "SELECT name FROM (SELECT lower(name) AS name FROM sqlite_schema WHERE type = 'table' AND (rootpage > 1"
                " OR EXISTS (SELECT 1 FROM pragma_module_list WHERE name = '" SCHEMA_EXPOSED_MODULE "'))"
                " UNION ALL SELECT 'sqlite_schema') "
                "WHERE (?1 IS NULL OR name LIKE ?1) AND (?2 OR name NOT LIKE 'sqlite_%') ORDER BY 1";
        const char *pattern = options->pattern;
        bool is_system = pattern && g_ascii_strncasecmp(pattern, SYSTEM_PREFIX, strlen(SYSTEM_PREFIX)) == 0;
        const sqlipc_parameter parameters[] = {
                { .struct_size = sizeof *parameters, .type = pattern ? SQLIPC_TEXT : SQLIPC_NULL,
                  .bytes = pattern, .size = pattern ? strlen(pattern) : 0 },
                { .struct_size = sizeof *parameters, .type = SQLIPC_INTEGER, .integer = options->with_schema || is_system },
        };

        return query_run(shell, sql, parameters, G_N_ELEMENTS(parameters), take_name, names, NULL);
}

/* Letter by letter that of sqlite3: it is hashed, too. */
static char *make_select(const char *name) {
        static const struct {
                const char *name, *sql;
        } of_system[] = {
                { "sqlite_schema", "SELECT type,name,tbl_name,sql FROM sqlite_schema ORDER BY name;" },
                { "sqlite_sequence", "SELECT name,seq FROM sqlite_sequence ORDER BY name;" },
                { "sqlite_stat1", "SELECT tbl,idx,stat FROM sqlite_stat1 ORDER BY tbl,idx;" },
                { "sqlite_stat4", "SELECT * FROM sqlite_stat4 ORDER BY tbl, idx, rowid;" },
        };
        g_autoptr(GString) sql = g_string_new("SELECT * FROM ");

        for (size_t i = 0; i < G_N_ELEMENTS(of_system); i++)
                if (g_str_equal(name, of_system[i].name))
                        return g_strdup(of_system[i].sql);
        schema_append_quoted(sql, name);
        g_string_append(sql, " NOT INDEXED;");
        return g_string_free(g_steal_pointer(&sql), FALSE);
}

static int append_table(Shell *shell, Checksum *checksum, const char *name) {
        g_autofree char *sql = make_select(name);

        append_sized(checksum->hash, 'S', sql, strlen(sql));
        return query_run(shell, sql, NULL, 0, append_row, checksum, NULL);
}

/* Ends what was hashed, and begins anew. `name`: of the table, NULL: of all. */
static void append_line(GString *text, gcry_md_hd_t hash, int algorithm, const char *name) {
        const unsigned char *digest = gcry_md_read(hash, algorithm);

        for (unsigned i = 0; i < gcry_md_get_algo_dlen(algorithm); i++)
                g_string_append_printf(text, "%02x", digest[i]);
        g_string_append_printf(text, "%s%s\n", name ? "|" : "", name ?: "");
        gcry_md_reset(hash);
}

static int append_tables(Shell *shell, const ChecksumOptions *options, int algorithm, Checksum *checksum, GString *text) {
        g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
        int r = read_names(shell, options, names);

        for (guint i = 0; i < names->len && r >= 0; i++) {
                r = append_table(shell, checksum, names->pdata[i]);
                if (r >= 0 && options->pattern)
                        append_line(text, checksum->hash, algorithm, names->pdata[i]);
        }
        if (r >= 0 && !options->pattern)
                append_line(text, checksum->hash, algorithm, NULL);
        return r;
}

int checksum_append(Shell *shell, const ChecksumOptions *options, GString *text) {
        int algorithm = options->bits == 256   ? GCRY_MD_SHA3_256
                        : options->bits == 384 ? GCRY_MD_SHA3_384
                        : options->bits == 512 ? GCRY_MD_SHA3_512
                                               : GCRY_MD_SHA3_224;
        g_autoptr(GArray) values = g_array_new(FALSE, TRUE, sizeof(Value));
        Checksum checksum = { .values = values };
        int r;

        gcry_check_version(NULL); /* initialises the library, unless libsystemd did */
        if (gcry_md_open(&checksum.hash, algorithm, 0) != 0) {
                shell_complain(shell, "libgcrypt does not have SHA3 of %u bits", options->bits);
                return -EOPNOTSUPP;
        }
        r = append_tables(shell, options, algorithm, &checksum, text);
        gcry_md_close(checksum.hash);
        return r;
}
