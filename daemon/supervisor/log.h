/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Log lines. Supervisor.
 *
 * They go to the journal with their fields where the service manager connected standard error to it, and to standard error
 * otherwise: on a terminal, under a bus that activated us, in tests. SQLIPC_LOG_LEVEL= in the environment (a name or number
 * of syslog(3), default "info") says how much; org.freedesktop.LogControl1 changes both at run time (log-control.h). SQL
 * text appears at debug only.
 *
 * What an administrator acts on is an event of log-events.h; it is logged once, where it is decided. A client's mistake is
 * its reply, and a debug line here.
 */
#ifndef SQLIPC_LOG_H
#define SQLIPC_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "log-events.h"

#define LOG_IDENTIFIER "sqlipcd" /* SYSLOG_IDENTIFIER=, and what a line on standard error begins with */

/* Fields of the journal: SQLIPC_DATABASE=, SQLIPC_CLIENT= and so on. Absent ones (0, NULL) are left out. All borrowed. */
typedef struct LogFields {
        const char *database; /* its name; the line on standard error begins with it */
        const char *client;   /* a unique bus name */
        const uid_t *uid;     /* whose it is: pointed to, since 0 is a uid */
        uint64_t run;
        const char *error;    /* a D-Bus error name */
        pid_t worker_pid;
        uint64_t usec;        /* with it comes SQLIPC_ROWS=, of `rows` */
        uint64_t rows;
} LogFields;

typedef enum LogTarget {
        LOG_TARGET_AUTO, /* the journal if standard error leads there, else the console */
        LOG_TARGET_CONSOLE,
        LOG_TARGET_JOURNAL,
        LOG_TARGET_NULL,
        LOG_TARGET_MAX,
} LogTarget;

/* Reads the environment; before that, lines go to standard error down to info. */
void log_setup(void);

/* One line of an event; its priority and MESSAGE_ID= are the table's. `fields` NULL: none. */
void log_event(LogEvent event, const LogFields *fields, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same at most once a minute for each uid and database of `fields` and each `what`, which may be NULL. The next line
 * that is written says how many were left out. A line that a client can cause must be limited. */
void log_event_limited(LogEvent event, const char *what, const LogFields *fields, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* A line that is no event: the service's own trouble, or debug. */
void log_full(int priority, const char *database, const char *client, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* The same at most once a minute for each `format`, and each uid and database of `fields`. `fields` NULL: none. */
void log_full_limited(int priority, const LogFields *fields, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define log_error_limited(...) log_full_limited(LOG_ERR, NULL, __VA_ARGS__)
#define log_warning_limited(...) log_full_limited(LOG_WARNING, NULL, __VA_ARGS__)
#define log_error(...) log_full(LOG_ERR, NULL, NULL, __VA_ARGS__)
#define log_warning(...) log_full(LOG_WARNING, NULL, NULL, __VA_ARGS__)
#define log_info(...) log_full(LOG_INFO, NULL, NULL, __VA_ARGS__)
#define log_debug(...) log_full(LOG_DEBUG, NULL, NULL, __VA_ARGS__)

/* An error that ends the service: by standard error where that leads to the journal. journald learns of an entry's unit by
 * looking at the process that sent it, which may have exited by then (https://github.com/systemd/systemd/issues/2913); the
 * unit of a line on standard error is known by the stream. */
void log_last(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- What LogControl1 reads and writes ---- */

int log_level(void);
void log_set_level(int level);
LogTarget log_target(void);
void log_set_target(LogTarget target);

/* "err", "debug"...; "console", "auto"... A number is taken for a level, too. -EINVAL. */
const char *log_level_to_string(int level);
int log_level_from_string(const char *text);
const char *log_target_to_string(LogTarget target);
int log_target_from_string(const char *text);

#endif
