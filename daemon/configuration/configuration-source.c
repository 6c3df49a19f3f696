/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parses one text of the configuration. Pure. */
#include <limits.h>
#include <string.h>

#include "daemon/configuration/configuration-source.h"
#include "daemon/configuration/configuration-text.h"
#include "daemon/configuration/dbus-text.h"

/* Maximum lengths in messages: enough to recognise a line, and for a sentence about a value. */
#define LINE_SHOWN 80
#define SENTENCE_SHOWN 400

#define TOLD_MAX 20 /* messages about one text */

/* No key has as many letters; longer words resemble none. */
#define WORD_SIZE_MAX ((size_t) 40)

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

void database_key_set_boolean(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d) {
        place_set_boolean(p, key->name, value, (bool *) G_STRUCT_MEMBER_P(d, key->offset));
}

bool place_unescape(Place *p, const char *key, char *value) {
        if (config_unescape(value) == 0)
                return true;
        place_broken(p, "%s=: behind a backslash only s, n, t, r and another one are known", key);
        return false;
}

/* ---- Names that are not known ---- */

/* Counts the letters that must be changed, added, removed or exchanged with the next one to turn `a` into `b`. The case does
 * not matter. */
static unsigned count_typos(const char *a, const char *b) {
        size_t n_a = strlen(a), n_b = strlen(b);
        unsigned counts[3][WORD_SIZE_MAX + 1] = {}, *before = counts[0], *last = counts[1], *now = counts[2];

        for (size_t j = 0; j <= n_b; j++)
                now[j] = (unsigned) j;
        for (size_t i = 1; i <= n_a; i++) {
                unsigned *oldest = before;

                before = last;
                last = now;
                now = oldest;
                now[0] = (unsigned) i;
                for (size_t j = 1; j <= n_b; j++) {
                        char x = g_ascii_tolower(a[i - 1]), y = g_ascii_tolower(b[j - 1]);

                        now[j] = MIN(MIN(last[j], now[j - 1]) + 1, last[j - 1] + (x != y));
                        if (i > 1 && j > 1 && x == g_ascii_tolower(b[j - 2]) && y == g_ascii_tolower(a[i - 2]))
                                now[j] = MIN(now[j], before[j - 2] + 1);
                }
        }
        return now[n_b];
}

/* Remembers `known` if `word` resembles it more than `*ret_nearest`. */
static void compare(const char *word, const char *known, unsigned *n_typos, const char **ret_nearest) {
        if (strlen(word) > WORD_SIZE_MAX || strlen(known) > WORD_SIZE_MAX)
                return;
        unsigned n = count_typos(word, known);

        if (n < *n_typos && n <= (strlen(known) + 1) / 3) {
                *n_typos = n;
                *ret_nearest = known;
        }
}

static const char *nearest_key(const SectionRow *section, const char *key) {
        const char *nearest = NULL, *known;
        unsigned n_typos = UINT_MAX;

        for (size_t i = 0; (known = section->key_at(i)); i++)
                compare(key, known, &n_typos, &nearest);
        return nearest;
}

static const char *nearest_section(const SectionRow *sections, const char *name) {
        const char *nearest = NULL;
        unsigned n_typos = UINT_MAX;

        for (; sections->section; sections++)
                compare(name, sections->section, &n_typos, &nearest);
        return nearest;
}

/* Returns the section that has `key`. */
static const SectionRow *section_of(const SectionRow *sections, const char *key) {
        for (; sections->section; sections++) {
                const char *nearest = nearest_key(sections, key);

                if (nearest && strcmp(nearest, key) == 0)
                        return sections;
        }
        return NULL;
}

static bool is_optional(const char *name) {
        return g_str_has_prefix(name, "X-");
}

static void reject_section(Place *p, const SectionRow *sections, const char *name) {
        const char *nearest = nearest_section(sections, name);

        place_broken(p, "section [%.*s] is not known%s%s%s", LINE_SHOWN, name, nearest ? ": perhaps [" : "", nearest ?: "",
                     nearest ? "] is meant" : "");
}

static void reject_key(Place *p, const SectionRow *sections, const SectionRow *section, const char *key) {
        const SectionRow *other = section_of(sections, key);
        const char *nearest = nearest_key(section, key);

        if (other)
                place_broken(p, "key %s= belongs in the section [%s], not in [%s]", key, other->section,
                             section->section);
        else
                place_broken(p, "key %.*s= is not known%s%s%s", LINE_SHOWN, key, nearest ? ": perhaps " : "", nearest ?: "",
                             nearest ? "= is meant" : "");
}

/* ---- Lines ---- */

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
        else if (!section && !is_optional(name))
                reject_section(p, sections, name);
        if (section && section->ret_line && *section->ret_line == 0)
                *section->ret_line = p->line;
        return section;
}

static void assign(Place *p, GHashTable *lines, const SectionRow *sections, const SectionRow *section,
                   const ConfigReader *reader, void *target) {
        KeyKind kind = section->set(p, target, reader->key, reader->value);

        if (kind == KEY_UNKNOWN && !is_optional(reader->key))
                reject_key(p, sections, section, reader->key);
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
                        assign(&p, lines, sections, section, &reader, target);
        }
        return p.broken;
}
