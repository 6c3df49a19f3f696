#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""kill -9 of the client, of its workers, of the supervisor and of the bus while all of them wait.

They wait for a lock that another program holds on the database; for a worker, when no more are allowed; or for the end of
a service that exits because it is idle. Each query is answered by the right rows, a named error, or a broken stream.
"""
import contextlib
import os
import signal
import sqlite3

from settled import QUICK, as_before, send, settle

from client import DATABASE, Client, object_path
from harness import PATIENCE, descendants, executable, locks, main, wait_for
from idle_service import Idle
from steps import DB, SCAN, STREAM, Scene, Stream, finish_run, make_service, nursery, outcome, used, whole
from tap import cases, diagnose, equal, test, true

OURS = "org.sqlipc1.Error."
DBUS = "org.freedesktop.DBus.Error."
CHANNEL = "FETCH on a channel"
VICTIMS = ("client", "worker", "supervisor", "bus")
AFTER = {
    "worker": {"broken", OURS + "WorkerLost"},
    "supervisor": {"broken", OURS + "ShuttingDown", DBUS + "NoReply", DBUS + "ServiceUnknown"},
    "bus": {"broken", OURS + "ShuttingDown", "local:g-io-error-quark"},
}


# ---- What a client waits for ----


def hold(scene):
    """A statement and a channel with another one, from before there was anything to wait for."""
    channel = used(scene)
    number = channel.prepare(STREAM)
    channel.statement(number)
    return scene.client.prepare(DB, STREAM), channel, number


def read_query(reply):
    """The answer may say that the run has begun: on a connection that knows the statement it meets the lock after that."""
    (pipe,) = reply.get_unix_fd_list().steal_fds()
    with open(pipe, "rb", 0) as stream:
        Stream(stream).all_of(reply.get_body().get_child_value(0).get_uint64())


def ask(scene, held):
    """Waiting calls by name; each is called to read the answer."""
    statement, channel, number = held
    fetch = scene.call(DATABASE, "Fetch", "(tava{sv}a{sv})", statement.number, [], {}, {})
    run = channel.fetch(number)
    query = scene.begin(DATABASE, "Query", "(sava{sv}a{sv})", STREAM, [], {}, {})
    return {
        "Fetch": lambda: Stream(statement.pipe).all_of(fetch()[0].get_uint64()),
        "Query": lambda: read_query(query.reply()),
        "QueryRows": scene.call(DATABASE, "QueryRows", "(sava{sv}a{sv})", "SELECT 6 * 7", [], {}, {}),
        CHANNEL: lambda: whole(channel, run),
    }


N_ASKED = 4


def live(address, supervisor, ready, go):
    """A client's life until it is killed."""
    scene = Scene(Client(address), supervisor)
    held = hold(scene)
    ready.set()
    go.wait()
    finishes = ask(scene, held)
    signal.pause()
    return finishes


def channels(service):
    """Their states."""
    return [more["state"] for _, _, _, more in service.driver.manager("ListChannels")[0]]


@contextlib.contextmanager
def lock(service):
    """Another program, which this is, has the database for itself; its lock must be there to the end."""
    with contextlib.closing(sqlite3.connect(service.chinook, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        db.execute("UPDATE Artist SET Name = 'changed' WHERE ArtistId = 1")
        yield "running"
        true(str(os.getpid()) in [line.split()[4] for line in locks(service.chinook)], "the lock is gone")
        db.execute("ROLLBACK")


@contextlib.contextmanager
def occupation(service):
    """The one worker that there may be has something to do for long."""
    other = service.client()
    run = other.query(DB, SCAN)
    wait_for(lambda: "running" in service.states(), "it computes")
    yield "queued"
    with contextlib.suppress(Exception):  # it may be lost, as its service and its bus
        run.cancel()


# ---- Who is killed meanwhile ----


def all_wait(service, state):
    """All waiting runs, besides that of the only worker. A channel's run is listed when a worker has it."""
    return service.states().count(state) >= N_ASKED - 1 and channels(service) == [state]


def kill(service, victim):
    """Kills the supervisor, its workers or the bus."""
    send({"worker": service.workers(), "supervisor": [service.pid()], "bus": [service.bus.pid]}[victim], signal.SIGKILL)


def is_over(service, victim, processes, codes=(1,)):
    """After supervisor or bus were killed: the other processes end, the service with such a code; then starts them again."""
    code = service.daemon.wait(PATIENCE)
    true(code in ((-signal.SIGKILL,) if victim == "supervisor" else codes), f"the service exits with {code}")
    service.daemon = None
    wait_for(lambda: not any(executable(pid) for pid in processes), "its processes end")
    if victim == "supervisor":
        service.start()
    else:
        service.bus.wait()
        service.restart_bus()


def killed_client(service, situation):
    """It asked in a process of its own."""
    context = nursery()
    ready, go = context.Event(), context.Event()
    process = context.Process(target=live, args=(service.address, service.pid(), ready, go), daemon=True)
    process.start()
    true(ready.wait(PATIENCE), "the client did not come so far")
    with situation(service) as state:
        go.set()
        wait_for(lambda: all_wait(service, state), "it waits for all that it asked")
        process.kill()
        process.join()
        left = [] if situation is lock else ["running"]
        wait_for(lambda: service.states() == left and not channels(service), "all that it asked is gone")


def killed_other(service, situation, victim):
    scene = Scene(service.client(), service.pid())
    held = hold(scene)
    with situation(service) as state:
        finishes = ask(scene, held)
        wait_for(lambda: all_wait(service, state), "it waits for all that it asked")
        processes = descendants(service.pid())
        kill(service, victim)
        if victim != "worker":
            is_over(service, victim, processes)
        results = {name: outcome(finish) for name, finish in finishes.items()}
    for name, result in results.items():
        allowed = AFTER[victim]
        if (situation, victim) == (occupation, "worker"):
            # Calls that waited for a worker get the next one. The channel does, too, unless the worker that was killed had
            # just been offered it: an occupied worker gives it back within milliseconds, and is offered it again and again.
            allowed = {"right"} | ({"broken"} if name == CHANNEL else set())
        true(result in allowed, f"{name}: the client got {result}")
        diagnose(f"{victim} killed: {name}: {result}")


def each_victim(situation, what):
    with make_service(limits={"WorkersMax": 1}) as service:
        before = settle(service, [service.chinook])
        for victim in VICTIMS:
            if victim == "client":
                killed_client(service, situation)
            else:
                killed_other(service, situation, victim)
            while service.clients:
                service.clients.pop().close()
            as_before(service, before, [service.chinook])
    cases("kill", N_ASKED * len(VICTIMS), what)


@test
def behind_a_lock():
    """Client, worker, supervisor or bus killed while runs wait for another program's lock, which is not released"""
    each_victim(lock, "a run that waits for another program's lock, and the process that is killed then")


@test
def in_the_queue():
    """Client, worker, supervisor or bus killed while runs wait for the only worker: the next one answers them"""
    each_victim(occupation, "a run that waits for a worker, and the process that is killed then")


# ---- A service that exits ----


def prepare(client):
    """Sends it without waiting for a reader."""
    pending = client.begin(object_path(DB), DATABASE, "Prepare", "(sa{sv})", STREAM, {})
    client.connection.flush_sync(None)
    return pending.result


def gives_up_its_name(service, client):
    """It is about to exit, and does not know yet that there is a call for it."""
    service.stop_bus()
    finish = prepare(client)
    service.give_up_name(client)
    return finish


def lingers(service, client):
    """It took its exit back for a statement, whose rows it waits with."""
    statement = service.meet_exit(client, lambda: client.prepare(DB, STREAM))
    wait_for(service.has_owner, "the name is taken back")
    run = statement.fetch()
    wait_for(lambda: service.states() == ["parked"], "it parks")
    return lambda: finish_run(run)


def die(client):
    """Closes as the kernel closes a killed process's descriptors, without a message."""
    for fd in list(client.fds):
        client.drop(fd)
    client.connection.get_stream().get_socket().shutdown(True, True)


def killed_in_exit(service, stage, victim):
    """The client's result; None: it is dead."""
    client = service.client()
    client.point()  # so there is a worker
    finish = stage(service, client)
    processes = descendants(service.pid())
    if victim == "client":
        die(client)
    else:
        kill(service, victim)
    if victim in ("supervisor", "bus"):  # else a worker may finish the stream before it hears of it
        wait_for(lambda: not any(executable(pid) for pid in processes), "its processes end")
    with contextlib.suppress(ProcessLookupError):
        os.kill(service.bus.pid, signal.SIGCONT)
    result = None if victim == "client" else outcome(finish)
    while service.clients:
        service.clients.pop().close()
    service.quiet()
    if victim in ("client", "worker"):
        service.wait_for_exit()
        service.start()
    else:  # a service that exits anyway may do so before it learns that the bus is gone
        is_over(service, victim, processes, codes=(1,) if stage is lingers else (0, 1))
    return result


class Exiting(Idle):
    def quiet(self):
        """The next service stays, and does not notify a service manager, because none reads it."""
        del self.environment["NOTIFY_SOCKET"]
        self.service_keys = {}
        self.limits(**QUICK)


@test
def in_an_idle_exit():
    """Client, worker, supervisor or bus killed while the service releases its name, or has cancelled its exit"""
    before = {}
    for stage in (gives_up_its_name, lingers):
        for victim in VICTIMS:
            with Exiting() as service:
                result = killed_in_exit(service, stage, victim)
                diagnose(f"{stage.__name__}: {victim} killed: {result}")
                allowed = AFTER.get(victim, {None})
                if (stage, victim) == (gives_up_its_name, "worker"):
                    allowed = {"right", OURS + "WorkerLost"}  # it may be given the call before it is known to be dead
                true(result in allowed, f"{stage.__name__}: {victim} killed: the client got {result}")
                before = before or settle(service)
                as_before(service, before)
    cases("kill", 2 * len(VICTIMS), "a moment of an idle exit, and the process that is killed then")


if __name__ == "__main__":
    main()
