#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Code generators accept dbus-interfaces/*.xml, compilers accept what they generate, and every example in every dialect.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bus"))
from tap import Skip, equal, run, test, true  # noqa: E402

INTERFACES = sorted((ROOT / "dbus-interfaces").glob("org.sqlipc1.*.xml"))
EXAMPLES = ROOT / "docs/examples"
STRICT = ("-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-fsyntax-only")


def call(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    equal((done.returncode, done.stderr), (0, ""), " ".join(map(str, command)))
    return done.stdout


def flags(*packages):
    found = subprocess.run(["pkg-config", "--cflags", *packages], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise Skip(f"no headers of {' '.join(packages)}")
    return found.stdout.split()


def need(program):
    if not shutil.which(program):
        raise Skip(f"no {program}")


@test
def gdbus_codegen():
    """gdbus-codegen: its C for both interfaces compiles"""
    need("gdbus-codegen")
    gio = flags("gio-unix-2.0")
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "generated"
        call("gdbus-codegen", "--c-namespace", "Sqlipc", "--generate-c-code", made, *INTERFACES)
        call("cc", "-std=gnu11", "-fsyntax-only", "-Wall", "-Werror", *gio, f"{made}.c")


@test
def qdbusxml2cpp():
    """qdbusxml2cpp: takes both interfaces, and names types for every argument"""
    need("qdbusxml2cpp")
    with tempfile.TemporaryDirectory() as folder:
        for path in INTERFACES:
            for kind in ("-p", "-a"):
                made = pathlib.Path(folder) / "made"
                call("qdbusxml2cpp", "-i", "sqlipc-qt.h", kind, made, path)
                true("class" in made.with_suffix(".h").read_text(), f"{path.name} {kind} gives no class")


@test
def qt_compiles():
    """qdbusxml2cpp: its output compiles with docs/examples/sqlipc-qt.h"""
    need("qdbusxml2cpp")
    qt = flags("Qt5DBus")
    with tempfile.TemporaryDirectory() as folder:
        for path in INTERFACES:
            for kind in ("-p", "-a"):
                made = pathlib.Path(folder) / "made"
                call("qdbusxml2cpp", "-i", "sqlipc-qt.h", kind, made, path)
                # the programmer fills in an adaptor's functions, so they lack a return
                call("g++", "-std=c++17", "-fPIC", "-w", "-fsyntax-only", f"-I{EXAMPLES}", f"-I{folder}", *qt, f"{made}.cpp")


@test
def examples_as_c99_and_cpp():
    """The examples compile as strict C99 and as C++"""
    includes = [f"-I{ROOT}/client-lib", *flags("libsystemd")]
    sources = sorted(EXAMPLES.glob("*.c"))
    true(len(sources) >= 4, f"only {len(sources)} examples found")
    for path in sources:
        call("cc", "-std=c99", "-pedantic", *STRICT, *includes, path)
        call("g++", "-std=c++11", "-pedantic", *STRICT, *includes, "-x", "c++", path)


sys.exit(run())
