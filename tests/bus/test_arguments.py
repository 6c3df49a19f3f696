#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""SQL and parameters in a file (option "arguments"): each method, its limits, and files of hostile clients."""
import contextlib
import fcntl
import os
import socket
import struct

from argument_files import SEALS, call, file, statement
from client import GLib, Run
from harness import expect, fds, main, wait_for
from tap import equal, test, true
from writers import DB, writable

LIMITS = {"SQLSizeMax": "2M", "RowSizeMax": "8M"}
MIB = 1 << 20
LARGE = bytes(range(256)) * (5 * MIB // 256)
INSERT = "INSERT INTO written(number, t) VALUES (?, ?)"


def execute(client, content, sql="", seals=SEALS, options=None):
    with file(content, seals) as fd:
        return call(client, DB, "Execute", "(sava{sv}a{sv})", sql, [], {}, fd=fd, options=options)[0][0].get_int64()


def query(client, content, sql="", options=None):
    with file(content) as fd:
        values, got = call(client, DB, "Query", "(sava{sv}a{sv})", sql, [], {}, fd=fd, options=options)
    number, handle, columns, info = values
    run = Run(client, DB, number.get_uint64(), got[handle.get_handle()], columns.unpack(), info.unpack())
    return run.read()


def batch(client, content, options=None):
    with file(content) as fd:
        return call(client, DB, "ExecuteBatch", "(a(sava{sv})a{sv})", [], fd=fd, options=options)[0][0].unpack()


@test
def each_method():
    """Execute, Query, QueryRows, Fetch, ExecuteBatch and Load take SQL and parameters from a file, also in a transaction"""
    with writable(limits=LIMITS) as service:
        client = service.client()
        equal(execute(client, statement(INSERT, [1, LARGE])), 1, "Execute")
        named = statement("", [], {":n": 2, ":t": LARGE})
        equal(execute(client, named, INSERT.replace("?, ?", ":n, :t")), 1, "SQL in the call")
        long = " " * 1_500_000
        length = "SELECT number, length(t), ?2 FROM written WHERE number = ?1"
        equal(query(client, statement(length + long, [1, None])).rows, [[1, len(LARGE), None]], "Query")
        equal(query(client, statement("SELECT ?1", [LARGE])).rows, [[LARGE]], "a value comes back")
        with file(statement(length, [2, LARGE[:1000]])) as fd:
            values, _ = call(client, DB, "QueryRows", "(sava{sv}a{sv})", "", [], {}, fd=fd)
            equal(len(values[1].unpack()), 1, "QueryRows")
        prepared = client.prepare(DB, "SELECT length(?1), ?2")
        with file(statement("", [LARGE, 7])) as fd:
            call(client, DB, "Fetch", "(tava{sv}a{sv})", prepared.number, [], {}, fd=fd)
        two = statement(INSERT, [3, LARGE]) + statement("DELETE FROM written WHERE number < ?", [3])
        equal(batch(client, two), [1, 2], "changes")
        with file(statement(INSERT + long)) as fd:
            values, _ = call(client, DB, "Load", "(sa{sv})", "", fd=fd)
            client.database(DB, "Cancel", "(ta{sv})", values[0].get_uint64(), {})
        values, _ = client.database(DB, "Begin", "(a{sv})", {"mode": GLib.Variant("s", "write")})
        inside = {"transaction": values[0]}
        equal(execute(client, statement(INSERT, [4, LARGE]), options=inside), 1, "Execute in a transaction")
        equal(batch(client, statement(INSERT, [5, LARGE]), inside), [1], "ExecuteBatch in a transaction")
        equal(query(client, statement("SELECT number, t = ? FROM written", [LARGE]), options=inside).rows,
              [[3, 1], [4, 1], [5, 1]], "Query in a transaction")  # fmt: skip
        client.database(DB, "Commit", "(ta{sv})", values[0].get_uint64(), {})


@test
def limits():
    """SQLSizeMax= and RowSizeMax= hold for each statement in a file, and each error names its key"""
    with writable(limits=LIMITS) as service:
        client = service.client()
        sql_max, row_max = 2 * MIB, 8 * MIB
        at = "SELECT 1".ljust(sql_max)
        equal(query(client, statement(at)).rows, [[1]], "SQL of SQLSizeMax=")
        true("SQLSizeMax=" in expect("LimitsExceeded", query, client, statement(at + " ")).message, "it names the key")
        true("SQLSizeMax=" in expect("LimitsExceeded", client.query, DB, at + " ").message, "it names the key in a message")
        value = bytes(row_max - 5)
        equal(query(client, statement("SELECT length(?)", [value])).rows, [[len(value)]], "a row of RowSizeMax=")
        failure = expect("LimitsExceeded", query, client, statement("SELECT length(?)", [value + b"x"]))
        true("RowSizeMax=" in failure.message, failure.message)
        two = statement(INSERT, [1, 1]) + statement(INSERT, [2, value + b"x" * 20])
        failure = expect("LimitsExceeded", batch, client, two)
        true("statement 2" in failure.message and "RowSizeMax=" in failure.message, failure.message)
        expect("LimitsExceeded", batch, client, statement("DELETE FROM written") * 4097)
        equal(len(batch(client, statement("DELETE FROM written") * 4096)), 4096, "as many as are allowed")


def refused(client, error, content, **keywords):
    expect(error, execute, client, content, **keywords)


@test
def hostile_descriptors():
    """A descriptor that is no memfd, lacks a seal, has a hole or is too short is refused, and none of them is kept"""
    with writable(limits=LIMITS) as service:
        client = service.client()
        good = statement(INSERT, [1, "text"])
        execute(client, good)
        before = len(fds(service.pid()))
        for lacking in (fcntl.F_SEAL_WRITE, fcntl.F_SEAL_SHRINK, fcntl.F_SEAL_GROW, fcntl.F_SEAL_SEAL):
            refused(client, "InvalidOption", good, seals=SEALS & ~lacking)
        refused(client, "InvalidOption", good, seals=0)
        refused(client, "InvalidOption", b"")
        refused(client, "InvalidOption", good[:16])
        hollow = os.memfd_create("hollow", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(hollow, good)
        os.ftruncate(hollow, 1 << 40)
        with contextlib.ExitStack() as stack:
            r, w = os.pipe()
            pair = socket.socketpair()
            sparse = os.memfd_create("sparse", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.pwrite(sparse, good, 0)
            os.ftruncate(sparse, 64 * MIB)
            for fd in (hollow, sparse):
                fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
            others = [os.open("/dev/null", os.O_RDWR), os.open("/dev/zero", os.O_RDONLY), os.open(service.data, os.O_PATH),
                      os.open(service.written, os.O_RDONLY)]  # fmt: skip
            for fd in (r, w, hollow, sparse, *others):
                stack.callback(os.close, fd)
            for part in pair:
                stack.callback(part.close)
            for fd in (r, w, pair[0].fileno(), hollow, sparse, *others):
                name = "LimitsExceeded" if fd == hollow else "InvalidOption"
                expect(name, call, client, DB, "Execute", "(sava{sv}a{sv})", INSERT, [], {}, fd=fd)
        with file(good) as fd:
            expect("InvalidOption", call, client, DB, "Execute", "(sava{sv}a{sv})", "", [GLib.Variant("i", 1)], {}, fd=fd)
            expect("UnknownOption", call, client, DB, "Prepare", "(sa{sv})", "SELECT 1", fd=fd)
            expect("InvalidOption", client.execute, DB, "", options={"arguments": GLib.Variant("u", 0)})
        wait_for(lambda: len(fds(service.pid())) <= before, "the descriptors of the service are closed")
        equal(client.query(DB, "SELECT count(*) FROM written").read().rows, [[1]], "rows")


@test
def hostile_content():
    """A file whose content is not valid ends its call with InvalidRequest, and the worker goes on"""
    with writable(limits=LIMITS | {"WorkersMax": 1}) as service:
        client = service.client()
        good = statement(INSERT, [1, "text"])
        execute(client, good)
        workers = service.workers()
        head = struct.Struct("<4I")
        sql, parameters, positional, named = head.unpack(good[:16])
        heads = [
            (sql + 1, parameters, positional, named), (sql - 1, parameters, positional, named),
            (sql, parameters + 1, positional, named), (sql, parameters - 1, positional, named),
            (sql, parameters, positional + 1, named), (sql, parameters, 0, named), (sql, parameters, 0, 1),
            (sql, parameters, positional, 1 << 31), (2**32 - 1, parameters, positional, named),
            (sql, 2**32 - 1, positional, named),
            (2**32 - 1, 2**32 - 1, 2**32 - 1, 2**32 - 1), (0, parameters, positional, named),
        ]  # fmt: skip
        contents = [head.pack(*h) + good[16:] for h in heads]
        contents += [good + b"x", good * 2, good[:17], good[:-1], good[: 16 + sql] + b"x" + good[17 + sql :]]
        at = 17 + sql
        contents += [good[:at] + bytes([kind]) + good[at + 1 :] for kind in (0, 6, 255)]
        ends = ((9, 13), (2**32 - 1, 13), (8, 14), (13, 8))
        contents += [good[: at + 2] + struct.pack("<2I", *pair) + good[at + 10 :] for pair in ends]
        for content in contents:
            refused(client, "InvalidRequest", content)
            if content not in (good * 2,):
                expect("InvalidRequest", batch, client, content)
        refused(client, "Sql", good.replace(b"INSERT", b"\xff\xfe\xed\xa0\x80I"))
        expect("InvalidRequest", execute, client, good, sql=INSERT)
        expect("EmptyStatement", execute, client, statement("", [1]))
        values, _ = client.database(DB, "Begin", "(a{sv})", {"mode": GLib.Variant("s", "write")})
        inside = {"transaction": values[0]}
        refused(client, "InvalidRequest", contents[0], options=inside)
        equal(execute(client, good, options=inside), 1, "the transaction goes on")
        client.database(DB, "Commit", "(ta{sv})", values[0].get_uint64(), {})
        equal(service.workers(), workers, "workers")
        equal(client.query(DB, "SELECT number FROM written").read().rows, [[1], [1]], "rows")


@test
def files_are_given_back():
    """A file counts for its user, 16 MiB at least, only until its call begins: 200 calls one after another"""
    with writable(limits=LIMITS | {"WorkersMax": 1}) as service:
        client = service.client()
        values, _ = client.database(DB, "Begin", "(a{sv})", {"mode": GLib.Variant("s", "write")})
        for n in range(200):
            equal(execute(client, statement(INSERT, [n, "x"]), options={"transaction": values[0]}), 1, "changes")
        client.database(DB, "Rollback", "(ta{sv})", values[0].get_uint64(), {})
        equal(client.query(DB, "SELECT count(*) FROM written").read().rows, [[0]], "rows")


if __name__ == "__main__":
    main()
