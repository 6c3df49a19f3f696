# SPDX-License-Identifier: LGPL-2.1-or-later
"""Databases and queries whose results the tests compare with those of SQLite."""
import sqlite3

from harness import CHINOOK

TABLES = [
    name
    for name, in sqlite3.connect(f"file:{CHINOOK}?mode=ro", uri=True).execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
    )
]

# Each with parameters.
QUERIES = {
    "join": (
        """SELECT Artist.Name, Album.Title, count(*) AS Tracks FROM Artist JOIN Album USING(ArtistId)
                JOIN Track USING(AlbumId) GROUP BY Album.AlbumId ORDER BY 1, 2""",
        (),
    ),
    "left join with NULLs": (
        """SELECT e.FirstName, m.LastName FROM Employee e LEFT JOIN Employee m
                                ON m.EmployeeId = e.ReportsTo ORDER BY e.EmployeeId""",
        (),
    ),
    "aggregates": ("SELECT count(*), sum(Total), avg(Total), min(Total), max(Total), total(Total) FROM Invoice", ()),
    "group by with having": (
        """SELECT BillingCountry, round(sum(Total), 2) FROM Invoice GROUP BY 1
                                HAVING count(*) > 7 ORDER BY 2 DESC, 1""",
        (),
    ),
    "recursive CTE": (
        """WITH RECURSIVE chain(id, name, depth) AS (
                           SELECT EmployeeId, LastName, 0 FROM Employee WHERE ReportsTo IS NULL
                           UNION ALL SELECT e.EmployeeId, e.LastName, depth + 1
                              FROM Employee e JOIN chain ON e.ReportsTo = chain.id)
                         SELECT * FROM chain ORDER BY depth, id""",
        (),
    ),
    "window functions": (
        """SELECT CustomerId, InvoiceDate, Total, sum(Total) OVER w, rank() OVER (ORDER BY Total DESC),
                              lag(Total) OVER w FROM Invoice WINDOW w AS (PARTITION BY CustomerId ORDER BY InvoiceDate)
                            ORDER BY CustomerId, InvoiceDate""",
        (),
    ),
    "Unicode": ("SELECT Name, Composer FROM Track WHERE Composer GLOB '*[^ -~]*' ORDER BY TrackId", ()),
    "Unicode as a parameter": ("SELECT City FROM Customer WHERE City = ?", ("São Paulo",)),
    "NULLs": ("SELECT Company, State, Fax, NULL, Company IS NULL FROM Customer ORDER BY CustomerId", ()),
    "JSON and dates": ("SELECT json_group_array(Name), date('2024-02-29', '+1 year') FROM Genre", ()),
    "no rows": ("SELECT * FROM Track WHERE 0", ()),
    "compound": ("SELECT City FROM Customer INTERSECT SELECT City FROM Employee UNION SELECT 'x' ORDER BY 1", ()),
    "explain": ("EXPLAIN QUERY PLAN SELECT * FROM Track WHERE TrackId = 1", ()),
    "pragma": ("PRAGMA table_info(Track)", ()),
    "duplicate and odd column names": ('SELECT 1 AS a, 2 AS a, 3 AS "", 4 AS "a b", 5 AS "ü"', ()),
}


def make_extremes(path):
    """Makes a table with the extreme values of every type."""
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE extreme(id INTEGER PRIMARY KEY, kind TEXT, value)")
    values = [
        ("integer", v)
        for v in (0, 1, -1, 127, 128, -129, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63))
    ]
    values += [
        ("real", v)
        for v in (
            0.5,
            -0.5,
            1e308,
            -1.7976931348623157e308,
            5e-324,
            2.2250738585072014e-308,
            float("inf"),
            float("-inf"),
            0.1,
            1 / 3,
            1e15,
            123456789012345680.0,
        )
    ]
    values += [
        ("text", v) for v in ("", " ", "a\tb\r\n\"c\",d", "ü€😀", "\ufeffbom", "\u202eright to left", "é" * 3000, "x" * 70000)
    ]
    values += [("blob", v) for v in (b"", b"\0", bytes(range(256)), b"\xff" * 300000)]
    values += [("null", None)]
    db.executemany("INSERT INTO extreme(kind, value) VALUES(?, ?)", values)
    # TEXT that no D-Bus string can carry, and that Python does not bind.
    for blob in (
        b"a\0b",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\xef\xbf\xbe",
        b"\xef\xb7\x90",
        b"\xc0\x80",
        b"\xf4\x90\x80\x80",
        b"ok \xe2\x82",
    ):
        db.execute("INSERT INTO extreme(kind, value) VALUES('odd text', CAST(? AS TEXT))", (blob,))
    # -0.0 and numbers that SQLite computes. SQLite returns stored reals without a fraction as reals.
    db.execute("CREATE TABLE affinity(i INTEGER, r REAL, t TEXT, b BLOB, n NUMERIC)")
    for value in (1, 1.0, "1", "1.5", b"1", None, 2**63 - 1, 1e300):
        db.execute("INSERT INTO affinity VALUES(?1, ?1, ?1, ?1, ?1)", (value,))
    # A noncharacter in a column's name: valid UTF-8, but no D-Bus string.
    db.execute('CREATE VIEW odd_names AS SELECT 1 AS plain, 2 AS "a\ufdd0b"')
    db.commit()
    db.close()


EXTREME_QUERIES = {
    "extremes": "SELECT * FROM extreme ORDER BY id",
    "affinity": "SELECT *, typeof(i), typeof(r), typeof(n) FROM affinity ORDER BY rowid",
    "computed": """SELECT -0.0, 9223372036854775807, -9223372036854775807 - 1, 9e999, -9e999, 9223372036854775807 + 1,
                   zeroblob(5), x'', ''""",
    "wide": "SELECT " + ", ".join(f"{n} AS c{n}" for n in range(1500)),
}
