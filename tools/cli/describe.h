/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a table or view looks like, for people: columns, indexes, keys, triggers; and what there is at all. */
#ifndef CLI_DESCRIBE_H
#define CLI_DESCRIBE_H

#include "shell.h"

/** Writes what `name`, a table or view, consists of, and what refers to it. In a mode for programs its columns alone. 0;
 * -ENOENT, which was told; else as query_run(). */
int describe_relation(Shell *shell, const char *name);

/** Writes a list of tables and views, with their kinds, as a result. As query_print(). */
int describe_all(Shell *shell);

#endif
