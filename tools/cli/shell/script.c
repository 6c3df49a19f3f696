/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Splits lines into units, see script.h.
 *
 *      buffer:  already done | current statement ...     | lines not scanned yet (a text, a paste)
 *                            ^ begin                     ^ begin + split.position
 *
 * Each byte is scanned once (sql_split()), and moved at most once.
 */
#include "tools/cli/shell/script.h"

#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/output/interrupt.h"
#include "tools/cli/sql/sql-scan.h"
#include "tools/terminal/format.h"

#define READ_SIZE ((size_t) 65536)

struct Script {
        Prompt prompt;    /* its functions are NULL: a text or a file */
        FILE *file;       /* NULL: a text, or the prompt */
        bool close;       /* .file is owned */
        bool ended;       /* there is no more input */
        bool begun;       /* of .file: its first line was read */
        bool was_typing;
        char *name;       /* owned */
        GString *read;    /* bytes of .file, read after a poll(): a blocking read could miss a signal */
        size_t read_begin; /* start of the bytes that no line was made of */
        GString *buffer;
        size_t begin;     /* start of the text that is not done */
        SqlDialect (*dialect)(void *userdata, bool again); /* of the next statement; NULL: SQLite's */
        void *dialect_userdata;
        SqlSplit split;   /* state of the statement at .begin */
        bool chosen;      /* its dialect was asked for, */
        bool chosen_again; /* and asked for again, because the other one would split it in another way */
        unsigned line_number; /* of .begin */
        GString *typed;   /* typed lines, which become a history entry when no statement is unfinished */
        char *text, *pending; /* owned; of the last unit */
        char *before;     /* owned; all text before the last command, from line .before_line on */
        unsigned before_line;
};

static Script *script_new(const char *name) {
        Script *script = g_new0(Script, 1);

        script->name = g_strdup(name);
        script->buffer = g_string_new(NULL);
        script->read = g_string_new(NULL);
        script->typed = g_string_new(NULL);
        script->line_number = 1;
        return script;
}

Script *script_new_text(const char *text, const char *name) {
        Script *script = script_new(name);

        g_string_append(script->buffer, text);
        script->ended = true;
        return script;
}

Script *script_new_file(FILE *file, int close, const char *name) {
        Script *script = script_new(name);

        script->file = file;
        script->close = close;
        return script;
}

Script *script_new_prompt(const Prompt *prompt) {
        Script *script = script_new(NULL);

        script->prompt = *prompt;
        return script;
}

/* Adds the typed lines to the history. If a command interrupts a statement, the entry is made later, when the statement has
 * ended. */
static void remember_typed(Script *script) {
        if (script->typed->len > 0)
                script->prompt.add_history(script->prompt.userdata, script->typed->str);
        g_string_truncate(script->typed, 0);
}

void script_set_dialect(Script *script, SqlDialect (*dialect)(void *userdata, bool again), void *userdata) {
        script->dialect = dialect;
        script->dialect_userdata = userdata;
}

Script *script_free(Script *script) {
        if (!script)
                return NULL;
        remember_typed(script);
        if (script->file && script->close)
                (void) fclose(script->file);
        g_free(script->name);
        g_string_free(script->read, true);
        g_string_free(script->buffer, true);
        g_string_free(script->typed, true);
        g_free(script->text);
        g_free(script->pending);
        g_free(script->before);
        g_free(script);
        return NULL;
}

/* ---- Text that was read ------------------------------------------------------------------------------------------- */

static const char *rest(const Script *script, size_t *ret_size) {
        *ret_size = script->buffer->len - script->begin;
        return script->buffer->str + script->begin;
}

static unsigned count_lines(const char *text, size_t size) {
        unsigned n = 0;

        for (const char *end = text + size; (text = memchr(text, '\n', (size_t) (end - text))); text++)
                n++;
        return n;
}

/* Begins to look for the next statement. */
static void begin_split(Script *script) {
        script->split = (SqlSplit) {};
        script->chosen = script->chosen_again = false;
}

/* Asks for the dialect, unless the text is a command: commands work without a database. */
static void choose_dialect(Script *script) {
        size_t size, blanks = 0;
        const char *text = rest(script, &size);

        while (blanks < size && g_ascii_isspace(text[blanks]))
                blanks++;
        if (script->chosen || !script->dialect || blanks == size || strchr(".\\", text[blanks]))
                return;
        script->split.dialect = script->dialect(script->dialect_userdata, false);
        script->chosen = true;
}

/* Marks bytes as done. */
static void pass(Script *script, size_t size) {
        script->line_number += count_lines(script->buffer->str + script->begin, size);
        script->begin += size;
        begin_split(script);
}

/* Takes the text of a unit, [start, end) of the rest, without blanks at its end. Returns -EILSEQ: it is not UTF-8, or
 * contains a NUL. */
static int take_text(const Script *script, size_t start, size_t end, char **ret) {
        const char *text = script->buffer->str + script->begin;

        while (end > start && g_ascii_isspace(text[end - 1]))
                end--;
        g_free(*ret);
        *ret = g_strndup(text + start, end - start);
        return g_utf8_validate_len(text + start, end - start, NULL) ? 0 : -EILSEQ;
}

static void set_unit(const Script *script, UnitType type, size_t start, Unit *ret) {
        *ret = (Unit) {
                .type = type,
                .text = script->text,
                .pending = "",
                .file = script->name,
                .dialect = script->split.dialect,
                .line = script->line_number + count_lines(script->buffer->str + script->begin, start),
        };
}

/* Takes the statement in the next `size` bytes; `end`: its end without the semicolon. */
static int take_statement(Script *script, size_t end, size_t size, Unit *ret) {
        size_t start = script->split.start;
        int r;

        r = take_text(script, start, end, &script->text);
        set_unit(script, UNIT_SQL, start, ret);
        pass(script, size);
        return r < 0 ? r : 1;
}

/* Takes the command that begins at offset `start` and extends to the end of its line. */
static int take_command(Script *script, size_t start, Unit *ret) {
        size_t size, end;
        const char *text = rest(script, &size), *newline = memchr(text + start, '\n', size - start);
        int r, p;

        end = newline ? (size_t) (newline - text) : size;
        r = take_text(script, start, end, &script->text);
        p = take_text(script, script->split.started ? script->split.start : start, start, &script->pending);
        set_unit(script, UNIT_COMMAND, start, ret);
        ret->pending = script->pending;
        g_free(script->before);
        script->before = g_strndup(text, start);
        script->before_line = script->line_number;
        pass(script, newline ? end + 1 : end);
        return r < 0 || p < 0 ? -EILSEQ : 1;
}

/* The next `size` bytes are a statement. Returns true if the other dialect would not split them in the same way, and the
 * database turns out to have that one. */
static bool is_mistaken(Script *script, const char *text, size_t size) {
        SqlSplit other = {
                .dialect = script->split.dialect == SQL_DIALECT_SQLITE ? SQL_DIALECT_POSTGRESQL : SQL_DIALECT_SQLITE,
        };
        size_t other_size;

        if (!script->chosen || script->chosen_again ||
            (sql_split(&other, text, size, &other_size) == SQL_EXTENT_COMPLETE && other_size == size))
                return false;
        script->chosen_again = true;
        if (script->dialect(script->dialect_userdata, true) == script->split.dialect)
                return false;
        script->split = (SqlSplit) { .dialect = other.dialect };
        return true;
}

/* Returns 1: a unit; 0: none without more text; -EILSEQ. */
static int take_unit(Script *script, Unit *ret) {
        for (;;) {
                size_t all, size;
                const char *text = rest(script, &all);
                SqlExtent extent;

                choose_dialect(script);
                extent = sql_split(&script->split, text, all, &size);

                if (extent == SQL_EXTENT_COMPLETE && script->split.started && is_mistaken(script, text, size))
                        continue;
                if (extent == SQL_EXTENT_COMMAND)
                        return take_command(script, size, ret);
                if (extent == SQL_EXTENT_COMPLETE && script->split.started)
                        return take_statement(script, size - 1, size, ret);
                if (extent == SQL_EXTENT_COMPLETE)
                        pass(script, size);
                else if (script->ended && script->split.started)
                        return take_statement(script, size, size, ret);
                else
                        return 0;
        }
}

/* ---- Reading more ------------------------------------------------------------------------------------------------- */

/* Drops the text that is done. Each remaining byte is moved at most once for each line that is read. */
static void forget_done(Script *script) {
        if (script->begin == 0)
                return; /* GLib would otherwise move the whole text onto itself */
        g_string_erase(script->buffer, 0, (gssize) script->begin);
        script->begin = 0;
}

/* Takes a line without its newline; the first one of a file may be a "#!" line. CR LF ends a line, as in sqlite3. */
static void append_file_line(Script *script, const char *line, size_t size) {
        bool first = !script->begun;

        script->begun = true;
        if (first && size >= 2 && line[0] == '#' && line[1] == '!') {
                script->line_number++;
                return;
        }
        if (size > 0 && line[size - 1] == '\r')
                size--;
        g_string_append_len(script->buffer, line, (gssize) size);
        g_string_append_c(script->buffer, '\n');
}

/* Returns 1: there is something to read, or the end; 0: the program must exit; -ECANCELED after Ctrl-C, also an earlier
 * one. */
static int wait_for_file(const Script *script) {
        struct pollfd fds[] = {
                { .fd = fileno(script->file), .events = POLLIN },
                { .fd = interrupt_fd(), .events = POLLIN },
        };

        for (;;) {
                if (interrupt_leave() != 0)
                        return 0;
                if (interrupt_pending() && interrupt_take() > 0)
                        return -ECANCELED;
                if (fds[0].revents != 0)
                        return 1;
                if (poll(fds, G_N_ELEMENTS(fds), -1) < 0 && errno != EINTR)
                        return -errno;
        }
}

/* Returns 1: bytes were read; 0: the end of the file; negative as above, or the error of reading. */
static int read_bytes(Script *script) {
        size_t before = script->read->len;
        ssize_t n = -1;
        int r = 1;

        while (n < 0) {
                r = wait_for_file(script);
                if (r <= 0)
                        return r;
                g_string_set_size(script->read, before + READ_SIZE);
                n = read(fileno(script->file), script->read->str + before, READ_SIZE);
                r = n < 0 ? -errno : n > 0;
                g_string_truncate(script->read, before + (size_t) MAX(n, 0));
                if (r < 0 && r != -EINTR && r != -EAGAIN)
                        return r;
        }
        return r;
}

/* Returns 1: a line was read; 0: the end; negative as above. */
static int read_file_line(Script *script) {
        size_t searched = script->read_begin, size;
        const char *newline;
        int r = 1;

        while (r > 0 && !(newline = memchr(script->read->str + searched, '\n', script->read->len - searched))) {
                if (script->read_begin > 0)
                        g_string_erase(script->read, 0, (gssize) script->read_begin);
                script->read_begin = 0;
                searched = script->read->len;
                r = read_bytes(script);
        }
        if (r < 0 || script->read_begin == script->read->len)
                return r;
        size = (newline ? (size_t) (newline - script->read->str) : script->read->len) - script->read_begin;
        append_file_line(script, script->read->str + script->read_begin, size);
        script->read_begin += size + (newline != NULL);
        return 1;
}

/* Makes a prompt as wide as the first one: "chinook> ", "    ...> ". */
static char *continuation_prompt(const char *first) {
        size_t width = format_shown_width(first, strlen(first));

        return g_strdup_printf("%*s...> ", (int) (width > 5 ? width - 5 : 0), "");
}

/* Returns true if the text may end within a statement; looks beyond the next unit. */
static bool is_unfinished(Script *script) {
        SqlSplit split;
        size_t size, all;
        const char *text = rest(script, &all);
        SqlExtent extent;

        choose_dialect(script);
        split = script->split;

        while ((extent = sql_split(&split, text, all, &size)) == SQL_EXTENT_COMPLETE || extent == SQL_EXTENT_COMMAND) {
                if (extent == SQL_EXTENT_COMMAND && split.started)
                        return true;
                if (extent == SQL_EXTENT_COMMAND) {
                        const char *newline = memchr(text + size, '\n', all - size);

                        size = newline ? (size_t) (newline + 1 - text) : all;
                }
                text += size;
                all -= size;
                split = (SqlSplit) { .dialect = script->split.dialect };
        }
        return extent == SQL_EXTENT_INCOMPLETE;
}

/* Returns the command for words that users type in any shell, with or without a semicolon; NULL for all other lines. No
 * statement begins with these words. psql does the same. */
static const char *plain_command(const char *line) {
        static const char *const commands[] = { ".exit", ".help", ".quit" };
        size_t blanks = strspn(line, " \t"), size = strcspn(line + blanks, " \t\n;");

        if (line[blanks + size + strspn(line + blanks + size, " \t\n;")] != '\0')
                return NULL;
        for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
                if (size == strlen(commands[i] + 1) && g_ascii_strncasecmp(line + blanks, commands[i] + 1, size) == 0)
                        return commands[i];
        return NULL;
}

/* Takes a typed line, or several that were pasted. `fresh`: no statement is unfinished. */
static void append_typed(Script *script, const char *line, bool fresh) {
        const char *command = fresh ? plain_command(line) : NULL;

        g_string_append(script->buffer, command ?: line);
        g_string_append_c(script->buffer, '\n');
        if (script->typed->len > 0)
                g_string_append_c(script->typed, '\n');
        g_string_append(script->typed, line);
        if (!is_unfinished(script))
                remember_typed(script);
}

static int read_prompt_line(Script *script) {
        size_t size;
        const char *text = rest(script, &size);
        const TypedLines before = {
                .text = text,
                .open = script->split.open != SQL_SPACE ? text + script->split.position : NULL,
                .started = script->split.started,
        };
        bool fresh = !script->split.started && script->split.open == SQL_SPACE;
        g_autofree char *first = script->prompt.text(script->prompt.userdata), *next = continuation_prompt(first);
        g_autofree char *line = NULL;
        bool typed = false;
        int r;

        if (fresh)
                remember_typed(script);
        r = script->prompt.read_line(script->prompt.userdata, fresh ? first : next, &before, &line, &typed);
        if (r > 0)
                append_typed(script, line, fresh);
        else { /* Ctrl-D leaves like Ctrl-C: an unfinished statement must not run */
                script->was_typing = typed || !fresh;
                pass(script, size);
                g_string_truncate(script->typed, 0);
        }
        return r;
}

/* ---- Units -------------------------------------------------------------------------------------------------------- */

/* Returns 1: there is more; 0: the end; negative: an error. */
static int read_more(Script *script) {
        int r = 0;

        forget_done(script);
        if (script->file)
                r = read_file_line(script);
        else if (script->prompt.read_line)
                r = read_prompt_line(script);
        if (r == 0)
                script->ended = true;
        return r;
}

int script_next(Script *script, Unit *ret) {
        int r;

        while ((r = take_unit(script, ret)) == 0) {
                if (script->ended)
                        return 0;
                r = read_more(script);
                if (r < 0) {
                        *ret = (Unit) { .file = script->name, .line = script->line_number };
                        return r;
                }
        }
        return r;
}

int script_was_typing(const Script *script) {
        return script->was_typing;
}

void script_put_back(Script *script) {
        g_string_insert_c(script->buffer, (gssize) script->begin, '\n');
        g_string_insert(script->buffer, (gssize) script->begin, script->before);
        begin_split(script);
        script->line_number = script->before_line;
}

bool script_stays(Script *script, const char *question) {
        const TypedLines before = { .text = "" };
        g_autofree char *answer = NULL;
        bool typed;
        int r;

        if (!script->prompt.read_line)
                return false;
        r = script->prompt.read_line(script->prompt.userdata, question, &before, &answer, &typed);
        if (r == 0 || (r > 0 && (*g_strstrip(answer) == 'y' || *answer == 'Y')))
                return false;
        script->ended = false;
        return true;
}

void script_drop(Script *script) {
        size_t size;

        (void) rest(script, &size);
        pass(script, size);
        remember_typed(script);
}
