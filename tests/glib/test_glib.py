#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""libsqlipc-glib in C, Python, GJS and Vala, at the daemon of the build tree on a private bus."""
import contextlib
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))
from clocks import Clocks  # noqa: E402
from harness import BUILD_ROOT, INVARIANTS, PATIENCE, SOURCE_ROOT, Service, main, test_unsanitized, wait_for  # noqa: E402
from pages import screen  # noqa: E402
from tap import Skip, diagnose, equal, test, true  # noqa: E402

LIBRARY = BUILD_ROOT / "client-lib/glib"
ROWS = """WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n WHERE x < ?)
    INSERT INTO t SELECT x, 'name ' || x, x % 7 FROM n"""
# How many changes the writers make beside live models, and with which random numbers.
CHANGES = int(os.environ.get("SQLIPC_GLIB_CHANGES", "1000"))
SEED = int(os.environ.get("SQLIPC_GLIB_SEED", "0"))
INTROSPECTION = (LIBRARY / "Sqlipc-1.typelib").exists()


@contextlib.contextmanager
def written(n_rows=1000, n_many=100000, **keywords):
    """A service with the database "written", which clients may write to."""
    with Service(**keywords) as service:
        path = service.data / "written.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA journal_mode = wal")
            db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, v)")
            db.execute("CREATE TABLE loaded(n INTEGER, t TEXT)")
            db.execute(ROWS, (n_rows,))
            db.execute("CREATE TABLE many(id INTEGER PRIMARY KEY, name TEXT, v)")
            db.execute(ROWS.replace("INTO t", "INTO many"), (n_many,))
            db.commit()
        service.database("written", Path=path, Mode="read-write")
        service.driver.manager("Reload")
        service.path = path
        yield service


# The programs find the library and its typelib in the build tree.
ENVIRONMENT = [
    f"LD_LIBRARY_PATH={LIBRARY}:{BUILD_ROOT / 'client-lib'}",
    f"GI_TYPELIB_PATH={LIBRARY}",
    "G_DEBUG=fatal-criticals",
    "GIO_USE_VFS=local",
]


def succeed(service, *command):
    done = service.run("env", *ENVIRONMENT, *command)
    said = done.stdout.decode()[-3000:] + done.stderr.decode()[-3000:]
    true(done.returncode == 0, f"{command[0]}: {done.returncode}\n{said}")
    return done.stdout.decode()


def conversation(service, *command):
    """A program that says on its standard output what it has done, and reads when to go on."""
    return subprocess.Popen(
        ["env", *ENVIRONMENT, *map(str, command)],
        env=service.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def needs(program):
    if not INTROSPECTION:
        raise Skip("built without introspection")
    if not shutil.which(program):
        raise Skip(f"{program} is not installed")


@test
def in_c():
    """Every class from C, with a cancellation at each place that waits"""
    with written() as service:
        succeed(service, BUILD_ROOT / "tests/glib/glib-client", service.address)


@test_unsanitized
def in_c_without_leaks():
    """valgrind finds no leak and no error"""
    if not shutil.which("valgrind"):
        raise Skip("valgrind is not installed")
    suppressions = pathlib.Path("/usr/share/glib-2.0/valgrind/glib.supp")
    with written(n_many=1) as service:
        succeed(
            service,
            *("valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full"),
            *("--errors-for-leak-kinds=definite,indirect", "--show-leak-kinds=definite,indirect"),
            *([f"--suppressions={suppressions}"] if suppressions.exists() else []),
            *(BUILD_ROOT / "tests/glib/glib-client", service.address, "-s", "/model/turns"),
        )


@test_unsanitized
def in_python():
    """Every class from Python"""
    needs("python3")
    with written() as service:
        succeed(service, "/usr/bin/python3", SOURCE_ROOT / "tests/glib/glib_client.py", service.address)


@test_unsanitized
def in_javascript():
    """Every class from GJS"""
    needs("gjs")
    with written() as service:
        succeed(service, "gjs", "-m", SOURCE_ROOT / "tests/glib/glib-client.js", service.address)


@test_unsanitized
def in_vala():
    """Every class from Vala"""
    program = BUILD_ROOT / "tests/glib/glib-client-vala"
    if not program.exists():
        raise Skip("built without valac")
    with written() as service:
        succeed(service, program, service.address)


def asynchronous_functions():
    """The functions that wait, as "Class.function", from the GIR."""
    core = "{http://www.gtk.org/introspection/core/1.0}"
    classes = ElementTree.parse(LIBRARY / "Sqlipc-1.gir").iter(f"{core}class")
    found = [f"{c.get('name')}.{m.get('name')}" for c in classes for m in c.iter(f"{core}method")]
    return sorted(function for function in found if function.endswith("_async"))


# Functions whose run the service computes while they wait. The others wait for a service that is stopped, or for a change.
RUNNING = ("Connection.execute_async", "Connection.query_async", "Cursor.next_async", "Cursor.next_rows_async",
           "Statement.query_async")


def at_service(service):
    """What the service holds for calls that wait."""
    now = service.counters()
    return [now["NRuns"], now["NStatements"], service.driver.manager("ListTransactions")[0]]


def cancel(service, step, function, stopped):
    """Looks at the service while a program is at this step of a call."""
    if step == "ready" and function not in RUNNING:
        stopped += [service.pid(), *service.workers()]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
    elif step == "waiting" and function in RUNNING:
        wait_for(lambda: service.states() == ["running"], f"{function}: a run computes")
    elif step == "cancelled":
        while stopped:
            os.kill(stopped.pop(), signal.SIGCONT)
        left = [0, int(function.startswith("Statement.")), []]
        if not function.endswith(("commit_async", "rollback_async", "complete_async")):  # they go on
            wait_for(lambda: at_service(service) == left, f"{function}: nothing is left at the service")


def cancel_everything(*command):
    """Runs a program that cancels each function while it waits; see glib-cancel.c."""
    functions, stopped = [], []
    with written(n_many=1) as service:
        with conversation(service, *command, service.address) as program:
            try:
                for line in program.stdout:
                    step, function = line.split()
                    cancel(service, step, function, stopped)
                    if step == "cancelled":
                        functions.append(function)
                    program.stdin.write("go on\n")
                    program.stdin.flush()
                errors = program.stderr.read()
                true(program.wait(PATIENCE) == 0, f"{command}: {program.returncode} after {functions}\n{errors[-3000:]}")
            finally:
                for pid in stopped:
                    os.kill(pid, signal.SIGCONT)
                program.kill()
    if INTROSPECTION:
        equal(sorted(functions), asynchronous_functions(), "functions that were cancelled")


@test
def cancelled_in_c():
    """Each function that waits ends by cancellation, and its work at the service, too: from C"""
    cancel_everything(BUILD_ROOT / "tests/glib/glib-cancel")


@test_unsanitized
def cancelled_in_python():
    """The same from Python"""
    needs("python3")
    cancel_everything("/usr/bin/python3", SOURCE_ROOT / "tests/glib/glib_cancel.py")


@test_unsanitized
def cancelled_in_javascript():
    """The same from GJS"""
    needs("gjs")
    cancel_everything("gjs", "-m", SOURCE_ROOT / "tests/glib/glib-cancel.js")


@test_unsanitized
def cancelled_in_vala():
    """The same from Vala"""
    program = BUILD_ROOT / "tests/glib/glib-cancel-vala"
    if not program.exists():
        raise Skip("built without valac")
    cancel_everything(program)


# A write for each call of glib-outcome.c, and one that does not end. That of next is committed, and waits for its reader.
ENDLESS = "(WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n)"
ONE = "INSERT INTO loaded VALUES({}, 'x') RETURNING n"
SLOW = f"INSERT INTO loaded VALUES({{}}, {ENDLESS}) RETURNING n"
N_PARKED = 500
PARKED = (
    f"WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n WHERE x < {N_PARKED}) "
    "INSERT INTO loaded SELECT {}, printf('%10000d', x) FROM n RETURNING t"
)
WRITES = {
    "execute": (ONE, SLOW),
    "query": (ONE, SLOW),
    "statement": (ONE.replace(" RETURNING n", ""), SLOW.replace(" RETURNING n", "")),
    "next": (ONE, PARKED),
    "next_rows": (ONE, PARKED),
    "inside": (ONE, SLOW),
    "commit": (ONE, None),  # nothing cancels a commit
    "complete": ("INSERT INTO loaded VALUES({}, ?)", f"INSERT INTO loaded VALUES({{}}, ? || {ENDLESS})"),
}


COUNT = ENDLESS.strip("()").replace("FROM n)", "FROM n WHERE x < (SELECT n FROM loaded))", 1)


class Writer:
    """A program that cancels writes, and the service. Each write has its own number in the table."""

    def __init__(self, service, program):
        self.service, self.program, self.n, self.stopped = service, program, 0, []

    def stop(self):
        """Stops the service."""
        self.stopped.extend([self.service.pid(), *self.service.workers()])
        for pid in self.stopped:
            os.kill(pid, signal.SIGSTOP)

    def go_on(self):
        while self.stopped:
            os.kill(self.stopped.pop(), signal.SIGCONT)

    def kill(self):
        """Kills the service, also one that is stopped."""
        self.service.kill()
        self.stopped.clear()

    def send(self, line):
        self.program.stdin.write(f"{line}\n")
        self.program.stdin.flush()

    def receive(self):
        answer = self.program.stdout.readline().rstrip()
        true(answer, f"the program has ended\n{answer or self.program.stderr.read()[-3000:]}")
        return answer

    def ask(self, line):
        self.send(line)
        return self.receive()

    def n_rows(self):
        with contextlib.closing(sqlite3.connect(self.service.path)) as db:
            return db.execute("SELECT count(*) FROM loaded WHERE n = ?", (self.n,)).fetchone()[0]

    def write(self, call, moment, slow=False, ready=lambda: None, waiting=lambda: None):
        """Returns how the call ended, and the answer to the question after that, if there was one."""
        self.n += 1
        return self.converse(call, moment, WRITES[call][slow].format(self.n), ready, waiting)

    def converse(self, call, moment, sql, ready=lambda: None, waiting=lambda: None):
        equal(self.ask(f"{call} {moment} {sql}"), "ready", call)
        ready()
        answer = self.ask("go on")
        if answer == "waiting":
            waiting()
            answer = self.ask("cancel")
        return answer, self.end(call, answer)

    def end(self, call, answer):
        """Ends the conversation about a call that ended so. Returns the answer to the question after that, or None."""
        again = self.ask("go on") if answer == "unknown" and call in ("commit", "complete") else None
        self.send("end")
        return again

    def check(self, call, moment, answer, n_rows):
        """The rows are there, or not, as soon as the service has ended the run."""
        wait_for(lambda: not self.service.states(), f"{call} {moment}: no run is left")
        equal(self.n_rows(), n_rows, f"rows of {call} {moment}, which ended as {answer}")


@contextlib.contextmanager
def writer(*command, environment=None, **keywords):
    """`environment`: more of it for the program."""
    command = [f"{key}={value}" for key, value in (environment or {}).items()] + [*command]
    with written(n_many=1, **keywords) as service, conversation(service, *command, service.address) as program:
        w = Writer(service, program)
        try:
            yield w
            _, errors = program.communicate(timeout=PATIENCE)
            true(program.returncode == 0, f"{command}: {program.returncode}\n{errors[-3000:]}")
        finally:
            w.go_on()
            program.kill()


OUTCOMES_IN_C = (BUILD_ROOT / "tests/glib/glib-outcome",)
OUTCOMES_IN_PYTHON = ("/usr/bin/python3", SOURCE_ROOT / "tests/glib/glib_outcome.py")


def outcomes_in_time(*command):
    """Writes that are cancelled before they are sent, and while they run. The program waits as long as the service needs to
    say how it ended them."""
    with Clocks() as clocks, clocks.standing(), writer(*command, environment=clocks.environment) as w:
        for call in WRITES:
            answer, _ = w.write(call, "before")
            if call.startswith("next"):  # the run was sent, and has ended
                equal(answer, "done 1", f"{call}, cancelled before it began")
                w.check(call, "before", answer, 1)
                continue
            equal(answer, "cancelled", f"{call}, cancelled before it was sent")
            w.check(call, "before", answer, 0)
        for call, (_, slow) in WRITES.items():
            if slow is None:
                continue
            if slow == PARKED:
                answer, _ = w.write(call, "before", True)
                true(answer in ("unknown", f"done {N_PARKED}"), f"{call}, cancelled before its last row: {answer}")
                w.check(call, "before", answer, N_PARKED)
                continue
            busy = lambda: wait_for(lambda: "running" in w.service.states(), f"{call}: running")  # noqa: B023,E731
            answer, _ = w.write(call, "early", True, waiting=busy)
            equal(answer, "cancelled", f"{call}, cancelled while it was running")
            w.check(call, "early", answer, 0)


def cancelled_while_stopped(writers, blocking):
    """Every call gives the service five seconds to say how it ended, so all wait at the same time, each for its own service.
    Those that are cancelled before they begin come last: functions that block say that they wait when they have ended."""
    calls = sorted(WRITES, key=lambda call: WRITES[call][1] == PARKED)
    for call in calls:
        w, slow = writers[call], WRITES[call][1] == PARKED
        w.n += 1
        equal(w.ask(f"{call} {'before' if slow else 'stalled'} {WRITES[call][slow].format(w.n)}"), "ready", call)
        w.stop()
        w.send("go on")
    for call in calls:
        equal(writers[call].receive(), "waiting", call)
        writers[call].send("cancel")
    answers = {call: writers[call].receive() for call in calls}
    for call in calls:
        w, slow, answer = writers[call], WRITES[call][1] == PARKED, answers[call]
        w.go_on()
        again = w.end(call, answer)
        # "inside": libsqlipc waits for as long, and rolls the transaction back.
        if answer == "cancelled" and (blocking or call == "inside"):
            w.check(call, "stalled", answer, 0)
            continue
        equal(answer, "unknown", f"{call}, cancelled while the service was stopped")
        if again:
            w.check(call, "stalled", again, int(again == "done 0"))
            true(again == "done 0" or "cancelled" in again, again)
        else:
            wait_for(lambda: not w.service.states(), f"{call}: no run is left")  # noqa: B023
            true(w.n_rows() in ((N_PARKED,) if slow else (0, 1)), f"{call}: {w.n_rows()} rows")


def outcomes_without_service(*command, blocking=False):
    """Writes that are cancelled while the service is stopped, and after it was killed. If functions block, the other thread
    may cancel the call before anything was sent; then nothing may be written."""
    with contextlib.ExitStack() as stack:
        writers = {call: stack.enter_context(writer(*command)) for call in WRITES}
        cancelled_while_stopped(writers, blocking)
        for call, (_, slow) in WRITES.items():
            w = writers[call]
            busy = lambda: wait_for(w.service.states, f"{call}: a run")  # noqa: B023,E731
            if slow is None or slow == PARKED:
                moment = "before" if slow else "killed"
                answer, _ = w.write(call, moment, slow is not None, ready=w.stop, waiting=w.kill)
            else:
                answer, _ = w.write(call, "killed", True, waiting=lambda: (busy(), w.kill()))  # noqa: B023
            w.service.start()
            true(
                answer == "unknown"
                or (call == "inside" and ("transaction" in answer or answer == "cancelled"))  # if it was not sent yet
                or (call == "commit" and "transaction" in answer)  # if the bus had not passed it on yet
                or (call == "commit" and blocking and answer == "cancelled")
                or (call == "complete" and "nothing was written" in answer),  # if the end of its rows was not sent yet
                f"{call}, cancelled after the service was killed: {answer}",
            )
            w.check(call, "killed", answer, N_PARKED if slow == PARKED else 0)


def outcomes_at_any_time(*command):
    """Each answer is true, in whichever moment a write is cancelled."""
    counts = {}
    with writer(*command) as w:
        for i in range(60):
            for call in WRITES:
                answer, again = w.write(call, i * 41)
                n_rows = {"done": 1, "cancelled": 0}.get((again or answer).split()[0])
                if call == "inside":  # and rolled back
                    n_rows = 0
                true(n_rows is not None or answer == "unknown", f"{call}: {answer}, {again}")
                wait_for(lambda: not w.service.states(), f"{call}: no run is left")
                if n_rows is not None:
                    equal(w.n_rows(), n_rows, f"{call} after {i * 41} microseconds: {answer}, {again}; rows")
                counts[call, answer] = counts.get((call, answer), 0) + 1
    diagnose(f"{counts}")


@test
def outcomes_in_c():
    """In C, a cancelled write ends as cancelled only if nothing was written: before it was sent, and while it runs"""
    outcomes_in_time(*OUTCOMES_IN_C)


@test
def outcomes_late_in_c():
    """A write that was done before it was cancelled succeeds, with all its rows"""
    with writer(*OUTCOMES_IN_C) as w:
        for call in WRITES:
            if call == "inside":
                continue
            written_now = lambda: wait_for(lambda: w.n_rows() == 1, f"{call}: written")  # noqa: B023,E731
            answer, _ = w.write(call, "late", waiting=written_now)
            equal(answer, f"done {int(call in ('query', 'next', 'next_rows'))}", f"{call}, cancelled after it was done")
            w.check(call, "late", answer, 1)


@test
def outcomes_without_service_in_c():
    """Its outcome is unknown if the service does not answer, or was killed; a commit or load tells it later"""
    outcomes_without_service(*OUTCOMES_IN_C)


def reads_repeated(*command):
    """Each run is without end, until another program ends those that come after."""
    with writer(*command, activation=True) as w, contextlib.closing(sqlite3.connect(w.service.path)) as db:

        def kill():
            wait_for(lambda: "running" in w.service.states(), "the query runs")
            db.execute("UPDATE loaded SET n = 10")
            db.commit()
            os.kill(w.service.pid(), signal.SIGKILL)

        for call in ("query", "statement"):
            db.execute("DELETE FROM loaded")
            db.execute("INSERT INTO loaded(n) VALUES (1000000000000000)")
            db.commit()
            equal(w.converse(call, "never", COUNT, waiting=kill)[0], "done 1", f"{call}, repeated")


@test
def reads_repeated_in_c():
    """A read is repeated if the service is killed while it runs"""
    reads_repeated(*OUTCOMES_IN_C)


@test_unsanitized
def reads_repeated_in_python():
    """The same in Python, with the functions that block"""
    needs("python3")
    reads_repeated(*OUTCOMES_IN_PYTHON)


@test
def outcomes_at_any_time_in_c():
    """The answer is true in whichever moment a write is cancelled"""
    outcomes_at_any_time(*OUTCOMES_IN_C)


@test_unsanitized
def outcomes_in_python():
    """The same in Python, with the functions that block"""
    needs("python3")
    outcomes_in_time(*OUTCOMES_IN_PYTHON)


@test_unsanitized
def outcomes_without_service_in_python():
    """The same without the service"""
    needs("python3")
    outcomes_without_service(*OUTCOMES_IN_PYTHON, blocking=True)


@test_unsanitized
def outcomes_at_any_time_in_python():
    """The same in any moment"""
    needs("python3")
    outcomes_at_any_time(*OUTCOMES_IN_PYTHON)


@test_unsanitized
def ready_for_ever():
    """A descriptor that is ready for ever, for nothing, closes the connection: the main loop does not spin"""
    needs("python3")
    with written(3, 1) as service:
        for call in ("query", "watch", "live", "load"):
            for descriptor in ("bus", "wake", "own"):
                program = ["/usr/bin/python3", SOURCE_ROOT / "tests/glib/glib_ready.py", service.address, call, descriptor]
                done = service.run("env", *ENVIRONMENT, "G_DEBUG=", *program)
                name = f"{call}, {descriptor}: {done.stdout} {done.stderr[-1000:]}"
                equal(done.returncode, -signal.SIGABRT if INVARIANTS else 0, name)
                true(INVARIANTS or (done.stdout and b"error of the library" in done.stderr), name)


@test_unsanitized
def live_models():
    """Three models equal a fresh query after two processes have written, and after a restart of the service"""
    needs("python3")
    with written() as service:
        script = SOURCE_ROOT / "tests/glib/glib_live.py"
        with conversation(service, "/usr/bin/python3", script, service.address, service.path, CHANGES, SEED) as program:
            if program.stdout.readline() == "restart\n":
                service.kill()
                with contextlib.closing(sqlite3.connect(service.path)) as db:
                    db.execute("DELETE FROM t WHERE id % 5 = 1 AND name NOT IN (SELECT max(name) FROM t)")
                    db.commit()
                service.start()
            _, errors = program.communicate("go on\n", timeout=2 * PATIENCE)
            true(program.returncode == 0, errors[-3000:])


@test_unsanitized
def a_million_rows():
    """1,000,000 rows are scrolled in constant memory"""
    needs("python3")
    with written(n_many=1000000) as service:
        said = succeed(service, "/usr/bin/python3", SOURCE_ROOT / "tests/glib/glib_scroll.py", service.address)
        diagnose(f"memory in KB before, more when counted, more when scrolled: {said}")


@test_unsanitized
def browser_in_python():
    """The example in Python shows a table, follows the changes of others, edits, sorts and searches"""
    if not list(pathlib.Path("/usr/lib").glob("*/girepository-1.0/Gtk-4.0.typelib")):
        raise Skip("GTK 4 is not installed for Python")
    needs("Xvfb")
    with screen() as variables, written() as service:
        picture = [os.environ["SQLIPC_PICTURE"]] if "SQLIPC_PICTURE" in os.environ else []
        program = (SOURCE_ROOT / "tests/glib/glib_browser.py", SOURCE_ROOT / "docs/examples/glib/browser.py")
        succeed(service, *variables, "/usr/bin/python3", *program, service.address, service.path, *picture)


@test_unsanitized
def browser_in_vala():
    """The example in Vala opens a window and watches its table"""
    program = BUILD_ROOT / "docs/examples/glib/example-browser"
    if not program.exists():
        raise Skip("built without valac or GTK 4")
    needs("Xvfb")
    with screen() as variables, written() as service:
        with subprocess.Popen(
            ["env", *ENVIRONMENT, *variables, program, f"--address={service.address}", "written", "t", "id"],
            env=service.environment,
            stderr=subprocess.PIPE,
            text=True,
        ) as window:
            try:
                watches = lambda: service.driver.manager("ListWatches")[0]  # noqa: E731
                wait_for(lambda: window.poll() is not None or watches(), "the program watches its table")
                equal(window.poll(), None, "exit code")
            finally:
                window.terminate()
                _, errors = window.communicate(timeout=PATIENCE)
            equal([line for line in errors.splitlines() if "CRITICAL" in line or "sqlipc" in line.lower()], [], "messages")


main()
