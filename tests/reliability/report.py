#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prints the table of the cases that were tried: each class of fault and attack, its number of cases in all builds, and the
number of failures. It reads meson's testlog.json files and the `report` file that tools/fuzz.sh leaves in its build.

    report.py LOG...

A Python test reports its cases with tap.cases(), a C program with the same line: "# cases: CLASS: NUMBER: what a case is".
A log that is not JSON is read as TAP; there, such a line belongs to the "ok" or "not ok" that follows it.
"""
import argparse
import json
import pathlib
import re
import sys

LINE = re.compile(r"^# cases: ([^:]+): (\d+): (.+)$", re.M)
POINT = re.compile(r"(?P<said>.*?)^(?P<failed>not )?ok\b", re.M | re.S)


def tests_of(log):
    """(output, passed) of each test of a log."""
    if log.startswith("{"):
        for test in map(json.loads, log.splitlines()):
            yield test.get("stdout") or "", test["result"] in ("OK", "EXPECTEDFAIL")
    else:
        end = 0
        for point in POINT.finditer(log):
            end = point.end()
            yield point["said"], not point["failed"]
        yield log[end:], False  # it ended without a result


def read(logs):
    """(class, what) -> [cases, tests that failed], in the order of their first mention."""
    table = {}
    for path in logs:
        for output, well in tests_of(pathlib.Path(path).read_text(encoding="utf-8")):
            for kind, number, what in LINE.findall(output):
                entry = table.setdefault((kind, what), [0, 0])
                entry[0] += int(number)
                entry[1] += len(re.findall(r"^not ok", output, re.M)) or not well
    return table


def written(table):
    """The table as Markdown."""
    rows = [("Class", "Cases", "Failed", "What a case is")]
    rows += [(kind, f"{n:,}", str(int(failed)), what) for (kind, what), (n, failed) in sorted(table.items())]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    rule = ("-" * widths[0], "-" * (widths[1] - 1) + ":", "-" * (widths[2] - 1) + ":", "---")
    return "".join(
        f"| {kind:{widths[0]}} | {number:>{widths[1]}} | {failed:>{widths[2]}} | {what} |\n"
        for kind, number, failed, what in (rows[0], rule, *rows[1:])
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("logs", nargs="+", metavar="LOG")
    arguments = parser.parse_args()
    table = read(arguments.logs)
    if not table:
        sys.exit("report.py: no test said what it tried; was the suite reliability run?")
    print(written(table), end="")


if __name__ == "__main__":
    main()
