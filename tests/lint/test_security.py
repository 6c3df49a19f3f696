#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/SECURITY.md: each promise names a test that exists under that name. And tests/reliability/report.py counts cases.

A test is named as `SUITE/NAME`: title, or, as a whole, as `SUITE/NAME` alone. Several tests are separated by <br>.
"""
import ast
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bus"))
from tap import equal, run, test, true  # noqa: E402

DOCUMENT = ROOT / "docs/SECURITY.md"
REPORT = ROOT / "tests/reliability/report.py"
FILES = {"fuzz": "fuzz-{}.c", "system": "{}.py", "unit": "test-{}.c"}
REFERENCE = re.compile(r"`(\w+)/([\w-]+)`(?:: (.+))?")


def promises(text):
    """(promise, [match of REFERENCE, or None]) of each row of each table whose last column is "Shown by"."""
    header = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else None
        if cells and header and header[-1] == "Shown by" and not cells[0].startswith("---"):
            yield cells[0], [REFERENCE.fullmatch(words.strip()) for words in cells[-1].split("<br>")]
        header = cells and (header or cells)


# Decorators that make a function a test, under its title: they call tap.test().
DECORATORS = {"test", "needs_root", "besieged", "with_home"}


def is_decorated(function):
    """True if it is a test by one of the DECORATORS, with or without arguments."""
    names = (d.func if isinstance(d, ast.Call) else d for d in function.decorator_list)
    return any(isinstance(name, ast.Name) and name.id in DECORATORS for name in names)


def titles_of_python(path):
    """The titles that tap.run() prints for the functions that are tests: decorated, or passed to test()."""
    text = path.read_text()
    for f in ast.parse(text).body:
        if isinstance(f, ast.FunctionDef) and (is_decorated(f) or f"test({f.name})" in text):
            yield (ast.get_docstring(f) or f.name).strip().split("\n")[0].rstrip(".").replace("#", "no.")


def titles(path):
    """Of programs in C: names of functions in the table of test.h, or paths of GLib's tests."""
    if path.suffix == ".py":
        return set(titles_of_python(path))
    return {a or b for a, b in re.findall(r'\bTEST\((\w+)\)|\bg_test_add_func\("([^"]+)"', path.read_text())}


def path_of(suite, name):
    """The file of a test. A program in C of another suite than unit is in a folder of its own."""
    programs = list((ROOT / "tests" / suite).glob(f"*/test-{name}.c"))
    return programs[0] if programs else ROOT / "tests" / suite / FILES.get(suite, "test_{}.py").format(name)


def wrong(text):
    """The errors in the references of a text: a promise without one, a file or title that does not exist."""
    for promise, references in promises(text):
        for reference in references:
            if not reference:
                yield f"{promise}: no test, or one that is not named as such"
                continue
            suite, name, title = reference.groups()
            path = path_of(suite, name)
            if not path.exists():
                yield f"{promise}: there is no {suite}/{name}"
            elif title and title not in titles(path):
                yield f"{promise}: {suite}/{name} has no test {title!r}"


@test
def tests_are_there():
    """Every promise names an existing test by its title"""
    true(len(list(promises(DOCUMENT.read_text()))) > 30, "hardly a promise is found")
    equal(list(wrong(DOCUMENT.read_text())), [], "promises that nothing shows")


HELPER = "@contextlib.contextmanager\ndef opened():\n    yield"


@test
def missing_tests_are_found():
    """The test finds a promise without a test, and one whose file or title does not exist"""
    table = "| Promise | Shown by |\n|---|---|\n| a | {} |\n"
    there = "`lint/security`: Every promise names an existing test by its title"
    all_there = f"`lint/security`<br>{there}<br>`unit/worker-sandbox`: test_refused<br>`unit/worker`: /worker/sandbox"
    equal(list(wrong(table.format(all_there))), [], "errors in a correct table")
    for cell in ("none", "", f"{there}!", "`lint/none`", f"{there}<br>", f"{there}<br>`unit/worker-sandbox`: test_none"):
        equal(len(list(wrong(table.format(cell)))), 1, f"found wrong with {cell!r}")
    helper = next(f for f in ast.parse(HELPER).body if isinstance(f, ast.FunctionDef))
    true(not is_decorated(helper), "a helper counts as a test")


def report(folder, *tests):
    """report.py on the log of `tests`, each given by its output: (exit code, the table)."""
    log = folder / "testlog.json"
    log.write_text("".join(json.dumps({"name": "x", "result": "OK", "stdout": said}) + "\n" for said in tests))
    done = subprocess.run([sys.executable, REPORT, log], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@test
def table_of_cases():
    """report.py adds up the cases of each class, and counts the tests that failed"""
    rows = "| Class | Cases | Failed | What a case is |\n| ----- | ----: | -----: | --- |\n"
    rows += "| kill  |     7 |      1 | a step |\n"
    tests = "ok 1\n# cases: kill: 3: a step\n", "# cases: kill: 4: a step\nnot ok 1 - x\n"
    with tempfile.TemporaryDirectory(prefix="sqlipc-report-") as name:
        equal(report(pathlib.Path(name), *tests), (0, rows), "the table")
        equal(report(pathlib.Path(name), "ok 1\n"), (1, ""), "without cases")


# As tools/fuzz.sh ends; the last target was killed.
FUZZED = """# cases: fuzz shell: 20: inputs
ok - fuzz shell
# cases: fuzz sql: 1000: inputs
not ok - fuzz sql
# cases: fuzz page-encoder: 5: inputs
"""


@test
def tables_of_the_engine():
    """report.py reads the output of the fuzzing engine's script, and counts a failure only for its target"""
    with tempfile.TemporaryDirectory(prefix="sqlipc-report-") as name:
        fuzzed, log = pathlib.Path(name, "report"), pathlib.Path(name, "testlog.json")
        fuzzed.write_text(FUZZED)
        said = "# cases: fuzz shell: 3: inputs\nok 1 - x\n"
        log.write_text(json.dumps({"name": "x", "result": "OK", "stdout": said}) + "\n")
        written = subprocess.run([sys.executable, REPORT, log, fuzzed], capture_output=True, text=True, check=True).stdout
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in written.splitlines()[2:]]
    equal(rows, [["fuzz page-encoder", "5", "1"], ["fuzz shell", "23", "0"], ["fuzz sql", "1,000", "1"]], written)


@test
def units_have_bounds():
    """Both units limit memory, and allow tasks for all default workers and all observers"""
    limits = (ROOT / "daemon/configuration/configuration-limits.c").read_text()
    workers = int(re.search(r"return CLAMP\(memory_size / 2 / heap_max, \d+, (\d+)\);", limits)[1])
    observer = (ROOT / "daemon/supervisor/workers/observer.c").read_text()
    observers = int(re.search(r"^#define N_PROCESSES_MAX (\d+)u", observer, re.M)[1])
    for kind in ("system", "user"):
        unit = (ROOT / f"systemd-units/sqlipcd-{kind}.service.in").read_text()
        keys = dict(re.findall(r"^(MemoryHigh|MemoryMax|TasksMax)=(\d+)%?$", unit, re.M))
        true(50 < int(keys.get("MemoryHigh", 0)) < int(keys.get("MemoryMax", 0)) < 100, f"{kind}: {keys}")
        # the supervisor, the workers, half as many that were killed and do not die yet, the child that reads names
        true(2 + workers + workers // 2 + observers <= int(keys.get("TasksMax", 0)) <= 4 * workers, f"{kind}: {keys}")


sys.exit(run())
