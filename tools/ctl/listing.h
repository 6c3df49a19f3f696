/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lists: prints an array of dictionaries (aa{sv}) as a table with the given columns, or completely as JSON. */
#ifndef SQLIPC_TOOLS_CTL_LISTING_H
#define SQLIPC_TOOLS_CTL_LISTING_H

#include "tools/ctl/context.h"

typedef enum Shown {
        SHOWN_TEXT,    /* unchanged, except that control characters for the terminal are escaped */
        SHOWN_NUMBER,
        SHOWN_SIZE,    /* bytes: 1.5M */
        SHOWN_TIME,    /* microseconds: 1min 30s */
        SHOWN_USER,    /* a uid: its name */
} Shown;

typedef struct Column {
        const char *key, *title;
        Shown as;
        bool optional; /* left out if no row has it */
        bool gives_way; /* may be cut if the terminal is too narrow */
        unsigned rank;  /* a narrow terminal leaves out columns, the highest rank first; 0: never */
} Column;

/** The table; the caller frees it. `width`: columns of the terminal, 0: no limit. */
char *listing_to_text(GVariant *rows, const Column *columns, size_t n_columns, bool legend, size_t width);

/** Prints JSON, or the table and the number of its rows. `thing` is the word for a row, in the singular. */
void listing_print(const Context *c, GVariant *rows, const Column *columns, size_t n_columns, const char *thing);

/** "1 run", "2 runs"; caller frees. */
char *counted(uint64_t n, const char *thing);

/** Prints a document as JSON, in one line, or in several with --json=pretty. Takes ownership if it is floating. */
void document_print(const Context *c, GVariant *document);

/** Prints "   Title: text" for people, with titles aligned right. The title "" continues the field above. */
void field_print(const char *title, const char *format, ...) G_GNUC_PRINTF(2, 3);

/** Appends a value in the form for people. */
void shown_append(GString *output, GVariant *value, Shown as);
/** From now on uids belong to another machine, and are shown as numbers. */
void users_are_foreign(void);
/** A uid's name, or its number; the caller frees it. */
char *user_name(uid_t uid);

#endif
