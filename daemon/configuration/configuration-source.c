/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parses one text of the configuration. Pure. */
#include <string.h>

#include "daemon/configuration/configuration-source.h"
#include "daemon/configuration/configuration-text.h"
#include "daemon/configuration/dbus-text.h"

/* Maximum lengths in messages: enough to recognise a line, and for a sentence about a value. */
#define LINE_SHOWN 80
#define SENTENCE_SHOWN 400

#define TOLD_MAX 20 /* messages about one text */

static bool may_tell(Place *p) {
        if (p->n_told == TOLD_MAX)
                config_add_warning(p->config, "%s:%u: what is wrong or odd from here on is not told", p->file, p->line);
        return p->n_told++ < TOLD_MAX;
}

void place_broken(Place *p, const char *format, ...) {
        va_list ap;

        p->broken = true;
        if (!may_tell(p))
                return;
        va_start(ap, format);
        g_autofree char *sentence = g_strdup_vprintf(format, ap);
        va_end(ap);
        config_add_broken(p->config, p->name, "%s:%u: %.*s", p->file, p->line, SENTENCE_SHOWN, sentence);
}

void place_warn(Place *p, const char *format, ...) {
        va_list ap;

        if (!may_tell(p))
                return;
        va_start(ap, format);
        g_autofree char *sentence = g_strdup_vprintf(format, ap);
        va_end(ap);
        config_add_warning(p->config, "%s:%u: %.*s", p->file, p->line, SENTENCE_SHOWN, sentence);
}

void place_set_boolean(Place *p, const char *key, const char *value, bool *ret) {
        if (parse_boolean(value, ret) < 0)
                place_broken(p, "%s=%s: give yes or no", key, value);
}

bool place_unescape(Place *p, const char *key, char *value) {
        if (config_unescape(value) == 0)
                return true;
        place_broken(p, "%s=: behind a backslash only s, n, t, r and another one are known", key);
        return false;
}

static const SectionRow *find_section(const SectionRow *sections, const char *name) {
        for (; sections->section; sections++)
                if (strcmp(sections->section, name) == 0)
                        return sections;
        return NULL;
}

/* Returns the line on which `name` was before, 0: on none. Remembers `line` for it. Takes `name`. */
static unsigned remember(GHashTable *lines, char *name, unsigned line) {
        unsigned before = GPOINTER_TO_UINT(g_hash_table_lookup(lines, name));

        g_hash_table_replace(lines, name, GUINT_TO_POINTER(line));
        return before;
}

static const SectionRow *enter_section(Place *p, GHashTable *lines, const SectionRow *sections, const char *name) {
        const SectionRow *section = find_section(sections, name);
        unsigned before = remember(lines, g_strdup_printf("[%s]", name), p->line);

        if (before > 0)
                place_warn(p, "section [%s] begins on line %u already; the keys of both are used", name, before);
        else if (!section)
                place_warn(p, "section [%s] is not known and does nothing", name);
        if (section && section->ret_line && *section->ret_line == 0)
                *section->ret_line = p->line;
        return section;
}

static void assign(Place *p, GHashTable *lines, const SectionRow *section, const ConfigReader *reader, void *target) {
        KeyKind kind = section->set(p, target, reader->key, reader->value);

        if (kind == KEY_UNKNOWN)
                place_warn(p, "key %s= is not known and does nothing", reader->key);
        unsigned before = remember(lines, g_strdup_printf("%s %s", section->section, reader->key), p->line);
        if (kind == KEY_SINGLE && before > 0)
                place_warn(p, "key %s= is on line %u already; this one counts", reader->key, before);
}

bool config_walk(Config *c, const char *name, const ConfigText *text, const SectionRow *sections, void *target) {
        g_autoptr(GHashTable) lines = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        Place p = { .config = c, .name = name, .file = text->file };
        const SectionRow *section = NULL;
        ConfigReader reader;
        ConfigItem item;

        if (memchr(text->text, 0, text->size)) {
                config_add_broken(c, name, "%s: the file holds NUL bytes", text->file);
                return true;
        }
        if (!dbus_text_is_valid(text->text, text->size)) { /* a description is sent over D-Bus unchanged */
                config_add_broken(c, name, "%s: the file is no UTF-8, or holds noncharacters such as U+FFFE", text->file);
                return true;
        }
        g_autofree char *copy = g_strndup(text->text, text->size);
        config_reader_init(&reader, copy);
        while ((item = config_reader_next(&reader)) != CONFIG_END) {
                p.line = reader.line;
                if (item == CONFIG_SECTION)
                        section = enter_section(&p, lines, sections, reader.section);
                else if (item == CONFIG_BAD)
                        place_broken(&p, "\"%.*s\" is no [SECTION], no KEY=VALUE and no # comment", LINE_SHOWN,
                                     reader.value);
                else if (!reader.section)
                        place_broken(&p, "%s= is before the first section", reader.key);
                else if (section)
                        assign(&p, lines, section, &reader, target);
        }
        return p.broken;
}
