/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Failures, see complain.h. */
#include "tools/ctl/complain.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tools/terminal/format.h"

static void complain_text(const char *message) {
        g_autoptr(GString) shown = g_string_new(NULL);

        format_shown_text(shown, message, strlen(message), SIZE_MAX);
        (void) fflush(stdout); /* not in the middle of a table, if both go to one file */
        fprintf(stderr, "sqlipcctl: %s\n", shown->str);
}

void complain(const char *format, ...) {
        g_autofree char *message = NULL;
        va_list arguments;

        va_start(arguments, format);
        message = g_strdup_vprintf(format, arguments);
        va_end(arguments);
        complain_text(message);
}

int complain_usage(const char *format, ...) {
        g_autofree char *message = NULL;
        va_list arguments;

        va_start(arguments, format);
        message = g_strdup_vprintf(format, arguments);
        va_end(arguments);
        complain_text(message);
        fputs("Try 'sqlipcctl --help', or --help behind a verb.\n", stderr);
        return CTL_USAGE;
}
