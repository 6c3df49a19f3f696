/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Turns a value of the server into one of SQLite's five storage classes. Pure.
 *
 *      PostgreSQL                                     here
 *      smallint, integer, bigint, oid, boolean        INTEGER
 *      real, double precision                         REAL, exactly; NaN, which SQLite does not have, is TEXT
 *      numeric without digits after the point         INTEGER if it has 64 bits, else TEXT
 *      numeric with such digits, NaN, Infinity        TEXT, as the server writes it
 *      bytea                                          BLOB
 *      timestamp with time zone                       TEXT in UTC, which SQLite's date functions read
 *      any other type                                 TEXT, as the server writes it
 *
 * The server sends all columns of a result in its binary form or all of them as text. Both forms of a value give the same
 * result. Text is asked for if a column has a type that is not decoded here, and if the result is made of texts and a few
 * integers: the binary form of a text is the same bytes, but the server needs longer to write it.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_VALUE_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dbus-interfaces/wire/sqlipc-page.h"

typedef enum PgKind {
        PG_KIND_OTHER,        /* known as text only */
        PG_KIND_TEXT,         /* both forms are the same bytes */
        PG_KIND_BOOL,
        PG_KIND_INT2,
        PG_KIND_INT4,
        PG_KIND_INT8,
        PG_KIND_OID,
        PG_KIND_FLOAT4,
        PG_KIND_FLOAT8,
        PG_KIND_NUMERIC,
        PG_KIND_BYTEA,
        PG_KIND_JSONB,
        PG_KIND_UUID,
        PG_KIND_DATE,
        PG_KIND_TIME,
        PG_KIND_TIMESTAMP,
        PG_KIND_TIMESTAMPTZ,
} PgKind;

/* Memory for a value that is converted to another form. All zeros: none yet. */
typedef struct PgScratch {
        uint8_t *bytes;       /* owned */
        size_t capacity;
} PgScratch;

typedef struct PgValue {
        ValueType type;
        union {
                int64_t integer;
                double real;
        };
        const uint8_t *bytes; /* TEXT, BLOB: borrowed from the argument or the scratch; a NUL follows TEXT */
        size_t size;          /* TEXT: without that NUL */
} PgValue;

/* Returns how values of the type with this number (pg_type.oid) are decoded. */
PgKind pg_value_kind(uint32_t type);

/* Chooses the form of a result with these columns. */
bool pg_values_in_binary(const PgKind *kinds, unsigned n);

/* Decodes a value that is not NULL; a NUL follows its `size` bytes. -EBADMSG: the server does not keep to the protocol;
 * -ENOMEM. */
int pg_value_decode(PgKind kind, bool binary, const uint8_t *bytes, size_t size, PgScratch *scratch, PgValue *ret);

void pg_scratch_done(PgScratch *scratch);

#endif
