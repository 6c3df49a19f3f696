/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The Arrow type of a column (column-type.h). Pure. ADBC driver. */
#include <string.h>

#include "client-lib/adbc/column-type.h"

/* strcasestr() for ASCII, in every locale: to SQLite, names of types are ASCII letters. */
static bool contains(const char *text, const char *word) {
        size_t n = strlen(word);

        for (; *text; text++) {
                size_t i = 0;

                while (i < n && (text[i] & ~0x20) == word[i])
                        i++;
                if (i == n)
                        return true;
        }
        return false;
}

ColumnType column_type_of_declaration(const char *declared) {
        if (!declared || !*declared)
                return COLUMN_TYPE_UNKNOWN;
        if (contains(declared, "INT"))
                return COLUMN_TYPE_INT64;
        if (contains(declared, "CHAR") || contains(declared, "CLOB") || contains(declared, "TEXT"))
                return COLUMN_TYPE_UTF8;
        if (contains(declared, "BLOB"))
                return COLUMN_TYPE_BINARY;
        if (contains(declared, "REAL") || contains(declared, "FLOA") || contains(declared, "DOUB"))
                return COLUMN_TYPE_DOUBLE;
        if (contains(declared, "DECIMAL") || contains(declared, "NUMERIC"))
                return COLUMN_TYPE_DOUBLE;
        return COLUMN_TYPE_UNKNOWN;
}

void column_type_see(SeenValues *seen, const sqlipc_value *value) {
        switch (value->type) {
        case SQLIPC_INTEGER:
                seen->integer = true;
                seen->wide |= !column_type_is_exact(value->as.integer);
                break;
        case SQLIPC_REAL:
                seen->real = true;
                break;
        case SQLIPC_TEXT:
                seen->text = true;
                break;
        case SQLIPC_BLOB:
                seen->blob = true;
                break;
        case SQLIPC_NULL:
                return;
        }
        if (!seen->first)
                seen->first = value->type;
}

static bool fits(ColumnType type, const SeenValues *seen) {
        switch (type) {
        case COLUMN_TYPE_INT64:
                return !seen->real && !seen->text && !seen->blob;
        case COLUMN_TYPE_DOUBLE:
                return !seen->wide && !seen->text && !seen->blob;
        case COLUMN_TYPE_UTF8:
                return !seen->integer && !seen->real && !seen->blob;
        case COLUMN_TYPE_BINARY: /* text alone is rather a column of text that is declared as BLOB */
                return !seen->integer && !seen->real && (seen->blob || !seen->text);
        case COLUMN_TYPE_UNKNOWN:
                break;
        }
        return false;
}

static ColumnType type_of_first(const SeenValues *seen) {
        switch (seen->first) {
        case SQLIPC_REAL:
                return COLUMN_TYPE_DOUBLE;
        case SQLIPC_TEXT:
                return COLUMN_TYPE_UTF8;
        case SQLIPC_BLOB:
                return COLUMN_TYPE_BINARY;
        default:
                return COLUMN_TYPE_INT64;
        }
}

/* If no type fits all values, the type is that of the first one, and the row that does not fit is reported as an error. */
static ColumnType type_of_values(const SeenValues *seen) {
        bool number = seen->integer || seen->real;

        if (!number && seen->text && seen->blob)
                return COLUMN_TYPE_BINARY;
        if (fits(COLUMN_TYPE_DOUBLE, seen) && seen->integer && seen->real)
                return COLUMN_TYPE_DOUBLE;
        return type_of_first(seen);
}

ColumnType column_type_choose(TypeSource source, ColumnType declared, const SeenValues *seen) {
        bool known = declared != COLUMN_TYPE_UNKNOWN;

        switch (source) {
        case TYPE_SOURCE_AUTO:
                return known && fits(declared, seen) ? declared : type_of_values(seen);
        case TYPE_SOURCE_DECLARED:
                return known ? declared : type_of_values(seen);
        case TYPE_SOURCE_VALUES:
                return known && !seen->first ? declared : type_of_values(seen);
        }
        return type_of_values(seen);
}

const char *column_type_format(ColumnType type, bool text_as_binary) {
        switch (type) {
        case COLUMN_TYPE_INT64:
                return "l";
        case COLUMN_TYPE_DOUBLE:
                return "g";
        case COLUMN_TYPE_UTF8:
                return text_as_binary ? "z" : "u";
        case COLUMN_TYPE_BINARY:
                return "z";
        case COLUMN_TYPE_UNKNOWN:
                break;
        }
        return "n";
}
