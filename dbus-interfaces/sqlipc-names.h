/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The names under which the service stands on a bus. Pure: constants only.
 *
 * A name here never changes its meaning; what is added to an interface is announced in
 * `org.sqlipc1.Manager.Features`, and what would break a caller is a new number behind `org.sqlipc`.
 */
#ifndef SQLIPC_NAMES_H
#define SQLIPC_NAMES_H

#define SQLIPC_BUS_NAME "org.sqlipc1"

/* The one manager object, and the folder of the database objects: SQLIPC_DATABASE_PATH "/NAME", NAME escaped as
 * sd_bus_path_encode(3) does. */
#define SQLIPC_MANAGER_PATH "/org/sqlipc1"
#define SQLIPC_DATABASE_PATH "/org/sqlipc1/database"

#define SQLIPC_MANAGER_INTERFACE "org.sqlipc1.Manager"
#define SQLIPC_DATABASE_INTERFACE "org.sqlipc1.Database"

/* What every name of the table in sqlipc-errors.h starts with. */
#define SQLIPC_ERROR_PREFIX "org.sqlipc1.Error."

#endif
