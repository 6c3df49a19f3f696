/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Log lines. Supervisor.
 *
 * If the service manager connected standard error to the journal, lines go to the journal with their fields. Otherwise they
 * go to standard error: on a terminal, under a bus that activated us, in tests. SQLIPC_LOG_LEVEL= in the environment (a name
 * or number of syslog(3), default "info") sets the level. org.freedesktop.LogControl1 changes both at run time
 * (log-control.h). SQL text appears at debug only.
 *
 * Something that an administrator acts on is an event of log-events.h. It is logged once, where it is decided. A client's
 * mistake is reported in its reply, and as a debug line here.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BASE_LOG_H
#define SQLIPC_DAEMON_SUPERVISOR_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/supervisor/base/log-events.h"

#define LOG_IDENTIFIER "sqlipcd" /* SYSLOG_IDENTIFIER=, and the start of each line on standard error */

/* Fields of the journal: SQLIPC_DATABASE=, SQLIPC_CLIENT= and so on. Fields that are 0 or NULL are left out. All are
 * borrowed. */
typedef struct LogFields {
        const char *database; /* its name; starts the line on standard error */
        const char *client;   /* a unique bus name */
        const uid_t *uid;     /* of the client; a pointer, since 0 is a uid */
        uint64_t run;
        const char *error;    /* a D-Bus error name */
        pid_t worker_pid;
        uint64_t usec;        /* if set, SQLIPC_ROWS= is logged too, from `rows` */
        uint64_t rows;
} LogFields;

typedef enum LogTarget {
        LOG_TARGET_AUTO, /* the journal if standard error is connected to it, else the console */
        LOG_TARGET_CONSOLE,
        LOG_TARGET_JOURNAL,
        LOG_TARGET_NULL,
        LOG_TARGET_MAX,
} LogTarget;

/* Reads the environment. Before this call lines go to standard error, at info and above. */
void log_setup(void);

/* Logs one line for an event, with the priority and MESSAGE_ID= of the table. `fields` may be NULL. */
void log_event(LogEvent event, const LogFields *fields, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Like log_event(), but at most once a minute for each uid and database of `fields` and each `what`, which distinguishes
 * lines of one event. Both may be NULL. The next line that is written says how many were left out. Every line that a client
 * can cause must be limited. */
void log_event_limited(LogEvent event, const char *what, const LogFields *fields, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* Logs a line that is no event: trouble inside the service, or debug output. */
void log_full(int priority, const char *database, const char *client, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* Like log_full(), but at most once a minute for each `format` and each uid and database of `fields`. `fields` may be
 * NULL. */
void log_full_limited(int priority, const LogFields *fields, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define log_error_limited(...) log_full_limited(LOG_ERR, NULL, __VA_ARGS__)
#define log_warning_limited(...) log_full_limited(LOG_WARNING, NULL, __VA_ARGS__)
#define log_error(...) log_full(LOG_ERR, NULL, NULL, __VA_ARGS__)
#define log_warning(...) log_full(LOG_WARNING, NULL, NULL, __VA_ARGS__)
#define log_info(...) log_full(LOG_INFO, NULL, NULL, __VA_ARGS__)
#define log_debug(...) log_full(LOG_DEBUG, NULL, NULL, __VA_ARGS__)

/* Logs an error that ends the service: through standard error if that is connected to the journal. journald finds the unit
 * of a native entry by looking at the process that sent it, which may have exited by then
 * (https://github.com/systemd/systemd/issues/2913). It knows the unit of a line on standard error by the stream. */
void log_last(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- What LogControl1 reads and writes ---- */

int log_level(void);
void log_set_level(int level);
LogTarget log_target(void);
void log_set_target(LogTarget target);

/* Level names such as "err" and "debug", target names such as "console" and "auto". A level may also be given as a number.
 * The results are static. -EINVAL: there is no such name. */
const char *log_level_to_string(int level);
int log_level_from_string(const char *text);
const char *log_target_to_string(LogTarget target);
int log_target_from_string(const char *text);

#endif
