/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds, splits and runs dot-commands, see command.h. */
#include "tools/cli/shell/command.h"

#include <errno.h>
#include <string.h>

#include "tools/cli/shell/options.h"
#include "tools/terminal/nearest.h"

/* ---- The list ----------------------------------------------------------------------------------------------------- */

static gint compare_commands(gconstpointer a, gconstpointer b) {
        return strcmp((*(const Command *const *) a)->name, (*(const Command *const *) b)->name);
}

static const CommandGroup *groups; /* borrowed */
static GPtrArray *list;            /* owned; of all groups */

void command_set_groups(const CommandGroup *all) {
        groups = all;
        g_clear_pointer(&list, g_ptr_array_unref);
        list = g_ptr_array_new();
        for (const CommandGroup *group = groups; group->title; group++)
                for (const Command *command = group->commands; command->name; command++)
                        g_ptr_array_add(list, (gpointer) command);
        g_ptr_array_sort(list, compare_commands);
}

const CommandGroup *command_groups(void) {
        return groups;
}

const Command *const *command_list(size_t *ret_n) {
        *ret_n = list->len;
        return (const Command *const *) list->pdata;
}

/* ---- The nearest name --------------------------------------------------------------------------------------------- */

/* Returns the command or alias that is nearest to `name`; NULL if none is near. Aliases of one or two letters are near to
 * everything, so they must match exactly, except that a "+" after a psql alias is ignored. */
static char *nearest_name(const char *name) {
        Nearest nearest = nearest_begin(name + 1);
        g_autofree char *bare = g_strndup(nearest.word, strcspn(nearest.word, "+"));
        size_t n;
        const Command *const *commands = command_list(&n);

        for (size_t i = 0; i < n; i++) {
                g_autofree char *dotted = g_strconcat(".", commands[i]->name, NULL);
                g_auto(GStrv) aliases = g_strsplit(commands[i]->aliases ?: "", " ", -1);

                nearest_consider(&nearest, commands[i]->name, dotted);
                for (char **alias = aliases; *alias; alias++) {
                        g_autofree char *backslashed = g_strconcat("\\", *alias, NULL);

                        if (strlen(*alias) > 2 || g_str_equal(*alias, bare))
                                nearest_consider(&nearest, *alias, backslashed);
                }
        }
        return nearest.name;
}

static char *unknown(const char *name) {
        g_autofree char *nearest = nearest_name(name);

        if (nearest)
                return g_strdup_printf("there is no command %s; did you mean %s?", name, nearest);
        return g_strdup_printf("there is no command %s; .help lists them all", name);
}

/* ---- Finding ------------------------------------------------------------------------------------------------------ */

static const Command *find_alias(const char *alias) {
        size_t n;
        const Command *const *commands = command_list(&n);

        for (size_t i = 0; i < n; i++) {
                g_auto(GStrv) aliases = g_strsplit(commands[i]->aliases ?: "", " ", -1);

                if (*alias && g_strv_contains((const char *const *) aliases, alias))
                        return commands[i];
        }
        return NULL;
}

/* Finds a command by its prefix; `candidates` gets the names of all matches, with their dots. */
static const Command *find_name(const char *name, GString *candidates) {
        const Command *found = NULL, *preferred = NULL;
        size_t n, n_found = 0;
        const Command *const *commands = command_list(&n);

        for (size_t i = 0; i < n; i++) {
                if (g_str_equal(commands[i]->name, name))
                        return commands[i];
                if (!*name || !g_str_has_prefix(commands[i]->name, name))
                        continue;
                found = commands[i];
                preferred = found->preferred ? found : preferred;
                g_string_append_printf(candidates, "%s.%s", n_found++ ? ", " : "", commands[i]->name);
        }
        return n_found == 1 ? found : preferred;
}

const Command *command_find(const char *name, char **ret_message) {
        g_autoptr(GString) candidates = g_string_new(NULL);
        const Command *command;

        *ret_message = NULL;
        command = *name == '\\' ? find_alias(name + 1) : find_name(name + 1, candidates);
        if (command)
                return command;
        *ret_message = candidates->len > 0 ? g_strdup_printf("%s could be any of %s", name, candidates->str) : unknown(name);
        return NULL;
}

/* ---- Splitting ---------------------------------------------------------------------------------------------------- */

static bool is_blank(char c) {
        return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Reads up to three octal digits; skips a NUL, which an argument cannot contain. */
static const char *append_octal(GString *word, const char *p) {
        unsigned value = 0;

        for (int i = 0; i < 3 && *p >= '0' && *p <= '7'; i++)
                value = value * 8 + (unsigned) (*p++ - '0');
        if (value & 0xff)
                g_string_append_c(word, (char) value);
        return p;
}

/* Reads an escape inside "..."; `p` is after the backslash. Returns the position after it. */
static const char *append_escape(GString *word, const char *p) {
        static const char letters[] = "abfnrtv", meanings[] = "\a\b\f\n\r\t\v";
        const char *letter = strchr(letters, *p);

        if (*p >= '0' && *p <= '7')
                return append_octal(word, p);
        g_string_append_c(word, letter ? meanings[letter - letters] : *p);
        return p + 1;
}

/* Reads a quoted word; `*p` is the opening quote. Returns the position after the closing quote, NULL if there is none. */
static const char *append_quoted(GString *word, const char *p) {
        char quote = *p++;

        while (*p) {
                if (*p == quote && p[1] != quote)
                        return p + 1;
                if (*p == quote)
                        p++; /* doubled, as in SQL */
                else if (quote == '"' && *p == '\\' && p[1]) {
                        p = append_escape(word, p + 1);
                        continue;
                }
                g_string_append_c(word, *p++);
        }
        return NULL;
}

int command_take_word(const char **line, char **ret) {
        g_autoptr(GString) word = g_string_new(NULL);
        const char *p = *line;

        while (is_blank(*p))
                p++;
        if (!*p)
                return 0;
        if (*p == '\'' || *p == '"')
                p = append_quoted(word, p);
        else
                while (*p && !is_blank(*p))
                        g_string_append_c(word, *p++);
        if (!p)
                return -EINVAL;
        *line = p;
        *ret = g_string_free(g_steal_pointer(&word), FALSE);
        return 1;
}

int command_split(const char *line, char ***ret_arguments) {
        g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
        char *word;
        int r;

        while ((r = command_take_word(&line, &word)) > 0)
                g_ptr_array_add(words, word);
        if (r < 0)
                return r;
        g_ptr_array_add(words, NULL);
        *ret_arguments = (char **) g_ptr_array_free(g_steal_pointer(&words), FALSE);
        return 0;
}

/* Splits a line into the name, and the rest verbatim, without blanks around it. */
static char **split_name(const char *line) {
        size_t n_name = 0;
        char **arguments = g_new0(char *, 3);

        while (line[n_name] && !is_blank(line[n_name]))
                n_name++;
        arguments[0] = g_strndup(line, n_name);
        arguments[1] = g_strstrip(g_strdup(line + n_name));
        return arguments;
}

int command_target(const char *rest, char **ret) {
        g_auto(GStrv) words = NULL;

        *ret = NULL;
        if (*rest == '|') {
                *ret = g_strdup(rest);
                return 0;
        }
        if (command_split(rest, &words) < 0 || g_strv_length(words) > 1)
                return -EINVAL;
        *ret = g_strdup(words[0]);
        return 0;
}

/* ---- Running ------------------------------------------------------------------------------------------------------ */

static int misused(Shell *shell) {
        shell_note_failure(shell, EXIT_USAGE);
        return -EINVAL;
}

int command_misuse(Shell *shell, const Command *command) {
        shell_complain(shell, "usage: .%s%s%s", command->name, command->arguments ? " " : "", command->arguments ?: "");
        return misused(shell);
}

int command_fail(Shell *shell, int r, const char *format, ...) {
        g_autofree char *message = NULL;
        va_list arguments;

        va_start(arguments, format);
        message = g_strdup_vprintf(format, arguments);
        va_end(arguments);
        shell_complain(shell, "%s", message);
        shell_note_failure(shell, r == -EINVAL ? EXIT_USAGE : EXIT_QUERY);
        return r;
}

static bool takes_number(const Command *command, char **arguments) {
        int n = (int) g_strv_length(arguments) - 1;

        if (command->takes_rest)
                n = *arguments[1] ? 1 : 0;
        return n >= command->n_min && (command->n_max < 0 || command->takes_rest || n <= command->n_max);
}

/* Removes a semicolon at the end, which users type as in SQL; psql does so, too. Text, file names and quoted arguments keep
 * theirs. */
static char *without_semicolon(const Command *command, const char *line) {
        static const char ends[] = "; \t\n\v\f\r";
        ArgumentKind kind = command->kinds[0];
        size_t size = strlen(line), n_name = strcspn(line, ends);
        bool is_bare = n_name + strspn(line + n_name, ";") == size;

        if (is_bare || kind == ARGUMENT_TABLE || kind == ARGUMENT_DATABASE || kind == ARGUMENT_COMMAND)
                while (size > n_name && strchr(ends, line[size - 1]))
                        size--;
        return g_strndup(line, size);
}

static const Command *find_command(Shell *shell, const char *line) {
        g_auto(GStrv) words = split_name(line);
        g_autofree char *message = NULL;
        const Command *command;

        for (char *end = strchr(words[0], '\0'); end > words[0] && end[-1] == ';'; end--)
                end[-1] = '\0';
        command = command_find(words[0], &message);
        if (!command)
                shell_complain(shell, "%s", message);
        return command;
}

int command_run(Shell *shell, const Unit *unit) {
        g_auto(GStrv) arguments = NULL;
        g_autofree char *line = NULL;
        const Command *command = find_command(shell, unit->text);
        int r;

        shell->took_pending = false;
        if (!command)
                return misused(shell);
        line = without_semicolon(command, unit->text);
        if (command->takes_rest)
                arguments = split_name(line);
        else if (command_split(line, &arguments) < 0) {
                shell_complain(shell, "a quote is open in %s", unit->text);
                return misused(shell);
        }
        if (!takes_number(command, arguments))
                return command_misuse(shell, command);
        r = command->run(shell, command, arguments);
        shell->took_pending = command->takes_pending; /* set last, because the command may have run other commands */
        return r;
}
