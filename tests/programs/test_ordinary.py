#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ordinary programs, those of the folder `ordinary`, with SQLite and with the service: they print the same.

A line "old  #~ new" of a program is "old" with SQLite and "new" with the service; at most three lines differ. The database
has the program's name, with hyphens. Programs that cannot do the same are in ordinary-differences.txt, each for a difference
that docs/programs.md describes. The tests for drivers of PEP 249 run, too, with sqlite3 and with sqlipc.
"""

import os
import subprocess

import outcomes
from harness import BUILD_ROOT, SOURCE_ROOT, main, python_package
from python_service import PythonService
from suites import VERBOSE, Suites
from tap import at_most, diagnose, equal, make_for_file, test

HERE = SOURCE_ROOT / "tests/programs"
FOLDER = BUILD_ROOT / "tests/programs/environment"
PYTHON = FOLDER / "python/bin/python"
make_for_file(
    SOURCE_ROOT / "tests/adbc/make-environment.sh", FOLDER, "the programs cannot be installed", HERE / "requirements.txt"
)
CHANGED_LINES_MAX = 3

service = PythonService()
programs = Suites("ordinary", "Difference", {}, folder="programs", page="programs")
pep249 = Suites("pep249", "Difference", {}, folder="programs", page="programs")


def run(folder, *command):
    environment = os.environ | python_package() | {"DBUS_SESSION_BUS_ADDRESS": service.address, "OMP_NUM_THREADS": "1"}
    return subprocess.run([PYTHON, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False)


def port(text):
    """Returns a program with its lines for the service, and their number."""
    lines = [line.split("#~ ", 1) for line in text.splitlines()]
    indent = [line[: len(line) - len(line.lstrip())] for line, *_ in lines]
    ported = [blank + new[0] if new else line for blank, (line, *new) in zip(indent, lines)]
    return "\n".join(ported) + "\n", sum(len(line) > 1 for line in lines)


def add(path):
    def ordinary():
        name, text = path.stem.replace("_", "-"), path.read_text()
        service.add(name)
        ported, n_changed = port(text)
        at_most(n_changed, CHANGED_LINES_MAX, "changed lines")
        seen = []
        for way, program in (("sqlite3", text), ("sqlipc", ported)):
            folder = service.folder / "programs" / way / name
            folder.mkdir(parents=True)
            (folder / path.name).write_text(program)
            done = run(folder, path.name)
            seen.append((done.stdout.replace(f"/{way}/", "/"), done.returncode))
            if way == "sqlite3":
                equal(done.returncode, 0, f"exit code with SQLite: {done.stderr[-2000:]}")
                diagnose(f"{n_changed} changed lines, {len(done.stdout)} characters")
        is_same = seen[0] == seen[1]
        if VERBOSE or (not is_same and path.stem not in programs.differences()):
            diagnose(f"{seen[0][0]}\n---- with the service:\n{seen[1][0]}\n{done.stderr[-3000:]}")
        equal(is_same, path.stem not in programs.differences(), "prints the same")

    ordinary.__name__, ordinary.__doc__ = path.stem, f"{path.stem}: prints the same with SQLite and with the service"
    test(ordinary)


for each in sorted((HERE / "ordinary").glob("*.py")):
    add(each)


@test
def pep_249():
    """The tests for drivers of PEP 249 pass, except for the list; each of these fails with sqlite3, too"""
    service.add("pep249")
    found = []
    for module, place in (("sqlite3", service.folder / "pep249.sqlite"), ("sqlipc", "pep249")):
        done = run(service.folder, HERE / "pep249_suite.py", module, place)
        found.append(outcomes.read(done.stdout))
        if VERBOSE or not found[-1]:
            diagnose(done.stdout + done.stderr)
    theirs, ours = (suite["dbapi20"] for suite in found)
    equal([name for name, passed in ours.items() if theirs[name] and not passed], [], "tests that pass with sqlite3 only")
    pep249.compare_all(found[1])


@test
def documented():
    """Each difference of a list is described in the documentation, and each that is described there is in a list"""
    named = set()
    for name in ("cpython", "ordinary", "pep249", "sqlalchemy"):
        named |= set(Suites(name, "Difference", {}, folder="programs", page="programs").differences().values())
    equal(sorted(named), sorted(programs.described()), "differences")


main(service)
