/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Commands about data: which databases and tables there are, and what they look like. */
#include "command.h"

const Command commands_data[] = { { 0 } };
