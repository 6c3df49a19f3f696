/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The names of the service on a bus. Pure: constants only.
 *
 * A name here never changes its meaning. Additions to an interface are announced in `org.sqlipc1.Manager.Features`; a change
 * that would break callers needs a new number after `org.sqlipc`.
 */
#ifndef SQLIPC_DBUS_INTERFACES_SQLIPC_NAMES_H
#define SQLIPC_DBUS_INTERFACES_SQLIPC_NAMES_H

#define SQLIPC_BUS_NAME "org.sqlipc1"

/* The one manager object, and the parent of the database objects: SQLIPC_DATABASE_PATH "/NAME", with NAME escaped as by
 * sd_bus_path_encode(3). */
#define SQLIPC_MANAGER_PATH "/org/sqlipc1"
#define SQLIPC_DATABASE_PATH "/org/sqlipc1/database"

#define SQLIPC_MANAGER_INTERFACE "org.sqlipc1.Manager"
#define SQLIPC_DATABASE_INTERFACE "org.sqlipc1.Database"

/* Prefix of every name in the table of sqlipc-errors.h. */
#define SQLIPC_ERROR_PREFIX "org.sqlipc1.Error."

#endif
