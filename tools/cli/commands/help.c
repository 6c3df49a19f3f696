/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes the texts of .help (help.h). */
#include "tools/cli/commands/help.h"

#include <string.h>

#include "tools/cli/shell/command.h"

enum { USAGE_WIDTH = 32, TEXT_WIDTH = 78 };

static char *names_of(const Command *command) {
        g_auto(GStrv) aliases = g_strsplit(command->aliases ?: "", " ", -1);
        GString *names = g_string_new(".");

        g_string_append(names, command->name);
        for (char **alias = aliases; *alias; alias++)
                if (**alias)
                        g_string_append_printf(names, ", \\%s", *alias);
        return g_string_free(names, FALSE);
}

/* Appends names and arguments, with the summary beside them, or on the next line if they are long. */
static void append_line(GString *text, const Command *command) {
        g_autofree char *names = names_of(command);
        g_autofree char *usage = g_strconcat(names, command->arguments ? " " : "", command->arguments, NULL);

        if (strlen(usage) > USAGE_WIDTH)
                g_string_append_printf(text, "%s\n%*s %s\n", usage, USAGE_WIDTH, "", command->summary);
        else
                g_string_append_printf(text, "%-*s %s\n", USAGE_WIDTH, usage, command->summary);
}

/* Appends a paragraph, indented. Newlines in the table of commands count as blanks. */
static void append_wrapped(GString *text, const char *paragraph) {
        g_auto(GStrv) words = g_strsplit_set(paragraph, " \n", -1);
        size_t column = 0;

        for (char **word = words; *word; word++) {
                size_t width = (size_t) g_utf8_strlen(*word, -1);

                if (column > 0 && column + 1 + width > TEXT_WIDTH) {
                        g_string_append_c(text, '\n');
                        column = 0;
                }
                g_string_append_printf(text, "%s%s", column == 0 ? "    " : " ", *word);
                column += column == 0 ? 4 + width : 1 + width;
        }
        if (column > 0)
                g_string_append_c(text, '\n');
}

static void append_topic(GString *text, const Command *command) {
        g_autofree char *names = names_of(command), *summary = g_strconcat(command->summary, ".", NULL);

        g_string_append_printf(text, ".%s%s%s\n", command->name, command->arguments ? " " : "", command->arguments ?: "");
        if (command->aliases)
                g_string_append_printf(text, "    Also %s.\n", strchr(names, '\\'));
        append_wrapped(text, summary);
        append_wrapped(text, command->details ?: "");
}

char *help_list(void) {
        GString *text = g_string_new(NULL);

        for (const CommandGroup *group = command_groups(); group->title; group++) {
                g_string_append_printf(text, "%s%s:\n", group > command_groups() ? "\n" : "", group->title);
                for (const Command *command = group->commands; command->name; command++)
                        append_line(text, command);
        }
        g_string_append(text, "\n.help NAME says more about one of them, .help --all about each.\n");
        return g_string_free(text, FALSE);
}

char *help_everything(void) {
        GString *text = g_string_new(NULL);
        size_t n;
        const Command *const *commands = command_list(&n);

        for (size_t i = 0; i < n; i++) {
                if (i > 0)
                        g_string_append_c(text, '\n');
                append_topic(text, commands[i]);
        }
        return g_string_free(text, FALSE);
}

/* Finds the command of a topic. With "." or "\" it is that name; a bare word may be either kind of name. */
static const Command *find(const char *topic, char **ret_message) {
        g_autofree char *dotted = g_strconcat(".", topic, NULL), *backslashed = g_strconcat("\\", topic, NULL);
        g_autofree char *ignored = NULL;
        const Command *command;

        if (*topic == '.' || *topic == '\\')
                return command_find(topic, ret_message);
        command = command_find(dotted, ret_message);
        if (!command)
                command = command_find(backslashed, &ignored);
        return command;
}

static bool says(const char *text, const char *word) {
        g_autofree char *folded_text = g_utf8_casefold(text ?: "", -1), *folded_word = g_utf8_casefold(word, -1);

        return strstr(folded_text, folded_word);
}

char *help_topic(const char *topic, char **ret_message) {
        g_autofree char *message = NULL;
        const Command *command = find(topic, &message);
        g_autoptr(GString) text = g_string_new(NULL);
        size_t n;
        const Command *const *commands = command_list(&n);

        if (command)
                append_topic(text, command);
        for (size_t i = 0; i < n && !command; i++)
                if (says(commands[i]->summary, topic) || says(commands[i]->details, topic))
                        append_line(text, commands[i]);
        if (text->len > 0)
                return g_string_free(g_steal_pointer(&text), FALSE);
        *ret_message = g_steal_pointer(&message);
        return NULL;
}
