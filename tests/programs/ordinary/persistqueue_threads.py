# SPDX-License-Identifier: LGPL-2.1-or-later
"""persist-queue: queues of which items are acknowledged, and one with threads."""

import threading

#~ import sys, types, sqlipc
#~ connect = lambda path, *arguments, **keywords: sqlipc.connect("persistqueue-threads", *arguments, **keywords)
#~ sys.modules["sqlite3"] = types.SimpleNamespace(**vars(sqlipc) | {"connect": connect})
import persistqueue

queue = persistqueue.SQLiteQueue("queue", auto_commit=True, multithreading=True)
threads = [threading.Thread(target=lambda n=n: [queue.put((n, i)) for i in range(20)]) for n in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(queue.size, sorted(queue.get() for _ in range(80)) == sorted((n, i) for n in range(4) for i in range(20)), queue.size)
acknowledged = persistqueue.SQLiteAckQueue("queue", auto_commit=True, name="acknowledged")
for i in range(5):
    acknowledged.put(i)
items = [acknowledged.get() for _ in range(3)]
acknowledged.ack(items[0])
acknowledged.nack(items[1])
print(items, acknowledged.size, acknowledged.unack_count(), acknowledged.acked_count(), acknowledged.ready_count())
unique = persistqueue.UniqueQ("queue", auto_commit=True, name="unique")
for i in (1, 1, 2):
    unique.put(i)
print(unique.size)
