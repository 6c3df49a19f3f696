# SPDX-License-Identifier: LGPL-2.1-or-later
"""Has the tests of a suite use databases of rqlite: a file that they publish is loaded into a node of its own, and published
from there. With SQLIPC_TEST_RQLITE=1 in the environment, harness.Service calls keys_of(); SQLIPC_RQLITED names the program.

A test that reads or changes the file itself does not notice the node, and fails; rqlite-differences.txt has the list.
"""
import atexit
import contextlib
import json
import pathlib
import sqlite3
import tempfile

import rqlite

# Of [Limits]. A node that is told this time goes on with a cancelled query until then, and keeps its rows in memory.
LIMITS = {"RunTimeoutSec": 4}

nodes = {}  # path of a file -> the cluster of one node that has its place


def whole(path):
    """Returns the bytes of a copy of the file with all that its log has, without a log of its own."""
    with tempfile.NamedTemporaryFile(suffix=".sqlite") as file:
        with contextlib.closing(sqlite3.connect(path)) as source, contextlib.closing(sqlite3.connect(file.name)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
        return pathlib.Path(file.name).read_bytes()


def keys_of(path, keys):
    """Returns `keys`, and those that publish the node with the file."""
    if str(path) not in nodes:
        nodes[str(path)] = rqlite.Cluster(1, password="")
        atexit.register(nodes[str(path)].close)
        nodes[str(path)].ask("/db/load", whole(path), "application/octet-stream")
    return {"Engine": "rqlite", "Connection": nodes[str(path)].connection} | keys


def rows_of(path, sql):
    """Runs SQL past the service on the database in the place of a file; returns rows."""
    answer = nodes[str(path)].ask("/db/query?level=strong", json.dumps([sql]).encode())["results"][0]
    if "error" in answer:
        raise AssertionError(answer["error"])
    return [tuple(row) for row in answer.get("values", [])]
