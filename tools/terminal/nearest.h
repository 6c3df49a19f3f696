/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the name that a misspelt word probably means. Pure. */
#ifndef SQLIPC_TOOLS_TERMINAL_NEAREST_H
#define SQLIPC_TOOLS_TERMINAL_NEAREST_H

typedef struct Nearest {
        const char *word;  /* borrowed; as it was typed */
        unsigned distance; /* a candidate must have a smaller distance */
        char *name;        /* owned by the caller; the best so far. NULL: none is near enough */
} Nearest;

Nearest nearest_begin(const char *word);

/** Compares `candidate` in any case of letters; if it is the nearest so far, .name becomes a copy of `name`. */
void nearest_consider(Nearest *nearest, const char *candidate, const char *name);

#endif
