/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text in the user's editor: $VISUAL, $EDITOR, else what the system has. */
#ifndef CLI_EDIT_H
#define CLI_EDIT_H

/** Has the user edit `text`, in a file of its own that is removed afterwards. 0: `*ret`, to be freed, is what came
 * back; else -errno with a sentence in `ret_message` to be freed: -ECANCELED where the editor said no by its exit
 * code. */
int edit_text(const char *text, char **ret, char **ret_message);

#endif
