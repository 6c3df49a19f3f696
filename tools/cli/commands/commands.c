/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The groups of .help (commands.h). */
#include "tools/cli/commands/commands.h"

const CommandGroup commands_all[] = {
        { "Databases, and where you are", commands_session },
        { "Content of a database", commands_data },
        { "Copies", commands_export },
        { "Data from files", commands_import },
        { "Statements", commands_query },
        { "How results look, and where they go", commands_output },
        { "The shell itself", commands_shell },
        {},
};
