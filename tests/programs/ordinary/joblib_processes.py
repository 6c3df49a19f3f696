# SPDX-License-Identifier: LGPL-2.1-or-later
"""joblib: processes that write, that open a connection for each call."""

import contextlib
import sqlite3  #~ import sqlipc as sqlite3

from joblib import Parallel, delayed

DATABASE = "database.sqlite"  #~ DATABASE = "joblib-processes"


def work(number):
    with contextlib.closing(sqlite3.connect(DATABASE, timeout=60)) as db, db:
        db.execute("INSERT INTO done VALUES (?, ?)", (number, number**2))
        return db.execute("SELECT count(*) > 0 FROM done").fetchone()


if __name__ == "__main__":
    with contextlib.closing(sqlite3.connect(DATABASE)) as db:
        db.execute("CREATE TABLE done(number INTEGER PRIMARY KEY, square)")
        print(set(Parallel(n_jobs=4)(delayed(work)(number) for number in range(40))))
        print(db.execute("SELECT * FROM done").fetchall())
