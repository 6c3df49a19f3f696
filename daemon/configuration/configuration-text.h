/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Splits the text of a configuration file into lines, and parses values. Pure.
 *
 * The syntax is systemd's: sections, KEY=VALUE, comments after # or ; at the start of a line; blanks around keys and values
 * are ignored. GKeyFile reads it as well, but has no line numbers, joins sections and keeps only the last of several equal
 * keys. Our messages need these facts, and lists add up by equal keys.
 */
#ifndef SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_TEXT_H
#define SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ConfigItem {
        CONFIG_END,
        CONFIG_SECTION,    /* section */
        CONFIG_ASSIGNMENT, /* section (NULL: before the first), key, value */
        CONFIG_BAD,        /* value: the line */
} ConfigItem;

typedef struct ConfigReader {
        char *rest;
        unsigned line;     /* of the item; the first is 1 */
        char *section, *key, *value;
} ConfigReader;

/* Starts to read `text`, which is changed and must outlive the reader. */
void config_reader_init(ConfigReader *r, char *text);

/* Returns the next item. Its strings are valid as long as the text. Blank lines and comments are skipped. */
ConfigItem config_reader_next(ConfigReader *r);

/* Replaces \s, \n, \t, \r and \\ in a value for people (Path=, Description=), in place. -EINVAL: another escape. */
int config_unescape(char *value);

/* Returns the next word of a list, by systemd's rules: "..." and '...' keep blanks together, and a backslash takes the next
 * character literally. The caller frees it. 1: `ret_word` is set; 0: there is no more; -EINVAL: a quote is not closed, or a
 * backslash is the last character. */
int config_next_word(const char **rest, char **ret_word);

/* "600", "0.5" -> usec, "infinity" -> UINT64_MAX; "64M" -> bytes; digits; booleans as systemd writes them. -EINVAL; -ERANGE
 * past 64 bit. */
int parse_seconds(const char *text, uint64_t *ret_usec);
int parse_size(const char *text, uint64_t *ret_size);
int parse_count(const char *text, uint64_t *ret);
int parse_boolean(const char *text, bool *ret);

/* A uid or gid in digits. -EINVAL: it is not a number but a name; -ERANGE: no user can have this number. */
int parse_id(const char *text, uint32_t *ret);

#endif
