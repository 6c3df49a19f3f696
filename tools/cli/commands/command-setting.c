/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Commands for settings (command-setting.h). */
#include "tools/cli/commands/command-setting.h"

#include <errno.h>

#include "tools/cli/prompt/editor.h"
#include "tools/cli/shell/answer.h"
#include "tools/cli/shell/query-failure.h"
#include "tools/terminal/format.h"

static int set_transport(Shell *shell, sqlipc_transport before) {
        int r = session_set_transport(&shell->session, shell->settings.transport);

        if (r >= 0)
                return 0;
        shell->settings.transport = before;
        if (r == -EOPNOTSUPP)
                return command_fail(shell, r, "this bus passes no descriptors: dbus is the only way there");
        query_complain(shell, r, NULL);
        return r;
}

int command_set(Shell *shell, const char *name, const char *value) {
        const sqlipc_transport transport = shell->settings.transport;
        g_autofree char *message = NULL;
        int r;

        r = settings_set(&shell->settings, name, value, &message);
        if (r < 0)
                return command_fail(shell, r, "%s %s: %s", name, value, message);
        if (g_str_equal(name, "color") && shell->editor)
                editor_set_colors(shell->editor, shell->settings.colors);
        if (g_str_equal(name, "transport"))
                return set_transport(shell, transport);
        return 0;
}

/* Toggles an on/off setting, as psql's \x and \timing do. */
static int turn(Shell *shell, const char *name, const char *value) {
        const char *other = g_str_equal(value, "on") ? "off" : "on";
        int r = command_set(shell, name, other);

        if (r >= 0)
                shell_say(shell, "%s is %s.", name, other);
        return r;
}

static int show(Shell *shell, const char *name, const char *value) {
        g_autoptr(GString) text = g_string_new(name);

        g_string_append(text, ": ");
        format_shown_text(text, value, strlen(value), SIZE_MAX);
        g_string_append_c(text, '\n');
        return answer_text(shell, text->str);
}

int command_setting(Shell *shell, const Command *command, char **arguments) {
        g_autofree char *now = settings_get(&shell->settings, command->name);
        g_autofree char *value = NULL;

        if (arguments[1]) {
                value = g_strjoinv(" ", arguments + 1);
                return command_set(shell, command->name, value);
        }
        if (arguments[0][0] == '\\' && (g_str_equal(now, "on") || g_str_equal(now, "off") || g_str_equal(now, "auto")))
                return turn(shell, command->name, now);
        return show(shell, command->name, now);
}
