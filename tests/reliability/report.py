#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes the table of what was tried, from meson's testlog.json files and from the `report` file that tools/fuzz.sh leaves in
its build: each class of fault and attack with its number of cases, summed over builds, and the result.

    report.py LOG...                    prints it
    report.py --update FILE LOG...      puts it into a text, between the lines BEGIN and END below

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
BEGIN, END = "<!-- table -->", "<!-- end of the table -->"


def tests_of(log):
    """(what was said, whether all went well) of each test of a log."""
    if log.startswith("{"):
        for test in map(json.loads, log.splitlines()):
            yield test.get("stdout") or "", test["result"] in ("OK", "EXPECTEDFAIL")
    else:
        end = 0
        for point in POINT.finditer(log):
            end = point.end()
            yield point["said"], not point["failed"]
        yield log[end:], False  # it ended before it said how this went


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


def update(path, table):
    """Puts the table between the marks of a text, in place of what stands there."""
    text = path.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN + "\n")
    _, end, after = rest.partition(END + "\n")
    if not begin or not end:
        sys.exit(f"report.py: {path} has no lines {BEGIN} and {END}")
    path.write_text(f"{before}{begin}\n{table}\n{end}{after}", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--update", type=pathlib.Path, metavar="FILE")
    parser.add_argument("logs", nargs="+", metavar="LOG")
    arguments = parser.parse_args()
    table = read(arguments.logs)
    if not table:
        sys.exit("report.py: no test said what it tried; was the suite reliability run?")
    if arguments.update:
        update(arguments.update, written(table))
    else:
        print(written(table), end="")


if __name__ == "__main__":
    main()
