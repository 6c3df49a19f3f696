/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The layouts of the messages between supervisor and worker: one table of fields for each kind, which message_encode() and
 * message_decode() walk. Pure.
 *
 * A message is a u32 kind, then its fields in the order of the table, little-endian. A string is a u32 size, its bytes and a
 * NUL; for NULL only the size, UINT32_MAX. Both ends are from the same build, so there is no version; but they do not trust
 * each other, so everything is checked: fields by their limits, a message by its size, and rules of several fields by
 * `is_valid`.
 */
#ifndef SQLIPC_DAEMON_PROTOCOL_MESSAGE_LAYOUT_H
#define SQLIPC_DAEMON_PROTOCOL_MESSAGE_LAYOUT_H

#include "daemon/protocol/protocol.h"

typedef enum FieldKind {
        FIELD_END,    /* of the table */
        FIELD_U32,    /* uint32_t, int32_t */
        FIELD_U64,
        FIELD_BOOL,   /* sent as u32, 0 or 1 */
        FIELD_STRING, /* const char *: no NUL within it */
        FIELD_BYTES,  /* a pointer, and its size_t at `size_offset` */
        FIELD_LIST,   /* Bytes *: `factor` for each of the uint32_t at `size_offset`, which was sent before */
} FieldKind;

typedef struct Field {
        FieldKind kind : 8;
        bool required;        /* never absent: NULL is sent as an empty string */
        uint16_t offset;      /* in Message */
        uint16_t size_offset; /* in Message */
        uint16_t factor;
        uint32_t max;         /* the largest value of a number, the largest size of a string; 0: any */
} Field;

typedef struct Layout {
        const Field *fields;                 /* ends with FIELD_END */
        uint32_t size_max;                   /* of the whole message */
        bool (*is_valid)(const Message *m);  /* called if each field is valid; NULL: there are no more rules */
} Layout;

/* The layout of a kind; NULL if there is no such kind. */
const Layout *message_layout(uint32_t kind);

#endif
