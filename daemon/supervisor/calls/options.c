/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The a{sv} options of a method. Supervisor. */
#include <glib.h>
#include <string.h>

#include "daemon/supervisor/calls/options.h"
#include "dbus-interfaces/wire/time-zone.h"

typedef struct OptionRow {
        const char *name;
        OptionKey key;
        char type;
        uint64_t min, max;
        size_t offset;
} OptionRow;

static const OptionRow option_table[] = {
        { "page-size", OPTION_PAGE_SIZE, 'u', SQLIPC_PAGE_SIZE_MIN, SQLIPC_PAGE_SIZE_MAX,
          G_STRUCT_OFFSET(Options, page_size) },
        { "page-version", OPTION_PAGE_VERSION, 'u', 1, UINT32_MAX, G_STRUCT_OFFSET(Options, page_version) },
        { "max-bytes", OPTION_MAX_BYTES, 'u', 1, ROWS_SIZE_MAX, G_STRUCT_OFFSET(Options, max_bytes) },
        { "error-details", OPTION_ERROR_DETAILS, 'b', 0, 1, G_STRUCT_OFFSET(Options, error_details) },
        { "describe", OPTION_DESCRIBE, 'b', 0, 1, G_STRUCT_OFFSET(Options, describe) },
        { "call", OPTION_CALL, 'u', 1, UINT32_MAX, G_STRUCT_OFFSET(Options, call) },
        { "memory", OPTION_MEMORY, 'b', 0, 1, G_STRUCT_OFFSET(Options, memory) },
        { "cached", OPTION_CACHED, 'b', 0, 1, G_STRUCT_OFFSET(Options, cached) },
        { "foreign-keys", OPTION_FOREIGN_KEYS, 'b', 0, 1, G_STRUCT_OFFSET(Options, foreign_keys) },
        { "x-keeps-open", OPTION_KEEPS_OPEN, 'b', 0, 1, G_STRUCT_OFFSET(Options, keeps_open) },
        { "x-time-zone", OPTION_TIME_ZONE, 's', 0, 0, G_STRUCT_OFFSET(Options, time_zone) },
        { "transaction", OPTION_TRANSACTION, 't', 1, UINT64_MAX, G_STRUCT_OFFSET(Options, transaction) },
        { "pin", OPTION_PIN, 't', 1, UINT64_MAX, G_STRUCT_OFFSET(Options, pin) },
        { "mode", OPTION_MODE, 's', 0, 0, G_STRUCT_OFFSET(Options, mode) },
        { "sql", OPTION_SQL, 's', 0, 0, G_STRUCT_OFFSET(Options, sql) },
        { "statement", OPTION_STATEMENT, 't', 1, UINT64_MAX, G_STRUCT_OFFSET(Options, statement) },
        { "since", OPTION_SINCE, 't', 0, UINT64_MAX, G_STRUCT_OFFSET(Options, since) },
        { "lock-wait-usec", OPTION_LOCK_WAIT, 't', 0, UINT64_MAX, G_STRUCT_OFFSET(Options, lock_wait_usec) },
        { "x-lock-wait-usec", OPTION_LOCK_WAIT_OF_RUN, 't', 0, UINT64_MAX, G_STRUCT_OFFSET(Options, lock_wait_usec) },
        { "arguments", OPTION_ARGUMENTS, 'h', 0, 0, G_STRUCT_OFFSET(Options, arguments_fd) },
        { "timeout-usec", OPTION_TIMEOUT, 't', 1, UINT64_MAX, G_STRUCT_OFFSET(Options, timeout_usec) },
};

static int check_type(sd_bus_message *m, const OptionRow *row, Refusal *refusal) {
        const char *contents;
        int r = sd_bus_message_peek_type(m, NULL, &contents);

        if (r < 0)
                return r;
        if (contents[0] != row->type || contents[1] != 0)
                return refuse(refusal, ERROR_INVALID_OPTION, "Option \"%s\" has type \"%s\": give \"%c\".", row->name,
                              contents, row->type);
        return 0;
}

static int read_number(sd_bus_message *m, const OptionRow *row, uint64_t *ret) {
        int r;

        if (row->type == 't')
                return sd_bus_message_read(m, "v", "t", ret);
        uint32_t u; /* sd-bus reads a `b` into an int of the same size */
        r = sd_bus_message_read(m, "v", row->type == 'b' ? "b" : "u", &u);
        if (r < 0)
                return r;
        *ret = u;
        return 0;
}

static int read_string(sd_bus_message *m, const OptionRow *row, Options *options, Refusal *refusal) {
        const char *value;
        int r = sd_bus_message_read(m, "v", "s", &value);

        if (r < 0)
                return r;
        if (row->key == OPTION_TIME_ZONE && !time_zone_is_valid(value, strlen(value)))
                return refuse(refusal, ERROR_INVALID_OPTION,
                              "Option \"%s\" is no time zone: give a name as Europe/Berlin, or a rule as TZ has it.",
                              row->name);
        *(const char **) G_STRUCT_MEMBER_P(options, row->offset) = value;
        return 0;
}

static int read_option(sd_bus_message *m, const OptionRow *row, Options *options, Refusal *refusal) {
        uint64_t value = 0;
        int r = check_type(m, row, refusal);

        if (r >= 0 && row->type == 's')
                return read_string(m, row, options, refusal);
        if (r >= 0 && row->type == 'h')
                return sd_bus_message_read(m, "v", "h", (int *) G_STRUCT_MEMBER_P(options, row->offset));
        if (r >= 0)
                r = read_number(m, row, &value);
        if (r < 0)
                return r;
        if (value < row->min || value > row->max)
                return refuse(refusal, ERROR_INVALID_OPTION,
                              "Option \"%s\" is %" PRIu64 ": give %" PRIu64 " to %" PRIu64 ".", row->name, value,
                              row->min, row->max);
        if (row->key == OPTION_PAGE_SIZE && (value & (value - 1)) != 0)
                return refuse(refusal, ERROR_INVALID_OPTION, "Option \"page-size\" is %" PRIu64 ": give a power of two.",
                              value);
        if (row->type == 't')
                *(uint64_t *) G_STRUCT_MEMBER_P(options, row->offset) = value;
        else
                *(uint32_t *) G_STRUCT_MEMBER_P(options, row->offset) = (uint32_t) value;
        return 0;
}

static const OptionRow *find_option(const char *name, unsigned allowed) {
        for (size_t i = 0; i < G_N_ELEMENTS(option_table); i++)
                if ((option_table[i].key & allowed) && strcmp(option_table[i].name, name) == 0)
                        return &option_table[i];
        return NULL;
}

static int read_entry(sd_bus_message *m, unsigned allowed, Options *options, Refusal *refusal) {
        const char *name;
        int r = sd_bus_message_read_basic(m, 's', &name);

        if (r < 0)
                return r;
        const OptionRow *row = find_option(name, allowed);
        if (!row && g_str_has_prefix(name, "x-"))
                return sd_bus_message_skip(m, "v");
        if (!row)
                return refuse(refusal, ERROR_UNKNOWN_OPTION, "Option \"%.100s\" is not known to this method.", name);
        return read_option(m, row, options, refusal);
}

ForeignKeys options_foreign_keys(const Options *options) {
        if (options->foreign_keys == UINT32_MAX)
                return FOREIGN_KEYS_CONFIGURED;
        return options->foreign_keys ? FOREIGN_KEYS_ON : FOREIGN_KEYS_OFF;
}

int options_read(sd_bus_message *m, unsigned allowed, Options *ret, Refusal *refusal) {
        Options options = {
                .page_size = SQLIPC_PAGE_SIZE_DEFAULT,
                .page_version = 1,
                .max_bytes = ROWS_SIZE_DEFAULT,
                .describe = 1,
                .foreign_keys = UINT32_MAX,
                .timeout_usec = UINT64_MAX,
                .lock_wait_usec = UINT64_MAX,
                .since = UINT64_MAX,
                .arguments_fd = -1,
        };
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_entry(m, allowed, &options, refusal);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        r = sd_bus_message_exit_container(m);
        if (r < 0)
                return r;
        refusal->details = options.error_details;
        *ret = options;
        return 0;
}
