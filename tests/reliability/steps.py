# SPDX-License-Identifier: LGPL-2.1-or-later
"""The steps of the protocol at which a client can be when something happens, over pipes, on channels and as D-Bus values.

    finish = STEPS["fetch answered"].begin(scene)      # the client has reached the step, and holds what it has by then
    ...                                                # a process is killed or stopped
    outcome(finish)                                    # "right", "broken", or the name of the error

A `gated` step ends with a message that was sent and not read: scene.gate() stops (SIGSTOP) the process that would read it,
and the caller of the step must continue it. The client must then read right rows to the last one, a named error, or a
broken stream; anything else raises.
"""
import contextlib
import multiprocessing
import os
import pathlib
import select
import signal
import struct
import sys
import time
from collections import namedtuple

from settled import QUICK, send

from channel import PREPARE, QUERY, STATEMENT, Channel, frame
from client import DATABASE, END, ERROR, MANAGER, MANAGER_PATH, SECONDS, Broken, Failure, decode, object_path
from gi.repository import GLib
from harness import CHINOOK, Service, children, wait_for
from tap import equal, true

DB = "chinook"
ROWS = 60000
STREAM = f"SELECT a.TrackId, b.Name FROM Track AS a, Track AS b LIMIT {ROWS}"
SCAN = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
COMPILES_LONG = (
    "WITH c0(x) AS (SELECT 1)"
    + "".join(f", c{n}(x) AS (SELECT x FROM c{n - 1} UNION ALL SELECT x FROM c{n - 1})" for n in range(1, 16))
    + " SELECT count(*) FROM c15"
)
# In little memory, by SQLite 3.40: each constant is looked up among all before.
COMPILES_FOR_MINUTES = (
    "SELECT "
    + ", ".join("TrackId" + "".join(f"+~~{n}" for n in range(i, i + 900)) for i in range(0, 100000, 900))
    + " FROM Track"
)
PATIENT = ("ParkTimeoutSec", "ParkTimeoutRollbackSec", "BusyTimeoutSec", "PrepareTimeoutSec", "QueueTimeoutSec")
LIMITS = QUICK | dict.fromkeys(PATIENT, 600)
Step = namedtuple("Step", "begin gated reads")


def make_service(**keywords):
    """A service with a database of its own, which all users may use, and two users of the system by their names."""
    limits = LIMITS | keywords.pop("limits", {})
    service = Service(limits=limits, **keywords)
    service.chinook = service.data / "chinook.sqlite"
    service.chinook.write_bytes(CHINOOK.read_bytes())
    service.database(DB, Path=service.chinook, AllowUsers="* daemon bin")
    service.driver.manager("Reload")
    return service


class Scene:
    """A client at its step. `supervisor`: pid; `doors`: who is stopped by gate(), asked when it is."""

    def __init__(self, client, supervisor, doors=list):
        self.client, self.supervisor, self.doors, self.stopped = client, supervisor, doors, []

    def gate(self):
        self.stopped += self.doors()
        send(self.stopped, signal.SIGSTOP)

    def go_on(self):
        send(self.stopped, signal.SIGCONT)

    def begin(self, interface, method, signature, *arguments):
        """Sends it without waiting for a reader."""
        path = MANAGER_PATH if interface == MANAGER else object_path(DB)
        pending = self.client.begin(path, interface, method, signature, *arguments)
        self.client.connection.flush_sync(None)
        return pending

    def call(self, interface, method, signature, *arguments):
        return self.begin(interface, method, signature, *arguments).result

    def runs(self):
        """States of its own."""
        return [more["state"] for _, _, who, more in self.client.manager("ListRuns")[0] if who == self.client.name()]

    def channels(self):
        return [more["state"] for _, _, who, more in self.client.manager("ListChannels")[0] if who == self.client.name()]

    def workers_cpu(self):
        """Ticks that each child of the supervisor has used."""
        ticks = {}
        for pid in children(self.supervisor):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                ticks[pid] = sum(map(int, fields[11:13]))
        return ticks


class Stream:
    """Bytes of a pipe, or of a channel's socket, as many as wanted; frames of several requests may be in them."""

    def __init__(self, source):
        self.source, self.data = source, bytearray()

    def take(self, size, seconds=SECONDS):
        """Until so many bytes of it were read in all."""
        end = time.monotonic() + seconds
        while len(self.data) < size:
            if not select.select([self.source], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"silence behind {len(self.data)} bytes")
            try:
                piece = os.read(getattr(self.source, "fileno", lambda: self.source)(), size - len(self.data))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise Broken(f"end of file after {len(self.data)} bytes")
            self.data += piece

    def frames(self):
        """(number, kind, flags, bytes) from the first on."""
        at = 0
        while True:
            self.take(at + 16)
            size, kind, _, flags, number = struct.unpack_from("<IBBHQ", self.data, at)
            end = at + 16 + ((size + 7) & ~7)
            self.take(end)
            yield number, kind, flags, bytes(self.data[at:end])
            at = end

    def rows_of(self, number):
        """The count in the END of this answer, or the Failure of its ERROR; 0 for a description."""
        for run, kind, flags, data in self.frames():
            if run == number and kind == ERROR:
                decode([data])
            if run == number and (kind == END or (kind == STATEMENT and not flags & 1)):
                return struct.unpack_from("<Q", data, 16)[0] if kind == END else 0
        raise AssertionError("not reached")

    def all_of(self, number, rows=ROWS):
        equal(self.rows_of(number), rows, "rows of a stream that says it is complete")


STEPS = {}


def step(name, gated=False, reads=None):
    """`gated`: it ends with gate() and a message; `reads`: how many bytes of the answer were read."""

    def add(function):
        STEPS[name] = Step(function, gated, reads)
        return function

    return add


def batches(names):
    """Steps that clients may be at together: of the gated, which stop who would serve the others, one each, at its end."""
    gated = [name for name in STEPS if name in names and STEPS[name].gated]
    others = [name for name in STEPS if name in names and not STEPS[name].gated]
    n = max(1, len(gated))
    return [others[i::n] + gated[i : i + 1] for i in range(n)]


def nursery():
    """Where clients come from that have a process of their own: all that they load is loaded there, once."""
    context = multiprocessing.get_context("forkserver")
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # else it finds no module of ours, and says nothing
    context.set_forkserver_preload(["steps"])
    return context


def outcome(finish):
    try:
        finish()
        return "right"
    except Broken:
        return "broken"
    except GLib.Error as error:
        return f"local:{error.domain}"
    except Failure as failure:
        true(failure.message, f"{failure.name} says nothing")
        return failure.name


# ---- Before any query ----


@step("connected")
def connected(scene):
    return lambda: equal(scene.client.query_rows(DB, "SELECT 6 * 7")[1], [[42]], "rows")


@step("first call sent", gated=True)
def first_call(scene):
    scene.gate()
    return scene.call(MANAGER, "ListDatabases", "(a{sv})", {})


@step("reload sent", gated=True)
def reload_sent(scene):
    scene.gate()
    return scene.call(MANAGER, "Reload", "(a{sv})", {})


# ---- A prepared statement and its pipe ----


@step("prepare sent", gated=True)
def prepare_sent(scene):
    scene.client.point()
    scene.gate()
    return scene.call(DATABASE, "Prepare", "(sa{sv})", STREAM, {})


@step("prepare compiles")
def prepare_compiles(scene):
    scene.client.point()
    for _ in range(20):
        before = scene.workers_cpu()
        call = scene.begin(DATABASE, "Prepare", "(sa{sv})", COMPILES_LONG, {})
        wait_for(
            lambda: call.is_done() or any(now > before.get(pid, 0) + 5 for pid, now in scene.workers_cpu().items()),
            "it compiles",
        )
        if not call.is_done():
            return call.result
        call.result()  # over before this process looked: once more
    raise AssertionError("it is never seen to compile")


@step("prepare answered")
def prepare_answered(scene):
    statement = scene.client.prepare(DB, STREAM)
    return lambda: finish_run(statement.fetch())


def finish_run(run, stream=None):
    (stream or Stream(run.pipe)).all_of(run.number)


@step("fetch sent", gated=True)
def fetch_sent(scene):
    statement = scene.client.prepare(DB, STREAM)
    scene.gate()
    answer = scene.call(DATABASE, "Fetch", "(tava{sv}a{sv})", statement.number, [], {}, {})

    def finish():
        number = answer()[0].get_uint64()
        Stream(statement.pipe).all_of(number)

    return finish


def fetched(scene):
    statement = scene.client.prepare(DB, STREAM)
    return statement, statement.fetch()


@step("fetch answered")
def fetch_answered(scene):
    return lambda run=fetched(scene)[1]: finish_run(run)


@step("run parked")
def run_parked(scene):
    _, run = fetched(scene)
    wait_for(lambda: scene.runs() == ["parked"], "it parks")
    return lambda: finish_run(run)


@step("run computes")
def run_computes(scene):
    run = scene.client.prepare(DB, SCAN).fetch()
    scene.client.point()
    return lambda: (run.cancel(), finish_run(run))


def read_of(k):
    def begin(scene):
        _, run = fetched(scene)
        stream = Stream(run.pipe)
        stream.take(k)
        return lambda: finish_run(run, stream)

    return begin


# A byte, header but one, a header, COLUMNS and the header of ROWS, half a frame of ROWS, some frames.
for n_bytes in (1, 15, 16, 17, 130, 40000, 500000):
    step(f"{n_bytes} bytes of a run read", reads=n_bytes)(read_of(n_bytes))


@step("END read")
def end_read(scene):
    statement, run = fetched(scene)
    finish_run(run)
    return lambda: finish_run(statement.fetch())


@step("run ended, its last page not read")
def unread_end(scene):
    while True:
        statement = scene.client.prepare(DB, "SELECT Name FROM Track LIMIT 3400")
        run = statement.fetch()
        wait_for(lambda: scene.runs() in (["draining"], ["parked"]), "its pipe is full")
        if scene.runs() == ["draining"]:
            return lambda: Stream(run.pipe).all_of(run.number, 3400)
        # On a busy machine pages go out half full, as time passes between rows, and fewer bytes fill the pipe. That pipe may
        # have grown meanwhile, and then holds all of the next run.
        Stream(run.pipe).all_of(run.number, 3400)
        statement.close()


@step("cancel sent", gated=True)
def cancel_sent(scene):
    _, run = fetched(scene)
    scene.gate()
    answer = scene.call(DATABASE, "Cancel", "(ta{sv})", run.number, {})
    return lambda: (answer(), finish_run(run))


@step("cancel answered")
def cancel_answered(scene):
    _, run = fetched(scene)
    run.cancel()
    return lambda: finish_run(run)


@step("finalize sent", gated=True)
def finalize_sent(scene):
    statement, run = fetched(scene)
    scene.gate()
    answer = scene.call(DATABASE, "Finalize", "(ta{sv})", statement.number, {})
    return lambda: (answer(), finish_run(run))


@step("finalize answered during a run")
def finalize_answered(scene):
    statement, run = fetched(scene)
    scene.client.finalize(DB, statement.number)
    return lambda: finish_run(run)


# ---- One shot ----


@step("query sent", gated=True)
def query_sent(scene):
    scene.client.point()
    scene.gate()
    return scene.call(DATABASE, "Query", "(sava{sv}a{sv})", STREAM, [], {}, {})


@step("query answered")
def query_answered(scene):
    run = scene.client.query(DB, STREAM)
    return lambda: finish_run(run)


@step("three frames of a query read")
def query_read(scene):
    run = scene.client.query(DB, STREAM)
    stream = Stream(run.pipe)
    frames = stream.frames()
    for _ in range(3):
        next(frames)
    return lambda: finish_run(run, stream)


# ---- Values in messages ----


@step("QueryRows sent", gated=True)
def query_rows_sent(scene):
    scene.client.point()
    scene.gate()
    return scene.call(DATABASE, "QueryRows", "(sava{sv}a{sv})", "SELECT Name FROM Track LIMIT 10", [], {}, {})


@step("QueryRows computes")
def query_rows_computes(scene):
    call = scene.begin(DATABASE, "QueryRows", "(sava{sv}a{sv})", SCAN + " LIMIT 1", [], {}, {"timeout-usec": usec(2e6)})
    wait_for(lambda: call.is_done() or scene.runs() == ["running"], "it computes, or its time was over before that was seen")
    return call.result


def usec(number):
    return GLib.Variant("t", int(number))


def all_rows_of(scene, run, n):
    more = True
    while more:
        rows, more, _ = scene.client.next_rows(DB, run)
        n += len(rows)
    equal(n, 20000, "rows of a cursor that says it is at its end")


def opened_rows(scene):
    return scene.client.open_rows(DB, STREAM.replace(str(ROWS), "20000"))[0]


@step("OpenRows answered")
def open_rows_answered(scene):
    run = opened_rows(scene)
    return lambda: all_rows_of(scene, run, 0)


@step("NextRows sent", gated=True)
def next_rows_sent(scene):
    run = opened_rows(scene)
    scene.gate()
    answer = scene.call(DATABASE, "NextRows", "(ta{sv})", run, {})
    return lambda: all_rows_of(scene, run, answer()[0].n_children())


@step("NextRows answered once")
def next_rows_answered(scene):
    run = opened_rows(scene)
    n = len(scene.client.next_rows(DB, run, {"max-bytes": 2000})[0])
    return lambda: all_rows_of(scene, run, n)


# ---- A channel ----


@step("OpenChannel sent", gated=True)
def open_channel_sent(scene):
    scene.gate()
    return scene.call(DATABASE, "OpenChannel", "(a{sv})", {})


@step("channel opened")
def channel_opened(scene):
    channel = Channel(scene.client, DB)
    return lambda: whole(channel, channel.query(STREAM))


def whole(channel, number, stream=None):
    (stream or Stream(channel.socket)).all_of(number)


def used(scene):
    """A channel that a worker has."""
    channel = Channel(scene.client, DB)
    equal(channel.ask("SELECT 6 * 7"), [[42]], "rows")
    return channel


REQUEST = frame(QUERY, 2, struct.pack("<QIIII", 0, 0, 0, len(STREAM), 0) + STREAM.encode())


def sent_of_request(k):
    def begin(scene):
        channel = used(scene)
        channel.last = 2
        channel.send(REQUEST[:k])
        return lambda: (channel.send(REQUEST[k:]), whole(channel, 2))

    return begin


for n_bytes in (1, 8, 16, 24, 60, len(REQUEST) - 1):
    step(f"{n_bytes if n_bytes < 70 else 'all but one'} bytes of a request sent", reads=0)(sent_of_request(n_bytes))


@step("a request sent", gated=True)
def request_sent(scene):
    channel = used(scene)
    scene.gate()
    number = channel.query(STREAM)
    return lambda: whole(channel, number)


@step("a prepare on the channel sent", gated=True)
def channel_prepare_sent(scene):
    channel = used(scene)
    scene.gate()
    number = channel.request(PREPARE, STREAM.encode())
    return lambda: (channel.statement(number), whole(channel, channel.fetch(number)))


@step("a prepare on the channel answered")
def channel_prepare_answered(scene):
    channel = used(scene)
    number = channel.prepare(STREAM)
    channel.statement(number)
    return lambda: whole(channel, channel.fetch(number))


def answer_read(k):
    def begin(scene):
        channel = used(scene)
        number, stream = channel.query(STREAM), Stream(channel.socket)
        stream.take(k)
        return lambda: whole(channel, number, stream)

    return begin


for n_bytes in (1, 16, 17, 130, 40000):
    step(f"{n_bytes} bytes of an answer read", reads=n_bytes)(answer_read(n_bytes))


@step("two of five answers read")
def two_of_five(scene):
    channel = used(scene)
    numbers = [channel.query("SELECT Name FROM Track LIMIT 3000") for _ in range(5)]
    stream = Stream(channel.socket)
    stream.all_of(numbers[1], 3000)
    return lambda: stream.all_of(numbers[-1], 3000)


@step("channel parked")
def channel_parked(scene):
    channel = used(scene)
    number = channel.query(STREAM)
    wait_for(lambda: scene.channels() == ["parked"], "it parks")
    return lambda: whole(channel, number)


def is_answered(channel):
    return bool(select.select([channel.socket], [], [], 0)[0])


@step("channel computes")
def channel_computes(scene):
    channel = used(scene)
    number = channel.query(SCAN, timeout_usec=2000000)
    wait_for(lambda: is_answered(channel) or scene.channels() == ["running"], "it computes, or its time was over before")
    return lambda: whole(channel, number)


@step("a cancel on the channel sent", gated=True)
def channel_cancel_sent(scene):
    channel = used(scene)
    number = channel.query(STREAM)
    scene.gate()
    channel.cancel(number)
    return lambda: whole(channel, number)


@step("a finalize on the channel sent", gated=True)
def channel_finalize_sent(scene):
    channel = used(scene)
    number = channel.prepare(STREAM)
    channel.statement(number)
    scene.gate()
    channel.finalize(number)
    return lambda: whole(channel, channel.query(STREAM))


# Steps that end in something else than rows, stopped or not.
ENDS = {
    "run computes": "Cancelled",
    "cancel sent": "Cancelled",
    "cancel answered": "Cancelled",
    "finalize sent": "Cancelled",
    "finalize answered during a run": "Cancelled",
    "QueryRows computes": "TimedOut",
    "channel computes": "TimedOut",
    "a cancel on the channel sent": "Cancelled",
}


def wanted(name):
    """The result of outcome() for a step without a kill."""
    return "org.sqlipc1.Error." + ENDS[name] if name in ENDS else "right"
