#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs files in the format of SQLite's sqllogictest through the service, and checks that an error in such a file is found.
"""

import pathlib
import tempfile

from sqllogictest import TRANSPORTS, run_files

from harness import Service, main
from tap import cases, equal, test, true

FOLDER = pathlib.Path(__file__).resolve().parent / "sqllogictest"
service = Service(limits={"WorkerIdleSec": "1"})
HEAD = "statement ok\nCREATE TABLE t(a INTEGER, b TEXT)\n\nstatement ok\nINSERT INTO t VALUES(1, 'x'), (2, 'y')\n\n"
OTHER_HASH = "2 values hashing to 00000000000000000000000000000000"
LABELLED = "\n\nquery I nosort one\nSELECT a FROM t\n"
# Records that must fail, for the reason in their comment.
WRONG = (
    ("query I\nSELECT a FROM t ORDER BY a\n----\n1\n3\n", "expected ['1', '3']"),
    ("query I\nSELECT a FROM t ORDER BY a\n----\n2\n1\n", "expected ['2', '1']"),
    ("query I\nSELECT a FROM t ORDER BY a\n----\n1\n", "got 2 values"),
    ("query I\nSELECT a FROM t WHERE a > 5\n----\n1\n", "got 0 values"),
    ("query IT\nSELECT a FROM t\n----\n1\n2\n", "1 columns instead of 2"),
    ("query I\nSELECT a FROM t ORDER BY a\n----\n" + OTHER_HASH + "\n", "hashing to"),
    ("query I nosort one\nSELECT a FROM t\n\nquery I nosort one\nSELECT a + 1 FROM t\n", "under the label one"),
    ("query I\nSELECT no_such FROM t\n----\n1\n", "no such column"),
    ("statement ok\nSELECT no_such FROM t\n", "no such column"),
    ("statement error\nSELECT a FROM t\n", "it should fail"),
    ("onlyif sqlite\nquery I\nSELECT 1\n----\n2\n", "expected ['2']"),
    ("onlyif SQLite\nquery I\nSELECT 1\n----\n2\n", "expected ['2']"),
    ("query I\nSELECT a FROM t\n", "got 2 values"),
    ("query T\nSELECT 'x '\n----\nx\n", "expected ['x']"),
    ("query I\nSELECT 1\n----\n# no value\n2\n", "expected ['2']"),
    ("skipif SQLite\nquery I nosort one\n?\n----\n7\n8\n" + LABELLED, "under the label one"),
    ("onlyif mysql\nquery I nosort one\n?\n----\n" + OTHER_HASH + LABELLED, "under the label one"),
)
MALFORMED = (
    "query X\nSELECT 1\n",
    "query I sorted\nSELECT 1\n",
    "statement maybe\nSELECT 1\n",
    "nonsense\n",
    "query I\n",
    "skipif\nhalt\n",
    "skipif sqlite\n",
)


@test
def files():
    """The files here return the same rows as SQLite, by each transport"""
    failures, counts = run_files(service, [FOLDER])
    equal(failures, [], "failures")
    true(counts["files"] >= 2 and counts["queries"] >= 4 * 15 and counts["skipped"] >= 2, str(counts))
    cases("sqllogictest", counts["queries"], "a query of a file, by one transport")


@test
def wrong_files():
    """The runner finds a wrong value, order, count, hash, label or outcome of a statement, by each transport"""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "wrong.test")
        for text, said in WRONG:
            path.write_text(HEAD + text + "\nhalt\n\nstatement ok\nnever read\n", encoding="utf-8")
            failures, _ = run_files(service, [path])
            equal(len(failures), 1 if text.startswith("statement") else len(TRANSPORTS), f"{text}: failures")
            true(all(said in failure for failure in failures), f"{text}: {failures}")


@test
def malformed_files():
    """The runner refuses text that is not of the format, with its line"""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "malformed.test")
        for text in MALFORMED:
            path.write_text("# a comment\n\n" + text, encoding="utf-8")
            failures, _ = run_files(service, [path], ("pipe",))
            equal([f"{path}: line 3" in failure for failure in failures], [True], f"{text}: {failures}")


main(service)
