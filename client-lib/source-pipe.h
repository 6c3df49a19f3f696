/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The source that reads a pipe: that of a statement, for all of its runs one after the other, or that of a query. Library.
 *
 * An abandoned run is read to its END or ERROR, so that the next one starts at its own COLUMNS.
 */
#ifndef SQLIPC_CLIENT_LIB_SOURCE_PIPE_H
#define SQLIPC_CLIENT_LIB_SOURCE_PIPE_H

#include "client-lib/source.h"

typedef struct SourcePipe {
        Source source;
        int fd; /* read end; -1: no pipe yet, or not any more */
        bool at_end_of_file;
        bool starts_in_frames; /* only the first frame shows that the run has started */
} SourcePipe;

extern const SourceOperations source_pipe_operations;

/* Takes the pipe that arrived in `reply`, whose sender becomes the owner; `fd` is borrowed. The source must be closed.
 * 0; -EBADMSG: `fd` is not the read end of a pipe; -ENOMEM or another negative errno. */
int source_pipe_open(SourcePipe *pipe, sd_bus_message *reply, int fd);

#endif
