/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The target while it is filled: the database of FILE.conf, published under another name for the caller alone.
 *
 *      databases.d/NAME-migration.conf                   FILE.conf, unchanged
 *      databases.d/NAME-migration.conf.d/override.conf   only the caller may read and write, also the schema
 *
 * They are in the directory that does not survive a restart of the machine. A call that is killed leaves them; the next one
 * replaces them. A lock on FILE.conf keeps a second call out.
 */
#ifndef SQLIPC_TOOLS_CTL_MIGRATE_PUBLICATION_H
#define SQLIPC_TOOLS_CTL_MIGRATE_PUBLICATION_H

#include "daemon/configuration/configuration.h"
#include "tools/ctl/context.h"

typedef struct Publication {
        Context *c;
        char *name;              /* owned; that under which it is published */
        char *directory;         /* owned; databases.d */
        char *file, *text;       /* owned; FILE.conf and its contents */
        Config *config;          /* owned; FILE.conf as it is, with a database of the name NAME */
        const DatabaseConfig *d; /* borrowed from it */
        int fd;                  /* of FILE.conf, with the lock */
        bool is_published;
} Publication;

/** Reads `file` as the configuration of `database`, and locks it. Returns 0, or a negative error, which has been printed. */
int publication_open(Context *c, const char *database, const char *file, Publication *ret);
/** Publishes it. Returns as publication_open() does. */
int publication_begin(Publication *p);
/** Removes the files; the next reload has the service forget the database. */
void publication_remove(Publication *p);
/** Ends the publication, if it is still published, by a reload of its own. */
void publication_close(Publication *p);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Publication, publication_close)

#endif
