#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Live models while other processes write, for test_glib.py.

usage: glib_live.py ADDRESS FILE CHANGES SEED

Two processes write, one through the service and one past it. After each burst, three models must come to equal a fresh
query, and so must lists that were kept by their signals alone. At the end the program prints "restart", and waits for a line
while the test restarts the service.
"""
import random
import sqlite3
import subprocess
import sys
import time

import gi

gi.require_version("Sqlipc", "1")
from gi.repository import GLib, Sqlipc  # noqa: E402

DB, SQL = "written", "SELECT id, name, v FROM t"
address, path, n_changes, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
context = GLib.MainContext.default()


def change(run, seed, n):
    """Makes `n` changes of all kinds."""
    chance = random.Random(seed)
    for _ in range(n):
        i = chance.randrange(1, 3000)
        kind = chance.randrange(4)
        if kind == 0:
            run("INSERT OR IGNORE INTO t VALUES(?, ?, ?)", (i, f"name {chance.randrange(5)}", 1))
        elif kind == 1:
            run("DELETE FROM t WHERE id = ?", (i,))
        elif kind == 2:
            run("UPDATE t SET name = ? WHERE id = ?", (f"name {chance.randrange(3000)}", i))
        else:
            run("UPDATE OR IGNORE t SET id = ? WHERE id = ?", (chance.randrange(1, 3000), i))


def write(mode):
    """The program of a writer: makes a burst for each line "SEED N" of its input."""
    if mode == "service":
        connection = Sqlipc.Connection.new_for_address(address)

        def run(sql, values):
            types = "".join("x" if isinstance(v, int) else "s" for v in values)
            connection.execute(DB, sql, GLib.Variant(f"({types})", values), None)

    else:
        file = sqlite3.connect(path, timeout=60, isolation_level=None)
        file.execute("PRAGMA synchronous = off")

        def run(sql, values):
            file.execute(sql, values)

    for line in sys.stdin:
        change(run, *map(int, line.split()))
        print("done", flush=True)


class Mirror:
    """A list that follows a model by its signals."""

    def __init__(self, model):
        self.model, self.rows = model, []
        model.connect("items-changed", self.on_items_changed)
        self.on_items_changed(model, 0, 0, model.get_n_items())

    def on_items_changed(self, model, position, removed, added):
        self.rows[position : position + removed] = [model.get_item(position + i) for i in range(added)]

    def values(self):
        return [row.to_variant().unpack() for row in self.rows]


def fresh(connection, order):
    cursor, rows = connection.query(DB, f"{SQL} ORDER BY {order}", None, None), []
    while block := cursor.next_rows(0, None):
        rows += block.to_variant().unpack()
    return rows


def wait_equal(mirrors, connection, what):
    """Runs the loop until all models are settled and equal a fresh query."""
    end = time.monotonic() + 120
    wrong = "nothing"
    while time.monotonic() < end:
        context.iteration(True)
        if all(mirror.model.is_settled() for mirror, _ in mirrors):
            wrong = [order for mirror, order in mirrors if mirror.values() != fresh(connection, order)]
            if not wrong:
                return
            GLib.timeout_add(20, lambda: False)
    raise AssertionError(f"{what}: not equal: {wrong}; {[m.model.get_error() for m, _ in mirrors]}")


def main():
    connection = Sqlipc.Connection.new_for_address(address)
    models = (
        (Sqlipc.LiveModel.new(connection, DB, f"{SQL} ORDER BY name, id", None, ["id"]), "name, id"),
        (Sqlipc.LiveModel.new(connection, DB, f"{SQL} ORDER BY id", None, None), "id"),
        (Sqlipc.LiveModel.new_windowed(connection, DB, SQL, None, ["id"], ["name DESC"]), "name DESC, id"),
    )
    mirrors = [(Mirror(model), order) for model, order in models]
    writers = [
        subprocess.Popen(
            [sys.executable, __file__, *sys.argv[1:5], mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for mode in ("service", "file")
    ]
    wait_equal(mirrors, connection, "at first")
    n_bursts = 10
    for burst in range(n_bursts):
        left = []
        for number, writer in enumerate(writers):
            writer.stdin.write(f"{seed + burst * 2 + number} {n_changes // n_bursts // 2}\n")
            writer.stdin.flush()
            left.append(writer.stdout.fileno())
            GLib.unix_fd_add_full(
                GLib.PRIORITY_DEFAULT, left[-1], GLib.IOCondition.IN, lambda fd, _: bool(left.remove(fd))
            )
        while left:
            context.iteration(True)
        for writer in writers:
            assert writer.stdout.readline() == "done\n"
        wait_equal(mirrors, connection, f"burst {burst}")
    for writer in writers:
        writer.stdin.close()
        assert writer.wait() == 0
        writer.stdout.close()

    # The service restarts under the models, and the data changes meanwhile.
    rows = [mirror.rows[7] for mirror, _ in mirrors]
    print("restart", flush=True)
    sys.stdin.readline()
    wait_equal(mirrors, connection, "after a restart")
    kept = [row for row, (mirror, _) in zip(rows, mirrors) if row in mirror.rows]
    assert kept, "a row keeps its object"


if len(sys.argv) > 5:
    write(sys.argv[5])
else:
    main()
