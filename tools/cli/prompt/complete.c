/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes completion candidates, see complete.h. */
#include "tools/cli/prompt/complete.h"

#include <string.h>

#include "tools/cli/shell/catalog.h"
#include "tools/cli/shell/command.h"
#include "tools/cli/shell/saved.h"
#include "tools/cli/sql/complete-sql.h"
#include "tools/cli/sql/sql-keyword.h"
#include "tools/cli/sql/sql-scan.h"
#include "tools/terminal/format.h"

/* The candidates found, without duplicates, most likely first. */
typedef struct Candidates {
        GPtrArray *list;  /* char *, owned */
        GHashTable *seen; /* borrows from .list */
} Candidates;

/* Returns false if the text must not be shown: readline escapes ASCII controls as ^[, but writes other controls
 * unchanged. */
static bool can_be_shown(const char *text) {
        if (!g_utf8_validate(text, -1, NULL))
                return false;
        for (const char *p = text; *p; p = g_utf8_next_char(p))
                if ((unsigned char) *p >= 0x80 && format_is_harmful(g_utf8_get_char(p)))
                        return false;
        return true;
}

/* Takes ownership of `text`. */
static void add(Candidates *candidates, char *text) {
        if (!can_be_shown(text) || g_hash_table_contains(candidates->seen, text)) {
                g_free(text);
                return;
        }
        g_hash_table_add(candidates->seen, text);
        g_ptr_array_add(candidates->list, text);
}

/* ---- SQL ---------------------------------------------------------------------------------------------------------- */

static void add_names(Candidates *candidates, const SqlPlace *place, const char *const *names) {
        for (; *names; names++)
                if (sql_place_matches(place, *names))
                        add(candidates, sql_place_quote(place, *names));
}

static char *in_case(const SqlPlace *place, const char *word) {
        return place->small ? g_ascii_strdown(word, -1) : g_ascii_strup(word, -1);
}

/* Adds functions whose names can be called without quotes; "->" is a function, too. */
static void add_functions(Candidates *candidates, const SqlPlace *place, const char *const *names) {
        for (; *names; names++)
                if (sql_place_matches(place, *names) && (g_ascii_isalpha(**names) || **names == '_')) {
                        g_autofree char *name = *place->word && !place->small ? g_ascii_strup(*names, -1) : g_strdup(*names);

                        add(candidates, g_strconcat(name, "(", NULL));
                }
}

/* Returns true for words of a window's frame, which are only valid in parentheses. */
static bool is_frame_word(const char *word) {
        static const char *const words[] = {
                "EXCLUDE", "FOLLOWING", "GROUPS", "OTHERS", "PRECEDING", "RANGE", "ROWS", "TIES", "UNBOUNDED", NULL,
        };

        return g_strv_contains(words, word);
}

static void add_keywords(Candidates *candidates, const SqlPlace *place, const char *const *words) {
        for (; *words; words++)
                if (sql_place_matches(place, *words) && (place->in_parentheses || !is_frame_word(*words)))
                        add(candidates, in_case(place, *words));
}

static void add_beginnings(Candidates *candidates, const SqlPlace *place) {
        static const char *const readers[] = { "EXPLAIN", "PRAGMA", "SELECT", "VALUES", "WITH", NULL };
        guint n_before = candidates->list->len;

        add_keywords(candidates, place, readers);
        if (candidates->list->len == n_before)
                add_keywords(candidates, place, sql_keywords());
}

static void complete_sql(Shell *shell, Candidates *candidates, const char *text, size_t cursor, size_t *ret_start) {
        SqlPlace place;

        sql_place_find(session_dialect(&shell->session), text, cursor, &place);
        *ret_start = place.start;
        if (place.wants & WANTS_PRAGMAS)
                add_keywords(candidates, &place, sql_reading_pragmas());
        if (place.wants & WANTS_ALL_COLUMNS)
                add_names(candidates, &place, catalog_all_columns(shell->catalog));
        if (place.wants & WANTS_COLUMNS)
                for (guint i = 0; i < place.tables->len; i++)
                        add_names(candidates, &place, catalog_columns(shell->catalog, place.tables->pdata[i]));
        if (place.wants & WANTS_NAMES) {
                g_ptr_array_add(place.names, NULL);
                add_names(candidates, &place, (const char *const *) place.names->pdata);
        }
        if (place.wants & WANTS_TABLES)
                add_names(candidates, &place, catalog_tables(shell->catalog));
        if (place.wants & WANTS_FUNCTIONS)
                add_functions(candidates, &place, catalog_functions(shell->catalog));
        if (place.wants & WANTS_KEYWORDS) /* only reading ones: "com" completes to Composer, never to COMMIT */
                add_keywords(candidates, &place, sql_reading_keywords());
        if (place.wants & WANTS_BEGINNINGS)
                add_beginnings(candidates, &place);
        sql_place_done(&place);
}

/* ---- Commands ----------------------------------------------------------------------------------------------------- */

/* The line of a command, cut off at the cursor. */
typedef struct CommandLine {
        const char *text;
        size_t start, cursor; /* start: of the command; cursor: length of .text */
        size_t word;          /* start of the word at the cursor, including its quote */
        size_t index;         /* number of that word; 0: the command's name */
} CommandLine;

static size_t end_of_word(const char *text, size_t position, size_t end) {
        char quote = text[position] == '"' || text[position] == '\'' ? text[position] : '\0';

        for (position += quote != '\0'; position < end; position++)
                if (quote ? text[position] == quote : g_ascii_isspace(text[position]))
                        return position + (quote != '\0');
        return end;
}

static void find_word(CommandLine *line) {
        size_t position = line->start;

        for (line->index = 0;; line->index++) {
                line->word = position;
                position = end_of_word(line->text, position, line->cursor);
                if (position >= line->cursor)
                        return;
                while (position < line->cursor && g_ascii_isspace(line->text[position]))
                        position++;
                if (position >= line->cursor) {
                        line->word = position;
                        line->index++;
                        return;
                }
        }
}

/* Adds words that begin with `typed`, in any case of letters. */
static void add_words(Candidates *candidates, const char *typed, const char *const *words) {
        for (; words && *words; words++)
                if (g_ascii_strncasecmp(*words, typed, strlen(typed)) == 0)
                        add(candidates, g_strdup(*words));
}

static void add_command(Candidates *candidates, const char *typed, const char *sign, const char *name) {
        char *word = g_strconcat(sign, name, NULL);

        if (g_str_has_prefix(word, typed))
                add(candidates, word);
        else
                g_free(word);
}

/* Adds commands, with the sign that was typed: both "." and "\" precede the same names, and "\" also psql's aliases. Without
 * a sign, as for .help, names have none. */
static void add_commands(Candidates *candidates, const char *typed) {
        char sign[2] = { *typed == '.' || *typed == '\\' ? *typed : '\0' };
        size_t n;
        const Command *const *commands = command_list(&n);

        for (size_t i = 0; i < n; i++) {
                const char *psql = *sign == '\\' && commands[i]->aliases ? commands[i]->aliases : "";
                g_auto(GStrv) aliases = g_strsplit(psql, " ", -1);

                for (char **alias = aliases; *alias; alias++)
                        if (**alias)
                                add_command(candidates, typed, sign, *alias);
                add_command(candidates, typed, sign, commands[i]->name);
        }
}

/* Quotes a word, if necessary, so that command_split() restores it. */
static char *quote_word(const char *word, bool as_it_stands) {
        char not_ascii[129] = "";
        g_autofree char *escaped = NULL;

        if (as_it_stands || !strpbrk(word, " \t\n\"'\\"))
                return g_strdup(word);
        if (!strpbrk(word, "'\n"))
                return g_strdup_printf("'%s'", word);
        for (int i = 0; i < 128; i++)
                not_ascii[i] = (char) (0x80 + i);
        escaped = g_strescape(word, not_ascii);
        return g_strdup_printf("\"%s\"", escaped);
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static void add_file(Candidates *candidates, const char *folder, const char *name, bool as_it_stands) {
        g_autofree char *path = g_strconcat(folder, name, NULL);
        g_autofree char *shown = g_file_test(path, G_FILE_TEST_IS_DIR) ? g_strconcat(path, "/", NULL) : g_strdup(path);

        add(candidates, quote_word(shown, as_it_stands));
}

/* Adds the files of the folder that `typed` names; hidden ones only if its last part begins with ".". */
static void add_files(Candidates *candidates, const char *typed, bool as_it_stands) {
        const char *slash = strrchr(typed, '/'), *name = slash ? slash + 1 : typed;
        g_autofree char *folder = g_strndup(typed, (size_t) (name - typed));
        g_autoptr(GDir) directory = g_dir_open(*folder ? folder : ".", 0, NULL);
        g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);

        for (const char *entry; directory && (entry = g_dir_read_name(directory));)
                if (g_str_has_prefix(entry, name) && (*entry != '.' || *name == '.') && g_utf8_validate(entry, -1, NULL))
                        g_ptr_array_add(names, g_strdup(entry));
        g_ptr_array_sort(names, compare_names);
        for (guint i = 0; i < names->len; i++)
                add_file(candidates, folder, names->pdata[i], as_it_stands);
}

static void add_saved(Candidates *candidates, const char *typed) {
        g_auto(GStrv) names = saved_list();

        add_words(candidates, typed, (const char *const *) names);
}

/* Adds tables as arguments: quoted as such, not as SQL. */
static void add_tables(Shell *shell, Candidates *candidates, const char *typed) {
        const char *const *names = catalog_tables(shell->catalog);

        for (; *names; names++)
                if (g_ascii_strncasecmp(*names, typed, strlen(typed)) == 0)
                        add(candidates, quote_word(*names, false));
}

/* Adds options of a command, which are taken from its usage. Returns true if there was one. */
static bool add_options(Candidates *candidates, const Command *command, const char *typed) {
        g_auto(GStrv) words = g_strsplit_set(command->arguments ?: "", "[]| ", -1);

        for (char **word = words; *word && *typed == '-'; word++)
                if (g_str_has_prefix(*word, "--") && g_str_has_prefix(*word, typed))
                        add(candidates, g_strndup(*word, strcspn(*word, "=") + (strchr(*word, '=') ? 1 : 0)));
        return candidates->list->len > 0;
}

static void complete_argument(Shell *shell, Candidates *candidates, const Command *command, ArgumentKind kind,
                              const char *typed) {
        switch (kind) {
        case ARGUMENT_FILE:
                add_files(candidates, typed, false);
                return;
        case ARGUMENT_TABLE:
                add_tables(shell, candidates, typed);
                return;
        case ARGUMENT_DATABASE:
                add_words(candidates, typed, catalog_databases(shell->catalog));
                return;
        case ARGUMENT_SETTING:
                add_words(candidates, typed, settings_values(command->name));
                return;
        case ARGUMENT_WORDS:
                add_words(candidates, typed, command->words);
                return;
        case ARGUMENT_QUERY:
                add_saved(candidates, typed);
                return;
        case ARGUMENT_COMMAND:
                add_commands(candidates, typed);
                return;
        case ARGUMENT_NONE:
        case ARGUMENT_SQL:
        case ARGUMENT_TABLE_OR_SQL:
                return;
        }
}

static bool is_sql(ArgumentKind kind) {
        return kind == ARGUMENT_SQL || kind == ARGUMENT_TABLE_OR_SQL;
}

/* Finds the start of the SQL among the arguments: after the words before it, and after a number (.watch 5 SELECT ...). */
static bool find_sql(const Command *command, const CommandLine *line, size_t *ret_start) {
        size_t position = line->start;

        for (size_t i = 0; i < line->index; i++) {
                if (i > 0 && is_sql(command->kinds[MIN(i, G_N_ELEMENTS(command->kinds)) - 1]))
                        break;
                position = end_of_word(line->text, position, line->cursor);
                while (position < line->cursor && g_ascii_isspace(line->text[position]))
                        position++;
        }
        while (g_ascii_isdigit(line->text[position]) || line->text[position] == '.')
                position++;
        *ret_start = position;
        return position <= line->cursor;
}

/* Returns the typed part of a word, without its quote. */
static char *typed_word(const CommandLine *line) {
        size_t start = line->word;

        if (start < line->cursor && (line->text[start] == '"' || line->text[start] == '\''))
                start++;
        return g_strndup(line->text + start, line->cursor - start);
}

/* Completes a file whose name extends verbatim to the end of the line; else the last word of a command for sh. */
static void complete_rest(Candidates *candidates, const CommandLine *line, size_t *ret_start) {
        size_t position = end_of_word(line->text, line->start, line->cursor);

        while (position < line->cursor && g_ascii_isspace(line->text[position]))
                position++;
        g_autofree char *all = g_strndup(line->text + position, line->cursor - position);
        add_files(candidates, all, true);
        *ret_start = position;
        if (candidates->list->len == 0 && line->word != position) {
                add_files(candidates, all + (line->word - position), true);
                *ret_start = line->word;
        }
}

static void complete_command(Shell *shell, Candidates *candidates, CommandLine *line, size_t *ret_start) {
        g_autofree char *name = NULL, *typed = NULL;
        const Command *command;
        ArgumentKind kind;
        size_t sql;

        find_word(line);
        *ret_start = line->word;
        typed = typed_word(line);
        if (line->index == 0) {
                add_commands(candidates, typed);
                return;
        }
        name = g_strndup(line->text + line->start, end_of_word(line->text, line->start, line->cursor) - line->start);
        g_autofree char *message = NULL;
        command = command_find(name, &message);
        if (!command || add_options(candidates, command, typed))
                return;
        kind = command->kinds[MIN(line->index, G_N_ELEMENTS(command->kinds)) - 1];
        for (size_t i = 0; i < MIN(line->index, G_N_ELEMENTS(command->kinds)); i++)
                if (is_sql(command->kinds[i]))
                        kind = command->kinds[i];
        if (kind == ARGUMENT_FILE && command->takes_rest)
                complete_rest(candidates, line, ret_start);
        else if (!is_sql(kind))
                complete_argument(shell, candidates, command, kind, typed);
        else if (find_sql(command, line, &sql)) {
                if (kind == ARGUMENT_TABLE_OR_SQL && sql == line->word)
                        add_tables(shell, candidates, typed);
                if (candidates->list->len > 0 && *typed) /* a table matches, so the word is not a keyword */
                        return;
                complete_sql(shell, candidates, line->text + sql, line->cursor - sql, ret_start);
                *ret_start += sql;
        }
}

/* ---- SQL or a command --------------------------------------------------------------------------------------------- */

/* Returns true if the cursor is in a command; `*ret_start`: the start of that, else of the statement. */
static bool is_in_command(SqlDialect dialect, const char *text, size_t cursor, size_t *ret_start) {
        SqlExtent extent;
        size_t start = 0, size;

        while ((extent = sql_scan_statement(dialect, text + start, cursor - start, &size)) == SQL_EXTENT_COMPLETE ||
               extent == SQL_EXTENT_COMMAND) {
                const char *newline = memchr(text + start + size, '\n', cursor - start - size);

                if (extent == SQL_EXTENT_COMMAND && !newline) {
                        *ret_start = start + size;
                        return true;
                }
                start = extent == SQL_EXTENT_COMMAND ? (size_t) (newline + 1 - text) : start + size;
        }
        *ret_start = start;
        return false;
}

char **complete(Shell *shell, const char *text, size_t cursor, size_t *ret_start) {
        Candidates candidates = { .list = g_ptr_array_new(), .seen = g_hash_table_new(g_str_hash, g_str_equal) };
        size_t start;

        if (is_in_command(session_dialect(&shell->session), text, cursor, &start)) {
                CommandLine line = { .text = text, .start = start, .cursor = cursor };

                complete_command(shell, &candidates, &line, ret_start);
        } else {
                complete_sql(shell, &candidates, text + start, cursor - start, ret_start);
                *ret_start += start;
        }
        g_hash_table_unref(candidates.seen);
        g_ptr_array_add(candidates.list, NULL);
        return (char **) g_ptr_array_free(candidates.list, false);
}
