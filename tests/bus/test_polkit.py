#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Polkit=yes: which clients polkit is asked about, how often, which calls are held, and the effect of each answer.

polkit is fake_polkit.py here; the system suite has the real one.
"""
import contextlib
import errno
import os
import pty
import signal
import subprocess
import time

from argument_files import file, statement
from client import DATABASE, MANAGER, MANAGER_PATH, Failure, Gio, GLib, object_path, rows_from_variant
from fake_polkit import FakePolkit
from harness import (
    CHINOOK, CLI, SQLIPCD, UID_A, UID_B, UID_DAEMON, Service, executable, expect, fds, main, needs_root, wait_for,
)
from library import Library
from tap import equal, true

NAMES = ("yes", "no", "challenge", "hang")
INTERACTIVE_REQUIRED = "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired"
UNKNOWN_OBJECT = "org.freedesktop.DBus.Error.UnknownObject"
PROPERTIES = "org.freedesktop.DBus.Properties"
HELD_MAX = 16
ASKED_MAX = 16  # of one user, without interaction

STARTED = time.monotonic()
service = None
if os.geteuid() == 0:
    databases = {name: {"Path": CHINOOK, "AllowUsers": "root", "Polkit": "yes"} for name in NAMES}
    service = Service(databases | {"open": CHINOOK}, uid=UID_DAEMON)


@contextlib.contextmanager
def polkit(**rules):
    fake = FakePolkit(service.address, {"yes": "yes", "challenge": ("challenge", "yes"), "hang": "hang"} | rules)
    try:
        yield fake
    finally:
        fake.close()


@contextlib.contextmanager
def client(uid=UID_A, interactive=False):
    one = service.client(uid)
    one.interactive = interactive
    try:
        yield one
    finally:
        one.close()


def begin_query(one, name, sql="SELECT 6 * 7"):
    return one.begin(object_path(name), DATABASE, "QueryRows", "(sava{sv}a{sv})", sql, [], {}, {})


def open_rows(one, name):
    return one.begin(object_path(name), DATABASE, "OpenRows", "(sava{sv}a{sv})", "SELECT 1", [], {}, {})


def listed(one):
    return {name: more.get("authorization") for name, _, more in one.manager("ListDatabases")[0]}


def failure_of(function, *arguments, **keywords):
    try:
        function(*arguments, **keywords)
    except Failure as failure:
        return failure.name, failure.message
    raise AssertionError("no error")


def hangs(fake, n):
    wait_for(lambda: len(fake.open) == n, f"{n} questions hang")


@needs_root
def yes():
    """Yes is asked for once, in the words of the interface, and kept for that client only"""
    with polkit() as fake, client() as one, client() as twin:
        for _ in range(3):
            equal(one.query("yes", "SELECT 6 * 7").read().rows, [[42]], "rows")
        one.properties(DATABASE, object_path("yes"))
        (question,) = fake.questions
        equal(
            (question.kind, question.client, question.action, question.details, question.flags),
            ("system-bus-name", one.name(), "org.sqlipc1.read", {"database": "yes"}, 0),
            "question",
        )
        fake.forget()
        twin.point("yes")
        equal(fake.asked(), [("yes", False)], "questions about another client of the same user")


@needs_root
def nobody_is_asked_about_those_who_are_named():
    """polkit is not asked about root, the daemon's user and the users of AllowUsers="""
    with polkit(yes="no") as fake:
        for uid in (None, UID_DAEMON):
            with client(uid) as one:
                one.point("yes")
                equal(set(listed(one)), {*NAMES, "open"}, "listed")
        with client() as one:
            one.point("open")
        equal(fake.asked(), [], "questions")


@needs_root
def no():
    """No looks like a database that does not exist, in each method and property, and is kept"""
    with polkit() as fake, client() as one:
        calls = [
            (DATABASE, "QueryRows", "(sava{sv}a{sv})", "SELECT 1", [], {}, {}),
            (DATABASE, "Finalize", "(ta{sv})", 7, {}),
            (DATABASE, "NoSuchMethod", None),
            (PROPERTIES, "Get", "(ss)", DATABASE, "Name"),
            (PROPERTIES, "GetAll", "(s)", DATABASE),
            ("org.freedesktop.DBus.Introspectable", "Introspect", None),
            ("no.such.Interface", "Method", None),
        ]
        for call in calls:
            there = failure_of(one.raw, object_path("no"), *call)
            missing = failure_of(one.raw, object_path("missing"), *call)
            equal((there[0], there[1].replace("/no'", "/missing'")), missing, f"{call[1]}: error")
        there, missing = (failure_of(one.manager, "GetDatabase", "(sa{sv})", name) for name in ("no", "missing"))
        equal((there[0], there[1].replace('"no"', '"missing"')), missing, "GetDatabase: error")
        equal(fake.asked(), [("no", False)], "questions")


@needs_root
def challenge_without_interaction():
    """A challenge asks for interaction; it is listed as a challenge, and not kept"""
    with polkit() as fake, client() as one:
        for _ in range(2):
            expect(INTERACTIVE_REQUIRED, one.query, "challenge", "SELECT 1")
        equal(fake.asked(), [("challenge", False)] * 2, "questions")
        path, info = one.manager("GetDatabase", "(sa{sv})", "challenge")
        equal((path, info), (object_path("challenge"), {"authorization": "challenge"}), "GetDatabase")
        fake.rules["challenge"] = "yes"
        one.point("challenge")
        equal(one.manager("GetDatabase", "(sa{sv})", "challenge")[1], {}, "info once it is a yes")


@needs_root
def interaction():
    """The user is asked only if the call allows interaction, and only if polkit gives no answer without it"""
    with polkit(hang="no") as fake, client(interactive=True) as one:
        one.point("yes")
        expect(UNKNOWN_OBJECT, one.query, "no", "SELECT 1")
        equal(fake.asked(), [("yes", False), ("no", False)], "questions where rules decide")
        equal(listed(one)["challenge"], "challenge", "listed")
        one.manager("GetDatabase", "(sa{sv})", "challenge")
        true(all(not interactive for _, interactive in fake.asked()), "a list asked the user")
        one.point("challenge")
        one.point("challenge")
        equal(fake.asked(), [("challenge", False), ("challenge", True)], "questions")


@needs_root
def failed_authentication():
    """A user who fails to authenticate is told so and may try again"""
    with polkit(challenge=("challenge", "no")) as fake, client(interactive=True) as one:
        expect("AccessDenied", one.query, "challenge", "SELECT 1")
        fake.rules["challenge"] = ("challenge", "challenge")  # no agent is there
        expect(INTERACTIVE_REQUIRED, one.query, "challenge", "SELECT 1")
        fake.rules["challenge"] = ("challenge", "error")
        expect(UNKNOWN_OBJECT, one.query, "challenge", "SELECT 1")
        fake.rules["challenge"] = ("challenge", "yes")
        one.point("challenge")


@needs_root
def library_and_its_programs():
    """libsqlipc allows interaction if its program asks for it, and then waits as long as the user takes"""
    with polkit(challenge=("challenge", "hang")) as fake, Library(service, user=UID_A) as one:
        for line in ("query challenge SELECT 1", "prepare challenge SELECT 1"):
            number, name, message = one.failure(line)
            equal((number, name), (errno.EACCES, INTERACTIVE_REQUIRED), line)
            true("allow interactive authorization" in message, message)
        fake.forget()
        one.ok("interactive 1")
        one.ok("timeout 1000000")
        for line in ("query challenge SELECT 1", "prepare challenge SELECT 1", "execute"):
            one.say(line)
            hangs(fake, 1)
            time.sleep(1.5)  # the connection's timeout passes
            fake.answer("yes")
            equal(one.hear(), "ok", line)
            if line == "execute":  # before the rights change, which ends a run that no worker has begun
                one.ok("timeout 120000000")
                equal(one.ask("rows 0"), ([[1]], "end 1"), "rows")
            fake.changed()  # nothing is kept: the next line asks again
            # The library may have opened a channel. Until the service closes it, requests need no further answer of polkit.
            wait_for(lambda: service.counters()["NChannels"] == 0, "no channel is left")
        fake.rules["challenge"] = ("challenge", "challenge")
        true("agent" in one.failure("query challenge SELECT 1")[2], "message without an agent")


@needs_root
def terminal():
    """ipcq-cli asks a user to authenticate only on a terminal"""
    with polkit() as fake:
        for streams, arguments, interactive in (
            (("stdin", "stderr"), (), True),
            (("stdin", "stderr"), ("--no-ask-password",), False),
            (("stdin",), (), False),
            (("stderr",), (), False),
        ):
            fake.rules["challenge"] = ("challenge", "yes" if interactive else "no")
            fake.forget()
            ours, theirs = pty.openpty()
            done = subprocess.run(
                [CLI, f"--address={service.address}", "--mode=csv", *arguments, "challenge", "SELECT 6 * 7 AS x"],
                env=service.environment,
                **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | dict.fromkeys(streams, theirs),
                user=UID_A,
                check=False,
            )
            os.close(theirs)
            os.close(ours)
            expected = (0, b"x\n42\n") if interactive else (1, b"")
            equal((done.returncode, done.stdout), expected, f"result: {streams} {arguments}")
            equal(fake.asked()[-1], ("challenge", interactive), "last question")


@needs_root
def list_databases():
    """The list asks about all databases at once, without interaction, and shows the permitted ones"""
    with polkit(hang="no") as fake, client() as one:
        equal(listed(one), {"yes": None, "challenge": "challenge", "open": None}, "listed")
        equal(sorted(fake.asked()), [(name, False) for name in sorted(NAMES)], "questions")
        listed(one)
        equal(fake.asked(), [("challenge", False)], "questions of the second time")
        equal(one.databases(), [object_path(name) for name in ("challenge", "open", "yes")], "property Databases")
        equal(fake.asked(), [("challenge", False)], "questions of the property")
        tree = one.introspect(f"{MANAGER_PATH}/database")
        for name in (*NAMES, "open"):
            equal(f'name="{name}"' in tree, name in ("yes", "open"), f"{name} in the introspection")


@contextlib.contextmanager
def many_databases(n):
    """Publishes that many more, about which polkit is asked."""
    names = [f"many{i}" for i in range(n)]
    for name in names:
        service.database(name, Path=CHINOOK, AllowUsers="root", Polkit="yes")
    service.driver.manager("Reload")
    try:
        yield names
    finally:
        for name in names:
            (service.config_dir / f"databases.d/{name}.conf").unlink()
        service.driver.manager("Reload")


@needs_root
def more_questions_than_replies():
    """More databases than the bus lets a service wait for replies"""
    with many_databases(200) as names, polkit(hang="no", **dict.fromkeys(names, "yes")), client() as one:
        equal(len([name for name in listed(one) if name.startswith("many")]), 200, "databases listed")


@needs_root
def users_take_turns():
    """A user with more questions than polkit is asked at once does not delay other users"""
    with many_databases(100) as names, polkit(**dict.fromkeys(names, "hang")) as fake:
        with client() as one, client(UID_B) as other:
            pending = one.begin(MANAGER_PATH, MANAGER, "ListDatabases", "(a{sv})", {})
            hangs(fake, ASKED_MAX)
            other.point("yes")
            one.point("open")
            equal((len(fake.open), pending.is_done()), (ASKED_MAX, False), "questions that hang, and whether the list came")

            def answered():
                fake.answer("yes")
                return pending.is_done()

            wait_for(answered, "the list comes")
            equal(len([name for name, _, _ in pending.result()[0].unpack() if name in names]), 100, "databases listed")


@needs_root
def one_question_for_many_calls():
    """Calls that wait for the same answer share one question, and go on in their order"""
    with polkit() as fake, client() as one:
        pending = [open_rows(one, "hang") for _ in range(10)]
        hangs(fake, 1)
        one.point("open")
        one.point("yes")
        equal([p.is_done() for p in pending], [False] * 10, "answered")
        fake.answer("yes")
        numbers = [p.result()[0].get_uint64() for p in pending]
        equal(numbers, sorted(numbers), "numbers of runs, which are given in the order of calls")
        equal([q.database for q in fake.questions], ["hang", "yes"], "questions")


@needs_root
def order_behind_interaction():
    """A call after one that waits for the user waits too; the user's answer holds for both"""
    with polkit(challenge=("challenge", "hang")) as fake, client(interactive=True) as one:
        first = begin_query(one, "challenge")
        hangs(fake, 1)
        one.interactive = False
        second = begin_query(one, "challenge")
        one.interactive = True
        third = begin_query(one, "challenge")
        wait_for(lambda: len(fake.questions) >= 3, "the second call is asked about")  # and the third, unless they share one
        one.point("open")
        equal([p.is_done() for p in (first, second, third)], [False] * 3, "answered")
        fake.answer("no")
        for pending in (first, second, third):
            expect("AccessDenied", pending.result)
        equal(sum(q.flags for q in fake.questions), 1, "questions with interaction")


@needs_root
def vanished_client():
    """A question about a client that left is withdrawn by its id; nothing of its calls remains"""
    with polkit(challenge=("challenge", "hang")) as fake:
        with client() as one, client(interactive=True) as other:
            pending = [begin_query(one, "hang") for _ in range(3)] + [begin_query(other, "challenge")]
            hangs(fake, 2)
            ids = set(fake.open)
        wait_for(lambda: set(fake.cancelled) == ids, "the questions are taken back")
        equal([p.task for p in pending], [None] * 4, "replies")
        with client() as again:
            again.point("yes")


@needs_root
def changed():
    """Changed drops polkit's kept answers, and so does the end of polkit"""
    with polkit() as fake, client() as one:
        one.point("yes")
        expect(UNKNOWN_OBJECT, one.query, "no", "SELECT 1")
        fake.rules |= {"yes": "no", "no": "yes"}
        one.point("yes")
        fake.changed()
        expect(UNKNOWN_OBJECT, one.query, "yes", "SELECT 1")
        one.point("no")
        fake.rules["yes"] = "yes"
        fake.close()
        with polkit(yes="yes", no="no"):
            one.point("yes")
            expect(UNKNOWN_OBJECT, one.query, "no", "SELECT 1")


@needs_root
def attached():
    """ATTACH asks polkit, too; when a kept yes is dropped, the connection with the database ends"""
    with polkit() as fake, client() as one:
        values, _ = one.database("open", "Begin", "(a{sv})", {"mode": GLib.Variant("s", "pin")})
        on = {"pin": GLib.Variant("t", values[0].get_uint64())}
        one.execute("open", "ATTACH 'yes' AS y", options=on)
        equal(one.query("open", "SELECT count(*) FROM y.Artist", options=on).read().rows, [[275]], "rows")
        no, missing = (failure_of(one.execute, "open", f"ATTACH '{name}' AS x", options=on) for name in ("no", "missing"))
        equal((no[0], no[1].replace('"no"', '"missing"')), missing, "error")
        expect("AccessDenied", one.execute, "open", "ATTACH 'challenge' AS c", options=on)
        equal(fake.asked(), [("yes", False), ("no", False), ("challenge", False)], "questions")
        waits = one.begin(object_path("open"), DATABASE, "Execute", "(sava{sv}a{sv})", "ATTACH 'hang' AS h", [], {}, on)
        hangs(fake, 1)
        fake.answer("yes")
        waits.result()
        equal(fake.asked(), [("hang", False)], "one question, although the worker asks again and again")
        fake.changed()
        expect("PinLost", one.query, "open", "SELECT 1", options=on)


@needs_root
def changed_while_asked():
    """polkit's answer to a question from before Changed holds only for the calls that wait for it"""
    with polkit(challenge=("challenge", "hang")) as fake, client(interactive=True) as one:
        one.point("yes")
        for name in ("hang", "challenge"):
            pending = begin_query(one, name)
            hangs(fake, 1)
            fake.changed()
            fake.answer("yes")
            equal(pending.result()[1].unpack(), [[42]], "rows")
            fake.forget()
            fake.rules[name] = "no"
            expect(UNKNOWN_OBJECT, one.query, name, "SELECT 1")
            equal(fake.asked(), [(name, False)], "questions")


@needs_root
def changed_while_calls_wait():
    """A call that no worker has started when polkit's answers are dropped fails at once"""
    lent = {"lent": {"Path": CHINOOK, "AllowUsers": "root", "Polkit": "yes"}}
    limits = {"QueueTimeoutSec": 600, "WorkerIdleSec": 600, "WorkersMax": 1}
    with Service(lent, uid=UID_DAEMON, limits=limits) as lender:
        fake, one = FakePolkit(lender.address, {"lent": "yes"}), lender.client(UID_A)
        one.point("lent")
        (worker,) = lender.workers()
        os.kill(worker, signal.SIGSTOP)
        try:
            pending = [begin_query(one, "lent"), open_rows(one, "lent")]
            wait_for(lambda: lender.counters()["NRuns"] == len(pending), "the calls wait")
            fake.rules["lent"] = "no"
            fake.changed()
            names = {failure_of(call.result)[0] for call in pending}
        finally:
            with contextlib.suppress(ProcessLookupError):  # a worker that does not confirm a cancellation is killed
                os.kill(worker, signal.SIGCONT)
        equal(names, {"org.sqlipc1.Error.Busy"}, "errors")
        expect(UNKNOWN_OBJECT, one.query, "lent", "SELECT 1")
        fake.close()


@needs_root
def absent():
    """Without polkit, or without its action, no caller is admitted; the log has it once a minute; nothing is kept"""
    with client() as one:
        for _ in range(5):
            expect(UNKNOWN_OBJECT, one.query, "yes", "SELECT 1")
        expect("UnknownDatabase", one.manager, "GetDatabase", "(sa{sv})", "yes")
        equal(listed(one), {"open": None}, "listed")
        lines = service.log_text().count("polkit did not answer")  # perhaps of a test before, too
        minutes = int((time.monotonic() - STARTED) / 60)
        true(1 <= lines <= 1 + minutes, f"lines of the log after {minutes} minutes: {lines}")
        with polkit(yes="error"):
            expect(UNKNOWN_OBJECT, one.query, "yes", "SELECT 1")
        with polkit():
            one.point("yes")


@needs_root
def vanished_polkit():
    """If polkit leaves the bus before it answers, it counts as absent"""
    with polkit() as fake, client() as one:
        pending = begin_query(one, "hang")
        hangs(fake, 1)
        fake.close()
        expect(UNKNOWN_OBJECT, pending.result)


@needs_root
def calls_held_at_most():
    """16 calls of a user, of all its clients, may wait at once; the limit reveals no database"""
    with polkit() as fake, client() as one, client() as twin, client(UID_B) as other:
        pending = [begin_query(one, "hang") for _ in range(HELD_MAX - 1)] + [begin_query(twin, "hang")]
        hangs(fake, 2)
        for name in ("hang", "no", "missing"):
            for stranger in (one, twin):
                failure = expect("LimitsExceeded", stranger.query, name, "SELECT 1")
                expect("LimitsExceeded", stranger.manager, "GetDatabase", "(sa{sv})", name)
            true(name not in failure.message, failure.message)
        expect("LimitsExceeded", one.manager, "ListDatabases")
        one.point("open")
        other.point("yes")
        other.point("open")
        fake.answer("yes")
        for p in pending:
            equal(p.result()[1].unpack(), [[42]], "rows")
        one.point("hang")


@needs_root
def users_asked_at_most():
    """A user has at most 4 questions to people open at once, and does not delay other users"""
    with polkit(challenge=("challenge", "hang")) as fake, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(client(interactive=True)) for _ in range(5)]
        pending = [begin_query(one, "challenge") for one in clients[:4]]
        hangs(fake, 4)
        expect("LimitsExceeded", clients[4].query, "challenge", "SELECT 1")
        fake.rules["challenge"] = ("challenge", "yes")
        stack.enter_context(client(UID_B, interactive=True)).point("challenge")
        fake.answer("yes")
        for p in pending:
            p.result()


@needs_root
def descriptors_and_sizes():
    """A held call keeps one descriptor and a bounded size; only permitted users learn of these limits"""
    large = {"x-large": GLib.Variant.new_from_bytes(GLib.VariantType("ay"), GLib.Bytes(bytes(21 << 20)), True)}
    handles = {"x-fd": GLib.Variant("h", 0), "x-other": GLib.Variant("h", 1)}
    in_file = {"arguments": GLib.Variant("h", 0)}
    with polkit(no="hang") as fake, client() as one, file(statement("SELECT 5")) as fd:
        one.point("open")  # the service asks who a client is, for at most 5 s: not behind megabytes
        before = len(fds(service.pid()))
        for name in ("hang", "no"):
            pending = [
                one.begin(
                    object_path(name), DATABASE, "QueryRows", "(sava{sv}a{sv})", sql, [], {}, options, descriptors=[fd] * n
                )
                for sql, options, n in (("SELECT 1", large, 0), ("SELECT 1", handles, 2), ("", in_file, 1))
            ]
            pending += [one.begin(MANAGER_PATH, MANAGER, "GetDatabase", "(sa{sv})", name, large)]
            hangs(fake, 1)
            one.point("open")
            if name == "hang":
                fake.answer("yes")
                equal(rows_from_variant(pending.pop(2).result()[1]), [[5]], "the statement in the file")
                for error, p in zip(("LimitsExceeded", "InvalidOption", "LimitsExceeded"), pending):
                    expect(error, p.result)
            else:
                fake.answer("no")
                for error, p in zip((UNKNOWN_OBJECT, UNKNOWN_OBJECT, UNKNOWN_OBJECT, "UnknownDatabase"), pending):
                    expect(error, p.result)
        wait_for(lambda: len(fds(service.pid())) <= before + 2, "descriptors are flat")


@needs_root
def no_reply_wanted():
    """A held call without a reply is carried out, or refused, silently"""
    with polkit() as fake, client() as one:
        for name in ("hang", "no"):
            message = one.new_call(object_path(name), DATABASE, "Prepare", GLib.Variant("(sa{sv})", ("SELECT 1", {})))
            message.set_flags(Gio.DBusMessageFlags.NO_REPLY_EXPECTED)
            one.connection.send_message(message, Gio.DBusSendMessageFlags.NONE)
        hangs(fake, 1)
        fake.answer("yes")
        wait_for(lambda: len(one.manager("ListStatements")[0]) == 1, "the statement is prepared")


@needs_root
def signals():
    """DatabaseAdded goes to clients that polkit admits, DatabaseRemoved to those that it admitted"""
    with polkit(new="hang") as fake, client() as one, client(UID_B) as other:
        heard, others = one.signals(), other.signals()
        for peer in (one, other):
            listed_before = begin_query(peer, "open")
            listed_before.result()
        service.database("new", Path=CHINOOK, AllowUsers="root", Polkit="yes")
        service.driver.manager("Reload")
        hangs(fake, 2)
        equal((heard(), others()), ([], []), "signals before polkit answered")
        for _, (question, invocation) in list(fake.open.items()):
            fake._in_thread(lambda q=question, i=invocation: fake._answer(q, i, "yes" if q.client == one.name() else "no"))
        fake.open.clear()
        path = object_path("new")
        wait_for(lambda: heard() == [("DatabaseAdded", "new", path)], "the client hears of it")
        one.point("new")
        (service.config_dir / "databases.d/new.conf").unlink()
        service.driver.manager("Reload")
        wait_for(lambda: heard()[1:] == [("DatabaseRemoved", "new", path)], "the client hears of its end")
        equal(others(), [], "signals to clients that polkit refuses")


@needs_root
def busy_while_held():
    """A service whose client waits for polkit does not exit as idle"""
    one_database = {"hang": {"Path": CHINOOK, "AllowUsers": "root", "Polkit": "yes"}}
    with Service(one_database, activation=True, service={"IdleExitSec": "0.005"}) as idle:
        fake = FakePolkit(idle.address, {"hang": "hang"})
        pending = begin_query(idle.client(UID_A), "hang")
        hangs(fake, 1)
        pid = idle.pid()
        time.sleep(0.3)  # sixty times IdleExitSec=
        fake.answer("yes")
        equal(pending.result()[1].unpack(), [[42]], "rows")
        wait_for(lambda: executable(pid) != str(SQLIPCD), "the service exits when no call waits")
        fake.close()


@needs_root
def stop():
    """Clients whose calls wait for polkit when the service stops get an error"""
    with polkit() as fake, client() as one:
        pending = [begin_query(one, "hang") for _ in range(3)]
        hangs(fake, 1)
        one.manager("ListRuns")  # arrives after them, so all are held
        service.stop()
        for p in pending:
            expect("ShuttingDown", p.result)
        wait_for(lambda: len(fake.cancelled) == 1, "the question is taken back")
    service.start()


MANAGE = "org.sqlipc1.manage"
ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"


@needs_root
def manage_without_a_challenge():
    """CancelRun of another user's run and Reload need org.sqlipc1.manage from polkit; one's own runs need nothing"""
    with polkit() as fake, client(UID_A) as one, client(UID_B) as two, client(UID_A) as twin:
        run = one.query("open", ENDLESS)
        for number in (run.number, 12345):
            expect("AccessDenied", two.manager, "CancelRun", "(ta{sv})", number)
        expect("AccessDenied", two.manager, "Reload")
        (first, *_) = fake.questions
        equal((first.action, first.client, first.details), (MANAGE, two.name(), {}), "question")
        equal(fake.asked(), [(MANAGE, False)] * 3, "questions")
        fake.rules[MANAGE] = "yes"
        equal(two.manager("Reload")[0]["databases"], len(NAMES) + 1, "databases that Reload published")
        two.manager("CancelRun", "(ta{sv})", run.number)
        expect("Cancelled", run.read)
        expect("UnknownRun", two.manager, "CancelRun", "(ta{sv})", 12345)
        fake.forget()
        run = one.query("open", ENDLESS)
        twin.manager("CancelRun", "(ta{sv})", run.number)
        expect("Cancelled", run.read)
        for uid in (None, UID_DAEMON):
            with client(uid) as administrator:
                administrator.manager("Reload")
        equal(fake.asked(), [], "questions about those who need none")
        run.close()


@needs_root
def manage_with_a_challenge():
    """For org.sqlipc1.manage a user is asked to authenticate only if the call allows it, and each time"""
    with polkit(**{MANAGE: ("challenge", "yes")}) as fake, client(interactive=True) as one, client(UID_B) as quiet:
        expect(INTERACTIVE_REQUIRED, quiet.manager, "Reload")
        equal(fake.asked(), [(MANAGE, False)], "questions about a call that allows none")
        for _ in range(2):
            one.manager("Reload")
        equal(fake.asked(), [(MANAGE, False), (MANAGE, True)] * 2, "questions")
        fake.rules[MANAGE] = ("challenge", "no")
        expect("AccessDenied", one.manager, "Reload")
        fake.rules[MANAGE] = "challenge"
        expect(INTERACTIVE_REQUIRED, one.manager, "CancelRun", "(ta{sv})", 12345)
        fake.rules[MANAGE] = "error"
        expect("AccessDenied", one.manager, "Reload")


@needs_root
def managing_calls_that_hang():
    """Calls that wait for org.sqlipc1.manage are bounded for each user, and end with their client; others are served"""
    with polkit(**{MANAGE: "hang"}) as fake:
        with client(UID_A) as one, client(UID_B) as other:
            begun = [one.begin(MANAGER_PATH, MANAGER, "Reload", "(a{sv})", {}) for _ in range(HELD_MAX)]
            hangs(fake, 1)
            expect("LimitsExceeded", one.manager, "Reload")
            one.point("open")
            other.point("open")
            fake.answer("no")
            for call in begun:
                expect("AccessDenied", call.result)
            fake.rules[MANAGE] = "hang"
            one.begin(MANAGER_PATH, MANAGER, "CancelRun", "(ta{sv})", 1, {})
            hangs(fake, 1)
        hangs(fake, 0)
        equal(len(fake.cancelled), 1, "questions that were taken back")


main(service)
