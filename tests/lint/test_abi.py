#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs that were linked against the last release still find what they need in libsqlipc: compares it to
client-lib/libsqlipc.abi, which libabigail wrote of that release (`tools/analyse.sh --update-abi`).
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ["SQLIPC_SOURCE_ROOT"])
sys.path.insert(0, str(ROOT / "tests/bus"))

from tap import Skip, equal, run, test, true  # noqa: E402

LIBRARY = pathlib.Path(os.environ["SQLIPC_BUILD_ROOT"]) / "client-lib/libsqlipc.so.0"
RELEASED = ROOT / "client-lib/libsqlipc.abi"
CHANGED = 4  # a bit of abidiff's exit code; the two bits below mean that it failed


def compare(released):
    if not shutil.which("abidiff"):
        raise Skip("abidiff (abigail-tools) is not installed")
    done = subprocess.run(
        ["abidiff", "--no-added-syms", released, LIBRARY], capture_output=True, text=True, check=False,
    )
    true(done.returncode < 4 or done.returncode & CHANGED, f"abidiff ended with {done.returncode}: {done.stderr}")
    equal(done.returncode & 3, 0, f"errors of abidiff: {done.stderr}")
    return done.returncode, done.stdout


@test
def nothing_gone_or_changed():
    """Since the last release no function is gone or has another signature, and no type another layout"""
    code, said = compare(RELEASED)
    equal(code, 0, said)


@test
def what_is_gone_is_found():
    """The test finds a removed function"""
    text = RELEASED.read_text(encoding="utf-8")
    gone, n = re.subn(r"(<elf-symbol name=')sqlipc_version('.*/>)", r"\g<0>\n\g<1>sqlipc_gone\g<2>", text, count=1)
    equal(n, 1, "symbols sqlipc_version in the file")
    with tempfile.NamedTemporaryFile("w", suffix=".abi") as file:
        file.write(gone)
        file.flush()
        code, said = compare(file.name)
    true(code & CHANGED and "sqlipc_gone" in said, f"abidiff says {code}: {said}")


@test
def what_has_another_layout_is_found():
    """The test finds a public struct of another size"""
    text = RELEASED.read_text(encoding="utf-8")
    other, n = re.subn(r"(name='sqlipc_parameter' size-in-bits=)'\d+'", r"\1'8'", text, count=1)
    equal(n, 1, "structs sqlipc_parameter in the file")
    with tempfile.NamedTemporaryFile("w", suffix=".abi") as file:
        file.write(other)
        file.flush()
        code, said = compare(file.name)
    true(code & CHANGED and "sqlipc_parameter" in said, f"abidiff says {code}: {said}")


@test
def every_symbol_of_the_release():
    """The file of the release names the functions of the symbol map"""
    names = set(re.findall(r"<elf-symbol name='(sqlipc_\w+)'", RELEASED.read_text(encoding="utf-8")))
    mapped = set(re.findall(r"\b(sqlipc_\w+);", (ROOT / "client-lib/libsqlipc.sym").read_text(encoding="utf-8")))
    equal(sorted(names - mapped), [], "symbols of the release that the map has no more")


sys.exit(run())
