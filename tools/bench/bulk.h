/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parts of the workload `bulk`, each with tables of its own. They say on stderr what fails; negative. */
#ifndef BENCH_BULK_H
#define BENCH_BULK_H

#include "options.h"
#include "report.h"
#include "service.h"

/** What sizes of pages, pipes and writes are worth, on the data plane without the rest (page-pipe.h): the query of the
 * options on their file. */
int bulk_sizes_measure(const BenchOptions *options, Report *report);

/** Time and memory by the number of rows of the dataset `narrow`; a note where --folder does not have it. */
int bulk_growth_measure(const BenchOptions *options, Service *service, Report *report);

#endif
