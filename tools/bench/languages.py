# SPDX-License-Identifier: LGPL-2.1-or-later
"""languages.py SIDE BUS FOLDER AMOUNT: one side of a comparison of `sqlipc-bench languages`.

BUS is "system", "user" or a D-Bus address; FOLDER has the datasets, which the service publishes by their names; AMOUNT is
the amount of work in percent of the published size. The program prints "ready" when the side has opened what it needs, or
"missing WHAT" if a package is not installed. Then it answers lines: "run", after one run, with "ran"; "check" with a hash of
the run's result in hexadecimal, and frees the result. It ends at the end of its input.

To add a side, write a subclass of Side and give it a name in SIDES; then add a row to the table `tasks` in
tools/bench/workloads/workload-languages.c. Only run() is measured. Both sides of a task must return the same values.
"""

import os
import random
import sys
import zlib


class Side:
    """One way to do a task. `open` may import what is not installed."""

    def __init__(self, bus, folder, amount):
        self.bus, self.folder, self.amount = bus, folder, amount
        self.result = None

    def file(self, name):
        return os.path.join(self.folder, name + ".sqlite")

    def connect(self, name):
        """Returns a connection to the dataset `name`."""
        raise NotImplementedError

    def open(self):
        raise NotImplementedError

    def run(self):
        """Does the task once, and leaves its result in self.result."""
        raise NotImplementedError

    def hash(self):
        """Returns a number that is equal on both sides if the results are equal."""
        value = 0
        for row in self.result:
            value = zlib.crc32(repr(row).encode(), value)
        return value

    def check(self):
        value = self.hash()
        self.result = None
        return value


class OnService:
    def connect(self, name, **keywords):
        import sqlipc

        return sqlipc.connect(name, bus=self.bus, **keywords)


class OnFile:
    def connect(self, name, **keywords):
        import sqlite3

        return sqlite3.connect(self.file(name), **keywords)


class Fetchall(Side):
    def open(self):
        self.connection = self.connect("study")

    def run(self):
        self.result = self.connection.execute("SELECT * FROM study").fetchall()


class Point(Side):
    def open(self):
        self.connection = self.connect("point")
        (last,) = self.connection.execute("SELECT max(id) FROM point").fetchone()
        numbers = random.Random(1)
        self.keys = [(numbers.randint(1, last),) for _ in range(200 * self.amount)]

    def run(self):
        execute = self.connection.execute
        self.result = [execute("SELECT * FROM point WHERE id = ?", key).fetchone() for key in self.keys]


class Executemany(Side):
    """Into an empty table in WAL mode, in one transaction that reaches the disk; `hash` empties it again."""

    insert = f"INSERT INTO write_study VALUES ({', '.join('?' * 31)})"

    def open(self):
        self.prepare()
        letters = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=100000))
        self.rows = [
            (i + 1, *(letters[(i * 31 + j * 7919) % 99900 :][:20] for j in range(30))) for i in range(3000 * self.amount)
        ]
        self.empty()

    def prepare(self):
        self.connection = self.connect("write_study")

    def run(self):
        self.connection.executemany(self.insert, self.rows)
        self.connection.commit()

    def empty(self):
        for last in range(20000, len(self.rows) + 20000, 20000):
            self.connection.execute("DELETE FROM write_study WHERE id <= ?", (last,))
            self.connection.commit()

    def hash(self):
        self.result = self.connection.execute("SELECT * FROM write_study ORDER BY id")
        value = super().hash()
        self.empty()
        return value


class FetchallService(OnService, Fetchall):
    pass


class FetchallFile(OnFile, Fetchall):
    pass


class PointService(OnService, Point):
    pass


class PointFile(OnFile, Point):
    pass


class ExecutemanyService(OnService, Executemany):
    pass


class ExecutemanyFile(OnFile, Executemany):
    """In a file of its own beside the datasets, because the service owns write_study."""

    def prepare(self):
        import sqlite3

        self.path = os.path.join(self.folder, "direct-languages.sqlite")
        self.remove()
        self.connection = sqlite3.connect(self.path)
        self.connection.execute("PRAGMA journal_mode = WAL").fetchall()
        self.connection.execute("PRAGMA synchronous = FULL")
        columns = ", ".join(f"c{i} TEXT" for i in range(1, 31))
        self.connection.execute(f"CREATE TABLE write_study(id INTEGER PRIMARY KEY, {columns})")

    def remove(self):
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(self.path + suffix):
                os.remove(self.path + suffix)

    def close(self):
        self.connection.close()
        self.remove()


class Arrow(Side):
    """SELECT * FROM study through ADBC, as a table of pyarrow, a frame of polars, or one of pandas."""

    sql = "SELECT * FROM study"

    def open(self):
        import pyarrow  # noqa: F401 - each consumer of ADBC needs it, and importing it must not be measured

        self.connection = self.connect()

    def run(self):
        with self.connection.cursor() as cursor:
            cursor.execute(self.sql)
            self.result = cursor.fetch_arrow_table()

    def hash(self):
        """Of a table of numbers and text without NULL: the sides may have text in chunks and offsets of different sizes."""
        import pyarrow
        import pyarrow.compute

        value = zlib.crc32(repr(self.result.column_names).encode())
        for column in self.result.columns:
            array = column.combine_chunks()
            array = array.combine_chunks() if isinstance(array, pyarrow.ChunkedArray) else array
            if pyarrow.types.is_integer(array.type):
                value = zlib.crc32(array.to_numpy(), value)
                continue
            array = pyarrow.concat_arrays([array.cast(pyarrow.large_string())])
            value = zlib.crc32(pyarrow.compute.binary_length(array).to_numpy(), value)
            size = pyarrow.compute.sum(pyarrow.compute.binary_length(array)).as_py()
            value = zlib.crc32(array.buffers()[2].slice(0, size), value)
        return value


class Polars(Arrow):
    def open(self):
        import polars  # noqa: F401

        super().open()

    def run(self):
        import polars

        self.result = polars.read_database(self.sql, self.connection)

    def hash(self):
        self.result = self.result.to_arrow()
        return super().hash()


class Pandas(Arrow):
    def open(self):
        import pandas  # noqa: F401

        super().open()

    def run(self):
        import pandas

        self.result = pandas.read_sql(self.sql, self.connection)

    def hash(self):
        import pyarrow

        self.result = pyarrow.Table.from_pandas(self.result, preserve_index=False)
        return super().hash()


class OnAdbcService:
    """By libadbc_driver_sqlipc.so: SQLIPC_BENCH_ADBC names the file; else its manifest does."""

    def connect(self):
        import adbc_driver_manager.dbapi as dbapi

        driver = os.environ.get("SQLIPC_BENCH_ADBC", "sqlipc")
        options = {"adbc.sqlipc.bus": self.bus, "adbc.sqlipc.database": "study"}
        return dbapi.connect(driver, db_kwargs=options, autocommit=True)


class OnAdbcFile:
    def connect(self):
        import adbc_driver_sqlite.dbapi as dbapi

        return dbapi.connect(self.file("study"), autocommit=True)


class ArrowService(OnAdbcService, Arrow):
    pass


class ArrowFile(OnAdbcFile, Arrow):
    pass


class PolarsService(OnAdbcService, Polars):
    pass


class PolarsFile(OnAdbcFile, Polars):
    pass


class PandasService(OnAdbcService, Pandas):
    pass


class PandasFile(Pandas):
    """pandas.read_sql() on sqlite3, as its manual shows it."""

    def connect(self):
        import sqlite3

        return sqlite3.connect(self.file("study"))


SIDES = {
    "adbc-arrow": ArrowService,
    "adbc-sqlite-arrow": ArrowFile,
    "adbc-polars": PolarsService,
    "adbc-sqlite-polars": PolarsFile,
    "adbc-pandas": PandasService,
    "sqlite3-pandas": PandasFile,
    "sqlipc-fetchall": FetchallService,
    "sqlite3-fetchall": FetchallFile,
    "sqlipc-point": PointService,
    "sqlite3-point": PointFile,
    "sqlipc-executemany": ExecutemanyService,
    "sqlite3-executemany": ExecutemanyFile,
}


def main():
    name, bus, folder, amount = sys.argv[1:]
    side = SIDES[name](bus, folder, int(amount))
    try:
        side.open()
    except ImportError as error:
        print(f"missing {error}".splitlines()[0], flush=True)
        return
    print("ready", flush=True)
    for line in sys.stdin:
        if line == "run\n":
            side.run()
            print("ran", flush=True)
        else:
            print(f"{side.check():x}", flush=True)
    if hasattr(side, "close"):
        side.close()


if __name__ == "__main__":
    main()
