#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""SQL against the objects that Expose= hides: the attacks of exposure_attacks.py and more, on every hidden name, by every
transport.

An attack on an existing hidden name must give the same answer, byte for byte, as one on a name that does not exist.
"""
import os
import sqlite3

import settled
import exposure_attacks as attacks
from channel import Channel
from client import Failure
from harness import CHINOOK, SANITIZED, UID_A, UID_B, Service, main
from neighbours import besieged
from tap import cases

A = UID_A if os.geteuid() == 0 else None
service = Service({"chinook": CHINOOK}, limits=settled.QUICK, start=False)
database = sqlite3.connect(service.data / "target.sqlite", isolation_level=None)
database.executescript(attacks.SCHEMA)
service.database("target", Path=service.data / "target.sqlite", Expose=" ".join(attacks.EXPOSED))
service.start()

# Every kind of hidden thing, and a name of the same length that never was.
HIDDEN = (
    attacks.TABLE, attacks.VIEW, attacks.INDEX, attacks.SHADOW, attacks.STAT, attacks.SEQUENCE, ("notes", "nodes"),
    ("other", "ocher"), ("secret_trigger", "absent_trigger"), ("pages_data", "pages_dada"), ("pages_config", "pages_konfig"),
)  # fmt: skip
TEMPLATES = [sql for sql, *names in attacks.NAMED_ATTACKS if tuple(names) == attacks.TABLE] + [
    "INSERT INTO shown SELECT id, 1, 1 FROM {x}",
    "INSERT INTO shown VALUES(9, 'x', 1) RETURNING (SELECT count(*) FROM {x})",
    "INSERT INTO shown VALUES(1, 'x', 1) ON CONFLICT DO UPDATE SET name = (SELECT 1 FROM {x})",
    "UPDATE shown SET name = {x}.id FROM {x}",
    "DELETE FROM shown WHERE id IN (SELECT id FROM {x})",
    "REPLACE INTO {x} DEFAULT VALUES",
    "VACUUM {x}",
    "VACUUM INTO '{x}'",
    "DETACH {x}",
    "SAVEPOINT {x}",
    "ALTER TABLE {x} ADD COLUMN y",
    "ALTER TABLE shown RENAME TO {x}",
    "DROP VIEW {x}",
    "DROP INDEX {x}",
    "DROP TRIGGER {x}",
    "CREATE VIEW {x} AS SELECT 1",
    "CREATE TABLE y AS SELECT * FROM {x}",
    "CREATE VIRTUAL TABLE y USING fts5(body, content={x})",
    "CREATE VIRTUAL TABLE y USING fts5vocab({x}, row)",
    "SELECT writefile('/tmp/x', (SELECT 1 FROM {x}))",
    "SELECT load_extension('{x}', '{x}')",
    "SELECT fts3_tokenizer('{x}', x'00')",
    "SELECT sqlite_offset({x}.id) FROM {x}",
    "SELECT * FROM dbstat('main') WHERE name = '{x}'",
    "SELECT * FROM dbstat WHERE name = '{x}'",
    "SELECT * FROM sqlite_stmt WHERE sql LIKE '%{x}%'",
    "SELECT * FROM sqlite_dbpage('{x}')",
    "SELECT * FROM json_each((SELECT id FROM {x}))",
    "SELECT * FROM shown, pragma_table_info('{x}')",
    "SELECT (SELECT sql FROM sqlite_schema WHERE name = '{x}')",
    "SELECT * FROM sqlite_temp_schema WHERE name = '{x}'",
    "SELECT highlight({x}, 0, 'a', 'b') FROM pages",
    "SELECT snippet({x}, 0, 'a', 'b', 'c', 5) FROM pages",
    "SELECT bm25({x}) FROM pages",
    "SELECT matchinfo({x}) FROM pages",
    "SELECT * FROM pages('{x}')",
    "SELECT shown.*, {x}.* FROM shown",
    "SELECT * FROM (SELECT * FROM shown) AS {x} JOIN main.{x} USING(id)",
    "SELECT * FROM public AS {x} WHERE {x}.password IS NOT NULL",
    "WITH public AS (SELECT * FROM main.{x}), shown AS (SELECT * FROM public) SELECT * FROM shown",
    "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM {x}) SELECT * FROM a",
    "SELECT name COLLATE {x} FROM shown",
    "SELECT CAST(name AS {x}) FROM shown",
    "SELECT {x}(1)",
    "SELECT '{x}' IN (SELECT name FROM sqlite_schema)",
]
PRAGMAS = (
    "application_id", "cache_size", "collation_list", "compile_options", "data_version", "database_list", "encoding",
    "foreign_key_check", "foreign_key_list", "freelist_count", "function_list", "index_info", "index_list", "index_xinfo",
    "integrity_check", "journal_mode", "module_list", "optimize", "page_count", "page_size", "pragma_list", "quick_check",
    "schema_version", "stats", "table_info", "table_list", "table_xinfo", "temp_store_directory", "user_version",
    "wal_checkpoint", "writable_schema",
)  # fmt: skip


def answer(function):
    """As plain values."""
    try:
        return ("rows", function())
    except Failure as failure:
        return "error", failure.name, failure.message, failure.extended, failure.offset


class Ways:
    """Each transport; what they say together."""

    def __init__(self):
        self.client = service.client(A)
        self.channel = Channel(self.client, "target")

    def down_a_pipe(self, sql):
        result = self.client.query("target", sql, options={"error-details": True}).read()
        return result.columns, result.rows

    def as_values(self, sql):
        return self.client.query_rows("target", sql, options={"error-details": True})

    def by_cursor(self, sql):
        return self.client.all_rows("target", sql)

    def prepared(self, sql):
        statement = self.client.prepare("target", sql, options={"error-details": True})
        statement.close()
        return statement.columns, statement.info

    def on_a_channel(self, sql):
        result = self.channel.read(self.channel.query(sql))
        return result.columns, result.rows

    def described(self, sql):
        number = self.channel.prepare(sql)
        described = self.channel.statement(number)
        self.channel.finalize(number)
        return described

    def all(self):
        ways = [self.down_a_pipe, self.as_values, self.by_cursor, self.prepared, self.on_a_channel, self.described]
        return ways[:: 3 if SANITIZED else 1]

    def close(self):
        self.channel.close()


@besieged(service, UID_B)
def every_hidden_name():
    """Each attack on each hidden object, by each transport, gives the same result as for a name that never existed"""
    ways, tried = Ways(), 0
    for hidden, absent in HIDDEN:
        for sql in TEMPLATES:
            for way in ways.all():
                attacks.check_named(lambda text, way=way: answer(lambda: way(text)), sql, hidden, absent)
                tried += 1
    ways.close()
    cases("hidden tables", tried, "an attack on a hidden name, compared with one that never was, in a way")


@besieged(service, UID_B)
def without_a_name():
    """Pragmas, modules and functions that list objects show no hidden one"""
    ways, tried = Ways(), 0
    statements = list(attacks.UNNAMED_ATTACKS)
    for pragma in PRAGMAS:
        statements += [
            f"PRAGMA {pragma}", f"PRAGMA main.{pragma}", f"PRAGMA {pragma} = 1", f"SELECT * FROM pragma_{pragma}",
            f"SELECT * FROM pragma_{pragma}(1)",
        ]  # fmt: skip
    for module in ("generate_series", "csv", "zipfile", "fsdir", "completion", "sqlite_memstat", "carray", "unionvtab"):
        statements += [f"SELECT * FROM {module}", f"SELECT * FROM {module}('x')"]
    for sql in statements:
        for way in ways.all():
            attacks.check_unnamed(lambda text, way=way: answer(lambda: way(text)), sql)
            tried += 1
    ways.close()
    cases("hidden tables", tried, "an attack without a name, in a way, that must tell of nothing hidden")


if __name__ == "__main__":
    main(service)
