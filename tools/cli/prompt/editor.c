/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The prompt, see editor.h. Readline does not handle signals. One poll() waits for keys and signals, and readline is given a
 * key, or told of a signal, afterwards; also if readline reads in the middle of something (read_key()).
 */
#include "tools/cli/prompt/editor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <readline/history.h>
#include <readline/readline.h>

#include "tools/cli/output/interrupt.h"
#include "tools/cli/prompt/editor-completion.h"
#include "tools/cli/prompt/highlight.h"
#include "tools/cli/prompt/history-file.h"
#include "tools/cli/shell/transaction.h"
#include "tools/terminal/format.h"

struct Editor {
        EditorOptions options;
        char *history_path;         /* owned; NULL: no history file */
        bool plain;                 /* without readline, because the terminal cannot move the cursor */
        GString *input;             /* .plain: bytes that were read but not returned yet */
        size_t prompt_width;
        const TypedLines *before;  /* before the line that is being typed; borrowed */
        bool done;                  /* readline has finished a line */
        char *line;                 /* that line, owned; NULL: Ctrl-D */
        bool painted;               /* colours are on the screen */
        FILE *stream;               /* readline's output: collected in .output */
        GString *output;            /* text to write to the screen before the next wait */
        int screen;                 /* borrowed; descriptor of the terminal */
};

/* Readline's hooks take no userdata, and there is only one terminal. */
static Editor *current;

/* ---- The screen --------------------------------------------------------------------------------------------------- */

/* Collects readline's output. Readline flushes after each small step; the screen does not flicker if it gets the output of a
 * whole key at once. */
static ssize_t collect(void *userdata, const char *bytes, size_t size) {
        Editor *editor = userdata;

        g_string_append_len(editor->output, bytes, (gssize) size);
        return (ssize_t) size;
}

static void show(Editor *editor) {
        (void) fflush(editor->stream);
        for (size_t done = 0; done < editor->output->len;) {
                ssize_t n = write(editor->screen, editor->output->str + done, editor->output->len - done);

                if (n < 0 && errno != EINTR)
                        break; /* the terminal hung up: the next read will report it */
                done += n > 0 ? (size_t) n : 0;
        }
        g_string_truncate(editor->output, 0);
}

static int open_screen(Editor *editor) {
        editor->output = g_string_new(NULL);
        editor->screen = isatty(STDOUT_FILENO) ? STDOUT_FILENO : STDERR_FILENO;
        editor->stream = fopencookie(editor, "w", (cookie_io_functions_t) { .write = collect });
        return editor->stream ? 0 : -ENOMEM;
}

/* ---- Keys --------------------------------------------------------------------------------------------------------- */

/* Waits for a key or a signal. Returns 1: a key, or the end of input; 0: a signal, or a resized window; -errno. If both are
 * there, the signal counts as first, because the terminal discards earlier input when it sends one; `key_first`: return the
 * key nevertheless. */
static int wait_for_key(bool key_first) {
        show(current);
        for (;;) {
                struct pollfd fds[] = {
                        { .fd = STDIN_FILENO, .events = POLLIN },
                        { .fd = interrupt_fd(), .events = POLLIN },
                        { .fd = resized_fd(), .events = POLLIN },
                };

                if (poll(fds, G_N_ELEMENTS(fds), -1) < 0) {
                        if (errno != EINTR)
                                return -errno;
                } else if ((fds[1].revents | fds[2].revents) != 0 && !(key_first && fds[0].revents != 0))
                        return 0;
                else
                        return 1;
        }
}

/* Reads a key for readline, which reads on by itself within a paste, a question, a quoted key. EOF ends that; it must not be
 * returned while a key is available, because in an empty line EOF means Ctrl-D. */
static int read_key(FILE *stream) {
        for (;;) {
                unsigned char key;
                ssize_t n;
                int r = wait_for_key(true);

                if (r == 0 && !interrupt_pending() && interrupt_leave() == 0) {
                        resized_take();
                        continue; /* the next redisplay will use the new size */
                }
                if (r <= 0)
                        return EOF;
                n = read(STDIN_FILENO, &key, 1);
                if (n == 1)
                        return key;
                if (n == 0 || (errno != EINTR && errno != EAGAIN))
                        return EOF;
        }
}

/* Makes Ctrl-Z and Ctrl-\ plain keys while a line is typed: as signals they would stop or end us with the terminal in raw
 * mode. */
static void prepare_terminal(int meta) {
        struct termios settings;

        rl_prep_terminal(meta);
        if (tcgetattr(STDIN_FILENO, &settings) < 0)
                return;
        settings.c_cc[VSUSP] = settings.c_cc[VQUIT] = _POSIX_VDISABLE;
        (void) tcsetattr(STDIN_FILENO, TCSADRAIN, &settings);
}

static int on_suspend(int count, int key) {
        rl_deprep_terminal();
        show(current);
        (void) kill(0, SIGTSTP);
        prepare_terminal(1);
        rl_resize_terminal();
        rl_on_new_line();
        rl_redisplay();
        return 0;
}

/* ---- Colours ------------------------------------------------------------------------------------------------------ */

/* Returns true if the screen shows only our prompt and the typed line. */
static bool shows_plain_line(void) {
        static const char *const spoilers[] = { "horizontal-scroll-mode", "mark-modified-lines", "show-mode-in-prompt" };

        if (RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH | RL_STATE_NUMERICARG) || rl_mark_active_p())
                return false;
        for (size_t i = 0; i < G_N_ELEMENTS(spoilers); i++)
                if (g_strcmp0(rl_variable_value(spoilers[i]), "off") != 0)
                        return false;
        return rl_display_prompt == rl_prompt || g_strcmp0(rl_display_prompt, rl_prompt) == 0;
}

/* Returns the start of the token that earlier lines left open: a quote, two bytes for a comment, E'...' and x'...', or a tag
 * of PostgreSQL. The caller frees it. */
static char *start_of_open(const char *open) {
        if (!open)
                return NULL;
        return g_strndup(open, *open == '$' ? strcspn(open + 1, "$") + 2 : strchr("'\"`[", *open) ? 1 : 2);
}

static bool paint(const Editor *editor) {
        g_autofree char *open = start_of_open(editor->before->open);
        g_autoptr(GString) output = g_string_new(NULL);
        int rows, columns;
        HighlightText text = {
                .text = rl_line_buffer,
                .size = (size_t) rl_end,
                .cursor = (size_t) rl_point,
                .dialect = session_dialect(&editor->options.shell->session),
                .open = open,
                .started = editor->before->started,
                .prompt_width = editor->prompt_width,
        };

        rl_get_screen_size(&rows, &columns);
        text.rows = (size_t) MAX(rows, 0);
        text.columns = (size_t) MAX(columns, 0);
        if (!shows_plain_line() || !highlight_paint(&text, output))
                return false;
        (void) fwrite(output->str, 1, output->len, rl_outstream);
        return true;
}

/* Lets readline draw, then paints over it. If the line cannot be painted any more, the old colours are cleared first. */
static void on_redisplay(void) {
        bool painted;

        rl_redisplay();
        if (!current || !current->options.colors)
                return;
        painted = paint(current);
        if (current->painted && !painted) {
                current->painted = false;
                (void) rl_clear_visible_line();
                (void) rl_forced_update_display();
                return;
        }
        current->painted = painted;
}

/* Resizes with readline's own redisplay function: with any other, readline would not redraw the line in place, but once
 * more, at the cursor. */
static void resize_terminal(void) {
        rl_voidfunc_t *redisplay = rl_redisplay_function;

        rl_redisplay_function = rl_redisplay;
        rl_resize_terminal();
        rl_redisplay_function = redisplay;
        redisplay();
}

void editor_set_colors(Editor *editor, bool colors) {
        editor->options.colors = colors;
}

/* ---- History ------------------------------------------------------------------------------------------------------ */

static void tell_history_failure(Editor *editor, int r) {
        shell_say(editor->options.shell, "The history in %s is not kept: %s.", editor->history_path, g_strerror(-r));
        g_clear_pointer(&editor->history_path, g_free);
}

static void read_history_file(Editor *editor) {
        g_auto(GStrv) entries = NULL;
        int r;

        using_history();
        stifle_history((int) editor->options.history_max);
        if (!editor->history_path)
                return;
        r = history_file_read(editor->history_path, editor->options.history_max, &entries);
        if (r < 0) {
                tell_history_failure(editor, r);
                return;
        }
        for (char **entry = entries; *entry; entry++)
                add_history(*entry);
}

static void forget_equal(const char *text) {
        for (int i = history_length - 1; i >= 0; i--) {
                HIST_ENTRY *entry = history_get(history_base + i);

                if (entry && strcmp(entry->line, text) == 0) {
                        free(free_history_entry(remove_history(i)));
                        return;
                }
        }
}

void editor_add_history(Editor *editor, const char *text) {
        int r;

        if (*text == '\0' || g_ascii_isspace(*text))
                return;
        forget_equal(text);
        add_history(text);
        if (!editor->history_path)
                return;
        r = history_file_append(editor->history_path, text);
        if (r < 0)
                tell_history_failure(editor, r);
}

/* ---- Lines -------------------------------------------------------------------------------------------------------- */

static void on_line(char *line) {
        current->line = line;
        current->done = true;
        rl_callback_handler_remove();
}

/* Handles Ctrl-C: leaves readline's current state, and moves the cursor below the line. */
static void drop_line(bool *ret_typed) {
        rl_callback_sigcleanup();
        rl_free_line_state();
        *ret_typed = rl_end > 0;
        rl_point = rl_end;
        on_redisplay();
        fputs("^C", rl_outstream);
        rl_crlf();
        rl_callback_handler_remove();
}

static int edit_line(Editor *editor, const char *prompt, bool *ret_typed) {
        int r = 1;

        editor->done = editor->painted = false;
        editor->line = NULL;
        rl_callback_handler_install(prompt, on_line);
        while (r >= 0 && !editor->done) {
                r = wait_for_key(false);
                if (r > 0)
                        rl_callback_read_char();
                else if (r == 0 && (interrupt_pending() || interrupt_leave() != 0))
                        break;
                else if (r == 0) {
                        resized_take();
                        resize_terminal();
                }
        }
        if (editor->done && editor->line)
                return 1;
        if (!editor->done)
                drop_line(ret_typed);
        else
                rl_crlf();
        if (interrupt_take() > 0)
                return -EINTR;
        return r < 0 ? r : 0;
}

/* Returns the first line that was read, NULL if there is none. `all`: also one without newline. */
static char *next_plain_line(Editor *editor, bool all) {
        const char *newline = memchr(editor->input->str, '\n', editor->input->len);
        size_t size = newline ? (size_t) (newline - editor->input->str) : editor->input->len;
        char *line;

        if (!newline && !(all && size > 0))
                return NULL;
        line = g_strndup(editor->input->str, size);
        g_string_erase(editor->input, 0, (gssize) (newline ? size + 1 : size));
        return line;
}

/* Reads a line on a terminal that edits lines itself. */
static int read_plain_line(Editor *editor, const char *prompt) {
        fputs(prompt, editor->stream);
        while (!(editor->line = next_plain_line(editor, false))) {
                char bytes[4096];
                ssize_t n;
                int r = wait_for_key(false);

                if (r < 0)
                        return r;
                if (r == 0 && interrupt_leave() != 0)
                        return 0;
                if (r == 0 && interrupt_take() > 0) {
                        fputc('\n', editor->stream);
                        return -EINTR;
                }
                if (r == 0) {
                        resized_take();
                        continue;
                }
                n = read(STDIN_FILENO, bytes, sizeof bytes);
                if (n > 0)
                        g_string_append_len(editor->input, bytes, n);
                else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
                        editor->line = next_plain_line(editor, true);
                        return editor->line != NULL;
                }
        }
        return 1;
}

static char *prompt_text(void *userdata) {
        const Editor *editor = userdata;
        const Session *session = &editor->options.shell->session;
        const char *name = session->database ?: "ipcq";
        GString *prompt = g_string_new(NULL);

        format_shown_text(prompt, name, strlen(name), SIZE_MAX);
        g_string_append_printf(prompt, "%s> ", transaction_mark(session));
        return g_string_free(prompt, false);
}

static int prompt_read_line(void *userdata, const char *prompt, const TypedLines *before, char **ret, bool *ret_typed) {
        Editor *editor = userdata;
        int r;

        *ret_typed = false;
        editor->before = before;
        editor->prompt_width = format_shown_width(prompt, strlen(prompt));
        editor_completion_begin(editor->options.shell, before->text);
        (void) fflush(stdout); /* earlier output must come before the prompt */
        r = editor->plain ? read_plain_line(editor, prompt) : edit_line(editor, prompt, ret_typed);
        editor_completion_end();
        show(editor);
        if (r > 0)
                *ret = g_steal_pointer(&editor->line);
        return r;
}

static void prompt_add_history(void *userdata, const char *text) {
        editor_add_history(userdata, text);
}

Prompt editor_as_prompt(Editor *editor) {
        return (Prompt) {
                .userdata = editor,
                .text = prompt_text,
                .read_line = prompt_read_line,
                .add_history = prompt_add_history,
        };
}

/* ---- The terminal ------------------------------------------------------------------------------------------------- */

/* Returns true if the terminal can move the cursor up, and right with the sequence of ECMA-48. Terminals of the last decades
 * can; "dumb" and unknown ones cannot. */
static bool can_edit(void) {
        const char *up = rl_get_termcap("up"), *right = rl_get_termcap("nd");

        return up && *up && right && strstr(right, "\033[C");
}

static void set_up_readline(FILE *stream) {
        rl_readline_name = "ipcq-cli";
        rl_instream = stdin;
        rl_outstream = stream;
        rl_catch_signals = 0;
        rl_catch_sigwinch = 0;
        rl_change_environment = 0;
        rl_getc_function = read_key;
        rl_prep_term_function = prepare_terminal;
        (void) rl_initialize();
        rl_redisplay_function = on_redisplay; /* rl_initialize() would take it for a lack of a terminal */
        (void) rl_bind_key_in_map('Z' & 0x1f, on_suspend, emacs_standard_keymap);
        (void) rl_bind_key_in_map('Z' & 0x1f, on_suspend, vi_insertion_keymap);
        (void) rl_bind_key_in_map('Z' & 0x1f, on_suspend, vi_movement_keymap);
}

int editor_new(const EditorOptions *options, Editor **ret) {
        Editor *editor = g_new0(Editor, 1);
        int r;

        editor->options = *options;
        editor->history_path = g_strdup(options->history_path);
        editor->input = g_string_new(NULL);
        current = editor;
        r = open_screen(editor);
        if (r < 0) {
                editor_free(editor);
                return r;
        }
        set_up_readline(editor->stream);
        editor->plain = !can_edit();
        read_history_file(editor);
        *ret = editor;
        return 0;
}

Editor *editor_free(Editor *editor) {
        if (!editor)
                return NULL;
        current = NULL;
        clear_history();
        if (editor->stream)
                (void) fclose(editor->stream);
        g_string_free(editor->output, true);
        g_free(editor->history_path);
        g_string_free(editor->input, true);
        g_free(editor);
        return NULL;
}
