/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Chooses types, see column-choice.h. Pure. */
#include "tools/ctl/migrate/column-choice.h"

#include <inttypes.h>
#include <string.h>

/* ---- Values ------------------------------------------------------------------------------------------------------- */

/* True if the text is like `form`, in which 0 is any digit. */
static bool has_form(const sqlipc_value *value, const char *form) {
        if (value->size != strlen(form))
                return false;
        for (size_t i = 0; i < value->size; i++)
                if (form[i] == '0' ? !g_ascii_isdigit(value->as.text[i]) : value->as.text[i] != form[i])
                        return false;
        return true;
}

/* The text may contain NULs, which g_utf8_validate() does not accept. */
static bool is_utf8(const char *text, size_t size) {
        for (const char *end = text + size, *nul; text < end; text = nul < end ? nul + 1 : end) {
                nul = memchr(text, 0, (size_t) (end - text)) ?: end;
                if (!g_utf8_validate(text, nul - text, NULL))
                        return false;
        }
        return true;
}

void column_found_add(ColumnFound *found, const sqlipc_value *value) {
        found->n[value->type]++;
        if (value->type == SQLIPC_INTEGER) {
                found->largest = MAX(found->largest, value->as.integer);
                found->n_large += value->as.integer > (1LL << 53) || value->as.integer < -(1LL << 53);
        }
        if (value->type != SQLIPC_TEXT)
                return;
        found->n_with_nul += memchr(value->as.text, 0, value->size) != NULL;
        found->n_not_utf8 += !is_utf8(value->as.text, value->size);
        found->n_dates += has_form(value, "0000-00-00");
        found->n_timestamps += has_form(value, "0000-00-00 00:00:00");
}

char *column_found_describe(const ColumnFound *found) {
        static const char *const types[] = {
                [SQLIPC_INTEGER] = "integer", [SQLIPC_REAL] = "real", [SQLIPC_TEXT] = "text",
                [SQLIPC_BLOB] = "blob",       [SQLIPC_NULL] = "null",
        };
        g_autoptr(GString) text = g_string_new(NULL);

        for (int type = SQLIPC_INTEGER; type <= SQLIPC_NULL; type++)
                if (found->n[type] > 0)
                        g_string_append_printf(text, "%s%" PRIu64 " %s", text->len > 0 ? ", " : "", found->n[type],
                                               types[type]);
        return g_string_free(g_steal_pointer(&text), FALSE);
}

/* ---- Types -------------------------------------------------------------------------------------------------------- */

/* The type for which a column is declared: by the words that give SQLite's affinity, in SQLite's order; then by those that
 * people write. */
static ColumnKind kind_of_declaration(const char *declared) {
        static const struct {
                const char *word;
                ColumnKind kind;
        } words[] = {
                { "INT", KIND_BIGINT },   { "CHAR", KIND_TEXT },   { "CLOB", KIND_TEXT },      { "TEXT", KIND_TEXT },
                { "BLOB", KIND_BYTEA },   { "REAL", KIND_DOUBLE }, { "FLOA", KIND_DOUBLE },    { "DOUB", KIND_DOUBLE },
                { "TIMESTAMP", KIND_TIMESTAMP }, { "DATETIME", KIND_TIMESTAMP }, { "DATE", KIND_DATE },
                { "TIME", KIND_TEXT },    { "BOOL", KIND_BIGINT }, { "JSON", KIND_TEXT },      { "UUID", KIND_TEXT },
        };
        g_autofree char *upper = g_ascii_strup(declared, -1);

        for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
                if (strstr(upper, words[i].word))
                        return words[i].kind;
        return *upper ? KIND_NUMERIC : KIND_TEXT;
}

static ColumnKind choose_for_texts(ColumnKind declared, const ColumnFound *found, bool with_dates, const char **ret_note) {
        if (declared != KIND_DATE && declared != KIND_TIMESTAMP) {
                *ret_note = declared != KIND_TEXT ? "not declared for text" : NULL;
                return KIND_TEXT;
        }
        if (with_dates && (declared == KIND_DATE ? found->n_dates : found->n_timestamps) == found->n[SQLIPC_TEXT])
                return declared;
        *ret_note = with_dates ? "not all texts have the form of its type" : NULL;
        return KIND_TEXT;
}

static ColumnKind choose_for_numbers(ColumnKind declared, const ColumnFound *found, const char **ret_note) {
        if (found->n[SQLIPC_REAL] == 0) {
                if (declared == KIND_DATE || declared == KIND_TIMESTAMP)
                        *ret_note = "a time as a number";
                return declared == KIND_NUMERIC ? KIND_NUMERIC : KIND_BIGINT;
        }
        if (declared == KIND_BIGINT)
                *ret_note = "not declared for fractions";
        return declared == KIND_NUMERIC || found->n_large > 0 ? KIND_NUMERIC : KIND_DOUBLE;
}

ColumnKind column_choose(const char *declared, const ColumnFound *found, bool with_dates, const char **ret_note) {
        ColumnKind kind = kind_of_declaration(declared);
        uint64_t n_numbers = found->n[SQLIPC_INTEGER] + found->n[SQLIPC_REAL];

        *ret_note = NULL;
        if (found->n[SQLIPC_BLOB] > 0) {
                if (n_numbers + found->n[SQLIPC_TEXT] > 0)
                        *ret_note = "mixed: texts and numbers become bytes";
                else if (kind != KIND_BYTEA)
                        *ret_note = "not declared for blobs";
                return KIND_BYTEA;
        }
        if (found->n[SQLIPC_TEXT] > 0) {
                if (n_numbers == 0)
                        return choose_for_texts(kind, found, with_dates, ret_note);
                *ret_note = "mixed: numbers become texts";
                return KIND_TEXT;
        }
        if (n_numbers > 0)
                return choose_for_numbers(kind, found, ret_note);
        return (kind == KIND_DATE || kind == KIND_TIMESTAMP) && !with_dates ? KIND_TEXT : kind;
}
