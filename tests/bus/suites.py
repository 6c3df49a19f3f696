# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of SQLite databases that run again with a server in the place of the files, beside a list of those that fail. A test
that fails without being in the list is a defect; so is one that is in the list and passes.
"""
import os
import re
import subprocess
import sys

from harness import BUILD_ROOT, SOURCE_ROOT
from tap import diagnose, equal, test, true

TESTS = SOURCE_ROOT / "tests"
VERBOSE = "--verbose" in sys.argv
sys.argv = [argument for argument in sys.argv if argument != "--verbose"]
PATIENCE = "60"  # seconds that a test of a suite waits at most
WAY = re.compile(r" \((auto|channel|dbus|pipe)\)$")


class Suites:
    """`name`: of the list, NAME-differences.txt in `folder`, whose lines are suite, difference and title of the test;
    `heading`: of the table in the `page` of the documentation with the differences; `environment`: of the suites."""

    def __init__(self, name, heading, environment, folder="bus", page="engines"):
        self.name, self.heading, self.environment = name, heading, environment
        self.list = TESTS / folder / f"{name}-differences.txt"
        self.page = SOURCE_ROOT / "docs" / f"{page}.md"

    def differences(self, suite=None):
        """Returns what the list says about a suite: title of a test -> difference; all lines without one."""
        found = {}
        for line in self.lines():
            of_it, difference, title = line.split(" ", 2)
            if suite in (None, of_it):
                found[title] = difference
        return found

    def lines(self):
        return [line for line in self.list.read_text().splitlines() if line and not line.startswith("#")]

    def described(self):
        """Returns the differences that the documentation has, from its table."""
        text = self.page.read_text().split(f"| {self.heading} |", 1)[1].split("\n\n", 1)[0]
        return set(re.findall(r"^\| `([a-z-]+)` \|", text, re.M))

    def run(self, suite):
        """Runs a suite; returns the titles of tests, without the way by which a client asks, and if all passed."""
        folder, name = suite.split("/")
        environment = os.environ | {
            "SQLIPC_TEST_PATIENCE": PATIENCE,
            "PYTHONPATH": f"{BUILD_ROOT}/client-lib/python:{TESTS}/bus",
        } | self.environment  # fmt: skip
        done = subprocess.run(
            ["/usr/bin/python3", TESTS / folder / f"test_{name}.py"], env=environment, capture_output=True, check=False
        )
        output = done.stdout.decode(errors="replace")
        titles = {}
        for failed, title in re.findall(r"^(not )?ok \d+ - (.*)$", output, re.M):
            if "# SKIP" not in title:
                title = WAY.sub("", title)
                titles[title] = titles.get(title, True) and not failed
        listed = self.differences(suite)
        if VERBOSE or not all(passed or title in listed for title, passed in titles.items()):
            diagnose(output)
        true(titles, f"the suite ran: {output[-2000:]} {done.stderr.decode(errors='replace')[-2000:]}")
        return titles

    def compare(self, suite, passed):
        """`passed`: title -> if it passed."""
        listed = self.differences(suite)
        failed = sorted(t for t, ok in passed.items() if not ok)
        equal([t for t in failed if t not in listed], [], "differences that are not in the list")
        equal([t for t in sorted(listed) if t not in failed], [], "entries of the list that do not differ")
        print(f"# {suite}: {sum(passed.values())} as with SQLite, {len(listed)} differ")

    def compare_all(self, found):
        """The same for several suites: suite -> title -> if it passed. All that the list names must be among them."""
        unknown = {line.split(" ", 1)[0] for line in self.lines()} - set(found)
        equal(sorted(unknown), [], "suites of the list that did not run")
        for suite, passed in sorted(found.items()):
            self.compare(suite, passed)

    def add(self, suite):
        def one():
            self.compare(suite, self.run(suite))

        one.__name__, one.__doc__ = suite.replace("/", "_"), f"{suite}: as with SQLite, except for the list"
        test(one)

    def check_documentation(self):
        equal(sorted(set(self.differences().values())), sorted(self.described()), "differences")
