/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lets SQLite write a database into a file that is already open, under the name COPY_NAME. So a process that may not open
 * the file by its name can write it. There is no journal beside it: open it with PRAGMA journal_mode=OFF, or immutable.
 */
#ifndef SQLIPC_TOOLS_CTL_DESCRIPTOR_VFS_H
#define SQLIPC_TOOLS_CTL_DESCRIPTOR_VFS_H

#define DESCRIPTOR_VFS "descriptor"
#define COPY_NAME "copy"

/** Adds the VFS; `fd` is the file of the database, which stays the caller's. Returns an SQLite result code. */
int descriptor_vfs_add(int fd);

#endif
