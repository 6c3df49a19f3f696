#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tests that call every method by hand cover every method of dbus-interfaces/*.xml, with its arguments."""
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bus"))
from tap import equal, run, test, true  # noqa: E402


def methods():
    """Name and signature of each method."""
    for path in sorted((ROOT / "dbus-interfaces").glob("*.xml")):
        for method in ElementTree.parse(path).iter("method"):
            arguments = [a for a in method.findall("arg") if a.get("direction") == "in"]
            yield method.get("name"), "".join(a.get("type") for a in arguments)


METHODS = list(methods())


def left_out(path, form):
    text = (ROOT / path).read_text(encoding="utf-8")
    return [name for name, signature in METHODS if form.format(name, signature) not in text]


@test
def fuzzed():
    """The target bus-methods calls each method with arguments of its signature"""
    true(len(METHODS) > 10, f"only {len(METHODS)} methods found")
    equal(left_out("tests/fuzz/fuzz-bus-methods.c", '"{}", "{}" }}'), [], "methods that it leaves out")


@test
def sent_descriptors():
    """reliability/hostile_bus sends descriptors of every kind to each method"""
    equal(left_out("tests/reliability/test_hostile_bus.py", '"{}", "({})"'), [], "methods that it leaves out")


sys.exit(run())
