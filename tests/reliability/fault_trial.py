# SPDX-License-Identifier: LGPL-2.1-or-later
"""A service of the test builds in which one call fails, and the checks that must hold afterwards (test_faults.py)."""
import collections
import concurrent.futures
import contextlib
import functools
import multiprocessing
import os
import random
import tempfile
import time

import fault_administration  # noqa: F401 - scenarios
import fault_channels  # noqa: F401
import fault_runs  # noqa: F401
import fault_watches  # noqa: F401
import fault_writes  # noqa: F401
import settled
from client import Broken, Failure
from fault_stage import Stage, check_failure, scenarios
from faults import Faults, describe
from harness import BUILD_ROOT, rss_anon, wait_for
from tap import diagnose, true

PROGRAMS = BUILD_ROOT / "tests/reliability/faults"
SUPERVISOR, WORKER = PROGRAMS / "sqlipcd-faults", PROGRAMS / "sqlipc-worker-faults"
PROGRAM = {"sqlipcd": SUPERVISOR, "sqlipc-worker": WORKER}
SIDE_BY_SIDE = 4  # services, each in a process of ours: a case mostly waits


@functools.cache
def pool():
    """Not by fork(): GLib has threads."""
    return concurrent.futures.ProcessPoolExecutor(SIDE_BY_SIDE, multiprocessing.get_context("spawn"))


def side_by_side(function, cases, *arguments):
    """The results of function(share, *arguments) for each share of the cases."""
    shares = [cases[i::SIDE_BY_SIDE] for i in range(min(SIDE_BY_SIDE, len(cases)))]
    return [future.result() for future in [pool().submit(function, share, *arguments) for share in shares]]


class Trial:
    """A service of the test builds, of which one program is armed."""

    def __init__(self, *names):
        self.folder = tempfile.TemporaryDirectory(prefix="sqlipc-faults-")
        os.chmod(self.folder.name, 0o755)
        self.all_faults = [Faults(self.folder.name, name, PROGRAM[name]) for name in names]
        self.faults = self.all_faults[0]
        # the scenario `guest` needs a worker for each CPU
        os.sched_setaffinity(0, random.sample(sorted(os.sched_getaffinity(0)), min(2, len(os.sched_getaffinity(0)))))
        self.stage = None
        self.problems = []
        self.memory = []  # of the supervisor, after each case; a list for each service

    def set_up(self):
        if self.stage:
            self.stage.close(check=False)
        self.stage = Stage(SUPERVISOR, WORKER, {"SQLIPC_FAULTS": self.folder.name})
        self.stage.service.start()
        self.play("log_level")  # libsystemd keeps its socket to the journal
        self.before = None
        self.memory.append([])

    def rest(self):
        """The resources of the service when no client holds anything of it, after retired pipes are gone."""
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
        """Runs every scenario without a fault; for each program: site -> [(scenario, how often it was reached)]."""
        self.set_up()
        reaching = [{site: [] for site in faults.sites} for faults in self.all_faults]
        for name in scenarios:
            counts = [faults.reached() for faults in self.all_faults]
            failure = self.play(name)
            true(failure is None, f"{name}: {failure!r}, without a fault")
            settled.settle(self.stage.service, self.stage.paths)
            self.stage.check_written()
            for faults, before, places in zip(self.all_faults, counts, reaching):
                for site, old, new in zip(faults.sites, before, faults.reached()):
                    if new > old:
                        places[site].append((name, new - old))
        return reaching

    def case(self, site, error, name, skip):
        """One fault. False: the scenario did not come there this time."""
        if self.before is None:
            self.before = self.rest()
        self.stage.armed = True
        self.faults.arm(site, error, skip)
        failure = self.play(name)
        if not self.faults.fired():
            with contextlib.suppress(Failure):  # the fault may hit a worker's end, or a call of settle()
                settled.settle(self.stage.service)
        self.faults.disarm()
        fired = self.faults.fired() > 0
        service = self.stage.service
        true(service.daemon.poll() is None, f"the supervisor ended with {service.daemon.returncode}")
        true(fired or failure is None, f"{failure!r}, without a fault")
        if "/configuration/" in site.file:  # an unreadable file admits no user until it can be read
            service.driver.manager("Reload")
        wait_for(service.is_idle, "what its client had is gone")
        try:
            settled.as_before(service, self.before, self.stage.paths)
        except (Failure, Broken) as lost:
            # A worker that ends because of the fault may have taken the new query before it ends. If it has also sent
            # STARTED, the client sees that as the end of the file.
            true(fired and (isinstance(lost, Broken) or lost.name.endswith(".WorkerLost")), f"the new query: {lost!r}")
            settled.as_before(service, self.before, self.stage.paths)
        self.stage.check_written()
        true(not list((service.folder / "reports").iterdir()), "no report of a sanitizer")
        self.memory[-1].append(rss_anon(service.pid()))
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
        """A new service repeats the steps that a service takes once in its life."""
        self.set_up()
        return any(self.try_case(site, error, name, 0) for name in dict(places))

    def close(self, check=True):
        if self.stage:
            self.stage.close(check)


def reach_all(*names):
    trial = Trial(*names)
    try:
        return trial.reach()
    finally:
        trial.close()


# Of a share: how many cases there were, which no scenario came to, what went wrong, the supervisors' memory.
Outcome = collections.namedtuple("Outcome", "n missed problems memory")


def try_share(share, name):
    """Cases (site, error, [(scenario, skip), ...]), one after the other; the places behind the first one are for when that
    does not come there again."""
    trial, n, missed = Trial(name), 0, []
    try:
        trial.set_up()
        for site, error, places in share:
            if any(trial.try_case(site, error, *place) for place in places[:24]) or trial.once_a_life(site, error, places):
                n += 1
            else:
                missed.append((site, error))
    finally:
        trial.close(check=not trial.problems)
    return Outcome(n, missed, trial.problems, trial.memory)
