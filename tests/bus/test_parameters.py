#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Parameters: every type, by position and by name; each mistake has its own error."""
import select

from client import GLib, Text, same_rows
from harness import CHINOOK, Service, expect, main
from tap import equal, test, true

service = Service({"chinook": CHINOOK})
client = service.client()
V = GLib.Variant


def one(sql, *positional, **named):
    """The one row of a query, the same by Query, Fetch and QueryRows."""
    rows = client.query("chinook", sql, positional, named).read().rows
    statement = client.prepare("chinook", sql)
    same_rows(statement.fetch(*positional, named=named).read().rows, rows)
    statement.close()
    same_rows(client.query_rows("chinook", sql, positional, named)[1], rows)
    equal(len(rows), 1, "rows")
    return rows[0]


@test
def every_type():
    """Every D-Bus type that a parameter may have arrives as its SQL type"""
    cases = [
        (V("y", 255), 255),
        (V("b", True), 1),
        (V("n", -32768), -32768),
        (V("q", 65535), 65535),
        (V("i", -(2**31)), -(2**31)),
        (V("u", 2**32 - 1), 2**32 - 1),
        (V("x", -(2**63)), -(2**63)),
        (V("t", 2**63 - 1), 2**63 - 1),
        (V("d", 0.1), 0.1),
        (V("d", float("-inf")), float("-inf")),
        (V("d", float("nan")), None),
        (V("s", "é"), Text("é".encode())),
        (V("s", ""), Text(b"")),
        (V("o", "/a"), Text(b"/a")),
        (V("g", "ai"), Text(b"ai")),
        (V("g", ""), None),
        (b"", b""),
        (b"\0\xff", b"\0\xff"),
        (None, None),
        (Text(b"a\0\xff"), Text(b"a\0\xff")),
        (Text(b""), Text(b"")),
    ]
    for sent, wanted in cases:
        same_rows([one("SELECT ?", sent)], [[wanted]])
        same_rows([one("SELECT :v", v=sent)], [[wanted]])


@test
def names():
    """Names with prefix, without, ?NNN, and mixed with positional ones"""
    for named in ({":id": 7}, {"id": 7}):
        equal(client.query("chinook", "SELECT :id", (), named).read().rows, [[7]], f"{named}")
    equal(
        client.query("chinook", "SELECT @id, $id, :id", (), {"@id": 1, "$id": 2, ":id": 3}).read().rows,
        [[1, 2, 3]],
        "prefixes",
    )
    equal(client.query("chinook", "SELECT ?5, ?2", (1, 2, 3, 4, 5)).read().rows, [[5, 2]], "?NNN by position")
    equal(client.query("chinook", "SELECT ?1, :x", (1,), {"x": 2}).read().rows, [[1, 2]], "mixed")
    equal(client.query("chinook", "SELECT ?1, ?2", (1,), {"?2": 2}).read().rows, [[1, 2]], "?2 by name")
    statement = client.prepare("chinook", "SELECT ?, :a, @b, $c, ?7")
    equal(statement.info["parameters"], ["", ":a", "@b", "$c", "", "", "?7"], "parameters by index")
    statement.close()


@test
def wrong_names_and_counts():
    """Too few, too many, repeated, unknown and ambiguous parameters are refused by name, and nothing is written"""
    cases = [
        ("SELECT ?", (), {}, "ParameterCount"),
        ("SELECT ?", (1, 2), {}, "ParameterCount"),
        ("SELECT 1", (1,), {}, "ParameterCount"),
        ("SELECT :a", (), {"b": 1}, "UnknownParameter"),
        ("SELECT :a", (), {"@a": 1}, "UnknownParameter"),
        ("SELECT :a, @a", (), {"a": 1}, "UnknownParameter"),
        ("SELECT :a", (1,), {"a": 1}, "ParameterCount"),
        ("SELECT :a", (), {"a": 1, ":a": 2}, "ParameterCount"),
        ("SELECT ?2", (), {"?9": 1}, "UnknownParameter"),
        ("SELECT :a, :b", (), {"a": 1}, "ParameterCount"),
    ]
    for sql, positional, named, wanted in cases:
        try:
            expect(wanted, client.query, "chinook", sql, positional, named)
            statement = client.prepare("chinook", sql)
            expect(wanted, statement.fetch, *positional, named=named)
            poll = select.poll()
            poll.register(statement.pipe, select.POLLIN)
            equal(poll.poll(0), [], "what came down the pipe")
            statement.close()
        except AssertionError as problem:
            raise AssertionError(f"{sql} {positional} {named}: {problem}") from None


@test
def wrong_types():
    """Types without a counterpart in SQL are ParameterType"""
    for value in (
        V("t", 2**63),
        V("as", ["a"]),
        V("(i)", (1,)),
        V("ai", [1]),
        V("a{sv}", {"text": V("s", "no")}),
        V("a{sv}", {"other": V("i", 1)}),
        V("v", V("i", 1)),
        V("a{ss}", {}),
    ):
        expect("ParameterType", client.query, "chinook", "SELECT ?", (value,))
        expect("ParameterType", client.query, "chinook", "SELECT :v", (), {"v": value})


@test
def many_parameters():
    """32,766 parameters are taken, one more is refused"""
    run = client.query("chinook", "SELECT ?32766, ?1", list(range(1, 32767)))
    equal(run.read().rows, [[32766, 1]], "row")
    failure = expect("LimitsExceeded", client.query, "chinook", "SELECT ?1", [1] * 32767)
    true("VariablesMax=" in failure.message, failure.message)
    client.point()


@test
def large_parameters():
    """1 MiB of parameters is taken, more is refused"""
    size = 1024 * 1024 - 4096
    equal(client.query("chinook", "SELECT length(?)", (b"x" * size,)).read().rows, [[size]], "length")
    for value in (b"x" * (1024 * 1024 + 1), "x" * (1024 * 1024 + 1), Text(b"x" * (1024 * 1024 + 1))):
        expect("LimitsExceeded", client.query, "chinook", "SELECT length(?)", (value,))
    expect("LimitsExceeded", client.query, "chinook", "SELECT length(?), length(?)", (b"x" * 600000, b"x" * 600000))
    client.point()


@test
def large_statements():
    """SQL of 16 MiB is compiled from a message and prepared, more is refused"""
    padding = "SELECT 1 --" + "x" * ((16 << 20) - 11)
    equal(client.query("chinook", padding).read().rows, [[1]], "row")
    statement = client.prepare("chinook", padding)
    equal(statement.fetch().read().rows, [[1]], "row of a statement")
    statement.close()
    failure = expect("LimitsExceeded", client.query, "chinook", padding + "x")
    true("SQLSizeMax=" in failure.message, failure.message)
    client.point()


main(service)
