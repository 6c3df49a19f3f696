/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The arguments of functions that take a value for each letter of `types`, as sqlipc_query() does. Library.
 */
#ifndef SQLIPC_CLIENT_LIB_ARGUMENTS_H
#define SQLIPC_CLIENT_LIB_ARGUMENTS_H

#include <stdarg.h>

#include "client-lib/parameter.h"

/* Reads the values for `types` (NULL: none). Bytes stay the program's. The caller frees `*ret`. -EINVAL: an unknown letter;
 * -ENOMEM. */
int arguments_read(const char *types, va_list *ap, Parameter **ret, size_t *ret_n);

#endif
