/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parses one text of the configuration. Each assignment goes to the function for its section. Errors of the text itself are
 * reported here: lines that are no assignments, unknown sections and keys, and duplicates. Pure.
 *
 * An unknown section or key is an error, because it may be a misspelt restriction. Only names with the prefix X- are ignored
 * if they are unknown, so that a file can have notes for other programs, and keys that only later versions know.
 */
#ifndef SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_SOURCE_H
#define SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_SOURCE_H

#include "daemon/configuration/configuration.h"

/* The current place in the configuration, and the name under which messages about it are filed. */
typedef struct Place {
        Config *config;
        const char *name; /* a database, or "sqlipcd.conf" */
        const char *file;
        unsigned line;
        unsigned n_told;  /* messages about this text so far */
        bool broken;      /* an error was found; set, never cleared */
} Place;

/* Adds "FILE:LINE: " and the sentence to c->broken or c->warnings. Only the first few messages about a text are kept. */
void place_broken(Place *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void place_warn(Place *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets `ret` from "yes" or "no", or adds an error. */
void place_set_boolean(Place *p, const char *key, const char *value, bool *ret);

/* Undoes the backslashes of `value` in its place. False: it added an error. */
bool place_unescape(Place *p, const char *key, char *value);

typedef enum KeyKind {
        KEY_UNKNOWN,
        KEY_SINGLE, /* the last one counts */
        KEY_LIST,   /* they add up */
} KeyKind;

typedef enum DatabaseKeyFlags {
        DATABASE_KEY_LIST = 1 << 0,   /* its values add up (KEY_LIST) */
        DATABASE_KEY_FILE = 1 << 1,   /* only a file has it */
        DATABASE_KEY_SERVER = 1 << 2, /* only a database of a server has it */
        DATABASE_KEY_WRITE = 1 << 3,  /* it does nothing without Mode=read-write */
} DatabaseKeyFlags;

/* A key of [Database]: parsed, listed and checked by its row alone, in the table of its module. `set` may change `value`,
 * and reports errors in it. */
typedef struct DatabaseKey DatabaseKey;
struct DatabaseKey {
        const char *name; /* NULL: the table ends here */
        void (*set)(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d);
        unsigned flags;   /* DatabaseKeyFlags */
        size_t offset;    /* in DatabaseConfig: of the value, if `set` is one of those for several keys */
        size_t places;    /* in DatabaseConfig: of the places of a list's words; 0: they are not kept */
};

#define DATABASE_KEY_AT(field) .offset = G_STRUCT_OFFSET(DatabaseConfig, field)
#define DATABASE_KEY_PLACES(field) .places = G_STRUCT_OFFSET(DatabaseConfig, field)

/* For DatabaseKey.set: yes or no. */
void database_key_set_boolean(Place *p, const DatabaseKey *key, char *value, DatabaseConfig *d);

/* A section, and the function that sets its keys: `set` may change `value`, and reports errors in it. `key_at` lists the
 * keys, for messages about misspelt ones; NULL: there are no more. */
typedef struct SectionRow {
        const char *section;
        KeyKind (*set)(Place *p, void *target, const char *key, char *value);
        const char *(*key_at)(size_t i);
        unsigned *ret_line; /* the line at which the section begins; NULL: not needed */
} SectionRow;

/* Parses `text`; returns true if it has an error. `sections` ends with a row of NULLs. */
bool config_walk(Config *c, const char *name, const ConfigText *text, const SectionRow *sections, void *target);

#endif
