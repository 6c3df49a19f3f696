#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""kill -9 of the client, of its workers, of the supervisor and of the bus at every step of the protocol (steps.py).

The remaining processes read the right rows, a named error or a broken stream. They never see an end that looks complete
but is not, and they never wait for ever. Afterwards the service, or the next one, holds what it held before. With
sanitizers only every third pair of step and victim is tried; the seed (--seed=N) selects which.
"""
import contextlib
import os
import pathlib
import random
import signal
import sys

from settled import as_before, holds, send, settle, works

import broker
from client import MANAGER, MANAGER_PATH, Client
from harness import PATIENCE, SANITIZED, children, descendants, executable, locks, main, wait_for
from library import Library
from steps import DB, ROWS, SCAN, STEPS, STREAM, Scene, batches, make_service, nursery, outcome
from tap import cases, diagnose, equal, test, true

SEED = int(next((a.split("=")[1] for a in sys.argv[1:] if a.startswith("--seed=")), 1))
sys.argv[1:] = [a for a in sys.argv[1:] if not a.startswith("--seed=")]
OURS = "org.sqlipc1.Error."
DBUS = "org.freedesktop.DBus.Error."
# Results of the steps by themselves: they cancel, finalize, or have little time.
BY_STEP = {"right", OURS + "Cancelled", OURS + "TimedOut"}
AFTER = {
    "worker": BY_STEP | {"broken", OURS + "WorkerLost", OURS + "UnknownRun"},
    "supervisor": BY_STEP | {"broken", OURS + "ShuttingDown", DBUS + "NoReply", DBUS + "ServiceUnknown"},
    "bus": BY_STEP | {"broken", OURS + "ShuttingDown", "local:g-io-error-quark", "local:g-dbus-error-quark"},
}
WHO = {
    "client": "it is",
    "worker": "its workers are",
    "supervisor": "the supervisor is",
    "bus": "the bus is",
    "broker": "the bus, a dbus-broker, is",
}


def chosen(victim):
    """The steps to try: all, or with sanitizers a third."""
    names = list(STEPS)
    return random.Random(f"{SEED} {victim}").sample(names, (len(names) + 2) // 3) if SANITIZED else names


def live(address, name, supervisor, ready):
    """A client's life until it is killed."""
    scene = Scene(Client(address), supervisor, lambda: [supervisor])
    finish = STEPS[name].begin(scene)
    ready.set()
    signal.pause()
    finish()


class Named(contextlib.AbstractContextManager):
    def __init__(self, name):
        self.name = name

    def __exit__(self, kind, value, _):
        if kind:
            diagnose(f"seed {SEED}: {self.name}")


def each_batch(victim):
    """Some steps at once, named if one fails; the number of all."""
    names = chosen(victim)
    for batch in batches(names):
        with Named(f"{victim} killed at the steps {batch}"):
            yield batch
    cases("kill", len(names), f"a step of a client's at which {WHO[victim]} killed")


@test
def client_killed():
    """The client is killed at each of its steps: nothing of it is left"""
    context = nursery()
    with make_service() as service:
        before = settle(service, [service.chinook])
        for batch in each_batch("client"):
            processes = []
            for name in batch:
                ready = context.Event()
                arguments = (service.address, name, service.pid(), ready)
                processes.append(context.Process(target=live, args=arguments, daemon=True))
                processes[-1].start()
                true(ready.wait(PATIENCE), f"the client did not come so far: {name}")
            for process in processes:
                process.kill()
                process.join()
            os.kill(service.pid(), signal.SIGCONT)
            as_before(service, before, [service.chinook])


def begin(service, batch, doors):
    """A client at each of the steps, and its further actions."""
    return [(name, STEPS[name].begin(Scene(service.client(), service.pid(), doors))) for name in batch]


def finish_all(service, scenes, victim):
    """Each reads as far as it can; then they leave."""
    for name, finish in scenes:
        result = outcome(finish)
        true(result in AFTER[victim], f"{name}: the client got {result}")
        diagnose(f"{name}: {result}")
    while service.clients:
        service.clients.pop().close()


@test
def worker_killed():
    """All workers of the client are killed: it reads an error, a broken stream, or rows from another worker"""
    with make_service() as service:
        before = settle(service, [service.chinook])
        for batch in each_batch("worker"):
            scenes = begin(service, batch, service.workers)
            send(service.workers(), signal.SIGKILL)
            finish_all(service, scenes, "worker")
            as_before(service, before, [service.chinook])


@test
def supervisor_killed():
    """The supervisor is killed: no worker, lock or file is left, and the next one knows nothing of the past"""
    with make_service() as service:
        files = sorted(os.listdir(service.data))
        before = settle(service, [service.chinook])
        for batch in each_batch("supervisor"):
            scenes = begin(service, batch, lambda: [service.pid()])
            service.kill()
            finish_all(service, scenes, "supervisor")
            wait_for(lambda: not locks(service.chinook), "no lock is left")
            equal(sorted(os.listdir(service.data)), files, "files beside the database")
            service.start()
            as_before(service, before, [service.chinook])


@contextlib.contextmanager
def without_bus(service):
    """The bus is killed while clients work; the service ends with a failure, and no process is left."""
    left = [service.pid(), *descendants(service.pid())]
    service.bus.kill()
    service.bus.wait()
    yield
    true(service.daemon.wait(PATIENCE) != 0, "the loss of the bus looks like a clean end")
    service.daemon = None
    wait_for(lambda: not any(executable(pid) for pid in left), "its processes end")
    wait_for(lambda: not locks(service.chinook), "no lock is left")


def bus_killed_at_each(victim):
    for batch in each_batch(victim):
        with make_service(broker=victim == "broker") as service:
            scenes = begin(service, batch, lambda: [service.bus.pid])
            with without_bus(service):
                finish_all(service, scenes, "bus")


@test
def bus_killed():
    """The bus is killed: the client gets an error, the service ends with a failure, and no process is left"""
    bus_killed_at_each("bus")


@broker.needed
def broker_killed():
    """So it is with dbus-broker"""
    bus_killed_at_each("broker")


def terminate(service):
    """It is told to stop, and has begun to."""
    service.daemon.send_signal(signal.SIGTERM)
    wait_for(lambda: not service.has_owner(), "it gives up its name")


# The work that a stop waits for, and the process that is killed meanwhile.
DURING = ("run parked", "run computes", "channel parked")
STOPS = [(name, victim) for name in DURING for victim in ("client", "worker", "itself")]


def kill_in_a_stop(service, name, victim):
    """False: it was over before the supervisor was killed, for its workers, which are stopped, have a second."""
    client = service.client()
    scene = Scene(client, service.pid())
    finish = STEPS[name].begin(scene)
    processes = [service.pid(), *descendants(service.pid())]
    send(processes[1:], signal.SIGSTOP)  # else it is over at once
    terminate(service)
    if victim == "client":
        client.close()
    send({"client": [], "worker": processes[1:], "itself": processes[:1]}[victim], signal.SIGKILL)
    if victim != "client":
        result = outcome(finish)
        true(result in ("broken", OURS + "ShuttingDown", DBUS + "ServiceUnknown"), f"the client got {result}")
        client.close()
    code = service.daemon.wait(PATIENCE)
    true(code in ((-signal.SIGKILL, 0) if victim == "itself" else (0,)), f"it exits with {code}")
    service.daemon = None
    wait_for(lambda: not any(executable(pid) for pid in processes), "its processes end")
    wait_for(lambda: not locks(service.chinook), "no lock is left")
    service.clients.remove(client)
    service.start()
    return victim != "itself" or code != 0


@test
def killed_while_it_stops():
    """Client, worker or supervisor killed while the service stops: the service ends, and the next one starts"""
    with make_service() as service:
        before = settle(service, [service.chinook])
        for name, victim in STOPS:
            with Named(f"{victim} killed in a stop at step {name!r}"):
                true(any(kill_in_a_stop(service, name, victim) for _ in range(20)), "it was never killed in time")
                as_before(service, before, [service.chinook])
    cases("kill", len(STOPS), "work that a stopping service waits for, and the process that is killed then")


def pid_of(service, run):
    """The worker that has the run; None: none has it yet."""
    runs = service.driver.manager("ListRuns")[0]
    return next((more.get("worker-pid") for number, _, _, more in runs if number == run), None)


@test
def killed_behind_its_work():
    """A worker killed while another one has the statement's next run: that run and later ones are not affected"""
    with make_service(limits={"WorkerIdleSec": 60}) as service:
        before = settle(service, [service.chinook])
        client = service.client()
        busy = client.query(DB, SCAN)
        wait_for(lambda: service.states() == ["running"], "it computes")
        statement = client.prepare(DB, STREAM)
        run = statement.fetch()
        first = pid_of(service, run.number)
        run.counted()
        busy.cancel()
        wait_for(lambda: not service.states(), "its worker is idle")
        run = statement.fetch()  # who became idle last has it
        true(pid_of(service, run.number) not in (None, first), "another worker has the second run")
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: first not in service.workers(), "the first worker is gone")
        equal(run.counted()[1], ROWS, "rows of the second run")
        equal(statement.fetch().counted()[1], ROWS, "rows of the third run")
        client.close()
        service.clients.remove(client)
        works(service)
        send(service.workers(), signal.SIGKILL)  # they would stay for a minute
        holds(service, before, [service.chinook])
    cases("kill", 1, "a worker whose run of a statement has ended while another has the next one")


def catch_resolver(service, pending):
    """The child that looks up names, stopped before it has answered; None: it was faster."""
    while not pending.is_done():
        for pid in children(service.pid()):
            with contextlib.suppress(OSError):
                if b"--resolve" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGSTOP)
                    return pid
    return None


def begin_reload(service, client):
    """A Reload that waits for its child, which is stopped."""
    for _ in range(1000):
        pending = client.begin(MANAGER_PATH, MANAGER, "Reload", "(a{sv})", {})
        pid = catch_resolver(service, pending)
        if pid and not pending.is_done():
            return pending, pid
        pending.result()
    raise AssertionError("no reload was caught at work")


@test
def killed_while_names_are_looked_up():
    """Client, child or supervisor killed while a Reload looks up names"""
    with make_service() as service:
        before = settle(service, [service.chinook])
        for victim in ("client", "child", "supervisor"):
            with Named(f"{victim} killed in a reload"):
                client = service.client()
                pending, pid = begin_reload(service, client)
                works(service)  # no call waits for the child
                if victim == "client":
                    client.close()
                    os.kill(pid, signal.SIGCONT)
                elif victim == "child":
                    os.kill(pid, signal.SIGKILL)
                    diagnose(f"child killed: {outcome(pending.result)}")
                else:
                    service.kill()
                    true(outcome(pending.result) == DBUS + "NoReply", "the answer")
                    os.kill(pid, signal.SIGCONT)
                    wait_for(lambda child=pid: not executable(child), "the child ends with its supervisor")
                    service.start()
                client.close()
                service.clients.remove(client)
                as_before(service, before, [service.chinook])
    cases("kill", 3, "who is killed while a reload looks up names")


WAYS = ("auto", "channel", "dbus")


@test
def library_is_told():
    """libsqlipc reports a killed worker and a killed supervisor to its program, in each transport"""
    for way in WAYS:
        for victim in ("worker", "supervisor"):
            with Named(f"library, {way}: {victim} killed"), make_service() as service:
                library = Library(service, way)
                library.ok(f"query {DB} {STREAM}")
                equal(len(library.ask("rows 5")[0]), 5, "rows")
                send(service.workers() if victim == "worker" else [service.pid()], signal.SIGKILL)
                name = library.failure("rows 0")[1]
                true(name in ("WorkerLost", "DaemonLost", "ShuttingDown"), f"the program is told {name}")
                if victim == "supervisor":
                    service.daemon.wait()
                    wait_for(lambda: not service.has_owner(), "the bus knows")
                    service.start()
                library.ok(f"query {DB} SELECT 6 * 7")
                equal(library.ask("rows 0"), ([[42]], "end 1"), "rows of the next query")
                library.close()
    cases("kill", 2 * len(WAYS), "a transport of the library, and the process that is killed while it reads rows")


def library_outlives(with_broker):
    for way in WAYS:
        with Named(f"library, {way}: bus killed"), make_service(broker=with_broker) as service:
            library = Library(service, way)
            library.ok(f"query {DB} {STREAM}")
            equal(len(library.ask("rows 5")[0]), 5, "rows")
            with without_bus(service):
                name = library.failure("rows 0")[1]
                true(name in ("DaemonLost", "ShuttingDown"), f"the program is told {name}")
                equal(library.failure(f"query {DB} SELECT 6 * 7")[1], "DaemonLost", "error of a query without a bus")
            service.restart_bus()
            library.ok(f"query {DB} SELECT 6 * 7")
            equal(library.ask("rows 0"), ([[42]], "end 1"), "rows of the next query")
            library.close()
    cases("kill", len(WAYS), "a transport of the library, whose bus is killed while it reads rows")


@test
def library_outlives_the_bus():
    """libsqlipc reports a killed bus at once, and works with the next one"""
    library_outlives(with_broker=False)


@broker.needed
def library_outlives_the_broker():
    """So it is with dbus-broker"""
    library_outlives(with_broker=True)


if __name__ == "__main__":
    diagnose(f"seed {SEED}")
    main()
