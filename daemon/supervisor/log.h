/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Log lines of the supervisor. Supervisor.
 *
 * They go to the journal with their fields (SQLIPC_DATABASE=, SQLIPC_SESSION=) where the service manager connected us to
 * it, and to stderr otherwise: on a terminal, under a bus that activated us, in tests. SQLIPC_LOG_LEVEL= in the environment
 * (a name or number of syslog(3), default "info") says how much. SQL text appears at debug only.
 */
#ifndef SQLIPC_LOG_H
#define SQLIPC_LOG_H

#include <syslog.h>

/* Reads the environment; before that, lines go to stderr down to info. */
void log_setup(void);

/* One line. `database` (a name) and `session` (a unique bus name) become fields; NULL: none. */
void log_full(int priority, const char *database, const char *session, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

#define log_error(...) log_full(LOG_ERR, NULL, NULL, __VA_ARGS__)
#define log_warning(...) log_full(LOG_WARNING, NULL, NULL, __VA_ARGS__)
#define log_info(...) log_full(LOG_INFO, NULL, NULL, __VA_ARGS__)
#define log_debug(...) log_full(LOG_DEBUG, NULL, NULL, __VA_ARGS__)

#endif
