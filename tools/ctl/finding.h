/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The findings of a check: a sentence each. */
#ifndef SQLIPC_TOOLS_CTL_FINDING_H
#define SQLIPC_TOOLS_CTL_FINDING_H

#include <glib.h>
#include <stdbool.h>

typedef enum Severity { FINDING_OK, FINDING_WARNING, FINDING_ERROR, _SEVERITY_MAX } Severity;

typedef struct Finding {
        Severity severity;
        char *subject; /* a database, or a file */
        char *text;
} Finding;

/** An empty list; free with g_ptr_array_unref(). */
GPtrArray *findings_new(void);
void findings_add(GPtrArray *findings, Severity severity, const char *subject, const char *format, ...) G_GNUC_PRINTF(4, 5);
/** The number of findings of this severity. */
guint findings_count(const GPtrArray *findings, Severity severity);
/** The findings as a document, aa{sv}, without those that are only OK; floating. */
GVariant *findings_document(const GPtrArray *findings);
const char *severity_to_string(Severity severity);

#endif
