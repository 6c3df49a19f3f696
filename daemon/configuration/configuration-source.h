/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One text of the configuration, walked: each assignment goes to who knows its key, and what is wrong or odd about the
 * text itself is told here: lines that are none, sections and keys that nobody knows, and those that stand there twice.
 * Pure.
 */
#ifndef SQLIPC_CONFIGURATION_SOURCE_H
#define SQLIPC_CONFIGURATION_SOURCE_H

#include "configuration.h"

/* Where we are, and under which name it is told. */
typedef struct Place {
        Config *config;
        const char *name; /* a database, or "sqlipcd.conf" */
        const char *file;
        unsigned line;
        unsigned n_told;  /* broken and odd lines of this text */
        bool broken;      /* something was: set, never cleared */
} Place;

/* "FILE:LINE: " and the sentence, to c->broken or c->warnings. A text of nothing but mistakes gets the first few told. */
void place_broken(Place *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void place_warn(Place *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef enum KeyKind {
        KEY_UNKNOWN,
        KEY_SINGLE, /* the last one counts */
        KEY_LIST,   /* they add up */
} KeyKind;

/* A section, and who knows its keys: `set` may change `value`, and tells by itself what is wrong with it. */
typedef struct SectionRow {
        const char *section;
        KeyKind (*set)(Place *p, void *target, const char *key, char *value);
        unsigned *ret_line; /* where it begins, if that matters and it is there */
} SectionRow;

/* Walks `text`; returns whether anything in it was broken. `sections` ends with a row of NULLs. */
bool config_walk(Config *c, const char *name, const ConfigText *text, const SectionRow *sections, void *target);

#endif
