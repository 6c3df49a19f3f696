#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The exports and files of libsqlipc: its symbols, its header, its man pages.

usage: test_library.py BUILD-ROOT
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bus"))
from tap import equal, run, test, true  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1))
LIBRARY = BUILD / "client-lib/libsqlipc.so.0"
HEADER = ROOT / "client-lib/sqlipc.h"
STRICT = ("-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-fsyntax-only")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def mapped():
    """node -> symbols of the map"""
    text = without_comments((ROOT / "client-lib/libsqlipc.sym").read_text())
    return {node: set(re.findall(r"\b(sqlipc_\w+);", body)) for node, body in re.findall(r"(\w+)\s*\{(.*?)\}", text, re.S)}


def declared():
    return set(re.findall(r"\b(sqlipc_\w+)\(", without_comments(HEADER.read_text())))


@test
def exported_symbols():
    """The library exports the symbols of libsqlipc.sym, in its nodes, and no others"""
    exported = {}
    for line in output("nm", "--dynamic", "--defined-only", "--with-symbol-versions", LIBRARY).splitlines():
        kind, name = line.split()[1:]
        symbol, _, node = name.partition("@@")
        if kind != "A":
            exported.setdefault(node, set()).add(symbol)
    equal(exported, mapped(), "exported symbols")


@test
def declared_functions():
    """The header declares the functions of the symbol map"""
    equal(sorted(declared()), sorted(set().union(*mapped().values())), "declared functions")


def functions(path):
    """The functions that a .c file defines for others, except the public ones"""
    text = without_comments(path.read_text())
    heads = re.findall(r"^(?!static |_public_ |typedef |#|DEFINE_)([a-z][^\n;={}()]*?)\b(\w+)\([^;{}]*\) \{$", text, re.M)
    return [name for kind, name in heads if "static" not in kind and "_public_" not in kind]


@test
def functions_of_modules():
    """Functions that foo.c defines for other files begin with foo_, and foo.h declares them; public ones are in sqlipc.h"""
    wrong, n = [], 0
    for path in sorted((ROOT / "client-lib").glob("*.c")):
        header, module = path.with_suffix(".h"), path.stem.replace("-", "_")
        text = without_comments(header.read_text()) if header.exists() else ""
        for name in functions(path):
            n += 1
            if not (name == module or name.startswith(module + "_")) or not re.search(rf"\b{name}\(", text):
                wrong.append(f"{path.name}: {name}()")
    true(n > 100, f"only {n} functions found")
    equal(wrong, [], "functions")


@test
def headers_of_modules():
    """foo.h declares what foo.c defines, and nothing else"""
    wrong, n = [], 0
    for header in sorted((ROOT / "client-lib").glob("*.h")):
        if header != HEADER:
            text, path = without_comments(header.read_text()), header.with_suffix(".c")
            defined = functions(path) if path.exists() else []
            declared_here = re.findall(r"^(?!static |typedef |\s)[a-z][^\n;={}()]*?\b(\w+)\([^;{}]*\)[^;{}]*;", text, re.M)
            wrong += [f"{header.name}: {name}()" for name in declared_here if name not in defined]
            n += len(declared_here)
    true(n > 100, f"only {n} declarations found")
    equal(wrong, [], "declarations")


@test
def since():
    """Every docstring with a function below it says since when"""
    blocks = re.findall(r"/\*\*(.*?)\*/\n((?:(?!/\*\*)[^{}])*?;)", HEADER.read_text(), re.S)
    functions = [(comment, code) for comment, code in blocks if re.search(r"\bsqlipc_\w+\(", code) and "typedef" not in code]
    true(len(functions) > 30, f"only {len(functions)} docstrings found")
    without = [re.search(r"sqlipc_\w+\(", code)[0] for comment, code in functions if "Since: " not in comment]
    equal(without, [], "functions without")


@test
def man_pages():
    """Every public function has a man page that is named for it or names it"""
    text = "".join(p.read_text() for p in (ROOT / "docs/man").glob("*sqlipc*.3.rst"))
    equal(sorted(name for name in declared() if not re.search(rf"\b{name}\b", text)), [], "functions without a page")


@test
def documented_errors():
    """sqlipc_error(3) lists every row of the error table, with its errno, and no other"""
    table = re.findall(r"X\(\d+, (\w+), \w+, (\w+)\)", (ROOT / "dbus-interfaces/sqlipc-errors.h").read_text())
    page = (ROOT / "docs/man/sqlipc_error.3.rst").read_text()
    page = page.split("ERRORS OF THE SERVICE")[1].split("ERRORS WITHOUT A CODE")[0]
    true(len(table) > 30, f"only {len(table)} rows found")
    equal(re.findall(r"^([A-Z_]+) \((\w+)\)$", page, re.M), table, "errors")


@test
def header_as_c99():
    """sqlipc.h compiles alone, as strict C99"""
    output("cc", "-std=c99", *STRICT, "-Wmissing-prototypes", "-x", "c", HEADER)


@test
def header_as_cxx():
    """sqlipc.h compiles alone, as C++"""
    output("c++", "-std=c++11", *STRICT, "-x", "c++", HEADER)


@test
def soname():
    """Programs link to the name of this major version"""
    equal(re.findall(r"SONAME.*\[(.*)\]", output("readelf", "--dynamic", LIBRARY)), ["libsqlipc.so.0"], "name")


sys.exit(run())
