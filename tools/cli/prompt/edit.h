/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Edits text in the user's editor: $VISUAL, $EDITOR, else one that the system has. */
#ifndef SQLIPC_TOOLS_CLI_PROMPT_EDIT_H
#define SQLIPC_TOOLS_CLI_PROMPT_EDIT_H

/** Lets the user edit `text`, in a temporary file that is removed afterwards. Returns 0 with the edited text in `*ret`,
 * which the caller frees; else -errno with a sentence in `ret_message`, which the caller frees: -ECANCELED if the editor
 * exited with a failure. */
int edit_text(const char *text, char **ret, char **ret_message);

#endif
