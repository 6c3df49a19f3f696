/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Commands that take data away: .dump, .export, .backup. */
#include "command.h"

const Command commands_export[] = { { 0 } };
