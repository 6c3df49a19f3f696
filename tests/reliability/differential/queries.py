# SPDX-License-Identifier: LGPL-2.1-or-later
"""Generates random SELECTs of every kind over a schema (schema.py) from a seed.

The queries use nothing that differs between two runs: no random(), no current time. Some are wrong on purpose, because
errors are compared, too.
"""

import re
import struct
from dataclasses import dataclass, field

from schema import PAGE_SIZES, literal

BINARY = (
    "+", "-", "*", "/", "%", "||", "&", "|", "<<", ">>", "<", "<=", ">", ">=", "=", "<>", "IS", "IS NOT", "AND", "OR",
    "IS DISTINCT FROM",
)  # fmt: skip
FUNCTIONS = {
    1: ("abs", "length", "hex", "lower", "upper", "typeof", "quote", "unicode", "trim", "ltrim", "rtrim", "round", "sign",
        "likely", "json_quote", "json_type", "json_valid", "json_array_length", "json", "soundex", "char", "sqrt", "ceil",
        "exp", "ln", "degrees", "date", "julianday", "strftime", "format"),
    2: ("substr", "instr", "coalesce", "ifnull", "nullif", "min", "max", "round", "trim", "json_extract", "json_array",
        "like", "glob", "pow", "mod", "atan2", "printf", "strftime", "datetime", "json_patch", "json_remove"),
    3: ("substr", "replace", "iif", "coalesce", "min", "max", "json_set", "json_object", "like", "format"),
}  # fmt: skip
AGGREGATES = ("count", "sum", "avg", "min", "max", "total", "group_concat", "json_group_array")
WINDOWS = (
    "row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(3)", "lag({})",
    "lead({}, 2, 'none')", "first_value({})", "last_value({})", "nth_value({}, 2)", "sum({})", "count({})", "max({})",
    "group_concat({})",
)  # fmt: skip
FRAMES = (
    "", "", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "GROUPS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES", "ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW",
)  # fmt: skip
JOINS = ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "CROSS JOIN", "RIGHT JOIN", "FULL JOIN", "NATURAL JOIN", ",")
CASTS = ("INTEGER", "REAL", "TEXT", "BLOB", "NUMERIC")
PRAGMAS = (
    "table_info({})", "table_xinfo({})", "index_list({})", "table_list", "encoding", "page_size", "user_version",
    "collation_list", "integrity_check", "foreign_key_list({})", "schema_version",
)  # fmt: skip
WRONG = (
    "SELECT no_such_column FROM {t}", "SELECT * FROM no_such_table", "SELECT no_such_function(1)",
    "SELECT abs(-9223372036854775808)", "SELECT 1 FROM {t} WHERE", "SELECT (1, 2)",
    "SELECT sum(9223372036854775807) FROM (SELECT 1 UNION ALL SELECT 2)", "SELECT 'open",
    "SELECT json_extract('{{', '$')", "SELECT zeroblob(2000000000)", "SELECT 1 UNION SELECT 1, 2",
    "SELECT max(1, 2, 3) OVER ()", "SELECT x COLLATE nowhere FROM (SELECT 1 AS x) ORDER BY 1 COLLATE nowhere",
    "SELECT 1 LIKE 2 ESCAPE 'ab'", "SELECT count(count(*))", "SELECT CAST(1 AS)", "SELECT substr(1)",
    "SELECT 1 ORDER BY 2", "SELECT 1 LIMIT 'x'", "WITH a AS (SELECT * FROM a) SELECT * FROM a",
    "SELECT 1 AS x, * FROM {t} WHERE json_array_length('[') = x", "SELECT 1 WHERE 1 IN (SELECT 1, 2)",
    "SELECT row_number()", "SELECT value, abs(-9223372036854775808 + (value < 3)) FROM json_each('[5,4,3,2,1]')",
    "SELECT \x01", "SELECT a.b.c.d", "SELECT json_object(1, 2)", "SELECT ntile(0) OVER ()",
    "SELECT nth_value(1, 0) OVER ()", "SELECT * FROM {t} AS a JOIN {t} AS b USING(nope)",
)  # fmt: skip
SOURCES = (
    ('json_each(\'[3,null,"x",{"a":1}]\')', ["key", "value", "type", "fullkey"]),
    ("(VALUES(1, 'a'), (NULL, x'00'), (2.5, ''))", ["column1", "column2"]),
)
COMPARISONS = ("=", "<", ">", "<=", ">=", "IS", "<>")
ARROWS = ("'$.a'", "'a'", "0", "'$'", "'$.a[1]'", "-1")
MATCHES = ("'words'", "'some OR other'", "'title:no*'", "'\"'", "'é'")
PREPARED, ON_CHANNEL, EXPOSED = 2, 1, 4


@dataclass
class Query:
    sql: str
    parameters: list = field(default_factory=list)  # name ("" for a positional one) and value
    page_size: int = PAGE_SIZES[0]
    flags: int = 0


class Queries:
    """Queries over one schema; `random` is the only source."""

    def __init__(self, random, schema):
        self.random, self.schema = random, schema
        self.small = [(t.name, [c.name for c in t.columns], t) for t in schema.tables if t.size == "small" and not t.module]
        self.sources = [(name, columns) for name, columns, _ in self.small] + list(schema.views.items())
        self.special = [t for t in schema.tables if t.size != "small" or t.module]
        self.n_parameters, self.style = 0, ""

    def chance(self, probability):
        return self.random.random() < probability

    def choice(self, of):
        return of[int(self.random.random() * len(of))]

    # ---- expressions ----

    def parameter(self):
        """A parameter of the style that this query has. Those that are left in its text get values (used_parameters())."""
        self.n_parameters += 1
        return f"{self.style}{self.n_parameters}" if self.style else "?"

    def used_parameters(self, sql):
        """Names ("" for positional ones) and values of the parameters in a text; of literals none holds such a word."""
        if not self.style:
            return [("", self.value()) for _ in range(sql.count("?"))]
        used = {int(number) for number in re.findall(re.escape(self.style) + r"(\d+)", sql)}
        if self.style == "?":  # the largest says how many there are
            return [("", self.value()) for _ in range(max(used, default=0))]
        names = [f"{self.style}{number}" for number in sorted(used)]
        return [(name[1:] if number % 2 else name, self.value()) for number, name in enumerate(names)]

    def value(self):
        """Values for Python to bind: one of every class, NaN and odd text among them."""
        return self.choice((
            None, 0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1, 0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan"),
            5e-324, 1e308,
            "", "a", "A", "a\0b", "é", "\ufffe", "5", b"", b"\0", b"\xff\xfe", Bytes(b"\xff"), Bytes(b"a\0"),
            "x" * 300, b"y" * 300,
            "long " * (900 if self.chance(0.05) else 2),
        ))  # fmt: skip

    def column(self, scope):
        alias, columns = self.choice(scope)
        return f"{alias}.{self.choice(columns)}" if alias else self.choice(columns)

    def leaf(self, scope):
        kind = self.random.random()
        if scope and kind < 0.62:
            return self.column(scope)
        if kind < 0.93:
            return literal(self.random)
        return self.parameter()

    def expression(self, scope, depth=2):
        if depth == 0 or self.chance(0.35):
            return self.leaf(scope)
        return self.choice(self.KINDS)(self, scope, depth - 1)

    def unary(self, scope, depth):
        return f"({self.choice(('-', '+', '~', 'NOT '))} {self.expression(scope, depth)})"

    def binary(self, scope, depth):
        return f"({self.expression(scope, depth)} {self.choice(BINARY)} {self.expression(scope, depth)})"

    def function(self, scope, depth):
        n = self.choice((1, 1, 1, 2, 2, 3))
        name = self.choice(FUNCTIONS[n])
        arguments = [self.expression(scope, depth) for _ in range(n)]
        if name in ("format", "printf", "strftime") and n > 1:
            arguments[0] = self.choice(("'%d|%s'", "'%.3f %s'", "'%q'", "'%05d'", "'%Y-%m'", "'%s'", "'%w%%'"))
        if (
            name in ("date", "julianday", "datetime", "strftime") and n == 1
        ):  # without an argument, or with 'now', they tell the time
            arguments = [self.choice(("'2024-02-29'", "2460000.5", "'12:00'", "'nothing'", "1e20"))]
        elif name in ("datetime", "strftime"):
            arguments[1] = self.choice(("'2024-02-29'", "'2000-01-01 12:34:56'", "0", "'x'"))
            arguments[0] = self.choice(("'2024-01-31'", "'%H:%M'", "'%j'")) if name == "strftime" else "'2024-01-31'"
            if name == "datetime":
                arguments[1] = self.choice(("'+1 month'", "'start of year'", "'weekday 2'", "'-1.5 days'", "'x'"))
        return f"{name}({', '.join(arguments)})"

    def case(self, scope, depth):
        subject = self.expression(scope, depth) if self.chance(0.4) else ""
        branches = "".join(
            f" WHEN {self.expression(scope, depth)} THEN {self.expression(scope, depth)}" for _ in range(self.choice((1, 2)))
        )
        last = f" ELSE {self.expression(scope, depth)}" if self.chance(0.6) else ""
        return f"CASE {subject}{branches}{last} END"

    def cast(self, scope, depth):
        return f"CAST({self.expression(scope, depth)} AS {self.choice(CASTS)})"

    def collate(self, scope, depth):
        collation, operator = self.choice(("NOCASE", "RTRIM", "BINARY")), self.choice(("<", "=", ">="))
        return f"({self.expression(scope, depth)} COLLATE {collation} {operator} {self.leaf(scope)})"

    def like(self, scope, depth):
        pattern = self.choice(("'a%'", "'A*'", "'%5%'", "'_'", "'[a-c]*'", "'%é%'", "''", "'%'"))
        escape = " ESCAPE '!'" if self.chance(0.1) else ""
        verb = "LIKE" if escape else self.choice(("LIKE", "NOT LIKE", "GLOB"))
        return f"({self.expression(scope, depth)} {verb} {pattern}{escape})"

    def test(self, scope, depth):
        a = self.expression(scope, depth)
        return self.choice((
            lambda: f"({a} BETWEEN {self.leaf(scope)} AND {self.leaf(scope)})",
            lambda: f"({a} IS {self.choice(('', 'NOT '))}NULL)",
            lambda: f"({a} {self.choice(('', 'NOT '))}IN ({self.leaf(scope)}, {self.leaf(scope)}, {self.leaf(scope)}))",
            lambda: f"(({a}, {self.leaf(scope)}) {self.choice(COMPARISONS)} ({self.leaf(scope)}, {self.leaf(scope)}))",
        ))()  # fmt: skip

    def subquery(self, scope, depth):
        name, columns = self.choice(self.sources)
        inner = [("s", columns)]
        outer = scope + inner if self.chance(0.6) else inner
        column = self.column(inner)
        where = f" WHERE {self.condition(outer, min(depth, 1))}" if self.chance(0.7) else ""
        return self.choice((
            lambda: f"(SELECT {column} FROM {name} AS s{where} ORDER BY 1 LIMIT 1)",
            lambda: f"EXISTS(SELECT 1 FROM {name} AS s{where})",
            lambda: f"({self.leaf(scope)} {self.choice(('', 'NOT '))}IN (SELECT {column} FROM {name} AS s{where}))",
            lambda: f"(SELECT {self.choice(AGGREGATES[:6])}({column}) FROM {name} AS s{where})",
            lambda: f"(({self.leaf(scope)}, 1) IN (SELECT {column}, {self.column(inner)} FROM {name} AS s{where}))",
        ))()  # fmt: skip

    def arrow(self, scope, depth):
        document = self.choice(("json_object('a', 2)", "'{\"a\":[1,2]}'", "'[1,2.5,\"x\"]'", self.leaf(scope)))
        return f"({document} {self.choice(('->', '->>'))} {self.choice(ARROWS)})"

    KINDS = (binary, binary, binary, function, function, function, unary, case, cast, collate, like, test, subquery, arrow)

    def condition(self, scope, depth=1):
        a = self.expression(scope, depth)
        if self.chance(0.6):
            a = f"{self.column(scope)} {self.choice(('=', '<', '>', '>=', '<>', 'IS', 'IS NOT'))} {a}"
        return f"{a} {self.choice(('AND', 'OR'))} {self.expression(scope, depth)}" if self.chance(0.25) else a

    # ---- statements ----

    def source(self, n_max=3):
        """FROM: the text, and the names that are valid after it."""
        n = self.choice((1, 1, 1, 1, 2, 2, 3)[: 4 + n_max])
        text, scope = "", []
        for i in range(n):
            name, columns = self.choice(self.sources)
            alias = "xyz"[i]
            if self.chance(0.08):
                name, columns = f"(SELECT {self.choice(columns)} AS k, {literal(self.random)} AS l FROM {name})", ["k", "l"]
            elif self.chance(0.05):
                name, columns = self.choice(SOURCES)
            join = self.choice(JOINS)
            scope.append((alias, columns))
            text += f" {join} {name} AS {alias}" if i > 0 else f"{name} AS {alias}"
            if i == 0:
                continue
            if join not in (",", "NATURAL JOIN") and self.chance(0.8):
                text += f" ON {self.condition(scope, 1)}"
        return text, scope

    def order(self, n_columns, scope=()):
        terms = []
        for _ in range(self.choice((1, 1, 2))):
            if not scope or self.chance(0.6):
                term = str(1 + int(self.random.random() * n_columns))
            else:
                term = self.expression(list(scope), 1)
            terms.append(term + self.choice(("", "", " DESC", " COLLATE NOCASE", " NULLS LAST", " DESC NULLS FIRST")))
        return f" ORDER BY {', '.join(terms)}"

    def tail(self, n_columns, scope=()):
        text = self.order(n_columns, scope) if self.chance(0.4) else ""
        if self.chance(0.25):
            text += f" LIMIT {self.choice((0, 1, 2, 5, -1, 100))}"
            text += f" OFFSET {self.choice((0, 1, 3, -1))}" if self.chance(0.5) else ""
        return text

    def plain(self):
        source, scope = self.source()
        if self.chance(0.15):
            columns, n = "*", 1
        else:
            n = self.choice((1, 2, 3, 4))
            columns = ", ".join(
                self.expression(scope) + self.choice(("", "", f" AS n{i}", f' AS "odd ""{i}"')) for i in range(n)
            )
        distinct = self.choice(("", "", "", "", "DISTINCT "))
        where = f" WHERE {self.condition(scope)}" if self.chance(0.6) else ""
        return f"SELECT {distinct}{columns} FROM {source}{where}{self.tail(n, scope)}"

    def aggregate(self):
        source, scope = self.source()
        keys = [
            self.column(scope) if self.chance(0.8) else self.expression(scope, 1) for _ in range(self.choice((0, 1, 1, 2)))
        ]
        values = []
        for _ in range(self.choice((1, 2, 3))):
            distinct = self.choice(("", "", "", "DISTINCT "))
            call = f"{self.choice(AGGREGATES)}({distinct}{self.expression(scope, 1)})"
            if "json" in call and "BLOB" not in call and self.chance(0.5):
                call = f"count({distinct}{self.column(scope)})"
            values.append(call + (f" FILTER (WHERE {self.condition(scope)})" if self.chance(0.12) else ""))
        values.append("count(*)")
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        having = ""
        if keys and self.chance(0.3):
            having = f" HAVING {self.choice(('count(*) > 1', f'max({self.column(scope)}) IS NOT NULL'))}"
        where = f" WHERE {self.condition(scope)}" if self.chance(0.4) else ""
        columns = keys + values
        return f"SELECT {', '.join(columns)} FROM {source}{where}{group}{having}{self.tail(len(columns))}"

    def compound(self):
        n = self.choice((1, 2, 3))
        parts = []
        for _ in range(self.choice((2, 2, 3))):
            if self.chance(0.2):
                parts.append(f"VALUES({', '.join(self.leaf([]) for _ in range(n))})")
            else:
                source, scope = self.source(1)
                parts.append(f"SELECT {', '.join(self.expression(scope, 1) for _ in range(n))} FROM {source}")
        text = parts[0]
        for part in parts[1:]:
            text += f" {self.choice(('UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT'))} {part}"
        return text + self.tail(n)

    def window(self):
        source, scope = self.source(1)
        partition = f"PARTITION BY {self.column(scope)} " if self.chance(0.5) else ""
        definition = f"({partition}ORDER BY {self.column(scope)} {self.choice(FRAMES)})"
        over = ("w", "w", definition)
        calls = [f"{self.choice(WINDOWS).format(self.column(scope))} OVER {self.choice(over)}" for _ in range(2)]
        return f"SELECT {self.column(scope)}, {', '.join(calls)} FROM {source} WINDOW w AS {definition}{self.tail(3)}"

    def common(self):
        """WITH, also RECURSIVE."""
        if self.chance(0.5):
            limit = self.choice((3, 10, 40))
            step = self.choice(("i + 1, s || i", "i + 1, i * 1.5", "i + 1, -s", "i + 1, NULL"))
            union = self.choice(("UNION", "UNION ALL"))
            return (f"WITH RECURSIVE n(i, s) AS (SELECT 1, {self.leaf([])} {union} SELECT {step} FROM n WHERE i < {limit}) "
                    f"SELECT {self.expression([('n', ['i', 's'])], 1)}, n.s FROM n{self.tail(2)}")  # fmt: skip
        source, scope = self.source(1)
        hint = self.choice(("", " MATERIALIZED", " NOT MATERIALIZED"))
        inner = f"SELECT {self.expression(scope, 1)} AS a, {self.column(scope)} AS b FROM {source}"
        scope = [("p", ["a", "b"]), ("q", ["a", "b"])]
        join = f"c AS p JOIN c AS q ON {self.condition(scope)}"
        return f"WITH c AS{hint} ({inner}) SELECT p.a, q.b, {self.expression(scope, 1)} FROM {join}{self.tail(3)}"

    def values(self):
        n = self.choice((1, 2, 3, 8))
        rows = ", ".join(f"({', '.join(self.expression([], 1) for _ in range(n))})" for _ in range(self.choice((1, 2, 5))))
        return f"VALUES{rows}" if self.chance(0.5) else f"SELECT * FROM (VALUES{rows}){self.tail(n)}"

    def large(self):
        """From a tall, wide or huge table, or a virtual one."""
        table = self.choice(self.special)
        names = [c.name for c in table.columns]
        if table.module == "fts5":
            return self.choice((
                f"SELECT rowid, *, rank FROM f WHERE f MATCH {self.choice(MATCHES)} ORDER BY rank, rowid",
                "SELECT highlight(f, 0, '<', '>'), snippet(f, 1, '[', ']', '.', 3), bm25(f) FROM f('words') ORDER BY rowid",
                "SELECT * FROM f",
            ))  # fmt: skip
        if table.module:
            what, top = self.choice(("*", "id", "x0, y1", "count(*)")), self.choice(range(-40, 40))
            return f"SELECT {what} FROM r WHERE x0 >= {self.leaf([])} OR y1 < {top}"
        if table.size == "huge":
            name = self.choice(names)
            what = f"length({name}), typeof({name}), substr({name}, 1, 5)"
            if self.chance(0.25):
                what = self.choice(("*", f"length({name}), {name}", f"hex({name})", f"substr({name}, 3)", name))
            return f"SELECT {what} FROM {table.name}{self.tail(1)}"
        if table.size == "wide":
            if self.chance(0.25):
                return f"SELECT * FROM {table.name}{self.tail(5)}"
            columns = ", ".join(self.choice(names) for _ in range(self.choice((1, 5, 40))))
            return f"SELECT {columns} FROM {table.name} WHERE {self.condition([('', names)], 0)}"
        if self.chance(0.4):
            return f"SELECT * FROM {table.name}{self.tail(1)}"
        columns = f"{self.expression([('', names)], 1)} AS e, {self.choice(names)}"
        return f"SELECT {columns} FROM {table.name} WHERE {self.condition([('', names)])}{self.tail(2)}"

    def look(self):
        if self.chance(0.6):
            return "PRAGMA " + self.choice(PRAGMAS).format(self.choice(self.sources)[0])
        if self.chance(0.5):
            return "EXPLAIN QUERY PLAN " + self.plain()
        return self.choice((
            "SELECT type, name, tbl_name, sql FROM sqlite_schema",
            "SELECT name, \"notnull\", dflt_value FROM pragma_table_xinfo('t1')",
        ))  # fmt: skip

    def wrong(self):
        if self.chance(0.5):
            return self.choice(WRONG).format(t=self.choice(self.sources)[0])
        words = self.plain().split(" ")
        at = self.choice(range(len(words)))
        return " ".join(
            words[:at] + self.choice(([], [")"], ["SELECT"], [words[at], words[at]], ["nowhere"], ["'"])) + words[at + 1 :]
        )

    def exposed(self):
        """A query whose rows exposed tables must return as well, in any order."""
        (name, columns, _), (other, others, _) = self.choice(self.small), self.choice(self.small)
        scope = [("x", columns)]
        source = f"{name} AS x"
        if self.chance(0.3):
            scope.append(("y", others))
            pair = f"x.{self.choice(columns)} {self.choice(('=', '<', 'IS'))} y.{self.choice(others)}"
            source += f" {self.choice(('JOIN', 'LEFT JOIN'))} {other} AS y ON {pair}"
        n = self.choice((1, 2, 3))
        what = ", ".join(self.column(scope) for _ in range(n))
        if self.chance(0.2):
            what = f"count(*), count({self.column(scope)})"
        terms = [
            f"{self.column(scope)} {self.choice(COMPARISONS)} {self.leaf([])}" for _ in range(self.choice((0, 1, 1, 2)))
        ]
        return f"SELECT {what} FROM {source}" + (f" WHERE {' AND '.join(terms)}" if terms else "")

    STATEMENTS = (plain,) * 8 + (aggregate,) * 4 + (compound,) * 2 + (window,) * 2 + (common,) * 2 + (values, look, wrong)

    def query(self, number):
        self.n_parameters, self.style = 0, self.choice(("", "?", ":p", "@p", "$p"))
        kind = self.random.random()
        flags = 0
        if kind < 0.06:
            sql, flags = self.exposed(), EXPOSED
        elif kind < 0.12:
            sql = self.large()
        else:
            sql = self.choice(self.STATEMENTS)(self)
        flags |= (PREPARED if number % 3 == 0 else 0) | (ON_CHANNEL if number % 2 == 0 else 0)
        return Query(sql, self.used_parameters(sql), PAGE_SIZES[number % len(PAGE_SIZES)], flags)


class Bytes(bytes):
    """TEXT of these bytes."""


def encode_value(value):
    """SQLite's number of its type, and its bytes."""
    if value is None:
        return 5, b""
    if isinstance(value, int):
        return 1, struct.pack("<q", value)
    if isinstance(value, float):
        return 2, struct.pack("<d", value)
    if isinstance(value, str):
        return 3, value.encode()
    return (3 if isinstance(value, Bytes) else 4), bytes(value)


def encode(number, query):
    """The payload of command Q."""
    parts = [
        struct.pack("<IIBBH", number, query.page_size, query.flags, 0, len(query.parameters)),
        query.sql.encode(),
        b"\0",
    ]
    for name, value in query.parameters:
        kind, data = encode_value(value)
        parts.append(struct.pack("<B", kind) + name.encode() + b"\0" + struct.pack("<I", len(data)) + data)
    return b"".join(parts)
