/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Log lines: journal or standard error. Supervisor. */
#define SD_JOURNAL_SUPPRESS_LOCATION

#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/log.h"

#define LIMIT_USEC UINT64_C(60000000)
#define LIMITED_MAX 1024u /* if a minute has more kinds of lines than this, the rest is not logged */
#define FIELDS_MAX 12

static struct {
        int level;
        LogTarget target;
        bool journal_is_stderr; /* for LOG_TARGET_AUTO */
        GHashTable *limited;    /* key -> Limited */
} state = { .level = LOG_INFO };

static const struct {
        const char *id;
        int priority;
} events[] = {
#define X(symbol, message_id, level) [LOG_EVENT_##symbol] = { .id = message_id, .priority = level },
        LOG_EVENT_TABLE(X)
#undef X
};

static const char *const levels[] = { "emerg", "alert", "crit", "err", "warning", "notice", "info", "debug" };
static const char *const targets[LOG_TARGET_MAX] = { "auto", "console", "journal", "null" };

/* ---- Settings ---- */

int log_level(void) {
        return state.level;
}

void log_set_level(int level) {
        state.level = level;
}

LogTarget log_target(void) {
        return state.target;
}

void log_set_target(LogTarget target) {
        state.target = target;
}

const char *log_level_to_string(int level) {
        return levels[level];
}

int log_level_from_string(const char *text) {
        for (size_t i = 0; i < G_N_ELEMENTS(levels); i++)
                if (strcmp(text, levels[i]) == 0 || (text[0] == (char) ('0' + i) && text[1] == 0))
                        return (int) i;
        return -EINVAL;
}

const char *log_target_to_string(LogTarget target) {
        return targets[target];
}

int log_target_from_string(const char *text) {
        for (size_t i = 0; i < G_N_ELEMENTS(targets); i++)
                if (strcmp(text, targets[i]) == 0)
                        return (int) i;
        return -EINVAL;
}

/* JOURNAL_STREAM= names the socket that was made for this service. Processes whose standard error was redirected inherit the
 * variable, too, so the socket must be compared. */
static bool stderr_is_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        uint64_t device, inode;
        struct stat st;

        return stream && sscanf(stream, "%" SCNu64 ":%" SCNu64, &device, &inode) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
               st.st_dev == device && st.st_ino == inode;
}

void log_setup(void) {
        const char *level = getenv("SQLIPC_LOG_LEVEL");

        state.journal_is_stderr = stderr_is_journal();
        if (!level)
                return;
        int r = log_level_from_string(level);
        if (r >= 0)
                state.level = r;
        else
                log_warning("SQLIPC_LOG_LEVEL=%s is no log level, \"info\" stays.", level);
}

/* ---- Lines ---- */

typedef struct Line {
        int priority;
        const char *message_id; /* NULL: the line is no event */
        LogFields fields;
        const char *text;
} Line;

static void add(char **fields, int *n, char *field) {
        fields[(*n)++] = field;
}

/* Makes the fields of the journal. Leaves out empty ones, which the journal would store. */
static int journal_fields(const Line *l, char *fields[static FIELDS_MAX]) {
        const LogFields *f = &l->fields;
        int n = 0;

        add(fields, &n, g_strdup_printf("PRIORITY=%i", l->priority));
        add(fields, &n, g_strdup_printf("MESSAGE=%s%s%s", f->database ?: "", f->database ? ": " : "", l->text));
        add(fields, &n, g_strdup("SYSLOG_IDENTIFIER=" LOG_IDENTIFIER));
        if (l->message_id)
                add(fields, &n, g_strdup_printf("MESSAGE_ID=%s", l->message_id));
        if (f->database)
                add(fields, &n, g_strdup_printf("SQLIPC_DATABASE=%s", f->database));
        if (f->client)
                add(fields, &n, g_strdup_printf("SQLIPC_CLIENT=%s", f->client));
        if (f->uid)
                add(fields, &n, g_strdup_printf("SQLIPC_UID=%u", (unsigned) *f->uid));
        if (f->run)
                add(fields, &n, g_strdup_printf("SQLIPC_RUN=%" PRIu64, f->run));
        if (f->error)
                add(fields, &n, g_strdup_printf("SQLIPC_ERROR=%s", f->error));
        if (f->worker_pid)
                add(fields, &n, g_strdup_printf("SQLIPC_WORKER_PID=%i", (int) f->worker_pid));
        if (f->usec) {
                add(fields, &n, g_strdup_printf("SQLIPC_USEC=%" PRIu64, f->usec));
                add(fields, &n, g_strdup_printf("SQLIPC_ROWS=%" PRIu64, f->rows));
        }
        return n;
}

static void send_to_journal(const Line *l) {
        char *fields[FIELDS_MAX];
        struct iovec iov[FIELDS_MAX];
        int n = journal_fields(l, fields);

        for (int i = 0; i < n; i++)
                iov[i] = (struct iovec) { .iov_base = fields[i], .iov_len = strlen(fields[i]) };
        (void) sd_journal_sendv(iov, n); /* if the journal fails, the error cannot be reported anywhere */
        for (int i = 0; i < n; i++)
                g_free(fields[i]);
}

/* Parts of a text come from a client, or from the author of a database. They must not begin a new line or control a
 * terminal. The journal keeps such parts within their entry, and journalctl does not show them raw. */
static char *in_one_line(const char *text) {
        GString *line = g_string_new(NULL);

        for (const char *next; *text; text = next) {
                gunichar c = g_utf8_get_char_validated(text, -1);
                bool valid = c < (gunichar) -2;

                next = valid ? g_utf8_next_char(text) : text + 1;
                if (valid && !g_unichar_iscntrl(c))
                        g_string_append_len(line, text, next - text);
                else
                        for (; text < next; text++)
                                g_string_append_printf(line, "\\x%02x", (unsigned char) *text);
        }
        return g_string_free(line, FALSE);
}

static bool goes_to_journal(void) {
        return state.target == LOG_TARGET_JOURNAL || (state.target == LOG_TARGET_AUTO && state.journal_is_stderr);
}

static void write_line(const Line *l) {
        if (state.target == LOG_TARGET_NULL)
                return;
        if (goes_to_journal()) {
                send_to_journal(l);
                return;
        }
        g_autofree char *text = in_one_line(l->text);
        fprintf(stderr, LOG_IDENTIFIER ": %s%s%s\n", l->fields.database ?: "", l->fields.database ? ": " : "", text);
}

static void write_formatted(int priority, const char *message_id, const LogFields *fields, const char *format, va_list ap)
        __attribute__((format(printf, 4, 0)));

static void write_formatted(int priority, const char *message_id, const LogFields *fields, const char *format,
                            va_list ap) {
        if (priority > state.level)
                return;
        g_autofree char *text = g_strdup_vprintf(format, ap);
        write_line(&(Line) {
                .priority = priority,
                .message_id = message_id,
                .fields = fields ? *fields : (LogFields) {},
                .text = text,
        });
}

void log_full(int priority, const char *database, const char *client, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        write_formatted(priority, NULL, &(LogFields) { .database = database, .client = client }, format, ap);
        va_end(ap);
}

void log_last(const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        if (state.journal_is_stderr && goes_to_journal() && LOG_ERR <= state.level) {
                g_autofree char *text = g_strdup_vprintf(format, ap), *line = in_one_line(text);

                fprintf(stderr, SD_ERR "%s\n", line);
        } else
                write_formatted(LOG_ERR, NULL, NULL, format, ap);
        va_end(ap);
}

void log_event(LogEvent event, const LogFields *fields, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        write_formatted(events[event].priority, events[event].id, fields, format, ap);
        va_end(ap);
}

/* ---- Limits: once a minute ---- */

typedef struct Limited {
        uint64_t until_usec;
        unsigned n_left_out;
} Limited;

static gboolean is_over(void *key, void *value, void *now) {
        return ((Limited *) value)->until_usec <= *(uint64_t *) now;
}

/* True if a line of this kind may be written. *ret_left_out: how many such lines were left out before it. */
static bool admit(const char *kind, const LogFields *fields, unsigned *ret_left_out) {
        int uid = fields->uid ? (int) *fields->uid : -1;
        g_autofree char *key = g_strdup_printf("%s/%s/%i", kind, fields->database ?: "", uid);
        uint64_t now = clock_usec();

        if (!state.limited)
                state.limited = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        Limited *l = g_hash_table_lookup(state.limited, key);
        if (l && now < l->until_usec) {
                l->n_left_out++;
                return false;
        }
        *ret_left_out = l ? l->n_left_out : 0;
        if (!l && g_hash_table_size(state.limited) >= LIMITED_MAX)
                (void) g_hash_table_foreach_remove(state.limited, is_over, &now);
        if (!l && g_hash_table_size(state.limited) >= LIMITED_MAX)
                return false;
        l = g_new(Limited, 1);
        *l = (Limited) { .until_usec = now + LIMIT_USEC };
        g_hash_table_insert(state.limited, g_steal_pointer(&key), l);
        return true;
}

static void write_limited(const char *kind, int priority, const char *message_id, const LogFields *fields,
                          const char *format, va_list ap) __attribute__((format(printf, 5, 0)));

static void write_limited(const char *kind, int priority, const char *message_id, const LogFields *fields,
                          const char *format, va_list ap) {
        static const LogFields none;
        unsigned left_out;

        if (priority > state.level || !admit(kind, fields ?: &none, &left_out))
                return;
        g_autofree char *text = g_strdup_vprintf(format, ap);
        g_autofree char *more = left_out > 0 ? g_strdup_printf(" (%u like this were not logged.)", left_out) : NULL;
        g_autofree char *whole = g_strconcat(text, more, NULL);
        write_line(&(Line) {
                .priority = priority,
                .message_id = message_id,
                .fields = fields ? *fields : none,
                .text = whole,
        });
}

void log_event_limited(LogEvent event, const char *what, const LogFields *fields, const char *format, ...) {
        g_autofree char *kind = g_strdup_printf("%i/%s", (int) event, what ?: "");
        va_list ap;

        va_start(ap, format);
        write_limited(kind, events[event].priority, events[event].id, fields, format, ap);
        va_end(ap);
}

void log_full_limited(int priority, const LogFields *fields, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        write_limited(format, priority, NULL, fields, format, ap);
        va_end(ap);
}
