# SPDX-License-Identifier: LGPL-2.1-or-later
"""Generates random schemas and data from a seed: every kind of table, column and value that SQLite has.

A schema is kept in parts, not as text, so that the shrinker (shrink.py) can remove tables, columns and rows.
"""

import contextlib
import sqlite3
from dataclasses import dataclass, field

TYPES = (
    "INTEGER", "INT", "BIGINT", "TEXT", "VARCHAR(20)", "CLOB", "REAL", "DOUBLE PRECISION", "FLOAT", "NUMERIC",
    "DECIMAL(10, 5)", "BOOLEAN", "DATE", "BLOB", "", "CHARINT", "anything", '"odd ""type"', "STRING",
)  # fmt: skip
STRICT_TYPES = ("INTEGER", "INT", "TEXT", "REAL", "BLOB", "ANY")
COLLATIONS = ("", "", "", " COLLATE BINARY", " COLLATE NOCASE", " COLLATE RTRIM")
INTEGERS = (
    "0", "1", "-1", "2", "7", "42", "127", "-128", "255", "65536", "2147483647", "-2147483648", "4294967296",
    "9007199254740993", "9223372036854775807", "-9223372036854775808", "-9223372036854775807", "140737488355327",
    "-140737488355329",
)  # fmt: skip
REALS = (
    "0.0", "-0.0", "1.0", "-1.5", "0.1", "1e308", "-1e308", "1.7976931348623157e308", "9e999", "-9e999", "5e-324",
    "-5e-324", "2.2250738585072014e-308", "2.225073858507201e-308", "9007199254740992.0", "9223372036854775807.0", "1e15",
    "3.14159265358979", "123456789.125", "1e-7",
)  # fmt: skip
TEXTS = (
    "''", "'a'", "'A'", "'a '", "'b'", "'abc'", "'ABC'", "' '", "'5'", "'05'", "' 5'", "'5.0'", "'1e1'", "'0x10'", "'-0'",
    "'%'", "'_'", "'*'", "'[a-c]'", "'é'", "'ß'", "'日本'", "'😀'", "'𝒳' || 'x'", "'it''s'", "'9223372036854775808'",
    "'nan'", "'inf'", "'2024-02-29'", "'12:34:56.789'", "'{\"a\":[1,2.5,null,\"x\"]}'", "'[1,[2,3],{\"b\":true}]'",
    "'{bad'", "'null'", "char(65534)", "char(64976)", "char(65279, 97)", "char(13, 10, 9)",
)  # fmt: skip
# TEXT that is no C string or no UTF-8; in a database of UTF-16 the same bytes are other text, and odd halves of it.
ODD_TEXTS = (
    "00", "610062", "6100", "ff", "c3", "c328", "eda080", "f8888080", "e28282", "efbfbe", "80", "00d8", "d8006100",
    "f09f98", "c080",
)  # fmt: skip
BLOBS = ("x''", "x'00'", "x'61'", "x'6100'", "x'ffff'", "x'35'", "x'0123456789abcdef'", "zeroblob(0)", "zeroblob(9)")
PAGE_SIZES = tuple(4096 << n for n in range(9))


def literal(random):
    """An SQL expression without names that gives a value of any class."""
    kind = random.random()
    if kind < 0.1:
        return "NULL"
    if kind < 0.35:
        return random.choice(INTEGERS) if random.random() < 0.6 else str(random.randrange(-10, 30))
    if kind < 0.55:
        return random.choice(REALS)
    if kind < 0.85:
        return random.choice(TEXTS)
    if kind < 0.92:
        return f"CAST(x'{random.choice(ODD_TEXTS)}' AS TEXT)"
    return random.choice(BLOBS)


def huge(random):
    """One about as large as a page, or a few MiB."""
    size = random.choice((*PAGE_SIZES, *PAGE_SIZES, *PAGE_SIZES, 100, 3 << 20)) + random.randrange(-40, 3)
    return random.choice(
        (
            f"zeroblob({size})",
            f"replace(hex(zeroblob({size // 2})), '0', 'y')",
            f"replace(hex(zeroblob({size // 4})), '0', 'é')",
        )
    )


@dataclass
class Column:
    name: str
    definition: str  # behind the name
    generated: bool = False

    def text(self):
        return f"{self.name} {self.definition}".rstrip()


@dataclass
class Table:
    name: str
    columns: list
    rows: list = field(default_factory=list)  # of literals, one for each column that is not generated
    constraints: list = field(default_factory=list)
    options: str = ""
    module: str = ""  # of a virtual table
    size: str = "small"  # or "tall", "wide", "huge": how often it is queried, and how

    def stored(self):
        return [column for column in self.columns if not column.generated]

    def statements(self):
        inside = ", ".join([column.text() for column in self.columns] + self.constraints)
        if self.module:
            yield f"CREATE VIRTUAL TABLE {self.name} USING {self.module}({inside})"
        else:
            yield f"CREATE TABLE {self.name}({inside}){self.options}"
        names = ", ".join(column.name for column in self.stored())
        for row in self.rows:
            yield f"INSERT INTO {self.name}({names}) VALUES({', '.join(row)})"


@dataclass
class Schema:
    encoding: str = "UTF-8"
    page_size: int = 4096
    tables: list = field(default_factory=list)
    statements: list = field(default_factory=list)  # indexes and views
    views: dict = field(default_factory=dict)  # name -> names of columns

    def script(self):
        """Statements, in their order."""
        yield f"PRAGMA page_size = {self.page_size}"
        yield f"PRAGMA encoding = '{self.encoding}'"
        for table in self.tables:
            yield from table.statements()
        yield from self.statements

    def exposed(self):
        """The tables that Expose= can publish: ordinary ones."""
        return [table.name for table in self.tables if not table.module]


def write(path, script):
    """Makes the database. Rows that a table refuses (by a constraint, a strict type) are left out: the data is random."""
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")
    begun = False
    for statement in script:
        if not begun and not statement.startswith("PRAGMA"):
            db.execute("BEGIN")
            begun = True
        with contextlib.suppress(sqlite3.Error):
            db.execute(statement)
    if begun:
        db.execute("COMMIT")
    db.close()


class Schemas:
    """A generator of schemas; `random` is its only source."""

    def __init__(self, random):
        self.random = random

    def chance(self, probability):
        return self.random.random() < probability

    def name(self, prefix, n):
        return self.random.choice((f"{prefix}{n}", f"{prefix}{n}", f"{prefix}{n}", f'"{prefix} {n}"', f'"{prefix}é{n}"'))

    def column(self, n, strict):
        kind = self.random.choice(STRICT_TYPES if strict else TYPES) + self.random.choice(COLLATIONS)
        if self.chance(0.06):
            kind += " NOT NULL"
        if self.chance(0.08):
            kind += f" DEFAULT ({literal(self.random)})"
        return Column(self.name("c", n), kind)

    def generated(self, n, columns):
        source = self.random.choice(columns).name
        expression = self.random.choice((f"typeof({source})", f"{source} || 'x'", f"length({source})", f"quote({source})"))
        kind = self.random.choice(("", "TEXT", "ANY"))
        kind = "TEXT" if kind == "ANY" else kind
        return Column(
            f"g{n}", f"{kind} AS ({expression}) {self.random.choice(('STORED', 'VIRTUAL'))}".strip(), generated=True
        )

    def table(self, n, size):
        strict = self.chance(0.15)
        n_columns = self.random.choice((200, 500, 1000, 1999, 2000)) if size == "wide" else self.random.randrange(1, 7)
        columns = [self.column(i, strict) for i in range(n_columns)]
        table = Table(self.name("t", n), columns, size=size)
        options = ["STRICT"] if strict else []
        if strict:
            for column in columns:
                column.definition = column.definition if not column.definition.startswith(" ") else "ANY" + column.definition
        if size == "small" and self.chance(0.25):
            columns[0] = Column(columns[0].name, "INTEGER PRIMARY KEY")
        elif size == "small" and self.chance(0.2):
            table.constraints.append(f"PRIMARY KEY({columns[0].name})")
            options += ["WITHOUT ROWID"] if self.chance(0.7) else []
        if size == "small" and self.chance(0.2):
            columns.append(self.generated(n, columns))
            if strict:
                columns[-1].definition = columns[-1].definition.replace("AS (", "TEXT AS (", 1).replace("TEXT TEXT", "TEXT")
        table.options = " " + ", ".join(options) if options else ""
        n_rows = {"small": self.random.choice((0, 1, 2, 3, 4, 5, 6, 7, 8)), "tall": 80, "wide": 3, "huge": 6}[size]
        table.rows = [[self.cell(size, i) for i in range(len(table.stored()))] for _ in range(n_rows)]
        return table

    def cell(self, size, i):
        if size == "huge" and i < 3 and self.chance(0.5):
            return huge(self.random)
        return literal(self.random)

    def module(self):
        """FTS5 or an R-Tree."""
        if self.chance(0.5):
            words = ("'some words here'", "'other words'", "'nothing'", "'Words, words'", "''", "NULL", "'é ß日本'")
            rows = [[self.random.choice(words), self.random.choice(words)] for _ in range(5)]
            return Table("f", [Column("title", ""), Column("body", "")], rows, module="fts5")
        rows = []
        for n in range(6):
            x, y = self.random.randrange(-50, 50), self.random.randrange(-50, 50)
            rows.append([str(n), str(x), f"{x}.5", str(y), str(y + self.random.randrange(9))])
        return Table("r", [Column(name, "") for name in ("id", "x0", "x1", "y0", "y1")], rows, module="rtree")

    def index(self, n, table):
        column = self.random.choice(table.columns).name
        other = self.random.choice(table.columns).name
        what = self.random.choice(
            (column, f"{column} DESC", f"{column}, {other}", f"{column} COLLATE NOCASE", f"typeof({column})")
        )
        where = self.random.choice(("", "", f" WHERE {other} IS NOT NULL", f" WHERE {column} > 1"))
        unique = "UNIQUE " if self.chance(0.1) else ""
        return f"CREATE {unique}INDEX i{n} ON {table.name}({what}){where}"

    def view(self, n, tables):
        table, other = self.random.choice(tables), self.random.choice(tables)
        a, b = self.random.choice(table.columns).name, self.random.choice(other.columns).name
        body = self.random.choice((
            f"SELECT {a} AS a, typeof({a}) AS b FROM {table.name}",
            f"SELECT x.{a} AS a, y.{b} AS b FROM {table.name} AS x LEFT JOIN {other.name} AS y ON x.{a} = y.{b}",
            f"SELECT {a} AS a, count(*) AS b FROM {table.name} GROUP BY {a}",
            f"SELECT {a} AS a, 1 AS b FROM {table.name} UNION ALL SELECT {b}, 2 FROM {other.name}",
            f"SELECT DISTINCT {a} AS a, NULL AS b FROM {table.name}",
        ))  # fmt: skip
        return f"CREATE VIEW v{n} AS {body}"

    def schema(self, n):
        """The `n`th: what must not be missed comes at fixed numbers, the rest by chance."""
        encoding = ("UTF-8", "UTF-8", "UTF-16le", "UTF-8", "UTF-16be")[n % 5]
        schema = Schema(encoding, self.random.choice((512, 1024, 4096, 4096, 16384)))
        small = [self.table(i, "small") for i in range(self.random.randrange(2, 5))]
        schema.tables = small + [self.table(len(small), "tall")]
        if n % 4 == 1:
            schema.tables.append(self.table(9, "wide"))
        if n % 8 == 3:
            schema.tables.append(self.table(10, "huge"))
        if n % 3 == 0:
            schema.tables.append(self.module())
        schema.statements = [self.index(i, self.random.choice(small)) for i in range(self.random.randrange(4))]
        for i in range(self.random.randrange(3)):
            schema.statements.append(self.view(i, small))
            schema.views[f"v{i}"] = ["a", "b"]
        if self.chance(0.3):
            schema.statements.append("ANALYZE")
        return schema
