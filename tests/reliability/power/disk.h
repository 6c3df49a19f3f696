/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A disk that loses power. It keeps everything that was synced, and any part of the later changes:
 *
 * 1. A file keeps the changes before its last sync. Of each later write the disk has all, nothing, or some of its sectors of
 *    512 bytes; of each later truncation all or nothing. The order of writes means nothing.
 * 2. If a lost write would have made the file larger, the file may be larger all the same, with other bytes.
 * 3. A folder keeps the changes before its last sync. Of later creations and deletions the disk has any. To sync a
 *    file does not sync its folder.
 *
 * Tests only.
 */
#ifndef SQLIPC_TESTS_RELIABILITY_POWER_DISK_H
#define SQLIPC_TESTS_RELIABILITY_POWER_DISK_H

#include "tests/reliability/power/recorder.h"

/* The fate of the events that were not synced. */
typedef enum DiskDamage {
        DISK_KEEPS_ALL,
        DISK_LOSES_ALL,
        DISK_LOSES_FOLDER, /* its creations and deletions; all writes are there */
        DISK_LOSES_WRITES, /* all creations and deletions are there */
        DISK_KEEPS_SOME,
        DISK_TEARS_ONE,    /* the write that was the last one to reach the disk; all writes before it did */
        DISK_TEARS_SOME,
        DISK_ADDS_GARBAGE, /* rule 2 */
        DISK_N_DAMAGES,
} DiskDamage;

/* For mutations of a test: these syncs succeed without an effect. */
typedef enum DiskLies {
        DISK_LIES_NEVER,
        DISK_LIES_ABOUT_FILES,
        DISK_LIES_ABOUT_FOLDER,
        DISK_LIES_ALWAYS = DISK_LIES_ABOUT_FILES | DISK_LIES_ABOUT_FOLDER,
} DiskLies;

typedef struct DiskFile {
        GByteArray *bytes;  /* as of its last sync */
        GPtrArray *pending; /* its events since then: const DiskEvent, borrowed */
} DiskFile;

typedef struct Disk {
        DiskLies lies;
        GPtrArray *files;                 /* all that ever were: DiskFile */
        DiskFile *current[DISK_N_NAMES];  /* as the programs see the folder; NULL: no such file */
        DiskFile *durable[DISK_N_NAMES];  /* as of the folder's last sync */
        GArray *pending;                  /* creations and deletions since then */
} Disk;

/* A disk with this database and no other file. */
void disk_init(Disk *d, const GByteArray *database, DiskLies lies);
void disk_done(Disk *d);

/* Carries out an event. It is borrowed until disk_done(). */
void disk_apply(Disk *d, const DiskEvent *event);

/* Returns the files that are there after a power failure; NULL: no such file. The caller frees the arrays. */
void disk_fail(const Disk *d, DiskDamage damage, GRand *chance, GByteArray *ret[static DISK_N_NAMES]);

#endif
