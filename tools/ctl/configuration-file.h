/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One file of a configuration by itself, wherever it lies: what it is, is told by its name, its folder and its sections. */
#ifndef CTL_CONFIGURATION_FILE_H
#define CTL_CONFIGURATION_FILE_H

#include "configuration.h"

/** Reads `file`; a drop-in together with what it changes, which lies beside its folder. Caller frees. NULL, after saying
 * why: it cannot be read. */
Config *configuration_of_file(const char *file);

#endif
