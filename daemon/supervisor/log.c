/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Log lines: journal or stderr. Supervisor. */
#define SD_JOURNAL_SUPPRESS_LOCATION

#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include "log.h"

static int log_level_max = LOG_INFO;
static bool log_to_journal = false;

static int level_parse(const char *text) {
        static const char *const names[] = { "emerg", "alert", "crit", "err", "warning", "notice", "info", "debug" };

        for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
                if (strcmp(text, names[i]) == 0 || (text[0] == (char) ('0' + i) && text[1] == 0))
                        return (int) i;
        return -EINVAL;
}

void log_setup(void) {
        const char *level = getenv("SQLIPC_LOG_LEVEL");

        log_to_journal = getenv("JOURNAL_STREAM") && !isatty(STDERR_FILENO);
        if (!level)
                return;
        int r = level_parse(level);
        if (r >= 0)
                log_level_max = r;
        else
                log_warning("SQLIPC_LOG_LEVEL=%s is no log level, \"info\" stays.", level);
}

void log_full(int priority, const char *database, const char *session, const char *format, ...) {
        va_list ap;

        if (priority > log_level_max)
                return;

        va_start(ap, format);
        g_autofree char *text = g_strdup_vprintf(format, ap);
        va_end(ap);

        if (!log_to_journal) {
                fprintf(stderr, "sqlipcd: %s%s%s\n", database ?: "", database ? ": " : "", text);
                return;
        }

        /* An empty field would be stored as such: absent ones are left out. */
        char *fields[4] = { NULL };
        struct iovec iov[4];
        int n = 0;
        fields[n++] = g_strdup_printf("PRIORITY=%i", priority);
        fields[n++] = g_strdup_printf("MESSAGE=%s%s%s", database ?: "", database ? ": " : "", text);
        if (database)
                fields[n++] = g_strdup_printf("SQLIPC_DATABASE=%s", database);
        if (session)
                fields[n++] = g_strdup_printf("SQLIPC_SESSION=%s", session);
        for (int i = 0; i < n; i++)
                iov[i] = (struct iovec) { .iov_base = fields[i], .iov_len = strlen(fields[i]) };
        (void) sd_journal_sendv(iov, n); /* without a journal there is nobody left to tell */
        for (int i = 0; i < n; i++)
                g_free(fields[i]);
}
