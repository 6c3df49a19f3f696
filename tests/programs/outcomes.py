# SPDX-License-Identifier: LGPL-2.1-or-later
"""Outcomes of the tests of a foreign suite: printed by the process that runs them, and read by the test that started it."""

import re
import unittest


class Outcomes(unittest.TestResult):
    """Prints a line for each test: = ok NAME, = failed NAME or = skipped NAME."""

    def tell(self, case, outcome, error=None):
        case = getattr(case, "test_case", case)  # of a subtest
        print(f"= {outcome} {'.'.join(case.id().split('.')[-3:])}", flush=True)
        if error is not None:
            print(self._exc_info_to_string(error, case), flush=True)

    def addSuccess(self, case):  # noqa: N802 - the names are unittest's
        self.tell(case, "ok")

    def addError(self, case, error):  # noqa: N802
        self.tell(case, "failed", error)

    addFailure = addError  # noqa: N815

    def addSkip(self, case, reason):  # noqa: N802
        self.tell(case, "skipped")

    def addSubTest(self, case, subtest, error):  # noqa: N802
        if error is not None:
            self.tell(case, "failed", error)


def read(output):
    """Returns the names of the tests that were not skipped, and if they passed: module -> {class.test: True or False}."""
    found = {}
    for outcome, module, name in re.findall(r"^= (ok|failed) ([^.\n]*)\.(.*)$", output, re.M):
        tests = found.setdefault(module, {})
        tests[name] = tests.get(name, True) and outcome == "ok"
    return found
