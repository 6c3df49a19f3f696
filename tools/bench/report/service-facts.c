/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Facts about the service (service-facts.h). */
#include "tools/bench/report/service-facts.h"

#include <unistd.h>

void service_facts_add(Report *report, const Service *service, const BenchOptions *options) {
        report_fact(report, "daemon", "%s, uid %u; client uid %u", service->version, service->uid, geteuid());
        if (options->database)
                report_fact(report, "database", "%s, %s", options->database, options->file);
        if (options->sql)
                report_fact(report, "query", "%s", options->sql);
}
