# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes a query that differs as small as possible. It removes tables, columns, rows and words as long as the query still
differs on the same side.

    print(shrink(comparer, Case(schema, query, difference)).text())
"""

import copy
import re
import struct
from dataclasses import replace

from queries import EXPOSED, Bytes, Query, encode_value

NAMES = {1: "INTEGER", 2: "REAL", 3: "TEXT", 4: "BLOB", 5: "NULL"}
WORD = re.compile(
    r"""(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|[xX]'[0-9a-fA-F]*'|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[?:@$]\w*|\w+|->>|->|<=|>=|<>"""
    r"""|<<|>>|\|\||.)\s*""",
    re.S,
)
WINDOW = 8  # words that are removed together, anywhere


class Case:
    """A schema, a query and how it differed."""

    def __init__(self, schema, query, difference):
        self.schema, self.query, self.difference = schema, query, difference

    def text(self):
        """Self-contained: the database as SQL, the query, its parameters, and how it was asked."""
        lines = [
            "-- a query that differs from SQLite; test_differential.py --replay FILE asks it again",
            f"-- side: {self.difference.side}",
            f"-- what: {self.difference.what}",
            f"-- page size: {self.query.page_size}",
            f"-- flags: {self.query.flags}",
            "-- exposed: " + "\t".join(self.schema.exposed()),
        ]
        lines += [f"{statement};" for statement in self.schema.script()]
        lines += ["-- query", f"{self.query.sql};"]
        for name, value in self.query.parameters:
            kind, data = encode_value(value)
            lines.append(f"-- parameter: {name or '?'} {NAMES[kind]} {data.hex()}")
        return "\n".join(lines) + "\n"

    @staticmethod
    def read(text):
        """The inverse of text()."""
        head, _, tail = text.partition("\n-- query\n")
        fields = dict(re.findall(r"^-- ([a-z ]+): ?(.*)$", head, re.M))
        script = [line.removesuffix(";") for line in head.split("\n") if not line.startswith("--")]
        sql, *rest = tail.rstrip("\n").split("\n-- parameter: ")
        parameters = [parameter(*line.split(" ")) for line in rest]
        query = Query(sql.removesuffix(";"), parameters, int(fields["page size"]), int(fields["flags"]))
        return Case(Script(script, fields["exposed"].split("\t")), query, None)

    def differences(self, comparer):
        """Asks it, of a database that is made for it."""
        exposed = self.schema.exposed() if self.query.flags & EXPOSED else ()
        if self.query.flags & EXPOSED and not exposed:
            return []
        comparer.publish(self.schema.script(), exposed)
        return comparer.ask([self.query])


class Script:
    """A schema that was written down."""

    def __init__(self, statements, exposed):
        self.statements, self.names = statements, [name for name in exposed if name]

    def script(self):
        return self.statements

    def exposed(self):
        return self.names


def parameter(name, kind, data=""):
    data = bytes.fromhex(data)
    value = {
        "INTEGER": lambda: struct.unpack("<q", data)[0],
        "REAL": lambda: struct.unpack("<d", data)[0],
        "TEXT": lambda: Bytes(data),
        "BLOB": lambda: data,
        "NULL": lambda: None,
    }[kind]()
    return "" if name == "?" else name, value


# ---- Words of a query, with its parameters ----


def words_of(query):
    """Pairs: the word with the blanks up to the next one; the index of the parameter that only this word names."""
    n_nameless = 0
    words = []
    for word in WORD.findall(query.sql):
        nameless = word.strip() == "?"
        words.append((word, n_nameless if nameless else None))
        n_nameless += nameless
    return words


def query_of(query, words):
    """The query of some of its words, with the parameters that they need."""
    sql = "".join(word for word, _ in words).strip()
    here = {word.strip() for word, _ in words}
    kept = {index for _, index in words if index is not None}
    numbered = [int(word[1:]) for word in here if re.fullmatch(r"\?\d+", word)]
    kept |= set(range(max(numbered, default=0)))
    parameters, position = [], 0
    for name, value in query.parameters:
        if name and any(word[1:] == name.lstrip(":@$") and word[0] in ":@$" for word in here):
            parameters.append((name, value))
        if not name:
            parameters += [(name, value)] if position in kept else []
            position += 1
    return replace(query, sql=sql, parameters=parameters)


def groups(words):
    """Places of balanced parentheses: (first, behind the last)."""
    opened, found = [], []
    for place, (word, _) in enumerate(words):
        if word[0] == "(":
            opened.append(place)
        elif word[0] == ")" and opened:
            found.append((opened.pop(), place + 1))
    return sorted(found, key=lambda group: group[0] - group[1])


# ---- Taking away ----


def kind_of(difference):
    """The property that a case must keep while it shrinks: the side, and the difference there without figures and values."""
    what = "rows" if re.match(r"(row )?\d+", difference.what) else difference.what.split(" ")[0]
    return difference.side, "rows" if what == "row" else what


class Shrinker:
    def __init__(self, comparer, case):
        self.comparer, self.case = comparer, case
        self.kind = kind_of(case.difference)

    def accept(self, schema=None, query=None):
        """Takes the candidate if it differs on the same side."""
        candidate = Case(schema or self.case.schema, query or self.case.query, None)
        if not candidate.query.sql:  # no statement is an error of ours, none of SQLite's
            return False
        if schema:
            found = candidate.differences(self.comparer)
        else:
            found = self.comparer.ask([candidate.query])
        for difference in found:
            if kind_of(difference) == self.kind:
                candidate.difference = difference
                self.case = candidate
                return True
        return False

    def without(self, items, try_out):
        """The shortest list that `try_out` accepts: ever smaller pieces are left out. True: something could be."""
        before, size = len(items), max(len(items) // 2, 1)
        while items:
            at = 0
            while at < len(items):
                fewer = items[:at] + items[at + size :]
                if try_out(fewer):
                    items = fewer
                else:
                    at += size
            if size == 1:
                break
            size //= 2
        return len(items) < before

    def change(self, edit):
        """Tries a copy of the schema that `edit` was let loose on."""
        schema = copy.deepcopy(self.case.schema)
        edit(schema)
        return self.accept(schema=schema)

    def shrink_schema(self):
        schema = self.case.schema
        shorter = self.without(schema.tables, lambda tables: self.change(lambda s: setattr(s, "tables", list(tables))))
        shorter |= self.without(
            schema.statements, lambda statements: self.change(lambda s: setattr(s, "statements", list(statements)))
        )
        for place in range(len(self.case.schema.tables)):
            shorter |= self.shrink_table(place)
        if self.case.schema.encoding != "UTF-8":
            shorter |= self.change(lambda s: setattr(s, "encoding", "UTF-8"))
        return shorter

    def shrink_table(self, place):
        def change(**values):
            return self.change(lambda s: vars(s.tables[place]).update(copy.deepcopy(values)))

        table = self.case.schema.tables[place]
        shorter = self.without(table.rows, lambda rows: change(rows=rows))
        table = self.case.schema.tables[place]
        shorter |= self.without(list(range(len(table.columns))), lambda kept: change(**only(table, kept)))
        shorter |= self.without(table.constraints, lambda constraints: change(constraints=constraints))
        shorter |= bool(self.case.schema.tables[place].options) and change(options="")
        for value in ("NULL", "1"):
            shorter |= self.simplify_cells(place, value, change)
        return shorter

    def rows(self, place):
        return self.case.schema.tables[place].rows

    def simplify_cells(self, place, value, change):
        simpler = False
        for i, row in enumerate(self.rows(place)):
            for j, cell in enumerate(row):
                if cell not in ("NULL", "1"):
                    rows = copy.deepcopy(self.rows(place))
                    rows[i][j] = value
                    simpler |= change(rows=rows)
        return simpler

    def shrink_query(self):
        self.case.differences(self.comparer)  # publishes it: the last candidate may have been refused
        query = self.case.query
        before = len(query.sql)
        self.without(words_of(query), lambda words: self.accept(query=query_of(query, words)))
        for size in range(WINDOW, 0, -1):
            self.slide(size)
        self.unwrap()
        return len(self.case.query.sql) < before

    def slide(self, size):
        at = 0
        while True:
            query, words = self.case.query, words_of(self.case.query)
            if at + size > len(words):
                return
            if not self.accept(query=query_of(query, words[:at] + words[at + size :])):
                at += 1

    def unwrap(self):
        """Removes parentheses whole or with the word before them, or replaces them by their content or by a number."""
        again = True
        while again:
            query, words = self.case.query, words_of(self.case.query)
            again = any(
                len(candidate.sql) < len(query.sql) and self.accept(query=candidate)
                for first, end in groups(words)
                for candidate in (
                    query_of(query, words[:first] + words[end:]),
                    query_of(query, words[: max(first - 1, 0)] + words[end:]),
                    query_of(query, words[: max(first - 1, 0)] + words[first + 1 : end - 1] + words[end:]),
                    query_of(query, words[:first] + words[first + 1 : end - 1] + words[end:]),
                    query_of(query, words[: max(first - 1, 0)] + [("1 ", None)] + words[end:]),
                )
            )


def only(table, kept):
    """Columns of a table with these places, and the values of the rows there."""
    stored = [place for place, column in enumerate(table.columns) if not column.generated]
    cells = [stored.index(place) for place in kept if place in stored]
    return {"columns": [table.columns[place] for place in kept], "rows": [[row[i] for i in cells] for row in table.rows]}


def shrink(comparer, case):
    """A small case that differs on the same side; `case` itself if it does not differ any more."""
    shrinker = Shrinker(comparer, case)
    if not shrinker.accept(schema=case.schema):
        return case
    while shrinker.shrink_schema() | shrinker.shrink_query():
        pass
    return shrinker.case
