/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The result of a function of AdbcConnection (metadata-stream.h). ADBC driver. */
#include <stdlib.h>

#include "client-lib/adbc/adbc-error.h"
#include "client-lib/adbc/arrow-struct.h"
#include "client-lib/adbc/metadata-stream.h"

typedef struct MetadataStream {
        DriverConnection *connection; /* a reference */
        unsigned n_cancels;           /* of the connection, when the operation began */
        bool is_busy;                 /* counted in `n_busy` of the connection */
        struct ArrowArrayStream rows;
        AdbcStatusCode status;
        struct AdbcError error;
} MetadataStream;

static void finish(MetadataStream *s) {
        if (s->is_busy)
                atomic_fetch_sub(&s->connection->n_busy, 1);
        s->is_busy = false;
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *ret_schema) {
        MetadataStream *s = stream->private_data;

        return s->rows.get_schema(&s->rows, ret_schema);
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *ret_array) {
        MetadataStream *s = stream->private_data;
        int code;

        *ret_array = (struct ArrowArray) { .release = NULL };
        if (s->is_busy && driver_connection_cancels(s->connection) != s->n_cancels) {
                s->status = driver_connection_cancelled(&s->error);
                finish(s);
        }
        if (s->status != ADBC_STATUS_OK)
                return adbc_error_errno(s->status);
        code = s->rows.get_next(&s->rows, ret_array);
        if (!ret_array->release)
                finish(s);
        return code;
}

static const char *get_last_error(struct ArrowArrayStream *stream) {
        const MetadataStream *s = stream->private_data;

        return s->error.message;
}

static void release(struct ArrowArrayStream *stream) {
        MetadataStream *s = stream->private_data;

        finish(s);
        arrow_struct_release_stream(&s->rows);
        if (s->error.release)
                s->error.release(&s->error);
        (void) driver_connection_unref(s->connection);
        free(s);
        stream->private_data = NULL;
        stream->release = NULL;
}

AdbcStatusCode metadata_stream_new(DriverConnection *connection, unsigned n_cancels, Tree *root,
                                   struct ArrowArrayStream *ret_stream, struct AdbcError *error) {
        MetadataStream *s;

        if (driver_connection_cancels(connection) != n_cancels)
                return driver_connection_cancelled(error);
        s = calloc(1, sizeof *s);
        if (!s || arrow_tree_stream(root, &s->rows) < 0) {
                free(s);
                return adbc_error_memory(error);
        }
        s->connection = driver_connection_ref(connection);
        s->n_cancels = n_cancels;
        s->is_busy = true;
        s->error.vendor_code = ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA;
        atomic_fetch_add(&connection->n_busy, 1);
        *ret_stream = (struct ArrowArrayStream) {
                .get_schema = get_schema,
                .get_next = get_next,
                .get_last_error = get_last_error,
                .release = release,
                .private_data = s,
        };
        return ADBC_STATUS_OK;
}

bool metadata_stream_error(struct ArrowArrayStream *stream, AdbcStatusCode *ret_status, const struct AdbcError **ret_error) {
        const MetadataStream *s;

        if (!stream || stream->release != release)
                return false;
        s = stream->private_data;
        if (ret_status)
                *ret_status = s->status;
        *ret_error = s->status == ADBC_STATUS_OK ? NULL : &s->error;
        return true;
}
