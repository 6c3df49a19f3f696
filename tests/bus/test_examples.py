#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every example in dbus-interfaces/*.xml runs unchanged."""
import re
import shlex
import sqlite3
import textwrap

from harness import SOURCE_ROOT, Service, main
from tap import equal, test, true

XML = [(path.name, path.read_text()) for path in sorted((SOURCE_ROOT / "dbus-interfaces").glob("*.xml"))]
# The answer to an example with the number of a run that does not exist.
FAILS = {"CancelRun": "UnknownRun"}
PACKAGES = [(f"lib{n:04}", f"{n}.0-1") for n in range(5000)]

service = Service()
service.environment["PYTHONPATH"] = str(SOURCE_ROOT / "docs/examples")
database = service.data / "packages.sqlite"
with sqlite3.connect(database) as db:
    db.execute("CREATE TABLE package(name TEXT, version TEXT)")
    db.executemany("INSERT INTO package VALUES(?, ?)", PACKAGES)
db.close()
service.database("packages", Path=database, Mode="read-write")
service.driver.manager("Reload")


def examples(kind):
    found = []
    for name, text in XML:
        found += [
            (name, textwrap.dedent(body).strip())
            for body in re.findall(rf"example-{kind}:\n(.*?)\n *end-example", text, re.S)
        ]
    true(found, f"no example of {kind} found")
    return found


@test
def every_example_is_closed():
    """Each example is of a kind that this test runs, and is complete"""
    for name, text in XML:
        starts = re.findall(r"example-(\w+):", text)
        equal(len(starts), len(re.findall(r"end-example", text)), f"ends of examples in {name}")
        true(set(starts) <= {"busctl", "python", "load"}, f"{name} has examples of kind {set(starts)}")


@test
def busctl_examples():
    """busctl lines"""
    for name, line in examples("busctl"):
        words = shlex.split(line)
        equal(words[0], "busctl", f"first word in {name}")
        done = service.run(words[0], f"--address={service.address}", *words[1:])
        wanted = next((error for method, error in FAILS.items() if method in words), None)
        said = done.stderr.decode()
        if wanted:
            true(done.returncode != 0 and len(said.split()) > 3, f"{line}\nfailed without a sentence: {said}")
        else:
            equal((done.returncode, said), (0, ""), line)
            true(done.stdout, f"{line}\nprinted nothing")


@test
def python_examples():
    """Python clients"""
    for name, program in examples("python"):
        true(len(program.splitlines()) <= 13, f"an example of {name} is longer than it should be")
        done = service.run("/usr/bin/python3", "-c", program, "packages", "SELECT name, version FROM package")
        equal((done.returncode, done.stderr.decode()), (0, ""), program)
        equal(done.stdout.decode(), "".join(f"{name} {version}\n" for name, version in PACKAGES), f"output of\n{program}")


@test
def load_examples():
    """A Python client that loads 100 integers"""
    for _, program in examples("load"):
        sql = "UPDATE package SET version = version WHERE rowid = ? + 1"
        done = service.run("/usr/bin/python3", "-c", program, "packages", sql)
        equal((done.returncode, done.stderr.decode(), done.stdout.decode()), (0, "", "100\n"), program)
        done = service.run("/usr/bin/python3", "-c", program, "packages", "INSERT INTO package(rowid) VALUES (? + 50)")
        true(done.returncode != 0 and "row 1: " in done.stderr.decode(), done.stderr.decode())


@test
def python_example_fails():
    """The Python clients report an error of a statement, and of a run"""
    for name, program in examples("python"):
        for sql, wanted in (("SELECT nosuch", "no such column"), ("SELECT abs(-9223372036854775808)", "integer overflow")):
            done = service.run("/usr/bin/python3", "-c", program, "packages", sql)
            true(done.returncode != 0 and wanted in done.stderr.decode(), f"{sql} in {name}: {done.stderr.decode()}")


main(service)
