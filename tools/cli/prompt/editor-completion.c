/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The hooks of readline, see editor-completion.h. Readline finds the word to complete by the characters that end words, but
 * only our scanner knows what a word is. So our scanner runs when readline asks for these characters, and the answer is
 * chosen such that readline finds the same word.
 */
#include "tools/cli/prompt/editor-completion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>

#include "tools/cli/prompt/complete.h"
#include "tools/terminal/format.h"

/* Readline's hooks take no userdata. */
static Shell *current_shell;        /* borrowed */
static const char *current_before;  /* borrowed */
static char **candidates;           /* owned; of the last call of complete() */
static size_t word_start;           /* in the line */
static size_t n_hidden;             /* bytes of the line that precede the word in each match */

static void forget_candidates(void) {
        g_clear_pointer(&candidates, g_strfreev);
}

/* Asks for candidates of the word that ends at the cursor. */
static void ask(void) {
        size_t n_before = strlen(current_before), start = 0;
        g_autofree char *text = g_strconcat(current_before, rl_line_buffer, NULL);

        forget_candidates();
        candidates = complete(current_shell, text, n_before + (size_t) rl_point, &start);
        if (start < n_before) { /* the word began on an earlier line, which cannot be changed */
                forget_candidates();
                start = n_before + (size_t) rl_point;
        }
        word_start = start - n_before;
}

static char *on_word_break(void) {
        static char breaks[2];
        const char *word;

        ask();
        word = rl_line_buffer + word_start;
        breaks[0] = word_start > 0 ? word[-1] : '\0';
        /* A quoted name may contain the character before it: then readline's word is the whole line. */
        if (memchr(word, breaks[0], (size_t) rl_point - word_start))
                breaks[0] = '\0';
        return breaks;
}

/* Returns the common beginning of all candidates, in any case of letters; at least the typed part. */
static char *common_start(const char *typed) {
        size_t common = strlen(candidates[0]);

        for (char **candidate = candidates + 1; *candidate; candidate++) {
                size_t n = 0;

                while (n < common && g_ascii_tolower((*candidate)[n]) == g_ascii_tolower(candidates[0][n]))
                        n++;
                common = n;
        }
        while (common > 0 && ((unsigned char) candidates[0][common] & 0xc0) == 0x80)
                common--; /* not within a character */
        return common > strlen(typed) ? g_strndup(candidates[0], common) : g_strdup(typed);
}

/* Allocates with malloc(), because readline frees it. */
static char *with_hidden(const char *hidden, const char *word) {
        size_t size = strlen(word) + 1;
        char *match = malloc(n_hidden + size);

        if (match) {
                memcpy(match, hidden, n_hidden);
                memcpy(match + n_hidden, word, size);
        }
        return match;
}

static char **on_complete(const char *text, int start, int end) {
        size_t n_candidates;
        char **matches;

        rl_attempted_completion_over = 1; /* do not fall back to file names */
        if (end == 0) /* on_word_break() was not called */
                ask();
        n_candidates = candidates ? g_strv_length(candidates) : 0;
        if (n_candidates == 0 || (size_t) start > word_start)
                return NULL;

        n_hidden = word_start - (size_t) start;
        matches = calloc(n_candidates + 2, sizeof *matches);
        if (!matches)
                return NULL;
        g_autofree char *common = n_candidates > 1 ? common_start(text + n_hidden) : g_strdup(candidates[0]);
        matches[0] = with_hidden(text, common);
        for (size_t i = 0; n_candidates > 1 && i < n_candidates; i++)
                matches[i + 1] = with_hidden(text, candidates[i]);
        rl_completion_append_character = g_str_has_suffix(common, "(") || g_str_has_suffix(common, "/") ? '\0' : ' ';
        return matches;
}

/* ---- The list of matches ------------------------------------------------------------------------------------------ */

static bool wants_to_see(int n) {
        if (rl_completion_query_items <= 0 || n < rl_completion_query_items)
                return true;
        fprintf(rl_outstream, "\r\nDisplay all %d possibilities? (y or n)", n);
        for (;;) {
                int c = rl_read_key(); /* shows what was printed */

                if (c == 'y' || c == 'Y' || c == ' ')
                        return true;
                if (c < 0 || c == 'n' || c == 'N' || c == 0x7f || c == 'q' || c == ('G' & 0x1f))
                        return false;
        }
}

/* Lists the matches. Names come from a database, and must not send control characters to the terminal. */
static void on_display(char **matches, int n, int longest) {
        g_auto(GStrv) shown = g_new0(char *, (size_t) n + 2);
        size_t width = 0;

        for (int i = 0; i <= n; i++) {
                GString *match = g_string_new(NULL);
                const char *word = matches[i] + MIN(n_hidden, strlen(matches[i]));

                format_shown_text(match, word, strlen(word), SIZE_MAX);
                width = MAX(width, format_shown_width(match->str, match->len));
                shown[i] = g_string_free(match, false);
        }
        if (wants_to_see(n))
                rl_display_match_list(shown, n, (int) width);
        else
                rl_crlf();
        rl_forced_update_display();
}

void editor_completion_begin(Shell *shell, const char *before) {
        current_shell = shell;
        current_before = before;
        rl_completion_word_break_hook = on_word_break;
        rl_attempted_completion_function = on_complete;
        rl_completion_display_matches_hook = on_display;
        /* complete() sorts its candidates by likelihood, without duplicates. */
        rl_sort_completion_matches = 0;
        rl_ignore_completion_duplicates = 0;
}

void editor_completion_end(void) {
        forget_candidates();
        current_shell = NULL;
        current_before = "";
}
