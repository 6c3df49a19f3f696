#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sums up meson's testlog.json files: summary.py [--broken N] LOG...

Each TAP subtest counts, any other test counts once. A test that failed without a failing subtest (it crashed, timed out,
or broke its plan) counts as one failure more. --broken adds failures that happened before a test could run.
Prints what failed and why, then "N passed, N failed" (", N skipped"); exit code 0 if something passed and nothing failed.
"""
import argparse
import json
import re
import sys

# Of each failure: enough to tell why, little enough to be read.
N_LINES_SAID, N_COLUMNS_SAID = 12, 300
PROGRAMS = ("# dbus-daemon", "# sqlipcd")  # under test: what they log is in the whole log

LINE = re.compile(r"^(not )?ok\b(.*)$", re.M)


def count(test):
    """(passed, failed, skipped) of one entry of the log."""
    result, output = test["result"], test.get("stdout") or ""
    if result == "SKIP":
        return 0, 0, 1
    bad = result not in ("OK", "EXPECTEDFAIL")
    if not re.search(r"^1\.\.\d+", output, re.M):
        return (0, 1, 0) if bad else (1, 0, 0)
    passed = failed = skipped = 0
    for fault, rest in LINE.findall(output):
        if fault:
            failed += 1
        elif re.search(r"# *skip", rest, re.I):
            skipped += 1
        else:
            passed += 1
    return passed, max(failed, 1) if bad else failed, skipped


def failures(test):
    """The failures of one entry of the log: a line with the name, and below it the last lines of output before it."""
    said = []
    for line in ((test.get("stdout") or "") + (test.get("stderr") or "")).splitlines():
        if line.startswith("not ok"):
            yield f"  {line}"
            yield from (f"    {comment}" for comment in said[-N_LINES_SAID:])
        if line.startswith(("ok", "not ok")):
            said = []
        elif not line.startswith(PROGRAMS):
            said.append(line[:N_COLUMNS_SAID])
    if said and not re.search(r"^not ok", test.get("stdout") or "", re.M):
        yield from (f"    {line}" for line in said[-N_LINES_SAID:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--broken", type=int, default=0)
    parser.add_argument("logs", nargs="*")
    arguments = parser.parse_args()
    totals = [0, arguments.broken, 0]
    for log in arguments.logs:
        try:
            with open(log, encoding="utf-8") as file:
                entries = [json.loads(line) for line in file if line.strip()]
        except FileNotFoundError:
            print(f"{log}: no test ran")
            totals[1] += 1
            continue
        for test in entries:
            sums = count(test)
            totals = [total + n for total, n in zip(totals, sums)]
            if sums[1]:
                print(f"failed: {test['name']} ({test['result']}), see {log.replace('.json', '.txt')}")
                print(*failures(test), sep="\n")
            for reason in re.findall(r"^ok.*# *skip *(.*)$", test.get("stdout") or "", re.M | re.I):
                print(f"skipped: {test['name']}: {reason}")
    passed, failed, skipped = totals
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 0 if passed and not failed else 1


sys.exit(main())
