# SPDX-License-Identifier: LGPL-2.1-or-later
"""Start and end of a service for test_faults.py: the calls that it makes once in its life fail, too."""
import os
import signal
import subprocess
import tempfile

import settled
from channel import Channel
from client import DATABASE, Broken, Failure, object_path
from fault_stage import ENDLESS, USUAL, USUAL_ENVIRONMENT, check_failure
from fault_trial import SUPERVISOR, WORKER
from faults import Faults, describe
from harness import CHINOOK, PATIENCE, Service, children, executable, wait_for
from notified import Notified
from tap import diagnose, equal, true


class Life:
    """A service from its start to its end; between them a query, if it is up."""

    def __init__(self, name, start_keys=None, arguments=None, end="stop", comes_to="main"):
        """`comes_to`: a function that such a life calls, except if this process was too slow."""
        self.name, self.keys, self.arguments, self.end, self.comes_to = name, start_keys or {}, arguments, end, comes_to

    def __call__(self, service, notified, patience):
        """Exit code. Its notifications are right, or there is none because it did not start."""
        service.daemon = subprocess.Popen(
            [service.sqlipcd, *(self.arguments or [f"--address={service.address}"]), f"--config-dir={service.config_dir}"],
            stdin=subprocess.DEVNULL, stdout=service.log, stderr=service.log, env=service.environment, cwd="/",
        )  # fmt: skip
        daemon = service.daemon
        wait_for(lambda: daemon.poll() is not None or service.has_owner(), "the service is up, or gives up", patience)
        client = service.client()
        try:
            if daemon.poll() is None:
                self.live(service, client, daemon, notified)
        except Failure as failure:
            if self.end == "stop":
                check_failure(failure)
        except Broken:  # a channel that was closed
            pass
        finally:
            client.close()
            service.clients.remove(client)
        code = daemon.wait(patience)
        service.daemon = None
        return code

    def live(self, service, client, daemon, notified):
        try:
            run = client.query("chinook", "SELECT 6 * 7")
            equal(run.read().rows, [[42]], "rows")
            if self.end == "taken back":
                self.call_late(service, client, notified)
            if self.end == "stop":
                client.query("chinook", ENDLESS)
                Channel(client).ask("SELECT 1")
        finally:
            if self.end == "stop":
                daemon.send_signal(signal.SIGTERM)

    def call_late(self, service, client, notified):
        """A call that lies with the bus before the service gives up its name, and that it hears of after that."""
        os.kill(service.bus.pid, signal.SIGSTOP)
        try:
            call = client.begin(object_path("chinook"), DATABASE, "QueryRows", "(sava{sv}a{sv})", "SELECT 1", [], {}, {})
            notified.until("STOPPING")
        finally:
            os.kill(service.bus.pid, signal.SIGCONT)
        equal(call.result()[1].unpack(), [[1]], "rows of a call that came late")


LIVES_MAX = 10  # of one kind, until it was what it is meant to be
LIVES = [
    Life("started and stopped"),
    Life("started for a user's bus", arguments=["--user"]),
    Life("started for the system's bus", arguments=["--system"]),
    Life("idle", {"IdleExitSec": 0.05}, end="idle"),
    Life("called while it exits", {"IdleExitSec": 0.3}, end="taken back", comes_to="on_taken_back"),
]


def one_life(faults, life, site=None, error=0, skip=0):
    """A life with one fault, or none. None: the fault did not come; else the exit code."""
    with Notified() as notified:
        environment = USUAL_ENVIRONMENT | notified.environment | {
            "SQLIPC_FAULTS": faults.folder, "JOURNAL_STREAM": "1:1", "WATCHDOG_USEC": "60000000",
        }  # fmt: skip
        service = Service(
            {"chinook": {"Path": CHINOOK, "AllowUsers": "root daemon"}}, limits=settled.QUICK | USUAL, service=life.keys,
            start=False, sqlipcd=SUPERVISOR, worker=WORKER, environment=environment,
        )  # fmt: skip
        with service:
            for variable in ("DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS"):
                service.environment[variable] = service.address
            if site:
                faults.arm(site, error, skip)
            code = life(service, notified, PATIENCE)
            faults.disarm()
            fired = faults.fired()
            true(code == 0 or (fired and code == 1), f"exit code {code}, where {'a' if fired else 'no'} fault was")
            true(code == 0 or "sqlipcd: " in service.log_text(), "a service that gives up says why")
            wait_for(lambda: not [p for p in children(os.getpid()) if executable(p) == str(WORKER)], "its workers end")
    return code if fired or not site else None


def make_faults(folder):
    os.chmod(folder, 0o755)
    return Faults(folder, "sqlipcd", SUPERVISOR)


def reach_lives():
    """Site -> number of the first life that comes to it."""
    lived = {}
    with tempfile.TemporaryDirectory(prefix="sqlipc-faults-") as folder:
        faults = make_faults(folder)
        for number, life in enumerate(LIVES):
            for _ in range(LIVES_MAX):
                counts = faults.reached()
                equal(one_life(faults, life), 0, f"exit code of a service {life.name}")
                new = [site for site, a, b in zip(faults.sites, counts, faults.reached()) if b > a]
                for site in new:
                    lived.setdefault(site, number)
                if any(site.function == life.comes_to for site in new):
                    break
                life.keys = {key: 2 * value for key, value in life.keys.items()}  # it exits before we get so far
    return lived


def try_lives(share):
    """Cases (site, error, number of the life), one after the other; (how many there were, what went wrong)."""
    n, problems = 0, []
    with tempfile.TemporaryDirectory(prefix="sqlipc-faults-") as folder:
        faults = make_faults(folder)
        for site, error, number in share:
            try:
                n += one_life(faults, LIVES[number], site, error) is not None
            except Exception as problem:  # noqa: BLE001 - whatever it was, the case failed
                problems.append(f"{describe(site, error)}, {LIVES[number].name}: {str(problem)[:600]}")
                diagnose(problems[-1])
    return n, problems
