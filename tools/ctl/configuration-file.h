/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads a single file of a configuration, at any place. Its name, folder and sections tell which kind of file it is. */
#ifndef SQLIPC_TOOLS_CTL_CONFIGURATION_FILE_H
#define SQLIPC_TOOLS_CTL_CONFIGURATION_FILE_H

#include "daemon/configuration/configuration.h"

/** Reads `file`; a drop-in is read together with the file that it changes, which is beside the drop-in's folder. The caller
 * frees the result. NULL if the file cannot be read; then it has printed the reason. */
Config *configuration_of_file(const char *file);

#endif
