/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of settings, and the kinds of their values (settings.h). Pure. */
#include "tools/cli/shell/settings.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* A limit that no run needs to exceed: a month. */
#define TIMEOUT_MAX_SECONDS ((double) 31 * 24 * 3600)
enum { WIDTHS_MAX = 32767, WIDTH_MAX = 10000 };

typedef struct Setting Setting;

/* How a kind of value is parsed and formatted, and its possible values. */
typedef struct SettingKind {
        const char *expected; /* "it is ..." */
        int (*read)(Settings *settings, const Setting *setting, const char *value);
        char *(*write)(const Settings *settings, const Setting *setting);
        const char *const *values; /* NULL: any, or those of `list_values` */
        const char *const *(*list_values)(void);
} SettingKind;

struct Setting {
        const char *name;
        const SettingKind *kind;
        size_t offset; /* in Settings */
};

static void *field(Settings *settings, const Setting *setting) {
        return (char *) settings + setting->offset;
}

static const void *const_field(const Settings *settings, const Setting *setting) {
        return (const char *) settings + setting->offset;
}

/* ---- on, off, auto ------------------------------------------------------------------------------------------------ */

/* Returns 1 for on, 0 for off, -EINVAL for anything else. */
static int read_on_off(const char *value) {
        static const char *const on[] = { "on", "yes", "true", "1", NULL };
        static const char *const off[] = { "off", "no", "false", "0", NULL };
        g_autofree char *word = g_ascii_strdown(value, -1);

        if (g_strv_contains(on, word))
                return 1;
        return g_strv_contains(off, word) ? 0 : -EINVAL;
}

static int read_bool(Settings *settings, const Setting *setting, const char *value) {
        int r = read_on_off(value);

        if (r >= 0)
                *(bool *) field(settings, setting) = r;
        return r;
}

static char *write_bool(const Settings *settings, const Setting *setting) {
        return g_strdup(*(const bool *) const_field(settings, setting) ? "on" : "off");
}

static int read_toggle(Settings *settings, const Setting *setting, const char *value) {
        int r = g_ascii_strcasecmp(value, "auto") == 0 ? TOGGLE_AUTO : read_on_off(value);

        if (r >= 0)
                *(Toggle *) field(settings, setting) = (Toggle) r;
        return r;
}

static const char *const bool_values[] = { "off", "on", NULL };
static const char *const toggle_values[] = { "off", "on", "auto", NULL }; /* by Toggle */

static char *write_toggle(const Settings *settings, const Setting *setting) {
        return g_strdup(toggle_values[*(const Toggle *) const_field(settings, setting)]);
}

static const SettingKind kind_bool = { "on or off", read_bool, write_bool, .values = bool_values };
static const SettingKind kind_toggle = { "on, off or auto", read_toggle, write_toggle, .values = toggle_values };

/* ---- Text --------------------------------------------------------------------------------------------------------- */

/* Reads a text; "auto" is the default. */
static int read_text(Settings *settings, const Setting *setting, const char *value) {
        char **text = field(settings, setting);

        g_free(*text);
        *text = g_str_equal(value, "auto") ? NULL : g_strdup(value);
        return 0;
}

static char *write_text(const Settings *settings, const Setting *setting) {
        return g_strdup(*(char *const *) const_field(settings, setting) ?: "auto");
}

/* Reads a pager; the empty text means no pager, which users write as "off". */
static int read_pager(Settings *settings, const Setting *setting, const char *value) {
        return read_text(settings, setting, read_on_off(value) == 0 ? "" : value);
}

static char *write_pager(const Settings *settings, const Setting *setting) {
        g_autofree char *text = write_text(settings, setting);

        return *text ? g_steal_pointer(&text) : g_strdup("off");
}

static const char *const pager_values[] = { "auto", "off", NULL };
static const SettingKind kind_text = { "any text", read_text, write_text };
static const SettingKind kind_pager = { "a command, off or auto", read_pager, write_pager, .values = pager_values };

/* ---- Modes and transports ----------------------------------------------------------------------------------------- */

static const char *const *mode_values(void) {
        static const char *names[_RENDER_MODE_MAX + 1];

        for (int mode = 0; mode < _RENDER_MODE_MAX; mode++)
                names[mode] = render_mode_to_string((RenderMode) mode);
        return names;
}

static int read_mode(Settings *settings, const Setting *setting, const char *value) {
        RenderMode mode = render_mode_from_string(value);

        (void) setting;
        if (mode == _RENDER_MODE_INVALID)
                return -EINVAL;
        settings->mode = mode;
        settings->mode_chosen = true;
        return 0;
}

static char *write_mode(const Settings *settings, const Setting *setting) {
        (void) setting;
        return g_strdup(render_mode_to_string(settings->mode));
}

/* Indexed by sqlipc_transport. */
static const char *const transport_values[] = { "auto", "pipe", "channel", "dbus", NULL };

static int read_transport(Settings *settings, const Setting *setting, const char *value) {
        (void) setting;
        for (int i = 0; transport_values[i]; i++)
                if (g_str_equal(transport_values[i], value)) {
                        settings->transport = (sqlipc_transport) i;
                        return 0;
                }
        return -EINVAL;
}

static char *write_transport(const Settings *settings, const Setting *setting) {
        (void) setting;
        return g_strdup(transport_values[settings->transport]);
}

static const SettingKind kind_mode = { NULL, read_mode, write_mode, .list_values = mode_values };
static const SettingKind kind_transport = { NULL, read_transport, write_transport, .values = transport_values };

/* ---- Numbers ------------------------------------------------------------------------------------------------------ */

static const char *const or_off_values[] = { "off", NULL };

/* Reads seconds, like "30" or "0.5". */
static int read_seconds(Settings *settings, const Setting *setting, const char *value) {
        char *end;
        double seconds = g_ascii_strtod(value, &end);

        if (read_on_off(value) == 0)
                seconds = 0;
        else if (end == value || *end || !(seconds >= 0.001 && seconds <= TIMEOUT_MAX_SECONDS))
                return -EINVAL;
        *(uint64_t *) field(settings, setting) = (uint64_t) (seconds * 1e6 + 0.5);
        return 0;
}

static char *write_seconds(const Settings *settings, const Setting *setting) {
        uint64_t usec = *(const uint64_t *) const_field(settings, setting);
        char buffer[G_ASCII_DTOSTR_BUF_SIZE];

        return g_strdup(usec == 0 ? "off" : g_ascii_formatd(buffer, sizeof buffer, "%.10g", (double) usec / 1e6));
}

static int read_count(Settings *settings, const Setting *setting, const char *value) {
        guint64 count = 0;

        if (read_on_off(value) != 0 && !g_ascii_string_to_unsigned(value, 10, 1, G_MAXINT64, &count, NULL))
                return -EINVAL;
        *(uint64_t *) field(settings, setting) = count;
        return 0;
}

static char *write_count(const Settings *settings, const Setting *setting) {
        uint64_t count = *(const uint64_t *) const_field(settings, setting);

        return count == 0 ? g_strdup("off") : g_strdup_printf("%" G_GUINT64_FORMAT, count);
}

/* Reads all widths or none: a list with a mistake changes nothing. The empty list is "auto". */
static int read_widths(Settings *settings, const Setting *setting, const char *value) {
        g_auto(GStrv) words = g_strsplit_set(g_str_equal(value, "auto") ? "" : value, " \t", -1);
        g_autofree int *widths = g_new(int, g_strv_length(words) + 1);
        size_t n = 0;

        (void) setting;
        for (char **word = words; *word; word++) {
                gint64 width;

                if (!**word)
                        continue;
                if (n == WIDTHS_MAX || !g_ascii_string_to_signed(*word, 10, -WIDTH_MAX, WIDTH_MAX, &width, NULL))
                        return -EINVAL;
                widths[n++] = (int) width;
        }
        g_free(settings->widths);
        settings->widths = g_steal_pointer(&widths);
        settings->n_widths = n;
        return 0;
}

static char *write_widths(const Settings *settings, const Setting *setting) {
        GString *text = g_string_new(settings->n_widths > 0 ? NULL : "auto");

        (void) setting;
        for (size_t i = 0; i < settings->n_widths; i++)
                g_string_append_printf(text, "%s%d", i > 0 ? " " : "", settings->widths[i]);
        return g_string_free(text, FALSE);
}

static const SettingKind kind_seconds = { "a number of seconds, or off", read_seconds, write_seconds,
                                          .values = or_off_values };
static const SettingKind kind_count = { "a number, or off", read_count, write_count, .values = or_off_values };
static const SettingKind kind_widths = { "numbers of characters, negative to flush right, 0 for as wide as the values",
                                         read_widths, write_widths };

/* ---- The table ---------------------------------------------------------------------------------------------------- */

#define AT(member) offsetof(Settings, member)

static const Setting table[] = {
        { "mode", &kind_mode, 0 },
        { "headers", &kind_toggle, AT(headers) },
        { "vertical", &kind_toggle, AT(vertical) },
        { "nullvalue", &kind_text, AT(null) },
        { "separator", &kind_text, AT(separator) },
        { "insert-table", &kind_text, AT(insert_table) },
        { "width", &kind_widths, 0 },
        { "color", &kind_bool, AT(colors) },
        { "pager", &kind_pager, AT(pager) },
        { "footer", &kind_bool, AT(footer) },
        { "timer", &kind_bool, AT(timer) },
        { "stats", &kind_bool, AT(stats) },
        { "changes", &kind_bool, AT(changes) },
        { "progress", &kind_bool, AT(progress) },
        { "eqp", &kind_bool, AT(explain) },
        { "echo", &kind_bool, AT(echo) },
        { "bail", &kind_bool, AT(bail) },
        { "verbose", &kind_toggle, AT(verbose) },
        { "timeout", &kind_seconds, AT(timeout_usec) },
        { "rows", &kind_count, AT(rows_max) },
        { "transport", &kind_transport, 0 },
};

static const Setting *find(const char *name) {
        for (size_t i = 0; i < G_N_ELEMENTS(table); i++)
                if (g_str_equal(table[i].name, name))
                        return &table[i];
        return NULL;
}

static const char *const *kind_values(const SettingKind *kind) {
        return kind->list_values ? kind->list_values() : kind->values;
}

void settings_init(Settings *settings) {
        *settings = (Settings) {
                .mode = RENDER_TABLE,
                .headers = TOGGLE_AUTO,
                .vertical = TOGGLE_AUTO,
                .verbose = TOGGLE_AUTO,
                .footer = true,
                .progress = true,
                .transport = SQLIPC_TRANSPORT_AUTO,
        };
}

void settings_done(Settings *settings) {
        g_clear_pointer(&settings->null, g_free);
        g_clear_pointer(&settings->separator, g_free);
        g_clear_pointer(&settings->insert_table, g_free);
        g_clear_pointer(&settings->widths, g_free);
        g_clear_pointer(&settings->pager, g_free);
}

int settings_set(Settings *settings, const char *name, const char *value, char **ret_message) {
        const Setting *setting = find(name);
        g_autofree char *one_of = NULL;

        if (!setting) {
                *ret_message = g_strdup("there is no such setting");
                return -ENOENT;
        }
        if (setting->kind->read(settings, setting, value) >= 0)
                return 0;
        if (!setting->kind->expected)
                one_of = g_strjoinv(", ", (char **) kind_values(setting->kind));
        *ret_message = g_strdup_printf("it is %s%s", one_of ? "one of " : "", one_of ?: setting->kind->expected);
        return -EINVAL;
}

char *settings_get(const Settings *settings, const char *name) {
        const Setting *setting = find(name);

        return setting ? setting->kind->write(settings, setting) : NULL;
}

const char *const *settings_names(void) {
        static const char *names[G_N_ELEMENTS(table) + 1];

        for (size_t i = 0; i < G_N_ELEMENTS(table); i++)
                names[i] = table[i].name;
        return names;
}

const char *const *settings_values(const char *name) {
        const Setting *setting = find(name);

        return setting ? kind_values(setting->kind) : NULL;
}
