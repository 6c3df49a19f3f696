#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every call of ours that can fail does so once, in supervisor and worker, while clients use everything that there is.

A site is a call in the source (faults/inject.h), a case a site with one of its errors. Scenarios (fault_scenarios.py) are
run once without faults to see which of them reach a site; then each case has a live service that is armed, a scenario,
what its client heard, a new query, and the four counters of settled.py. A site that no scenario reaches fails the test,
unless it stands in UNREACHED with the reason.

What a client sizes, in the supervisor (a worker has no GLib: whatever it allocates can fail, and is a site):

    SQL of a statement, a run      1,000,000 bytes  try_bytes(): OutOfMemory
    parameters of a run            1 MiB            malloc() and realloc() (parameters.c): OutOfMemory
    what a channel keeps           4 MiB            try_bytes(): the channel closes
    rows in a reply                max-bytes        libsystemd's message: an error, never an abort
    calls that are held            as they came     references to libsystemd's messages
    names of peers and objects     64, 255 bytes    g_strdup(): of a database only where it may be one
    sentences of refusals          a few KiB        g_strdup_vprintf(): a client's words are cut at 50 or 100 bytes
    SQL in the log                 an excerpt       g_strndup(): SQL_EXCERPT_LENGTH characters
    groups of a peer               65,536 ids       g_memdup2(): the kernel's list; an administrator's, not a client's
    objects, queues, hash tables   one entry each   g_new(): as many as limits.conf lets a user have

What is no site, and why:

    g_malloc(), g_strdup() and the like     end the process by design; none takes more than 64 KiB because a client says so
    free(), close(), munmap(), ..._unref()  what they report, nobody can act upon
    sd_event_source_set_time() and others   of a timer: change what is in memory already
    waitpid()                               of a child that was killed; there is no handler that could interrupt it
    sqlite3_...() but for its allocators    fail by SQLite's own means, see test_sqlite_faults.py

    tests/reliability/test_faults.py                        one scenario for each case
    tests/reliability/test_faults.py --every                each case in each scenario, at its first and its last call
    tests/reliability/test_faults.py --loop=5000            so many in each program, and what they cost in memory
    tests/reliability/test_faults.py --list                 all sites, with the scenarios that reach them
    tests/reliability/test_faults.py --seed=N --only=TEXT   another choice of scenarios; sites whose description has TEXT
"""
import argparse
import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import fault_imports
import settled
from channel import Channel
from client import DATABASE, Broken, Failure, object_path
from fault_scenarios import ENDLESS, Stage, check_failure, scenarios
from faults import Faults, describe
from harness import BUILD_ROOT, CHINOOK, PATIENCE, SANITIZED, Service, children, executable, main, rss_anon, wait_for
from notified import Notified
from tap import at_most, cases, diagnose, equal, test, true

PROGRAMS = BUILD_ROOT / "tests/reliability/faults"
SUPERVISOR, WORKER = PROGRAMS / "sqlipcd-faults", PROGRAMS / "sqlipc-worker-faults"
SHARE = 0.1 if SANITIZED else 1.0
LIFE_SHARE = 0.05 if SANITIZED else 0.5
WARM = 50  # cases until memory is looked at
GROWTH_MAX = 4 << 20  # of one service, whatever --loop=


def read_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--loop", type=int, default=0)
    arguments, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    return arguments


ARGUMENTS = read_arguments()


class Trial:
    """A service of the test builds, of which one program is armed."""

    def __init__(self, name):
        self.folder = tempfile.TemporaryDirectory(prefix="sqlipc-faults-")
        os.chmod(self.folder.name, 0o755)
        self.faults = Faults(self.folder.name, name, {"sqlipcd": SUPERVISOR, "sqlipc-worker": WORKER}[name])
        self.stage = None
        self.problems = []

    def set_up(self):
        if self.stage:
            self.stage.close(check=False)
        self.stage = Stage(SUPERVISOR, WORKER, {"SQLIPC_FAULTS": self.folder.name})
        self.stage.service.start()
        self.play("log_level")  # libsystemd keeps its socket to the journal
        self.before = None

    def rest(self):
        """What the service holds when nobody has anything of it, retired pipes gone too."""
        counters = []
        while len(counters) < 2 or counters[-1] != counters[-2]:
            time.sleep(0.15)
            counters.append(settled.settle(self.stage.service, self.stage.paths))
        return counters[-1]

    def play(self, name):
        """A scenario: the error that its client heard, or None."""
        service = self.stage.service
        client = service.client()
        try:
            scenarios[name](self.stage, client)
        except Failure as failure:
            check_failure(failure)
            true(not failure.name.endswith(".UnknownParameter"), f"a wrong answer: {failure}")  # refused() expects its own
            return failure
        except Broken as broken:
            return broken
        finally:
            while service.clients:
                service.clients.pop().close()

    def reach(self):
        """Runs every scenario without a fault; site -> [(scenario, how often it was reached)]."""
        self.set_up()
        reaching = {site: [] for site in self.faults.sites}
        for name in scenarios:
            counts = self.faults.reached()
            failure = self.play(name)
            true(failure is None, f"{name}: {failure!r}, without a fault")
            settled.settle(self.stage.service, self.stage.paths)
            for site, old, new in zip(self.faults.sites, counts, self.faults.reached()):
                if new > old:
                    reaching[site].append((name, new - old))
        self.before = self.rest()
        return reaching

    def case(self, site, error, name, skip):
        """One fault. False: the scenario did not come there this time."""
        if self.before is None:
            self.before = self.rest()
        self.stage.armed = True
        self.faults.arm(site, error, skip)
        failure = self.play(name)
        if not self.faults.fired():
            with contextlib.suppress(Failure):  # a worker's end may be what is to fail, or what settle() asks
                settled.settle(self.stage.service)
        self.faults.disarm()
        fired = self.faults.fired()
        service = self.stage.service
        true(service.daemon.poll() is None, f"the supervisor ended with {service.daemon.returncode}")
        true(fired or failure is None, f"{failure!r}, without a fault")
        if "/configuration/" in site.file:  # what cannot be read lets nobody in, until it can
            service.driver.manager("Reload")
        wait_for(service.is_idle, "what its client had is gone")
        settled.as_before(service, self.before, self.stage.paths)
        true(not list((service.folder / "reports").iterdir()), "no report of a sanitizer")
        return fired

    def try_case(self, site, error, name, skip):
        """As case(); what goes wrong is told, and a new service takes the place of one that may be harmed."""
        try:
            return self.case(site, error, name, skip)
        except Exception as problem:  # noqa: BLE001 - whatever it was, the case failed
            text = f"{describe(site, error)} in {name}, call {skip + 1}: {str(problem)[:600]}"
            diagnose(text)
            self.problems.append(text)
            log = self.stage.service.log_text()
            diagnose("\n".join(log.splitlines()[-12:]))
            self.set_up()
            return True

    def once_a_life(self, site, error, places):
        """What a service does once in its life is done again by a new one."""
        self.set_up()
        return any(self.try_case(site, error, name, 0) for name in dict(places))

    def close(self, check=True):
        if self.stage:
            self.stage.close(check)


# Of what is read there the bus has made sure, and a string of a message in one piece takes no memory. Who left could not be
# known otherwise.
CANNOT_FAIL = [("sd_bus_message_read", "on_name_vanished")]


def plan(reaching, turn):
    """Cases: (site, error, [(scenario, skip), ...]), the ones behind the first for when that does not come there again."""
    choice = random.Random(ARGUMENTS.seed + turn)
    for site, places in reaching.items():
        if ARGUMENTS.only not in describe(site) or (site.call, site.function) in CANNOT_FAIL:
            continue
        for error in site.errors if places else ():
            if ARGUMENTS.every:
                for name, n in places:
                    for skip in sorted({0, n - 1}):
                        yield site, error, [(name, skip)]
            elif choice.random() < SHARE:
                some = choice.sample(places, len(places))
                first = [(name, choice.randrange(min(n, 4))) for name, n in some]
                yield site, error, first + [(name, 0) for name, _ in some]


def turns(reaching):
    """One plan, or as many as --loop= takes."""
    for turn in itertools.count() if ARGUMENTS.loop else [0]:
        yield from plan(reaching, turn)


def try_all(name, kind):
    trial = Trial(name)
    try:
        reaching = trial.reach()
        n, start, missed = 0, None, []
        for site, error, places in turns(reaching):
            if 0 < ARGUMENTS.loop <= n:
                break
            if any(trial.try_case(site, error, *place) for place in places[:24]) or trial.once_a_life(site, error, places):
                n += 1
            elif not ARGUMENTS.every:
                missed.append(describe(site, error))
            if n == WARM and not trial.problems:
                start = rss_anon(trial.stage.service.pid())
        end = rss_anon(trial.stage.service.pid())
        if ARGUMENTS.list:
            for site, places in reaching.items():
                diagnose(f"{describe(site)}: {', '.join(name for name, _ in places) or 'UNREACHED'}")
        diagnose(f"{len(reaching)} sites, {n} cases, seed {ARGUMENTS.seed}, private memory {start}, at the end {end}")
        cases(f"faults {kind}", n, "one call of ours fails once, with one of its errors, in a live service")
        equal(trial.problems, [], "cases that went wrong")
        equal(missed, [], "cases that no scenario came to again")
        if start and not SANITIZED:
            at_most(end - start, GROWTH_MAX, "private memory that the faults cost")
        never = [site for site, places in reaching.items() if not places and site not in LIVED and not is_argued(site)]
        equal(list(map(describe, never)), [], "sites that no scenario reaches")
    finally:
        trial.close(check=not trial.problems)


# Sites of which no scenario makes use: (call, function, why).
TIMER = "its source is a timer or a turn, which costs nothing to enable"
OTHER_SIDE = "the other side decodes that"
UNREACHED = [
    ("sd_event_source_set_enabled", "on_turn", TIMER),
    ("sd_event_source_set_enabled", "arm", TIMER),
    ("sd_event_source_set_enabled", "group_recall", TIMER),
    ("sd_event_source_set_enabled", "group_put_back", TIMER),
    ("sd_event_source_set_enabled", "group_staff", TIMER),
    ("sd_event_source_set_enabled", "on_prepare", TIMER),
    ("sd_event_source_set_enabled", "start_rest", TIMER),
    ("sd_event_source_set_enabled", "set", TIMER),
    ("sd_event_source_set_enabled", "watch_idle", TIMER),
    ("sd_event_source_set_enabled", "watch", TIMER),
    ("sd_event_source_set_enabled", "on_stop_timeout", TIMER),
    ("sd_event_source_set_enabled", "pump", "the socket to the workers holds all jobs that the limits here allow"),
    ("sd_event_add_time_relative", "ask_later", "what is done when a question could not be sent"),
    ("sd_bus_reply_method_errorf", "bus_error_reply", "what is said when the first answer failed, too"),
    ("sd_bus_reply_method_errorf", "bus_error_reply_refusal", "the bus daemon passes no handle without its descriptor on"),
    ("sd_bus_message_append", "reply_list", "4,096 entries make a list end early"),
    ("sd_bus_message_skip", "parse_credential", "the bus daemon tells no more than is read"),
    ("calloc", "get_list", OTHER_SIDE),
    ("calloc", "get_started", OTHER_SIDE),
    ("realloc", "grow", OTHER_SIDE),
    ("poll", "channel_has_unread", "asked only where a channel that moves has bytes on both sides"),
    ("poll", "report_send", "256 KiB of reports wait only for a supervisor that is stopped"),
]


def is_argued(site):
    return any((site.call, site.function) == entry[:2] for entry in UNREACHED)


# ---- Birth and death ----

# What a life reached; the tests after it need not.
LIVED = set()


class Life:
    """A service from its start to its end; between them a query, if it is up."""

    def __init__(self, name, start_keys=None, arguments=None, end="stop"):
        self.name, self.keys, self.arguments, self.end = name, start_keys or {}, arguments, end

    def __call__(self, service, notified, patience):
        """Exit code. What it says is right, or it says nothing because it did not come up."""
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


LIVES = [
    Life("started and stopped"),
    Life("started for a user's bus", arguments=["--user"]),
    Life("started for the system's bus", arguments=["--system"]),
    Life("idle", {"IdleExitSec": 0.05}, end="idle"),
    Life("called while it exits", {"IdleExitSec": 0.3}, end="taken back"),
]


def one_life(faults, life, site=None, error=0, skip=0):
    """A life with one fault, or none. None: the fault did not come; else the exit code."""
    with Notified() as notified:
        environment = notified.environment | {
            "SQLIPC_FAULTS": faults.folder, "JOURNAL_STREAM": "1:1", "WATCHDOG_USEC": "60000000",
        }  # fmt: skip
        service = Service(
            {"chinook": {"Path": CHINOOK, "AllowUsers": "root daemon"}}, limits=settled.QUICK, service=life.keys,
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


@test
def lives():
    """Each call of the supervisor fails once, while it starts, stops, and is idle"""
    with tempfile.TemporaryDirectory(prefix="sqlipc-faults-") as folder:
        os.chmod(folder, 0o755)
        faults = Faults(folder, "sqlipcd", SUPERVISOR)
        n, problems, choice = 0, [], random.Random(ARGUMENTS.seed)
        for life in LIVES:
            counts = faults.reached()
            equal(one_life(faults, life), 0, f"exit code of a service {life.name}")
            new = [site for site, a, b in zip(faults.sites, counts, faults.reached()) if b > a and site not in LIVED]
            LIVED.update(new)
            for site, error in ((site, error) for site in new for error in site.errors):
                if ARGUMENTS.only not in describe(site) or choice.random() >= LIFE_SHARE:
                    continue
                try:
                    n += one_life(faults, life, site, error) is not None
                except Exception as problem:  # noqa: BLE001 - whatever it was, the case failed
                    problems.append(f"{describe(site, error)}, {life.name}: {str(problem)[:600]}")
                    diagnose(problems[-1])
        cases("faults start", n, "one call of ours fails once, while the service starts, stops or exits")
        equal(problems, [], "cases that went wrong")


@test
def supervisor():
    """Each call of the supervisor fails once, while it serves"""
    try_all("sqlipcd", "supervisor")


@test
def worker():
    """Each call of a worker fails once"""
    try_all("sqlipc-worker", "worker")


@test
def imports():
    """What can fail and is no site of inject.h is known, with the reason"""
    programs = [SUPERVISOR, WORKER, PROGRAMS / "library-client-faults"]
    equal(fault_imports.missing(programs), [], "functions that neither inject.h nor fault_imports.py has")


@test
def library():
    """Each call of the library fails once, in a client's life over each transport"""
    with Service({"chinook": CHINOOK}, limits=settled.QUICK) as service:
        before = settled.settle(service)
        program = subprocess.run([PROGRAMS / "library-client-faults", service.address], capture_output=True, timeout=600)
        output = program.stdout.decode()
        print("\n".join(line for line in output.splitlines() if line.startswith("#")), flush=True)
        true(program.returncode == 0, f"{output[-600:]}{program.stderr.decode()[-2000:]}")
        settled.as_before(service, before)


if __name__ == "__main__":
    main()
