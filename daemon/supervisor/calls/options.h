/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The a{sv} options of a method. Supervisor.
 *
 * Each method states which keys it accepts. Any other key is refused by name, unless it starts with "x-", so a caller learns
 * of a misspelt key.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_CALLS_OPTIONS_H
#define SQLIPC_DAEMON_SUPERVISOR_CALLS_OPTIONS_H

#include <systemd/sd-bus.h>

#include "daemon/supervisor/base/refusal.h"
#include "dbus-interfaces/wire/sqlipc-page.h"

typedef enum OptionKey {
        OPTION_PAGE_SIZE = 1 << 0,
        OPTION_TIMEOUT = 1 << 1,
        OPTION_MAX_BYTES = 1 << 2,
        OPTION_ERROR_DETAILS = 1 << 3,
        OPTION_PAGE_VERSION = 1 << 4,
        OPTION_TRANSACTION = 1 << 5,
        OPTION_MODE = 1 << 6,
        OPTION_DESCRIBE = 1 << 7,
        OPTION_MEMORY = 1 << 8,
        OPTION_SQL = 1 << 9,
        OPTION_STATEMENT = 1 << 10,
        OPTION_SINCE = 1 << 11,
        OPTION_CACHED = 1 << 12,
        OPTION_CALL = 1 << 13,
        OPTION_LOCK_WAIT = 1 << 14,
        OPTION_FOREIGN_KEYS = 1 << 15,
        OPTION_TIME_ZONE = 1 << 16,
        OPTION_ARGUMENTS = 1 << 17,
        OPTION_KEEPS_OPEN = 1 << 18,
        OPTION_PIN = 1 << 19,
        OPTION_LOCK_WAIT_OF_RUN = 1 << 20,

        OPTIONS_OF_BEGIN = OPTION_MODE | OPTION_LOCK_WAIT | OPTION_FOREIGN_KEYS | OPTION_ERROR_DETAILS | OPTION_PIN |
                           OPTION_TRANSACTION,
        OPTIONS_OF_RUNS = OPTION_TIMEOUT | OPTION_TRANSACTION | OPTION_PIN | OPTION_FOREIGN_KEYS | OPTION_TIME_ZONE |
                          OPTION_LOCK_WAIT_OF_RUN | OPTION_ERROR_DETAILS,
        OPTION_PAGES = OPTION_PAGE_SIZE | OPTION_PAGE_VERSION, /* options of methods that return a pipe or a channel */
} OptionKey;

/* The options that were given, or their defaults. */
typedef struct Options {
        uint32_t page_size;    /* in bytes */
        uint32_t page_version; /* the highest that the client reads */
        uint32_t max_bytes;    /* of the rows in one reply */
        uint32_t error_details; /* 0 or 1 */
        uint32_t describe;     /* 0 or 1 */
        uint32_t memory;       /* 0 or 1 */
        uint32_t cached;       /* 0 or 1 */
        uint32_t call;         /* 0: not given */
        uint32_t foreign_keys; /* 0 or 1; UINT32_MAX: not given */
        uint32_t keeps_open;   /* 0 or 1 */
        uint64_t timeout_usec; /* UINT64_MAX: not given */
        uint64_t lock_wait_usec; /* the same */
        uint64_t transaction;  /* 0: not given */
        uint64_t pin;          /* 0: not given */
        const char *mode;      /* of the message; NULL: not given */
        const char *sql;       /* the same */
        const char *time_zone; /* the same; valid */
        uint64_t statement;    /* 0: not given */
        uint64_t since;        /* UINT64_MAX: not given */
        int arguments_fd;      /* of the message; -1: not given */
} Options;

/* Size limits for the rows in one reply, in bytes. */
#define ROWS_SIZE_DEFAULT ((uint32_t) 256 * 1024)
#define ROWS_SIZE_MAX ((uint64_t) 1024 * 1024)

/* The setting of a client that gave these options. */
ForeignKeys options_foreign_keys(const Options *options);

/* Reads the options, which are next in `m`. `allowed` is a mask of OptionKeys. UNKNOWN_OPTION, INVALID_OPTION; -EBADMSG: the
 * message cannot be read. */
int options_read(sd_bus_message *m, unsigned allowed, Options *ret, Refusal *refusal);

#endif
