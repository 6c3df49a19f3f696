#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""SIGSTOP of client, worker, supervisor, bus or all of them, at every step of the protocol (steps.py).

A process that continues (SIGCONT) finds everything as it was: a stop causes neither an answer nor a timeout. Other clients
are served while a client or its worker is stopped. No worker is killed for its silence while the supervisor, or all of the
service, was stopped.
"""
import contextlib
import os
import pathlib
import random
import signal
import sys

from settled import as_before, descendants, send, settle, stopped, works

from channel import Channel
from client import DATABASE, Client, object_path
from clocks import Clocks
from harness import SANITIZED, UID_A, expect, main, needs_root, processor_time, wait_for
from steps import COMPILES_FOR_MINUTES, DB, ENDS, SCAN, STEPS, STREAM, Scene, make_service, nursery, outcome, wanted
from tap import cases, diagnose, equal, test, true

SEED = int(next((a.split("=")[1] for a in sys.argv[1:] if a.startswith("--seed=")), 1))
sys.argv[1:] = [a for a in sys.argv[1:] if not a.startswith("--seed=")]
COMPILES = "prepare compiles"
SECONDS = 1.5  # longer than any patience of a second


def stop(pids):
    send(pids, signal.SIGSTOP)


def go_on(pids):
    send(pids, signal.SIGCONT)


def chosen(victim):
    """The steps at which this victim is stopped, in two lists: a worker that compiles for long does not read the requests of
    its channels, and they are closed after a second, so no other client is there when one does."""
    names = [name for name in STEPS if not name.endswith("computes")]
    names = random.Random(f"{SEED} {victim}").sample(names, len(names) // 4) if SANITIZED else names
    return [name for name in names if name != COMPILES], [COMPILES]


def stopped_at_each(names, victim, find):
    """All these clients at once, each at its step; then whoever `find` finds is stopped for SECONDS, and goes on."""
    with make_service(limits={"WorkersMax": 4, "WorkerIdleSec": 2}) as service:
        before = settle(service, [service.chinook])
        scenes = []
        for name in names:
            scene = Scene(service.client(), service.pid())
            scenes.append((name, STEPS[name].begin(scene)))
        pids = find(service)
        with stopped(pids, SECONDS):
            pass
        for name, finish in scenes:
            equal(outcome(finish), wanted(name), f"seed {SEED}: {victim} stopped at step {name!r}")
        true(" is killed" not in service.log_text(), f"a worker was killed: {service.log_text()}")
        service.forget()
        as_before(service, before, [service.chinook])
    cases("stop", len(names), f"a step of a client's at which {victim} is stopped and goes on")


@test
def supervisor_stopped():
    """The supervisor is stopped"""
    for names in chosen("supervisor"):
        stopped_at_each(names, "the supervisor", lambda service: [service.pid()])


@test
def bus_stopped():
    """The bus is stopped"""
    for names in chosen("bus"):
        stopped_at_each(names, "the bus", lambda service: [service.bus.pid])


@test
def everything_stopped():
    """Supervisor and workers are stopped, as by a paused machine; the supervisor continues first"""
    for names in chosen("service"):
        stopped_at_each(names, "the whole service", lambda s: [s.pid(), *descendants(s.pid())])


@test
def frozen_with_the_bus():
    """Supervisor, workers and bus are stopped"""
    for names in chosen("all"):
        stopped_at_each(names, "the service with its bus", lambda s: [s.bus.pid, s.pid(), *descendants(s.pid())])


def live(address, supervisor, name):
    """A client's whole life; it stops itself at its step."""
    scene = Scene(Client(address), supervisor)
    finish = STEPS[name].begin(scene)
    os.kill(os.getpid(), signal.SIGSTOP)
    equal(outcome(finish), wanted(name), f"client stopped at step {name!r}")


def is_stopped(process):
    true(process.exitcode is None, "a client did not come so far")
    return pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


def clients_stopped_at(names):
    context = nursery()
    with make_service(limits={"WorkersMax": 4}, environment={"SQLIPC_LOG_LEVEL": "debug"}) as service:
        before = settle(service, [service.chinook])
        clients = [context.Process(target=live, args=(service.address, service.pid(), name), daemon=True) for name in names]
        with contextlib.ExitStack() as killed:  # what is stopped would be waited for, to the end of the test
            for process in clients:
                process.start()
                killed.callback(process.kill)
            for process in clients:
                wait_for(lambda p=process: is_stopped(p), "it stops itself at its step")
            for _ in range(3):
                works(service)
            for process in clients:
                os.kill(process.pid, signal.SIGCONT)
            for name, process in zip(names, clients):
                process.join()
                equal(process.exitcode, 0, f"seed {SEED}: exit code of the client that was stopped at step {name!r}")
        as_before(service, before, [service.chinook])
    cases("stop", len(names), "a step of a client's at which it is stopped and goes on")


@test
def client_stopped():
    """Clients are stopped: other clients are served meanwhile"""
    for names in chosen("client"):
        clients_stopped_at(names)


@needs_root
def worker_stopped():
    """A user's workers are stopped: other users are served meanwhile, and then this user"""
    names = [name for name in sum(chosen("worker"), []) if name not in ENDS and name != "reload sent"]  # which is root's
    with make_service() as service:
        before = settle(service, [service.chinook])
        for name in names:
            settle(service)  # so that all workers there are will be of that user
            client = service.client(UID_A)
            finish = STEPS[name].begin(Scene(client, service.pid()))
            pids = service.workers()
            with stopped(pids):
                works(service)
            equal(outcome(finish), "right", f"worker stopped at step {name!r}")
            client.close()
            service.clients.remove(client)
        as_before(service, before, [service.chinook])
    cases("stop", len(names), "a step of a client's at which its worker is stopped and goes on")


def cancel_on_a_pipe(service, client):
    run = client.prepare(DB, SCAN).fetch()
    wait_for(lambda: service.states() == ["running"], "it computes")
    return run.cancel, run.read


def cancel_on_a_channel(service, client):
    channel = Channel(client, DB)
    equal(channel.ask("SELECT 6 * 7"), [[42]], "rows")
    run = channel.query(SCAN)
    wait_for(lambda: [more["state"] for _, _, _, more in client.manager("ListChannels")[0]] == ["running"], "it computes")
    ((number, _, _, _),) = client.manager("ListChannels")[0]

    def read():
        try:
            return channel.read(run)
        finally:
            channel.close()

    return lambda: client.manager("CancelRun", "(ta{sv})", number), read


# Seconds until a deadline of the supervisor has passed, but not by so much that it takes that for a pause of the machine: of
# a message to a worker, and of a compile (PrepareTimeoutSec= and BusyTimeoutSec= are 600).
GRACE, DEADLINE = 1.1, 600.2


@needs_root
def innocent_workers():
    """A worker that got a message, but was frozen with its supervisor before it could answer, is not killed for that"""
    with Clocks() as clocks, make_service(limits={"WorkerIdleSec": 60}, environment=clocks.environment) as service:
        clocks.stop()
        client = service.client()
        client.point()
        workers, supervisor = service.workers(), [service.pid()]
        for begin in (cancel_on_a_pipe, cancel_on_a_channel):
            for worker_first in (False, True):
                cancel, read = begin(service, client)
                stop(workers)
                cancel()
                stop(supervisor)
                clocks.go_on(1.3)
                if worker_first:  # the answer and the deadline are there when the supervisor goes on
                    go_on(workers)
                    expect("Cancelled", read)
                    go_on(supervisor)
                else:
                    go_on(supervisor)
                    clocks.let_pass(service, 0)
                    go_on(workers)
                    expect("Cancelled", read)
                service.driver.point()
                equal(set(workers) - set(service.workers()), set(), "workers that are gone")
                wait_for(lambda: not service.states(), "the run is over")
    cases("stop", 4, "a worker that owes an answer is stopped with its supervisor for longer than that waits")


def has_no_work(service):
    now = service.counters()
    return now["NRuns"] == now["NChannels"] == 0


@needs_root
def starved_workers():
    """A worker without CPU past the deadline of a message is not killed for that, and keeps its other runs"""
    limits = {"WorkersMax": 1, "WorkerIdleSec": 60, "PrepareTimeoutSec": 600}
    with Clocks() as clocks, make_service(limits=limits, environment=clocks.environment) as service:
        clocks.stop()
        client = service.client()
        client.point()
        workers = service.workers()
        for begin in (cancel_on_a_pipe, cancel_on_a_channel):
            cancel, read = begin(service, client)
            with stopped(workers):
                cancel()
                clocks.let_pass(service, GRACE, GRACE, GRACE)
            expect("Cancelled", read)
            # A worker with a channel is not idle: a job would wait in its group's socket until the worker goes on.
            wait_for(lambda: has_no_work(service), "neither run nor channel is left")
        with stopped(workers):
            call = client.begin(object_path(DB), DATABASE, "QueryRows", "(sava{sv}a{sv})", "SELECT 6 * 7", [], {}, {})
            wait_for(lambda: service.states() == ["running"], "the worker, which is idle, is sent the job")
            clocks.let_pass(service, DEADLINE, GRACE, GRACE)
        equal(call.result()[1].unpack(), [[42]], "rows of a query that took long to compile, for want of a CPU")
        equal(service.workers(), workers, f"workers: {service.log_text()}")
        true(" is killed" not in service.log_text(), f"a worker was killed: {service.log_text()}")
    cases("stop", 3, "a worker that was told something gets no CPU for longer than that waits")


@test
def starved_channels():
    """Channels that wait for a worker without CPU are not closed"""
    limits = {"WorkersMax": 1, "WorkerIdleSec": 60}
    with Clocks() as clocks, make_service(limits=limits, environment=clocks.environment) as service:
        clocks.stop()
        client = service.client()
        with contextlib.ExitStack() as closes:
            held = [closes.enter_context(contextlib.closing(Channel(client, DB))) for _ in range(3)]
            for channel in held:
                equal(channel.ask("SELECT 6 * 7"), [[42]], "rows")
            workers = service.workers()
            with stopped(workers):
                runs = [channel.query("SELECT 6 * 7") for channel in held]
                clocks.let_pass(service, GRACE, GRACE, GRACE)
            for channel, run in zip(held, runs):
                equal(channel.read(run).rows, [[42]], "rows")
            equal(service.workers(), workers, "workers")
    cases("stop", len(held), "a channel whose worker gets no CPU for longer than that may be silent")


@test
def starved_is_not_idle():
    """A channel with a request at a worker without CPU is not idle, and stays open past StatementIdleSec="""
    limits = {"WorkersMax": 1, "WorkerIdleSec": 60, "StatementIdleSec": 2}
    with Clocks() as clocks, make_service(limits=limits, environment=clocks.environment) as service:
        clocks.stop()
        client = service.client()
        client.point()
        workers = service.workers()
        with contextlib.closing(Channel(client, DB)) as channel:
            with stopped(workers):
                run = channel.query("SELECT 6 * 7")
                clocks.let_pass(service, GRACE, GRACE, GRACE)
            equal(channel.read(run).rows, [[42]], "rows")
    cases("stop", 1, "a channel whose worker gets no CPU for as long as it may be idle")


@needs_root
def idle_worker():
    """An idle worker that is stopped for ever does not keep a place that another user needs"""
    with make_service(limits={"WorkersTotalMax": 1, "WorkerIdleSec": 600}) as service:
        service.client(UID_A).point()
        workers = service.workers()
        stop(workers)
        service.client().point()
        equal(set(workers) & set(service.workers()), set(), "workers that were stopped")
    cases("stop", 1, "an idle worker is stopped for good, and another user needs its place")


def begin_to_prepare(client, sql):
    return client.begin(object_path(DB), DATABASE, "Prepare", "(sa{sv})", sql, {})


@needs_root
def whose_fault():
    """A compile that ends by its time limit reports whether the SQL was slow or the worker was stopped"""
    with Clocks() as clocks, make_service(limits={"WorkersMax": 1}, environment=clocks.environment) as service:
        before = settle(service, [service.chinook])
        client, other = service.client(UID_A), service.client()
        clocks.stop()  # so the worker is there until it is stopped
        client.point()
        stopped_workers = service.workers()
        stop(stopped_workers)
        call = begin_to_prepare(client, "SELECT 6 * 7")
        wait_for(lambda: service.counters()["NStatements"] == 1, "the worker, which is idle, is sent the job")
        slow = begin_to_prepare(other, COMPILES_FOR_MINUTES)
        (compiling,) = wait_for(lambda: set(service.workers()) - set(stopped_workers), "another worker")
        wait_for(lambda: processor_time(compiling) > 0.5, "it compiles")
        clocks.let_pass(service, DEADLINE)
        wait_for(lambda: clocks.let_pass(service, GRACE) or (slow.is_done() and call.is_done()), "both end")
        sentence = expect("TimedOut", slow.result).message
        true("make it simpler" in sentence, f"of SQL that takes long to compile it says: {sentence}")
        sentence = expect("TimedOut", call.result).message
        true("hardly ran" in sentence, f"of a worker that is stopped it says: {sentence}")
        clocks.start()
        service.forget()
        as_before(service, before, [service.chinook])
    cases("stop", 1, "a worker that is stopped for good before it looks at its job")


@test
def compiles_for_another():
    """A worker that cannot read a CANCEL, because it compiles another client's SQL, is not killed, and keeps what it has"""
    limits = {"WorkersMax": 1, "WorkerIdleSec": 60}
    with Clocks() as clocks, make_service(limits=limits, environment=clocks.environment) as service:
        clocks.stop()
        client, other = service.client(), service.client()
        run = client.query(DB, STREAM)
        wait_for(lambda: service.states() == ["parked"], "its pipe is full")
        (worker,) = service.workers()
        slow, idle = begin_to_prepare(other, COMPILES_FOR_MINUTES), processor_time(worker)
        wait_for(lambda: processor_time(worker) > idle + 0.5, "it compiles")
        run.cancel()
        told = processor_time(worker)
        wait_for(lambda: processor_time(worker) > told + 0.5, "it has more CPU than it needs to read a CANCEL")
        clocks.let_pass(service, GRACE, GRACE, GRACE)
        equal((service.workers(), slow.is_done()), ([worker], False), "workers, and whether the compile is over")
        clocks.let_pass(service, DEADLINE - 3 * GRACE)
        wait_for(lambda: clocks.let_pass(service, GRACE) or slow.is_done(), "the compile ends by its own limit")
        true("make it simpler" in expect("TimedOut", slow.result).message, "its error does not say why")
    cases("stop", 1, "a worker that is told something while it compiles")


if __name__ == "__main__":
    diagnose(f"seed {SEED}")
    main()
