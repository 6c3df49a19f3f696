# SPDX-License-Identifier: LGPL-2.1-or-later
"""diskcache: twelve processes with one cache."""

import multiprocessing

#~ import sys, types, sqlipc
#~ connect = lambda path, *arguments, **keywords: sqlipc.connect("diskcache-processes", *arguments, **keywords)
#~ sys.modules["sqlite3"] = types.SimpleNamespace(**vars(sqlipc) | {"connect": connect})
import diskcache


def work(number):
    with diskcache.Cache("cache") as cache:
        for i in range(10):
            cache.set((number, i), "x" * i, tag="even" if i % 2 == 0 else None)
            cache.incr("sum", i)
            with cache.transact():
                cache["pair"] = cache.get("pair", 0) + 1
        cache.delete((number, 3))


if __name__ == "__main__":
    diskcache.Cache("cache").close()
    processes = [multiprocessing.Process(target=work, args=(number,)) for number in range(12)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    print([process.exitcode for process in processes])
    with diskcache.Cache("cache") as cache:
        print(len(cache), cache["sum"], cache["pair"], cache.get((5, 3)), cache.get((5, 4)))
        print(cache.evict("even"), len(cache), cache.clear())
