/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lists: an array of dictionaries (aa{sv}) as a table for people, in the columns that it is given, or whole as JSON. */
#ifndef CTL_LISTING_H
#define CTL_LISTING_H

#include "context.h"

typedef enum Shown {
        SHOWN_TEXT,    /* as it is, but for what would act on the terminal */
        SHOWN_NUMBER,
        SHOWN_SIZE,    /* bytes: 1.5M */
        SHOWN_TIME,    /* microseconds: 1min 30s */
        SHOWN_USER,    /* a uid: its name */
} Shown;

typedef struct Column {
        const char *key, *title;
        Shown as;
        bool optional; /* left out where no row has it */
        bool gives_way; /* is cut if the terminal is too narrow */
        unsigned rank;  /* of several columns on a narrow terminal the highest is left out first; 0: never */
} Column;

/** The table; caller frees. `width`: columns of the terminal, 0 any number. */
char *listing_to_text(GVariant *rows, const Column *columns, size_t n_columns, bool legend, size_t width);

/** Prints JSON, or the table and how many it lists of `thing`, a word in the singular. */
void listing_print(const Context *c, GVariant *rows, const Column *columns, size_t n_columns, const char *thing);

/** "1 run", "2 runs"; caller frees. */
char *counted(uint64_t n, const char *thing);

/** Prints a document as JSON, in a line, or in many with --json=pretty. Takes it if it is floating. */
void document_print(const Context *c, GVariant *document);

/** Prints "   Title: text" for people, with titles flushed right; "": what is above goes on. */
void field_print(const char *title, const char *format, ...) G_GNUC_PRINTF(2, 3);

/** Appends a value as people read it. */
void shown_append(GString *output, GVariant *value, Shown as);
/** The uids to come are of another machine: they are shown as numbers. */
void users_are_foreign(void);
/** A uid's name, or its number; caller frees. */
char *user_name(uid_t uid);

/** Columns of the terminal on stdout, 0 if it is none; the same once a pager reads the output. */
size_t terminal_width(void);

#endif
