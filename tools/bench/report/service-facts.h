/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The facts of a report about the service that is measured. */
#ifndef SQLIPC_TOOLS_BENCH_REPORT_SERVICE_FACTS_H
#define SQLIPC_TOOLS_BENCH_REPORT_SERVICE_FACTS_H

#include "tools/bench/core/bench-service.h"
#include "tools/bench/report/report.h"

/** Adds the facts about the service and the database that is queried. */
void service_facts_add(Report *report, const Service *service, const BenchOptions *options);

#endif
