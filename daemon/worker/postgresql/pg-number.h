/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The digits of numbers. Pure.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_NUMBER_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

#define PG_NUMBER_SIZE 40 /* room for the digits of any number, and a NUL */

/* Writes the shortest digits that are read back as this number, as PostgreSQL does. With `is_text` it is still a real number
 * for a program that reads the text: "2.0", as in SQLite. Returns their number, without the NUL. */
size_t pg_number_write(double real, bool is_text, char room[static PG_NUMBER_SIZE]);

#endif
