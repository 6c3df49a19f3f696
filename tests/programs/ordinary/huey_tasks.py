# SPDX-License-Identifier: LGPL-2.1-or-later
"""huey: tasks in a queue, with results, retries, a schedule and a lock."""

#~ import sys, sqlipc; sys.modules["sqlite3"] = sqlipc
import datetime

from huey import SqliteHuey

huey = SqliteHuey(filename="database.sqlite")  #~ huey = SqliteHuey(filename="huey-tasks")


@huey.task(retries=1)
def add(a, b):
    with huey.lock_task("lock"):
        return a + b


@huey.task()
def fail():
    raise ZeroDivisionError("on purpose")


results = [add(i, i) for i in range(20)]
failed = fail()
add.schedule((1, 2), eta=datetime.datetime(2100, 1, 1))
print(huey.pending_count())
while (task := huey.dequeue()) is not None:
    huey.execute(task)
print([result.get() for result in results], huey.pending_count(), huey.scheduled_count(), huey.result_count())
try:
    failed.get()
except Exception as error:
    print(type(error).__name__, error)
huey.put("key", {"some": "value"})
print(huey.get("key"), huey.get("key"))
huey.flush()
print(huey.pending_count(), huey.scheduled_count(), huey.result_count())
