/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The hooks through which readline calls complete.h. */
#ifndef SQLIPC_TOOLS_CLI_PROMPT_EDITOR_COMPLETION_H
#define SQLIPC_TOOLS_CLI_PROMPT_EDITOR_COMPLETION_H

typedef struct Shell Shell;

/** Installs the hooks. Both arguments are borrowed: `shell` until editor_completion_end(), `before` (the earlier lines of
 * the statement) for the next line. */
void editor_completion_begin(Shell *shell, const char *before);

/** Drops both pointers and the last candidates. */
void editor_completion_end(void);

#endif
