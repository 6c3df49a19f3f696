/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text of a configuration file, line by line, and what stands behind a "=". Pure.
 *
 * The syntax is systemd's: sections, KEY=VALUE, comments behind # or ; at the start of a line; blanks around keys and
 * values do not count. GKeyFile reads it as well, but knows no line numbers, joins sections and drops all but the last of
 * equal keys: of those things our messages speak, and lists add up by equal keys.
 */
#ifndef SQLIPC_CONFIGURATION_TEXT_H
#define SQLIPC_CONFIGURATION_TEXT_H

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

/* Reads `text`, which it changes and which must outlive it. */
void config_reader_init(ConfigReader *r, char *text);

/* The next item; what it points to stays until the text goes. Blank lines and comments are no items. */
ConfigItem config_reader_next(ConfigReader *r);

/* A value for people (Path=, Description=): \s, \n, \t, \r and \\ become what they stand for, in place. -EINVAL: another
 * escape. */
int config_unescape(char *value);

/* The next word of a list, as systemd takes lists: "..." and '...' keep blanks together, a backslash takes the next
 * character as it is. Caller frees. 1; 0: there is no more; -EINVAL: a quote or backslash leads nowhere. */
int config_next_word(const char **rest, char **ret_word);

/* "600", "0.5" -> usec, "infinity" -> UINT64_MAX; "64M" -> bytes; digits; yes and no in systemd's ways. -EINVAL; -ERANGE
 * past 64 bit. */
int parse_seconds(const char *text, uint64_t *ret_usec);
int parse_size(const char *text, uint64_t *ret_size);
int parse_count(const char *text, uint64_t *ret);
int parse_boolean(const char *text, bool *ret);

/* A uid or gid in digits. -EINVAL: it is no number, but a name; -ERANGE: one that no user has. */
int parse_id(const char *text, uint32_t *ret);

#endif
