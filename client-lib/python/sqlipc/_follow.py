# SPDX-License-Identifier: LGPL-2.1-or-later
"""Watches, which tell when tables change, and live queries, which tell how a result changes."""

from collections import namedtuple

KINDS = (None, "added", "removed", "moved", "changed", "settled")  # sqlipc_live_kind


class Change(namedtuple("Change", "kind position new_position row old_row")):
    """One change to the list of rows of a live query.

    kind: "added": a row is inserted at `position`; "removed": the row there is removed; "moved": it is removed, and inserted
    again at `new_position`; "changed": it has other values outside of its key; "settled": the list equals a result again.
    row: the values now, except for "removed" and "settled"; old_row: those before, for "removed" and "changed".
    """

    __slots__ = ()


def change_of(found):
    """Returns the Change that the native part found, or None."""
    return None if found is None else Change(KINDS[found[0]], *found[1:])


def apply(rows, change):
    """Makes the change to a list of rows."""
    if change.kind == "added":
        rows.insert(change.position, change.row)
    elif change.kind == "removed":
        del rows[change.position]
    elif change.kind == "moved":
        rows.insert(change.new_position, rows.pop(change.position))
    elif change.kind == "changed":
        rows[change.position] = change.row


class Watch:
    """Tells when tables may have changed. Connection.watch() makes it. Iterate over it for one item after each change."""

    def __init__(self, connection, native):
        self.connection = connection
        self._native = native
        native.next(None)  # the watch has begun

    @property
    def sequence(self):
        """The number of the last change of the database that was reported."""
        return self._native.sequence

    def wait(self, timeout=None):
        """Wait for a change, at most `timeout` seconds. Returns False after that. Several changes are reported as one."""
        return self._native.next(timeout)

    def __iter__(self):
        return self

    def __next__(self):
        self.wait()
        return self.sequence

    def close(self):
        """End the watch."""
        self._native.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()


class Live:
    """A query whose result follows the database. Connection.live() makes it. Iterate over it for each Change.

    rows: the list of rows, with all changes that were returned.
    """

    def __init__(self, connection, native):
        self.connection = connection
        self.rows = []
        self._native = native
        self._first = native.next(None)  # so that a wrong statement fails now

    @property
    def columns(self):
        """The names of the columns."""
        return self._native.columns

    def next(self, timeout=None):
        """Wait for the next Change, at most `timeout` seconds; None after that. A run that fails raises its error once."""
        self.connection._check()
        found, self._first = self._first, None
        change = change_of(self._native.next(timeout) if found is None else found)
        if change is not None:
            apply(self.rows, change)
        return change

    def settle(self, timeout=None):
        """Wait until `rows` equals a result of the query again, and return it; None after `timeout` seconds without one."""
        while True:
            change = self.next(timeout)
            if change is None or change.kind == "settled":
                return None if change is None else self.rows

    def __iter__(self):
        return self

    def __next__(self):
        return self.next()

    def close(self):
        """End the live query."""
        self._native.close()
        self._first = None

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()


class AsyncWatch:
    """As Watch, in an event loop: `await wait()`, or `async for`."""

    def __init__(self, connection, native):
        self.connection, self._native = connection, native

    @property
    def sequence(self):
        """The number of the last change of the database that was reported."""
        return self._native.sequence

    async def wait(self):
        """Wait for a change. Cancelling the task loses none."""
        await self.connection._core.until_change(self._native)

    def __aiter__(self):
        return self

    async def __anext__(self):
        await self.wait()
        return self.sequence

    async def close(self):
        """End the watch."""
        self._native.close()

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, value, trace):
        await self.close()


class AsyncLive:
    """As Live, in an event loop: `await next()`, or `async for`."""

    def __init__(self, connection, native, first):
        self.connection, self._native, self._first = connection, native, first
        self.rows = []

    @property
    def columns(self):
        """The names of the columns."""
        return self._native.columns

    async def next(self):
        """Wait for the next Change. Cancelling the task loses none."""
        found, self._first = self._first, None
        change = change_of(await self.connection._core.until_change(self._native) if found is None else found)
        apply(self.rows, change)
        return change

    async def settle(self):
        """Wait until `rows` equals a result of the query again, and return it."""
        while (await self.next()).kind != "settled":
            pass
        return self.rows

    def __aiter__(self):
        return self

    async def __anext__(self):
        return await self.next()

    async def close(self):
        """End the live query."""
        self._native.close()
        self._first = None

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, value, trace):
        await self.close()
