/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The forms of a report. Each is in a file of its own, report-text.c and so on. */
#ifndef BENCH_REPORT_FORMS_H
#define BENCH_REPORT_FORMS_H

#include "report.h"

/** For people: appends facts, notes, figures and tables. */
void report_to_text(const Report *report, GString *text);
/** Appends one JSON object, without a newline. */
void report_to_json(const Report *report, GString *json);

#endif
