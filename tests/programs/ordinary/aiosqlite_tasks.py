# SPDX-License-Identifier: LGPL-2.1-or-later
"""A program for aiosqlite: tasks that write and read."""

import asyncio

import aiosqlite  #~ import sqlipc.aio as aiosqlite

DATABASE = "database.sqlite"  #~ DATABASE = "aiosqlite-tasks"


async def work(number):
    async with aiosqlite.connect(DATABASE, timeout=60) as db:
        for i in range(5):
            await db.execute("INSERT INTO note(task, n) VALUES (?, ?)", (number, i))
            await db.commit()
        async with db.execute("SELECT count(*) FROM note WHERE task = ?", (number,)) as cursor:
            return await cursor.fetchone()


async def main():
    async with aiosqlite.connect(DATABASE) as db:
        await db.execute("CREATE TABLE note(task INTEGER, n INTEGER)")
        await db.commit()
        print(await asyncio.gather(*(work(number) for number in range(10))))
        db.row_factory = aiosqlite.Row
        async with db.execute("SELECT task, sum(n) AS s FROM note GROUP BY task") as cursor:
            print([dict(row) async for row in cursor], cursor.description)
        print([tuple(row) for row in await db.execute_fetchall("SELECT max(n) FROM note")])
        try:
            await db.execute("SELECT * FROM nothing")
        except aiosqlite.OperationalError as error:
            print(error)
        await db.executemany("INSERT INTO note VALUES (?, ?)", [(99, i) for i in range(100)])
        await db.rollback()
        print(db.in_transaction, [tuple(row) for row in await db.execute_fetchall("SELECT * FROM note WHERE task = 99")])


asyncio.run(main())
