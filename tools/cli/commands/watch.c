/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs a statement repeatedly (watch.h).
 *
 * After each change means: a watch of the tables that the statement reads (table-watch.h) is there before the statement
 * runs, so no change is missed. If it cannot be made, because the service does not have watches or is not there, the clock
 * stands in for it until the next round.
 */
#include "tools/cli/commands/watch.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/cli/output/interrupt.h"
#include "tools/cli/render/render-cell.h"
#include "tools/cli/render/watch-table.h"
#include "tools/cli/shell/answer.h"
#include "tools/cli/shell/cursor-values.h"
#include "tools/cli/shell/dialect.h"
#include "tools/cli/shell/options.h"
#include "tools/cli/shell/query-failure.h"
#include "tools/cli/shell/query-print.h"
#include "tools/cli/shell/query-run.h"
#include "tools/cli/shell/table-watch.h"
#include "tools/terminal/format.h"
#include "tools/terminal/keys.h"

#define GO_HOME "\033[H"
#define CLEAR_LINE "\033[K"
#define CLEAR_BELOW "\033[J"

/* ---- Waiting ------------------------------------------------------------------------------------------------------ */

/* The interval if there is no watch. */
#define CLOCK_USEC ((gint64) 2 * 1000 * 1000)
/* The least time from one round to the next after a change. */
#define PAUSE_USEC ((gint64) 100 * 1000)

/* The event that the next round waits for. */
typedef struct Trigger {
        Shell *shell;
        const WatchOptions *options;
        sqlipc_watch *watch; /* owned; NULL: the clock */
} Trigger;

typedef enum WatchEvent {
        WATCH_TIME,
        WATCH_CHANGE,
        WATCH_RESIZE,
        WATCH_END,
} WatchEvent;

static WatchEvent on_signal(void) {
        return interrupt_take() > 0 || interrupt_leave() != 0 ? WATCH_END : WATCH_RESIZE;
}

static WatchEvent on_key(void) {
        char key;

        if (read(STDIN_FILENO, &key, 1) != 1)
                return WATCH_END; /* the terminal is gone */
        return key == 'q' || key == 'Q' || key == '\004' ? WATCH_END : WATCH_RESIZE;
}

/* Waits until `until_usec` of g_get_monotonic_time() (G_MAXINT64: without a limit), or until a key, a signal or, in
 * `change_fd`, a change comes. */
static WatchEvent wait_until(gint64 until_usec, bool keys, int change_fd) {
        gint64 left = MAX(until_usec - g_get_monotonic_time(), 0);
        struct pollfd fds[] = {
                { .fd = interrupt_fd(), .events = POLLIN },
                { .fd = keys ? STDIN_FILENO : -1, .events = POLLIN },
                { .fd = resized_fd(), .events = POLLIN },
                { .fd = change_fd, .events = POLLIN },
        };
        int n = poll(fds, G_N_ELEMENTS(fds), until_usec == G_MAXINT64 ? -1 : (int) MIN((left + 999) / 1000, G_MAXINT));

        if (n < 0)
                return errno == EINTR ? WATCH_RESIZE : WATCH_END;
        if (fds[0].revents)
                return on_signal();
        if (fds[1].revents)
                return on_key();
        if (fds[2].revents) {
                resized_take();
                return WATCH_RESIZE;
        }
        if (fds[3].revents)
                return WATCH_CHANGE;
        return left / 1000 > G_MAXINT ? WATCH_RESIZE : WATCH_TIME;
}

/* Waits for the next round, or until the window was resized. */
static WatchEvent wait_for_change(Trigger *trigger, gint64 since, bool keys) {
        WatchEvent event = wait_until(since + PAUSE_USEC, keys, -1);

        while (event == WATCH_TIME || event == WATCH_CHANGE) {
                /* if the watch is over, the next round makes another one, or uses the clock */
                if (sqlipc_watch_next(trigger->watch, 0) != 0)
                        return WATCH_TIME;
                event = wait_until(G_MAXINT64, keys, sqlipc_watch_get_fd(trigger->watch));
        }
        return event;
}

/* The same, for a round after `since`, the end of the last one. */
static WatchEvent wait_for_trigger(Trigger *trigger, gint64 since, bool keys) {
        gint64 interval = (gint64) trigger->options->interval_usec;

        if (trigger->watch)
                return wait_for_change(trigger, since, keys);
        return wait_until(since + (interval > 0 ? interval : CLOCK_USEC), keys, -1);
}

/* Makes the watch before a round. Its errors are those of the statement, which reports them. */
static int ready_trigger(Trigger *trigger) {
        int r;

        if (trigger->options->interval_usec > 0)
                return 0;
        if (trigger->watch && sqlipc_watch_next(trigger->watch, 0) >= 0) /* the round will see this change */
                return 0;
        trigger->watch = sqlipc_watch_close(trigger->watch);
        r = table_watch_open_sql(trigger->shell, trigger->options->sql, &trigger->watch);
        return r == -ECANCELED ? r : 0;
}

/* Returns true if the service or the bus is gone, since it may come back. */
static bool may_come_back(Shell *shell, int r) {
        int code = query_exit_code(shell, r);

        return code == EXIT_UNREACHABLE || code == EXIT_LOST;
}

/* ---- On a terminal ------------------------------------------------------------------------------------------------ */

typedef struct Screen {
        struct termios before; /* the terminal's settings, if `keys` */
        bool keys;             /* single key presses are read */
        bool drawn;
        size_t width, height;
} Screen;

typedef struct Watch {
        Shell *shell;
        const WatchOptions *options;
        Trigger trigger;
        Screen screen;
        WatchTable *table, *before; /* owned */
        WatchChanges changes;
        char *time;                 /* owned; time of the result */
        size_t n_columns;
        Value *values;              /* owned; the current row */
} Watch;

static void measure(Screen *screen) {
        struct winsize size;
        bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0;

        screen->height = known ? size.ws_row : 24;
        screen->width = known ? size.ws_col : 80;
}

static void append_cut(GString *text, const char *line, size_t width) {
        size_t size;

        (void) render_cell_prefix(line, width, &size);
        g_string_append_len(text, line, (gssize) size);
        g_string_append_c(text, '\n');
}

static char *title(const Watch *watch) {
        const WatchChanges *changes = &watch->changes;
        GString *text = g_string_new(NULL);
        uint64_t n = watch_table_count(watch->table);

        if (watch->trigger.watch)
                g_string_append(text, "After each change");
        else
                g_string_append_printf(text, "Every %g s",
                                       (double) (watch->options->interval_usec ?: (uint64_t) CLOCK_USEC) / 1e6);
        g_string_append_printf(text, "  %s  %" G_GUINT64_FORMAT " row%s", watch->time, n, n == 1 ? "" : "s");
        if (changes->n_changed > 0)
                g_string_append_printf(text, ", %" G_GUINT64_FORMAT " changed", changes->n_changed);
        if (changes->n_new > 0)
                g_string_append_printf(text, ", %" G_GUINT64_FORMAT " new", changes->n_new);
        if (changes->n_gone > 0)
                g_string_append_printf(text, ", %" G_GUINT64_FORMAT " gone", changes->n_gone);
        g_string_append(text, "  (q ends)");
        return g_string_free(text, FALSE);
}

static void draw(Watch *watch) {
        Screen *screen = &watch->screen;
        g_autoptr(GString) text = g_string_new(NULL), sql = g_string_new(NULL);
        g_autofree char *first = title(watch), *rows = NULL;
        g_auto(GStrv) lines = NULL;

        measure(screen);
        format_shown_text(sql, watch->options->sql, strlen(watch->options->sql), 4 * screen->width);
        append_cut(text, first, screen->width);
        append_cut(text, sql->str, screen->width);
        /* The last line is for the cursor and for error messages. */
        rows = watch_table_draw(watch->table, screen->width, MAX(screen->height, 4) - 3, watch->shell->settings.colors);
        g_string_append(text, rows);

        lines = g_strsplit(text->str, "\n", -1);
        if (!screen->drawn) /* scroll the screen's contents into the terminal's history */
                for (size_t i = 0; i < screen->height; i++)
                        putchar('\n');
        screen->drawn = true;
        fputs(GO_HOME, stdout);
        for (char **line = lines; line[1]; line++)
                printf("%s" CLEAR_LINE "\n", *line);
        fputs(CLEAR_BELOW, stdout);
        (void) fflush(stdout);
}

static int on_row(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        Watch *watch = userdata;

        if (!is_row) {
                g_autofree const char **names = cursor_names(cursor, &watch->n_columns);

                g_free(watch->values);
                watch->values = g_new0(Value, watch->n_columns + 1);
                watch_table_free(watch->table); /* of a round that failed before its first row */
                watch->table = watch_table_new(names, watch->n_columns, watch->shell->settings.null ?: "NULL");
        } else {
                cursor_values(cursor, watch->values, watch->n_columns);
                watch_table_add(watch->table, watch->values);
        }
        return 0;
}

static int run_round(Watch *watch) {
        Shell *shell = watch->shell;
        const sqlipc_parameter *parameters;
        size_t n_parameters;
        int r;

        watch_table_free(watch->before);
        watch->before = g_steal_pointer(&watch->table);
        dialect_look_up(shell);
        parameters = parameter_list_for(shell->parameters, session_dialect(&shell->session), watch->options->sql,
                                        &n_parameters);
        r = query_run(shell, watch->options->sql, parameters, n_parameters, on_row, watch, NULL);
        if (r < 0) { /* keep the last complete result for the next comparison */
                watch_table_free(watch->table);
                watch->table = g_steal_pointer(&watch->before);
                return r;
        }
        watch->changes = watch_table_compare(watch->table, watch->before);
        return 0;
}

static void note_time(Watch *watch) {
        g_autoptr(GDateTime) now = g_date_time_new_now_local();

        g_free(watch->time);
        watch->time = g_date_time_format(now, "%F %T");
}

/* Returns false if the user ends it. */
static bool wait_for_round(Watch *watch) {
        gint64 since = g_get_monotonic_time();

        for (;;) {
                WatchEvent event = wait_for_trigger(&watch->trigger, since, watch->screen.keys);

                if (event != WATCH_RESIZE)
                        return event == WATCH_TIME;
                if (watch->table)
                        draw(watch);
        }
}

static int watch_screen(Watch *watch) {
        const uint64_t n = watch->options->n_rounds;
        int r = 0;

        for (uint64_t round = 0; n == 0 || round < n; round++) {
                if (round > 0 && !wait_for_round(watch))
                        return 0;
                r = ready_trigger(&watch->trigger);
                if (r >= 0)
                        r = run_round(watch);
                if (r == -ECANCELED)
                        return 0;
                if (r < 0 && !may_come_back(watch->shell, r))
                        return r;
                if (r >= 0) {
                        note_time(watch);
                        draw(watch);
                }
        }
        return r;
}

static int watch_on_terminal(Shell *shell, const WatchOptions *options) {
        Watch watch = { .shell = shell, .options = options, .trigger = { .shell = shell, .options = options } };
        int r;

        watch.screen.keys = keys_take(&watch.screen.before);
        r = watch_screen(&watch);
        if (watch.screen.keys)
                keys_give_back(&watch.screen.before);
        (void) sqlipc_watch_close(watch.trigger.watch);
        watch_table_free(watch.table);
        watch_table_free(watch.before);
        g_free(watch.values);
        g_free(watch.time);
        return r;
}

/* ---- Elsewhere ---------------------------------------------------------------------------------------------------- */

/* Prints a round like a typed statement, but without a pager, which would wait for the user. */
static int print_round(Shell *shell, const WatchOptions *options, bool first) {
        g_autofree char *none = g_strdup("");
        char *pager;
        int r = 0;

        if (!first)
                r = answer_text(shell, "\n");
        if (r < 0)
                return r;
        pager = shell->settings.pager;
        shell->settings.pager = none;
        r = query_print(shell, options->sql);
        shell->settings.pager = pager;
        return r;
}

static bool wait_elsewhere(Trigger *trigger) {
        gint64 since = g_get_monotonic_time();
        WatchEvent event;

        do
                event = wait_for_trigger(trigger, since, false);
        while (event == WATCH_RESIZE);
        return event == WATCH_TIME;
}

static int print_rounds(Shell *shell, const WatchOptions *options, Trigger *trigger) {
        int r = 0;

        for (uint64_t round = 0; options->n_rounds == 0 || round < options->n_rounds; round++) {
                if (round > 0 && !wait_elsewhere(trigger))
                        return -ECANCELED;
                r = ready_trigger(trigger);
                if (r >= 0)
                        r = print_round(shell, options, round == 0);
                if (r < 0 && !may_come_back(shell, r))
                        return r;
        }
        return r;
}

static int watch_elsewhere(Shell *shell, const WatchOptions *options) {
        Trigger trigger = { .shell = shell, .options = options };
        int r = print_rounds(shell, options, &trigger);

        (void) sqlipc_watch_close(trigger.watch);
        return r;
}

/* ---- Entry point -------------------------------------------------------------------------------------------------- */

static bool can_draw(Shell *shell) {
        const char *term = g_getenv("TERM");

        return shell->interactive && output_is_terminal(shell->output) && term && !g_str_equal(term, "dumb");
}

int watch_run(Shell *shell, const WatchOptions *options) {
        return can_draw(shell) ? watch_on_terminal(shell, options) : watch_elsewhere(shell, options);
}
