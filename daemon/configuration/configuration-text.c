/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lines and values of the configuration. Pure. */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "daemon/configuration/configuration-text.h"

#define USEC_PER_SEC UINT64_C(1000000)
#define BLANKS " \t\r\v\f"

/* ---- Lines ---- */

void config_reader_init(ConfigReader *r, char *text) {
        *r = (ConfigReader) { .rest = text };
}

/* "[Limits]" -> "Limits"; NULL: it is not the head of a section. */
static char *section_name(char *line) {
        size_t n = strlen(line);

        if (n < 3 || line[0] != '[' || strcspn(line, "]") != n - 1)
                return NULL;
        line[n - 1] = 0;
        return line + 1;
}

static ConfigItem read_line(ConfigReader *r, char *line) {
        if (line[0] == '[') {
                char *section = section_name(line);
                if (section)
                        r->section = section;
                else
                        r->value = line;
                return section ? CONFIG_SECTION : CONFIG_BAD;
        }
        char *equals = strchr(line, '=');
        if (!equals || equals == line) {
                r->value = line;
                return CONFIG_BAD;
        }
        *equals = 0;
        r->key = g_strchomp(line);
        r->value = g_strchug(equals + 1);
        return CONFIG_ASSIGNMENT;
}

ConfigItem config_reader_next(ConfigReader *r) {
        while (r->rest) {
                char *line = strsep(&r->rest, "\n");

                r->line++;
                line += strspn(line, BLANKS);
                if (line[0] != 0 && line[0] != '#' && line[0] != ';')
                        return read_line(r, g_strchomp(line));
        }
        return CONFIG_END;
}

/* ---- Values ---- */

int config_unescape(char *value) {
        static const char letters[] = "sntr\\", meant[] = " \n\t\r\\";
        char *to = value;

        for (const char *from = value; *from; from++) {
                const char *letter = NULL;

                if (*from == '\\') {
                        letter = from[1] ? strchr(letters, from[1]) : NULL;
                        if (!letter)
                                return -EINVAL;
                        from++;
                }
                *to++ = letter ? meant[letter - letters] : *from;
        }
        *to = 0;
        return 0;
}

int config_next_word(const char **rest, char **ret_word) {
        const char *at = *rest + strspn(*rest, BLANKS);
        g_autoptr(GString) word = NULL;
        char quote = 0;

        if (*at == 0)
                return 0;
        word = g_string_new(NULL);
        for (; *at && (quote || !strchr(BLANKS, *at)); at++) {
                if (*at == '\\') {
                        if (*++at == 0)
                                return -EINVAL;
                        g_string_append_c(word, *at);
                } else if (quote ? *at == quote : *at == '"' || *at == '\'')
                        quote = quote ? 0 : *at;
                else
                        g_string_append_c(word, *at);
        }
        if (quote)
                return -EINVAL;
        *rest = at;
        *ret_word = g_string_free(g_steal_pointer(&word), FALSE);
        return 1;
}

/* Parses digits up to the first other character. */
static int parse_digits(const char *text, uint64_t *ret, const char **ret_rest) {
        const char *end = text;

        while (g_ascii_isdigit(*end))
                end++;
        if (end == text)
                return -EINVAL;
        errno = 0;
        *ret = g_ascii_strtoull(text, NULL, 10);
        *ret_rest = end;
        return errno == ERANGE ? -ERANGE : 0;
}

int parse_size(const char *text, uint64_t *ret_size) {
        static const char suffixes[] = "KMGT";
        const char *rest;
        uint64_t n;
        unsigned shift = 0;
        int r = parse_digits(text, &n, &rest);

        if (r < 0)
                return r;
        if (*rest) {
                const char *suffix = strchr(suffixes, *rest);
                if (!suffix || rest[1])
                        return -EINVAL;
                shift = 10 * (unsigned) (suffix - suffixes + 1);
        }
        if (n > UINT64_MAX >> shift)
                return -ERANGE;
        *ret_size = n << shift;
        return 0;
}

int parse_seconds(const char *text, uint64_t *ret_usec) {
        const char *rest;
        uint64_t whole, fraction = 0;

        if (strcmp(text, "infinity") == 0) {
                *ret_usec = UINT64_MAX;
                return 0;
        }
        int r = parse_digits(text, &whole, &rest);
        if (r < 0)
                return r;
        if (*rest == '.') {
                uint64_t unit = USEC_PER_SEC / 10;

                if (!g_ascii_isdigit(*++rest))
                        return -EINVAL;
                for (; g_ascii_isdigit(*rest); rest++, unit /= 10) /* digits below a microsecond are dropped */
                        fraction += unit * (uint64_t) (*rest - '0');
        }
        if (*rest)
                return -EINVAL;
        if (whole > (UINT64_MAX - fraction) / USEC_PER_SEC)
                return -ERANGE;
        *ret_usec = whole * USEC_PER_SEC + fraction;
        return 0;
}

int parse_count(const char *text, uint64_t *ret) {
        const char *rest;
        uint64_t n;
        int r = parse_digits(text, &n, &rest);

        if (r < 0)
                return r;
        if (*rest)
                return -EINVAL;
        *ret = n;
        return 0;
}

int parse_boolean(const char *text, bool *ret) {
        static const char *const yes[] = { "yes", "true", "on", "1", NULL };
        static const char *const no[] = { "no", "false", "off", "0", NULL };

        if (g_strv_contains(yes, text))
                *ret = true;
        else if (g_strv_contains(no, text))
                *ret = false;
        else
                return -EINVAL;
        return 0;
}

int parse_id(const char *text, uint32_t *ret) {
        const char *rest;
        uint64_t n = 0;
        int r = parse_digits(text, &n, &rest);

        if (r == -EINVAL || *rest)
                return -EINVAL;
        if (r < 0 || n >= UINT32_MAX) /* the kernel uses the largest id for "no user" */
                return -ERANGE;
        *ret = (uint32_t) n;
        return 0;
}
