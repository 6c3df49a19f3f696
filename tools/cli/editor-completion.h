/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The hooks by which readline asks complete.h. */
#ifndef CLI_EDITOR_COMPLETION_H
#define CLI_EDITOR_COMPLETION_H

typedef struct Shell Shell;

/** Has readline ask. Borrowed: `shell` as long as lines are read, `before` (the lines of the statement so far) for the
 * next line. */
void editor_completion_begin(Shell *shell, const char *before);

/** Forgets both. */
void editor_completion_end(void);

#endif
