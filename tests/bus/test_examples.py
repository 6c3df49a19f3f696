#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every example in dbus-interfaces/*.xml runs as it stands there."""
import re
import shlex
import sqlite3
import textwrap

from harness import SOURCE_ROOT, Service, main
from tap import equal, test, true

XML = [(path.name, path.read_text()) for path in sorted((SOURCE_ROOT / "dbus-interfaces").glob("*.xml"))]
# What an example answers that names a run which nobody has.
FAILS = {"CancelRun": "UnknownRun"}

service = Service()
database = service.data / "packages.sqlite"
with sqlite3.connect(database) as db:
    db.execute("CREATE TABLE package(name TEXT, version TEXT)")
    db.executemany("INSERT INTO package VALUES(?, ?)", [(f"lib{n:04}", f"{n}.0-1") for n in range(5000)])
db.close()
service.database("packages", Path=database)
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
    """Each example is of a kind that runs here, and has its end"""
    for name, text in XML:
        starts = re.findall(r"example-(\w+):", text)
        equal(len(starts), len(re.findall(r"end-example", text)), f"ends of examples in {name}")
        true(set(starts) <= {"busctl", "python"}, f"{name} has examples of kind {set(starts)}")


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
        equal(done.returncode, 0, f"{program}\n{done.stderr.decode()}")
        if "NextRows" in program:
            equal(done.stdout, b"5000 rows\n", "output")
        else:
            true(done.stdout.startswith(b"['name', 'version'] ") and b" 0 bytes" not in done.stdout, f"output {done.stdout}")


main(service)
