/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The findings of a check, see finding.h. */
#include "tools/ctl/finding.h"

#include "tools/ctl/variant.h"

const char *severity_to_string(Severity severity) {
        static const char *const names[_SEVERITY_MAX] = {
                [FINDING_OK] = "ok",
                [FINDING_WARNING] = "warning",
                [FINDING_ERROR] = "error",
        };

        return names[severity];
}

static void finding_free(void *data) {
        Finding *finding = data;

        g_free(finding->subject);
        g_free(finding->text);
        g_free(finding);
}

GPtrArray *findings_new(void) {
        return g_ptr_array_new_with_free_func(finding_free);
}

void findings_add(GPtrArray *findings, Severity severity, const char *subject, const char *format, ...) {
        Finding *finding = g_new(Finding, 1);
        g_autofree char *text = NULL;
        va_list arguments;

        va_start(arguments, format);
        text = g_strdup_vprintf(format, arguments);
        va_end(arguments);
        *finding = (Finding) {
                .severity = severity,
                .subject = g_utf8_make_valid(subject, -1),
                .text = g_utf8_make_valid(text, -1),
        };
        g_ptr_array_add(findings, finding);
}

guint findings_count(const GPtrArray *findings, Severity severity) {
        guint n = 0;

        for (guint i = 0; i < findings->len; i++)
                n += ((const Finding *) findings->pdata[i])->severity == severity;
        return n;
}

GVariant *findings_document(const GPtrArray *findings) {
        g_auto(GVariantBuilder) rows = {};

        g_variant_builder_init(&rows, G_VARIANT_TYPE("aa{sv}"));
        for (guint i = 0; i < findings->len; i++) {
                const Finding *finding = findings->pdata[i];

                if (finding->severity == FINDING_OK)
                        continue;
                g_variant_builder_open(&rows, G_VARIANT_TYPE("a{sv}"));
                entry(&rows, "severity", g_variant_new_string(severity_to_string(finding->severity)));
                entry(&rows, "subject", g_variant_new_string(finding->subject));
                entry(&rows, "text", g_variant_new_string(finding->text));
                g_variant_builder_close(&rows);
        }
        return g_variant_builder_end(&rows);
}
