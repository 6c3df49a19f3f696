/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shell's state and its messages (shell.h). */
#include "tools/cli/shell/shell.h"

#include <errno.h>
#include <string.h>

#include "tools/cli/shell/catalog.h"
#include "tools/cli/shell/options.h"
#include "tools/terminal/format.h"

int shell_init(Shell *shell) {
        *shell = (Shell) {};
        session_init(&shell->session);
        settings_init(&shell->settings);
        shell->parameters = parameter_list_new();
        shell->output = output_new();
        shell->catalog = catalog_new(&shell->session);
        return shell->output && shell->catalog ? 0 : -ENOMEM;
}

void shell_done(Shell *shell) {
        shell->catalog = catalog_free(shell->catalog);
        shell->output = output_free(shell->output);
        shell->parameters = parameter_list_free(shell->parameters);
        g_clear_pointer(&shell->statement, g_free);
        g_clear_pointer(&shell->refusal_name, g_free);
        g_clear_pointer(&shell->refusal_message, g_free);
        settings_done(&shell->settings);
        session_done(&shell->session);
}

/* ---- Messages ----------------------------------------------------------------------------------------------------- */

static void tell(const char *before, const char *format, va_list arguments) G_GNUC_PRINTF(2, 0);

static void tell(const char *before, const char *format, va_list arguments) {
        g_autofree char *message = g_strdup_vprintf(format, arguments);
        g_autoptr(GString) shown = g_string_new(NULL);

        format_shown_text(shown, message, strlen(message), SIZE_MAX);
        fprintf(stderr, "%s%s\n", before, shown->str);
}

void shell_complain(const Shell *shell, const char *format, ...) {
        const Unit *unit = &shell->unit;
        g_autofree char *before = NULL;
        g_autoptr(GString) file = g_string_new(NULL);
        va_list arguments;

        if (unit->file) {
                format_shown_text(file, unit->file, strlen(unit->file), SIZE_MAX);
                before = g_strdup_printf("ipcq-cli: %s:%u: ", file->str, unit->line);
        } else
                before = g_strdup(shell->interactive ? "Error: " : "ipcq-cli: ");
        va_start(arguments, format);
        tell(before, format, arguments);
        va_end(arguments);
}

bool shell_is_verbose(const Shell *shell) {
        return shell->settings.verbose == TOGGLE_ON || (shell->settings.verbose == TOGGLE_AUTO && !shell->interactive);
}

void shell_say(const Shell *shell, const char *format, ...) {
        va_list arguments;

        if (!shell->interactive)
                return;
        va_start(arguments, format);
        tell("", format, arguments);
        va_end(arguments);
}

void shell_note_failure(Shell *shell, int exit_code) {
        if (shell->exit_code == EXIT_OK)
                shell->exit_code = exit_code;
}
