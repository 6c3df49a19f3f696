# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random SELECTs, made from a seed, for a comparison with direct access. They compare every affinity and collation with
values of every class, by every operator, in joins, subqueries and lists.

The queries avoid results that SQLite does not define: the order of equal rows, and which of several equal values a group
shows. They also avoid a RIGHT or FULL JOIN before another join, because SQLite 3.40.1 itself returns rows for it that
count(*) of the same query does not count.

Another seed may find wrong answers of SQLite 3.40.1 itself that are right through virtual tables: LIKE in the ON of an outer
join, and row values IN a list if one part of them is converted and another is not; EXISTS in place of IN shows it. And
comparisons of a column COLLATE RTRIM in joins; "(a = b) = 1" in place of "a = b" shows it.
"""
import random

from client import exact

VALUES = (
    "NULL", "0", "1", "5", "-3", "10", "2.5", "5.0", "9007199254740993", "9007199254740992.0", "'a'", "'A'", "'a '", "'b'",
    "'5'", "'05'", "' 5'", "'5.0'", "'!'", "''", "x''", "x'61'", "x'35'", "'abc'", "'ABC'", "'1e1'",
)
PATTERNS = ("'a%'", "'A*'", "'5%'", "'%b%'", "'_'", "'abc'")
KINDS = "i INTEGER, t TEXT, n TEXT COLLATE NOCASE, r TEXT COLLATE RTRIM, f REAL, u NUMERIC, z"
COLUMNS = ("i", "t", "n", "r", "f", "u", "z")
OBJECTS = {
    "a": ("id", "rowid", *COLUMNS),
    "b": ("rowid", *COLUMNS),
    "w": ("k", "l", *COLUMNS),
    "v": ("id", *COLUMNS),
    "g": ("id", *COLUMNS),
}


def rows_as_set(rows):
    """Returns the rows sorted, each value with its type and bits."""
    return sorted(str([exact(value) for value in row]) for row in rows)


class Queries:
    EXPOSED = tuple(OBJECTS)

    def __init__(self, seed):
        self.random = random.Random(seed)

    def value(self):
        return self.random.choice(VALUES)

    def values(self, n):
        return ", ".join(self.value() for _ in range(n))

    def schema(self):
        """Makes tables with and without a rowid, indexes of every kind, and views with a join and with groups."""
        rows = [f"INSERT OR IGNORE INTO {table}({', '.join(COLUMNS)}) VALUES({self.values(7)});" for table in "ab" * 40]
        for n in range(25):
            rows.append(f"INSERT OR IGNORE INTO w VALUES(coalesce({self.value()}, 'q'), {n % 7}, {self.values(7)});")
        return f"""
            CREATE TABLE a(id INTEGER PRIMARY KEY, {KINDS});
            CREATE TABLE b({KINDS}, UNIQUE(t), UNIQUE(i));
            CREATE TABLE w(k TEXT, l INT, {KINDS}, PRIMARY KEY(k, l)) WITHOUT ROWID;
            CREATE INDEX a_i ON a(i);
            CREATE INDEX a_t ON a(t);
            CREATE INDEX a_ni ON a(n, i DESC);
            CREATE INDEX a_z ON a(z);
            CREATE INDEX a_r ON a(r COLLATE BINARY);
            CREATE INDEX a_f ON a(f) WHERE f > 1;
            CREATE VIEW v AS SELECT a.id AS id, a.i AS i, a.t AS t, a.n AS n, b.r AS r, b.f AS f, a.u AS u, a.z AS z
                FROM a LEFT JOIN b ON a.i = b.i;
            CREATE VIEW g AS SELECT CAST(min(id) AS INT) AS id, i, t, n COLLATE NOCASE AS n, CAST(max(r) AS TEXT) AS r, f,
                CAST(u AS NUMERIC) AS u, z FROM a GROUP BY i, t;
            {''.join(rows)}
            ANALYZE;
        """

    def column(self, alias, table):
        return f"{alias}.{self.random.choice(OBJECTS[table])}"

    def comparison(self, tables):
        column = self.column(*self.random.choice(tables))
        operator = self.random.choice(("=", "=", "<", "<=", ">", ">=", "IS", "<>", "IS NOT"))
        table = self.random.choice(tuple(OBJECTS))
        pair = f"{self.random.choice(OBJECTS[table])}, {self.random.choice(OBJECTS[table])}"
        return self.random.choice((
            f"{column} {operator} {self.value()}",
            f"{column} {operator} {self.value()}",
            f"{column} {operator} {self.column(*self.random.choice(tables))}",
            f"{column} {operator} {self.column(*self.random.choice(tables))}",
            f"{column} {operator} CAST({self.value()} AS {self.random.choice(('TEXT', 'INTEGER', 'NUMERIC', 'BLOB'))})",
            f"{column} IN ({self.values(3)})",
            f"{column} BETWEEN {self.value()} AND {self.value()}",
            f"{column} IS {self.random.choice(('', 'NOT '))}NULL",
            f"{column} COLLATE {self.random.choice(('NOCASE', 'BINARY', 'RTRIM'))} {operator} {self.value()}",
            f"{column} IN (SELECT {self.random.choice(OBJECTS[table])} FROM {table})",
            f"({column}, {self.column(*self.random.choice(tables))}) IN (SELECT {pair} FROM {table})",
            f"({column}, {self.column(*self.random.choice(tables))}) {operator} ({self.values(2)})",
            f"{column} {self.random.choice(('LIKE', 'NOT LIKE', 'GLOB'))} {self.random.choice(PATTERNS)}",
            f"EXISTS(SELECT 1 FROM {table} AS q WHERE {self.column('q', table)} {operator} {column})",
        ))

    def condition(self, tables):
        text = self.comparison(tables)
        for _ in range(self.random.choice((0, 0, 1, 1, 2))):
            text += self.random.choice((" AND ", " AND ", " OR ")) + self.comparison(tables)
        return text

    def query(self):
        """Returns SQL, and True if its first column gives the order of rows."""
        tables = [(alias, self.random.choice("aabvgw")) for alias in "xyz"[: self.random.choice((1, 1, 2, 2, 3))]]
        joins = ("JOIN", "LEFT JOIN", "CROSS JOIN") + (("RIGHT JOIN", "FULL JOIN") if len(tables) == 2 else ())
        source = f"{tables[0][1]} AS x"
        for n in range(1, len(tables)):
            source += f" {self.random.choice(joins)} {tables[n][1]} AS {tables[n][0]} ON {self.condition(tables[:n + 1])}"
        columns = [self.column(*self.random.choice(tables)) for _ in range(self.random.choice((1, 2, 3)))]
        where = f" WHERE {self.condition(tables)}" if self.random.random() < 0.8 else ""
        shape = self.random.random()
        if shape < 0.1:
            return f"SELECT count(*), max(typeof(x.i)), max(length({columns[0]})) FROM {source}{where}", False
        if shape < 0.3 and not any(column.endswith((".n", ".r")) for column in columns):
            return f"SELECT DISTINCT {', '.join(columns)} FROM {source}{where}", False
        if shape < 0.5:
            direction = self.random.choice(("", " DESC"))
            total = not columns[0].endswith((".n", ".r"))
            return f"SELECT {', '.join(columns)} FROM {source}{where} ORDER BY 1{direction}", total
        return f"SELECT {', '.join(columns)} FROM {source}{where}", False
