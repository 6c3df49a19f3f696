/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the configuration says. Pure. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "configuration.h"
#include "dbus-text.h"
#include "sqlipc-page.h"

#define USEC_PER_SEC UINT64_C(1000000)
#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define TIB (1024 * GIB)

typedef enum LimitType { LIMIT_COUNT, LIMIT_SIZE, LIMIT_TIME, LIMIT_BOOLEAN } LimitType;

typedef struct LimitRow {
        const char *key;
        LimitType type;
        size_t offset;
        uint64_t initial, min, max;
} LimitRow;

#define AT(field) G_STRUCT_OFFSET(Limits, field)
#define YEAR (366 * 86400 * USEC_PER_SEC)

static const LimitRow limit_table[] = {
        { "StatementsMax", LIMIT_COUNT, AT(statements_max), 256, 1, 1000000 },
        { "RunsMax", LIMIT_COUNT, AT(runs_max), 256, 1, 1000000 },
        { "WorkersMax", LIMIT_COUNT, AT(workers_max), 8, 1, 1024 },
        { "WorkersTotalMax", LIMIT_COUNT, AT(workers_total_max), 32, 1, 4096 },
        { "PipePagesMax", LIMIT_COUNT, AT(pipe_pages_max), 8192, 1, 1000000000 },
        { "ResultRowsMax", LIMIT_COUNT, AT(result_rows_max), UINT64_MAX, 1, UINT64_MAX },
        { "ResultSizeMax", LIMIT_SIZE, AT(result_size_max), TIB, 1, UINT64_MAX },
        { "RowSizeMax", LIMIT_SIZE, AT(row_size_max), 64 * MIB, 1, SQLIPC_ROW_SIZE_MAX },
        { "RunTimeoutSec", LIMIT_TIME, AT(run_timeout_usec), 600 * USEC_PER_SEC, 1000, YEAR },
        { "PrepareTimeoutSec", LIMIT_TIME, AT(prepare_timeout_usec), 5 * USEC_PER_SEC, 1000, YEAR },
        { "QueueTimeoutSec", LIMIT_TIME, AT(queue_timeout_usec), 10 * USEC_PER_SEC, 1000, YEAR },
        { "ParkTimeoutSec", LIMIT_TIME, AT(park_timeout_usec), 30 * USEC_PER_SEC, 1000, YEAR },
        { "ParkTimeoutRollbackSec", LIMIT_TIME, AT(park_timeout_rollback_usec), 5 * USEC_PER_SEC, 1000, YEAR },
        { "BusyTimeoutSec", LIMIT_TIME, AT(busy_timeout_usec), 5 * USEC_PER_SEC, 0, YEAR },
        { "StatementIdleSec", LIMIT_TIME, AT(statement_idle_usec), 3600 * USEC_PER_SEC, 1000, YEAR },
        { "TempSizeMax", LIMIT_SIZE, AT(temp_size_max), GIB, 0, UINT64_MAX },
        { "HeapMax", LIMIT_SIZE, AT(heap_max), 512 * MIB, MIB, TIB },
        { "WorkerIdleSec", LIMIT_TIME, AT(worker_idle_usec), 10 * USEC_PER_SEC, 0, YEAR },
        { "SQLSizeMax", LIMIT_SIZE, AT(sql_size_max), 1000000, 1, 1000000 },
        { "ExpressionDepthMax", LIMIT_COUNT, AT(expression_depth_max), 1000, 1, 1000 },
        { "CompoundSelectsMax", LIMIT_COUNT, AT(compound_selects_max), 500, 1, 500 },
        { "VdbeOpsMax", LIMIT_COUNT, AT(vdbe_ops_max), 1000000, 1000, 250000000 },
        { "VariablesMax", LIMIT_COUNT, AT(variables_max), 32766, 1, 32766 },
        { "ExemptRoot", LIMIT_BOOLEAN, AT(exempt_root), 0, 0, 1 },
};

static uint64_t *limit_at(Limits *limits, const LimitRow *row) {
        return (uint64_t *) G_STRUCT_MEMBER_P(limits, row->offset);
}

/* ---- Values ---- */

/* Digits up to the first other character. */
static int parse_digits(const char *text, uint64_t *ret, const char **ret_rest) {
        const char *end = text;

        while (g_ascii_isdigit(*end))
                end++;
        if (end == text)
                return -EINVAL;
        errno = 0;
        *ret = g_ascii_strtoull(text, NULL, 10);
        *ret_rest = end;
        return errno == ERANGE ? -ERANGE : 0;
}

int parse_size(const char *text, uint64_t *ret_size) {
        static const char suffixes[] = "KMGT";
        const char *rest;
        uint64_t n;
        unsigned shift = 0;
        int r = parse_digits(text, &n, &rest);

        if (r < 0)
                return r;
        if (*rest) {
                const char *suffix = strchr(suffixes, *rest);
                if (!suffix || rest[1])
                        return -EINVAL;
                shift = 10 * (unsigned) (suffix - suffixes + 1);
        }
        if (n > UINT64_MAX >> shift)
                return -ERANGE;
        *ret_size = n << shift;
        return 0;
}

int parse_seconds(const char *text, uint64_t *ret_usec) {
        const char *rest;
        uint64_t whole, fraction = 0;
        int r = parse_digits(text, &whole, &rest);

        if (r < 0)
                return r;
        if (*rest == '.') {
                uint64_t unit = USEC_PER_SEC / 10;

                if (!g_ascii_isdigit(*++rest))
                        return -EINVAL;
                for (; g_ascii_isdigit(*rest); rest++, unit /= 10) /* below a microsecond: cut */
                        fraction += unit * (uint64_t) (*rest - '0');
        }
        if (*rest)
                return -EINVAL;
        if (whole > (UINT64_MAX - fraction) / USEC_PER_SEC)
                return -ERANGE;
        *ret_usec = whole * USEC_PER_SEC + fraction;
        return 0;
}

static int parse_count(const char *text, uint64_t *ret) {
        const char *rest;
        int r = parse_digits(text, ret, &rest);

        return r < 0 ? r : *rest ? -EINVAL : 0;
}

static int parse_boolean(const char *text, bool *ret) {
        static const char *const yes[] = { "yes", "true", "on", "1", NULL };
        static const char *const no[] = { "no", "false", "off", "0", NULL };

        if (g_strv_contains(yes, text))
                *ret = true;
        else if (g_strv_contains(no, text))
                *ret = false;
        else
                return -EINVAL;
        return 0;
}

/* ---- Lines ---- */

typedef enum LineKind { LINE_BLANK, LINE_GROUP, LINE_KEY, LINE_BROKEN } LineKind;

/* What GKeyFile takes this line for; `line` is stripped. */
static LineKind line_kind(const char *line, bool in_group) {
        if (line[0] == 0 || line[0] == '#')
                return LINE_BLANK;
        if (line[0] == '[') {
                const char *end = strchr(line, ']');
                return end && end > line + 1 && end[1] == 0 ? LINE_GROUP : LINE_BROKEN;
        }
        const char *equals = strchr(line, '=');
        return in_group && equals && equals > line ? LINE_KEY : LINE_BROKEN;
}

static bool key_is(const char *line, const char *key) {
        size_t n = strlen(key);

        return strncmp(line, key, n) == 0 && line[n + strspn(line + n, " \t")] == '=';
}

/* The line of `key` in `group` (NULL: of the group's head), the last one as GKeyFile does; 0: there is none. */
static unsigned find_line(const char *text, const char *group, const char *key) {
        g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
        g_autofree char *head = g_strdup_printf("[%s]", group);
        bool here = false, in_group = false;
        unsigned found = 0;

        for (unsigned i = 0; lines[i]; i++) {
                const char *line = g_strstrip(lines[i]);
                LineKind kind = line_kind(line, in_group);

                if (kind == LINE_GROUP) {
                        in_group = true;
                        here = strcmp(line, head) == 0;
                }
                if (here && (key ? kind == LINE_KEY && key_is(line, key) : kind == LINE_GROUP))
                        found = i + 1;
        }
        return found;
}

/* The first line that GKeyFile cannot have liked; 0: none stands out. */
static unsigned find_broken_line(const char *text) {
        g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
        bool in_group = false;

        for (unsigned i = 0; lines[i]; i++) {
                LineKind kind = line_kind(g_strstrip(lines[i]), in_group);

                if (kind == LINE_BROKEN)
                        return i + 1;
                in_group = in_group || kind == LINE_GROUP;
        }
        return 0;
}

/* ---- Files ---- */

/* NULL, and the reason under `name` in c->broken. */
static GKeyFile *load(Config *c, const char *file, const char *name, const char *text, size_t size) {
        g_autoptr(GKeyFile) keys = g_key_file_new();
        g_autoptr(GError) error = NULL;

        if (memchr(text, 0, size)) {
                config_add_broken(c, name, "%s: the file holds NUL bytes", file);
                return NULL;
        }
        if (!dbus_text_is_valid(text, size)) { /* a description goes out as it is */
                config_add_broken(c, name, "%s: the file is no UTF-8, or holds noncharacters such as U+FFFE", file);
                return NULL;
        }
        if (size > 0 && !g_key_file_load_from_data(keys, text, size, G_KEY_FILE_NONE, &error)) {
                config_add_broken(c, name, "%s:%u: %s", file, find_broken_line(text), error->message);
                return NULL;
        }
        return g_steal_pointer(&keys);
}

static void warn_unknown(Config *c, const char *file, const char *text, GKeyFile *keys, const char *group,
                         const char *const *known) {
        g_auto(GStrv) groups = g_key_file_get_groups(keys, NULL);
        g_auto(GStrv) names = g_key_file_get_keys(keys, group, NULL, NULL);

        for (char **i = groups; *i; i++)
                if (strcmp(*i, group) != 0)
                        g_ptr_array_add(c->warnings, g_strdup_printf("%s:%u: section [%s] is not known and does nothing",
                                                                     file, find_line(text, *i, NULL), *i));
        for (char **i = names; i && *i; i++)
                if (!g_strv_contains(known, *i))
                        g_ptr_array_add(c->warnings, g_strdup_printf("%s:%u: key %s= is not known and does nothing", file,
                                                                     find_line(text, group, *i), *i));
}

static int limit_parse(const LimitRow *row, const char *value, uint64_t *ret) {
        switch (row->type) {
        case LIMIT_COUNT: return parse_count(value, ret);
        case LIMIT_SIZE: return parse_size(value, ret);
        case LIMIT_TIME: return parse_seconds(value, ret);
        case LIMIT_BOOLEAN: break;
        }
        bool yes = false;
        int r = parse_boolean(value, &yes);
        *ret = yes;
        return r;
}

static void add_limit(Config *c, const char *file, const char *text, GKeyFile *keys, const LimitRow *row) {
        static const char *const what[] = {
                [LIMIT_COUNT] = "a number",
                [LIMIT_SIZE] = "bytes, with K, M, G or T behind for a unit,",
                [LIMIT_TIME] = "seconds, such as 10 or 0.5,",
                [LIMIT_BOOLEAN] = "yes or no,",
        };
        uint64_t value = 0;

        if (!g_key_file_has_key(keys, "Limits", row->key, NULL))
                return;
        g_autofree char *given = g_key_file_get_string(keys, "Limits", row->key, NULL);
        if (given && limit_parse(row, g_strstrip(given), &value) >= 0 && value >= row->min && value <= row->max)
                *limit_at(&c->limits, row) = value;
        else
                config_add_broken(c, "sqlipcd.conf", "%s:%u: %s=%s is not taken: give %s from %" PRIu64 " to %" PRIu64 "%s",
                                  file, find_line(text, "Limits", row->key), row->key, given ?: "", what[row->type],
                                  row->min, row->max, row->type == LIMIT_TIME ? " microseconds" : "");
}

static void add_main_text(Config *c, const char *file, const char *text, size_t size) {
        const char *known[G_N_ELEMENTS(limit_table) + 1] = { NULL };
        g_autoptr(GKeyFile) keys = load(c, file, "sqlipcd.conf", text, size);

        if (!keys)
                return;
        for (size_t i = 0; i < G_N_ELEMENTS(limit_table); i++) {
                known[i] = limit_table[i].key;
                add_limit(c, file, text, keys, &limit_table[i]);
        }
        warn_unknown(c, file, text, keys, "Limits", known);
}

/* The value of a key of [Database]; NULL where it is absent, or cannot be read: then *ok is false. */
static char *database_value(Config *c, const char *file, const char *name, const char *text, GKeyFile *keys,
                            const char *key, bool *ok) {
        g_autoptr(GError) error = NULL;

        if (!g_key_file_has_key(keys, "Database", key, NULL))
                return NULL;
        g_autofree char *value = g_key_file_get_string(keys, "Database", key, &error);
        if (!error) /* a wrong escape gives both */
                return g_steal_pointer(&value);
        config_add_broken(c, name, "%s:%u: %s=: %s", file, find_line(text, "Database", key), key, error->message);
        *ok = false;
        return NULL;
}

static bool check_database(Config *c, const char *file, const char *text, DatabaseConfig *d, const char *mode,
                           const char *immutable) {
        if (!d->path) {
                config_add_broken(c, d->name, "%s:%u: [Database] has no Path=", file, find_line(text, "Database", NULL));
                return false;
        }
        if (d->path[0] != '/') {
                config_add_broken(c, d->name, "%s:%u: Path=%s is not absolute", file, find_line(text, "Database", "Path"),
                                  d->path);
                return false;
        }
        if (mode && strcmp(mode, "read-only") != 0) {
                config_add_broken(c, d->name, "%s:%u: Mode=%s is not known: give read-only", file,
                                  find_line(text, "Database", "Mode"), mode);
                return false;
        }
        if (immutable && parse_boolean(immutable, &d->immutable) < 0) {
                config_add_broken(c, d->name, "%s:%u: Immutable=%s: give yes or no", file,
                                  find_line(text, "Database", "Immutable"), immutable);
                return false;
        }
        return true;
}

void config_add_main(Config *c, const ConfigText *texts, size_t n_texts) {
        for (size_t i = 0; i < n_texts; i++)
                add_main_text(c, texts[i].file, texts[i].text, texts[i].size);
}

void config_add_database(Config *c, const char *name, const ConfigText *texts, size_t n_texts) {
        const char *file = texts[0].file, *text = texts[0].text;
        size_t size = texts[0].size;
        static const char *const known[] = { "Path", "Description", "Mode", "Immutable", "AllowUsers", NULL };
        bool ok = true;

        if (!database_name_is_valid(name)) {
                config_add_broken(c, name, "%s: \"%s\" is no name for a database: use up to 64 of A-Z a-z 0-9 _ -", file,
                                  name);
                return;
        }
        g_autoptr(GKeyFile) keys = load(c, file, name, text, size);
        if (!keys)
                return;
        if (!g_key_file_has_group(keys, "Database")) {
                config_add_broken(c, name, "%s:1: there is no section [Database]", file);
                return;
        }
        warn_unknown(c, file, text, keys, "Database", known);

        DatabaseConfig *d = g_new(DatabaseConfig, 1);
        *d = (DatabaseConfig) {
                .name = g_strdup(name),
                .path = database_value(c, file, name, text, keys, "Path", &ok),
                .description = database_value(c, file, name, text, keys, "Description", &ok) ?: g_strdup(""),
                .mode = g_strdup("read-only"),
                .allow_users = g_new0(char *, 1),
                .allow_groups = g_new0(char *, 1),
                .expose = g_new0(char *, 1),
                .allow_everybody = true,
                .limits = { .statements_max = UINT64_MAX, .runs_max = UINT64_MAX, .workers_max = UINT64_MAX },
        };
        g_autofree char *mode = database_value(c, file, name, text, keys, "Mode", &ok);
        g_autofree char *immutable = database_value(c, file, name, text, keys, "Immutable", &ok);
        if (ok && check_database(c, file, text, d, mode, immutable))
                g_hash_table_replace(c->databases, d->name, d);
        else
                database_config_free(d);
}

/* ---- Objects ---- */

bool database_name_is_valid(const char *name) {
        size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");

        return name[n] == 0 && n >= 1 && n <= DATABASE_NAME_SIZE_MAX;
}

DatabaseConfig *database_config_free(DatabaseConfig *d) {
        if (!d)
                return NULL;
        g_free(d->name);
        g_free(d->path);
        g_free(d->description);
        g_free(d->mode);
        g_strfreev(d->allow_users);
        g_strfreev(d->allow_groups);
        g_strfreev(d->expose);
        g_free(d->uids);
        g_free(d->gids);
        g_free(d);
        return NULL;
}

bool database_config_equal(const DatabaseConfig *a, const DatabaseConfig *b) {
        return strcmp(a->name, b->name) == 0 && strcmp(a->path, b->path) == 0 &&
               strcmp(a->description, b->description) == 0 && a->immutable == b->immutable;
}

Limits config_limits(const Config *c, const DatabaseConfig *d) {
        Limits limits = c->limits;

        for (size_t i = 0; i < G_N_ELEMENTS(limit_table); i++)
                if (d->limits.given & (UINT64_C(1) << i))
                        *limit_at(&limits, &limit_table[i]) = *limit_at((Limits *) &d->limits.values, &limit_table[i]);
        return limits;
}

static void database_config_destroy(void *d) {
        database_config_free(d);
}

Config *config_new(void) {
        Config *c = g_new(Config, 1);

        *c = (Config) {
                .service = { .idle_exit_usec = UINT64_MAX, .slow_query_usec = UINT64_MAX },
                .databases = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, database_config_destroy),
                .broken = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
                .warnings = g_ptr_array_new_with_free_func(g_free),
        };
        for (size_t i = 0; i < G_N_ELEMENTS(limit_table); i++)
                *limit_at(&c->limits, &limit_table[i]) = limit_table[i].initial;
        return c;
}

Config *config_free(Config *c) {
        if (!c)
                return NULL;
        g_hash_table_unref(c->databases);
        g_hash_table_unref(c->broken);
        g_ptr_array_unref(c->warnings);
        g_free(c);
        return NULL;
}

/* What is broken goes out on the bus, and names files, whose names may hold any bytes. */
static char *make_sendable(const char *text) {
        char *clean = dbus_text_replace(text, strlen(text)), *copy = g_strdup(clean ?: "(out of memory)");

        free(clean);
        return copy;
}

void config_add_broken(Config *c, const char *name, const char *format, ...) {
        char *key = make_sendable(name);
        const char *before = g_hash_table_lookup(c->broken, key);
        va_list ap;

        va_start(ap, format);
        g_autofree char *reason = g_strdup_vprintf(format, ap);
        va_end(ap);
        g_autofree char *all = g_strconcat(before ?: "", before ? "; " : "", reason, NULL);
        g_hash_table_replace(c->broken, key, make_sendable(all));
}
