# SPDX-License-Identifier: LGPL-2.1-or-later
"""sqlitedict: a dictionary that threads share."""

#~ import sys, sqlipc; sys.modules["sqlite3"] = sqlipc
import threading

from sqlitedict import SqliteDict

FILE = "database.sqlite"  #~ FILE = "sqlitedict-threads"


def work(number):
    for i in range(20):
        shared[f"{number}-{i}"] = {"square": i * i}


with SqliteDict(FILE, autocommit=True) as shared:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(len(shared), shared["3-4"], "9-9" in shared, sorted(shared)[:3])
    del shared["3-4"]
with SqliteDict(FILE, tablename="other") as other:
    other.update(a=1, b=[2])
    other.commit()
    other["c"] = 3
with SqliteDict(FILE, tablename="other") as other:
    print(dict(other))
with SqliteDict(FILE) as shared:
    print(len(shared), shared.get("3-4"))
    shared.clear()
    print(len(shared))
