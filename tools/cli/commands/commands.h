/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tables of all dot-commands. */
#ifndef SQLIPC_TOOLS_CLI_COMMANDS_COMMANDS_H
#define SQLIPC_TOOLS_CLI_COMMANDS_COMMANDS_H

#include "tools/cli/shell/command.h"

/* In the order of .help; ends with a group without a title. */
extern const CommandGroup commands_all[];

/* The tables of command-*.c. Each ends with a command without a name. */
extern const Command commands_data[], commands_export[], commands_import[], commands_session[], commands_shell[],
        commands_output[], commands_query[];

#endif
