#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The table of what was tried: report.py LOG... prints, from meson's testlog.json files, each class of fault and attack with
the number of cases, summed over builds, and what became of them.

A test says what it tried by tap.cases(), a program of C by the same line: "# cases: CLASS: NUMBER: what a case is".
"""
import json
import re
import sys

LINE = re.compile(r"^# cases: ([^:]+): (\d+): (.+)$", re.M)


def read(logs):
    """(class, what) -> [cases, tests that failed], in the order of their first mention."""
    table = {}
    for path in logs:
        with open(path, encoding="utf-8") as log:
            for test in map(json.loads, log):
                output = test.get("stdout") or ""
                for kind, number, what in LINE.findall(output):
                    entry = table.setdefault((kind, what), [0, 0])
                    entry[0] += int(number)
                    entry[1] += len(re.findall(r"^not ok", output, re.M)) or test["result"] not in ("OK", "EXPECTEDFAIL")
    return table


def main():
    table = read(sys.argv[1:])
    if not table:
        sys.exit("report.py: no test said what it tried; was the suite reliability run?")
    rows = [("Class", "Cases", "Failed", "What a case is")]
    rows += [(kind, f"{n:,}", str(int(failed)), what) for (kind, what), (n, failed) in sorted(table.items())]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    rule = ("-" * widths[0], "-" * (widths[1] - 1) + ":", "-" * (widths[2] - 1) + ":", "---")
    for kind, number, failed, what in (rows[0], rule, *rows[1:]):
        print(f"| {kind:{widths[0]}} | {number:>{widths[1]}} | {failed:>{widths[2]}} | {what} |")


main()
