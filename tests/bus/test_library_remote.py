#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""libsqlipc and the shell over buses that pass no descriptors: through a relay, and over ssh."""
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess

from client import Text, reference, same_rows
from harness import CHINOOK, CLI, Service, children, main, needs_root, wait_for
from library import Library
from relay import BRIDGE, need_bridge, relay_address
from results import EXTREME_QUERIES, QUERIES, TABLES, make_extremes
from tap import Skip, equal, test, true

ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT "
STREAM = ENDLESS + "x, 'some text to fill the replies' FROM n"
NO_DESCRIPTORS = (95, "NoDescriptors")
# The command for the user's bus: one word, which sshd passes to the login shell of the user.
USER_BRIDGE = (
    "exec sh -c 'exec systemd-stdio-bridge"
    ' --bus-path="${DBUS_SESSION_BUS_ADDRESS:-unix:path=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}/bus}"\''
)
# An ssh that does as sshd does on this machine.
LOCAL_SSH = """while [ "$1" != -- ]; do shift; done
shift 2
exec "${LOGIN_SHELL:-/bin/sh}" -c "$*"
"""


def relay(service):
    """The client's words that open a connection through systemd-stdio-bridge, as a plain child."""
    return f"open {relay_address(service)}"


def fake_ssh(service, script):
    """An environment in which `ssh` is `script`."""
    folder = service.folder / "ssh"
    folder.mkdir(exist_ok=True)
    program = folder / "ssh"
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def kill(pid):
    """Ends a process; its descriptors are closed once it waits to be waited for."""
    os.kill(pid, signal.SIGKILL)
    state = pathlib.Path(f"/proc/{pid}/stat")
    wait_for(lambda: state.read_text().rpartition(")")[2].split()[0] == "Z", "it is dead")


def refused(library):
    """A call that needs a descriptor is refused at once, and the connection is as before."""
    for line in ("prepare chinook SELECT 1", "transport pipe", "transport channel"):
        error, name, message = library.failure(line)
        equal((error, name), NO_DESCRIPTORS, line)
        true("SQLIPC_TRANSPORT_AUTO" in message, f"{line}: {message}")
    library.ok("query chinook SELECT 6 * 7")
    equal((library.ask("rows 0"), library.via()), (([[42]], "end 1"), "dbus"), "a query behind it")


@test
def relayed_results():
    """Rows and names through a relay equal SQLite's own, and totals are those of the run"""
    with Service({"chinook": CHINOOK}) as service:
        extremes = service.data / "extremes.sqlite"
        make_extremes(extremes)
        service.database("extremes", Path=extremes)
        service.driver.manager("Reload")
        asked = [("chinook", CHINOOK, f'SELECT * FROM "{name}"') for name in TABLES]
        asked += [("chinook", CHINOOK, sql) for sql, parameters in QUERIES.values() if not parameters]
        asked += [("extremes", extremes, sql) for sql in EXTREME_QUERIES.values()]
        with Library(service, opening=relay(service)) as library:
            for database, path, sql in asked:
                sql = " ".join(sql.split())
                names, expected = reference(path, sql)
                library.ok(f"query {database} {sql}")
                rows, end = library.ask("rows 0")
                equal((end, library.via()), (f"end {len(expected)}", "dbus"), sql)
                same_rows(rows, expected)
                equal([name for name, _ in library.ok("names")], [Text(n.encode()) for n in names], f"{sql}: names")
                n_rows, n_bytes, usec = map(int, library.ask("totals")[1].split()[1:])
                equal(n_rows, len(expected), f"{sql}: rows of the totals")
                true(n_bytes > 0 and usec > 0, f"{sql}: {n_bytes} bytes, {usec} us")


@test
def large_values():
    """Rows larger than a page arrive whole, up to 16 MiB; a larger one is RowTooLarge"""
    with Service({"chinook": CHINOOK}) as service, Library(service, opening=relay(service)) as library:
        for size in (1, 65536, 1048576 - 16, 1048577, 15 * 1048576):
            library.ok(f"query chinook SELECT 1, zeroblob({size}), printf('%.*c', {size}, 'x') FROM Genre LIMIT 2")
            rows, end = library.ask("rows 0")
            if 2 * size > 16 * 1048576:
                true(end.split()[5] == "org.sqlipc1.Error.RowTooLarge", end)
            else:
                equal(end, "end 2", f"{size} bytes")
                same_rows(rows, [[1, bytes(size), Text(b"x" * size)]] * 2)


@test
def names_with_odd_bytes():
    """Names and declared types that no D-Bus string can hold arrive byte for byte"""
    with Service() as service, Library(service, opening=relay(service)) as library:
        path = service.data / "odd.sqlite"
        with sqlite3.connect(path) as db:
            db.execute('CREATE TABLE t(plain INTEGER, "a\ufdd0b" "odd\ufffetype", untyped)')
            db.execute("CREATE VIRTUAL TABLE f USING fts5(body)")
        db.close()
        service.database("odd", Path=path)
        service.driver.manager("Reload")
        library.ok("query odd SELECT *, 1 AS one FROM t")
        equal(library.ask("rows 0")[1], "end 0", "rows")
        expected = [("plain", "INTEGER"), ("a\ufdd0b", "odd\ufffetype"), ("untyped", None), ("one", None)]
        equal(library.ok("names"), [[t if t is None else Text(t.encode()) for t in row] for row in expected], "columns")
        library.ok("query odd SELECT rank, body, 1 AS one FROM f")
        equal(library.ask("rows 0")[1], "end 0", "rows")
        names = library.ok("names")
        equal([declared for _, declared in names], [Text(b""), None, None], "a type that is empty, and none")


@test
def changed_schema():
    """Columns are those of the run if the schema changed since it was compiled"""
    with Service() as service:
        path = service.data / "changing.sqlite"
        db = sqlite3.connect(path, isolation_level=None)
        db.executescript("CREATE TABLE t(a INTEGER); INSERT INTO t VALUES(1)")
        service.database("changing", Path=path)
        service.driver.manager("Reload")
        client = service.client()
        with Library(service, "dbus") as library:
            for ask in ("library", "client"):
                library.ok("query changing SELECT * FROM t")  # the worker knows the schema from here on
                width = len(library.ask("rows 0")[0][0])
                db.execute("BEGIN EXCLUSIVE")
                db.execute(f"ALTER TABLE t ADD COLUMN {ask} TEXT DEFAULT 'new'")
                if ask == "library":
                    library.ok("query changing SELECT * FROM t")
                else:
                    run, columns, _ = client.open_rows("changing", "SELECT * FROM t")
                    equal(len(columns), width, "columns of OpenRows, compiled by the schema before")
                db.execute("COMMIT")
                if ask == "library":
                    equal(library.ask("rows 0"), ([[1, Text(b"new")]], "end 1"), "rows")
                    equal(library.ok("names")[1], [Text(b"library"), Text(b"TEXT")], "the new column")
                else:
                    rows, _, info = client.next_rows("changing", run)
                    equal((rows, len(info["columns"])), ([[1, Text(b"new"), Text(b"new")]], width + 1), "of NextRows")
        db.close()


@test
def refused_at_once():
    """A call that needs a descriptor is NoDescriptors at once through a relay"""
    with Service({"chinook": CHINOOK}) as service:
        with Library(service, opening=relay(service)) as library:
            refused(library)
            library.ok("transport dbus")
            refused(library)
        with Library(service, opening=relay(service).replace("open", "lend")) as library:  # and here it may believe in them
            refused(library)
        wait_for(service.is_idle, "nothing is left")


@test
def relay_lost():
    """After the relay is killed in a result, rows come first, then DaemonLost; the next query starts another relay"""
    with Service({"chinook": CHINOOK}) as service:
        with Library(service, opening=relay(service)) as library:
            for _ in range(2):
                library.ok(f"query chinook {STREAM}")
                equal(len(library.ok("rows 10")), 10, "rows")
                (bridge,) = children(library.process.pid)
                os.kill(bridge, signal.SIGKILL)
                rows, answer = library.ask("rows 0")
                equal([row[0] for row in rows], list(range(11, 11 + len(rows))), "rows that were on their way")
                equal(answer.split()[:2] + answer.split()[5:6], ["error", "104", "org.sqlipc1.Error.DaemonLost"], answer)
                library.ok("query chinook SELECT 6 * 7")
                equal(library.ask("rows 0"), ([[42]], "end 1"), "rows from the next one")
                true(bridge not in children(library.process.pid), "the old relay was not waited for")
            for line in ("bus", "query chinook SELECT 1"):
                (bridge,) = children(library.process.pid)
                kill(bridge)
                answer = library.ask(line)[1]
                true(answer.split()[0] in ("bus", "ok"), f"{line} opens no other one: {answer}")
                true(bridge not in children(library.process.pid), "the old relay was not waited for")
                library.ok("query chinook SELECT 1")
                equal(library.ask("rows 0"), ([[1]], "end 1"), "rows over it")
        wait_for(service.is_idle, "nothing is left")


@test
def given_up_early():
    """A cursor that is closed or cancelled in mid-stream leaves nothing behind"""
    with Service({"chinook": CHINOOK}) as service:
        with Library(service, opening=relay(service)) as library:
            for _ in range(5):
                library.ok(f"query chinook {STREAM}")
                library.ok("rows 3")
            library.ok("cancel")
            equal(library.ask("rows 0")[1].split()[1], "125", "errno behind the rows that were on their way")
            wait_for(lambda: service.counters()["NRuns"] == 0, "no run is left")
        wait_for(service.is_idle, "nothing is left")


@test
def arguments_of_ssh():
    """ssh gets host, user and port, each as one word, and the bridge's command; other text is refused as a host"""
    need_bridge()
    with Service({"chinook": CHINOOK}) as service:
        said = service.folder / "said"
        environment = fake_ssh(service, f'printf "%s\\n" "$@" >{said}\nexec {BRIDGE} --bus-path={service.address}\n')
        for which, host, expected in (
            ("system", "music.example", "-xT -- music.example"),
            ("user", "joe@music.example:2222", "-xT -p 2222 -- joe@music.example"),
            ("system", "joe@[fe80::1%eth0]:22", "-xT -p 22 -- joe@fe80::1%eth0"),
            ("user", "[::1]", "-xT -- ::1"),
            ("system", "a'b\"$(c);d,e=f", "-xT -- a'b\"$(c);d,e=f"),
            ("system", "joe@corp@host", "-xT -- joe@corp@host"),
        ):
            with Library(service, opening=f"remote {which} {host}", environment=environment) as library:
                library.ok("query chinook SELECT 6 * 7")
                equal(library.ask("rows 0"), ([[42]], "end 1"), "rows")
                bridge = "systemd-stdio-bridge" if which == "system" else USER_BRIDGE
                equal(said.read_text().split("\n")[:-1], [*expected.split(" "), bridge], host)
        with Library(service) as library:
            for host in ("", "-oProxy=x", "host:", "host:22x", "host:1:2", "@host", "[::1", "[::1]x", "[-x]", "a@-b", "[]"):
                equal(library.ask(f"remote system {host}")[1].split()[:2], ["error", "22"], host)


@test
def bus_of_the_user():
    """The user's bus of another machine is found by its address or in the user's folder; no other bus takes its place"""
    need_bridge()
    with Service({"chinook": CHINOOK}) as service:
        run = service.folder / "run user"  # an address with a blank, which a shell could take apart
        run.mkdir()
        (run / "bus").symlink_to(service.address.partition("unix:path=")[2].partition(",")[0])
        shells = [shell for shell in ("sh", "bash", "zsh", "fish", "csh") if shutil.which(shell)]
        reached = (
            {"DBUS_SESSION_BUS_ADDRESS": service.address, "XDG_RUNTIME_DIR": "/nowhere"},
            {"DBUS_SESSION_BUS_ADDRESS": "", "XDG_RUNTIME_DIR": str(run)},
        )
        for shell in shells:
            for bus in reached:
                environment = fake_ssh(service, LOCAL_SSH) | bus
                environment |= {"LOGIN_SHELL": shutil.which(shell), "HOME": str(service.folder)}
                with Library(service, opening="remote user box", environment=environment) as library:
                    library.ok("query chinook SELECT 6 * 7")
                    equal(library.ask("rows 0"), ([[42]], "end 1"), f"{shell}, {bus}")
        none = {"DBUS_SESSION_BUS_ADDRESS": "", "XDG_RUNTIME_DIR": "/nowhere"}
        environment = fake_ssh(service, LOCAL_SSH) | none
        with Library(service, opening="remote user box", environment=environment, stderr=subprocess.DEVNULL) as library:
            equal(library.failure("query chinook SELECT 1")[:2], (104, "DaemonLost"), "without a bus of the user")


@test
def ssh_fails():
    """An unreachable host is reported by each call, and no ssh process is left"""
    with Service({"chinook": CHINOOK}) as service:
        for script in ("exit 255\n", "exec sleep 0.2\n", "echo Welcome; exit 1\n"):
            environment = fake_ssh(service, script)
            with Library(service, opening="remote system nowhere", environment=environment) as library:
                for line in ("query chinook SELECT 1", "query chinook SELECT 2"):
                    error, name, message = library.failure(line)
                    equal((error, name), (104, "DaemonLost"), message)
                    true("connection to the bus" in message, f"{script}: {message}")
                true(len(children(library.process.pid)) <= 1, "children of the program")
            equal(children(os.getpid()).count(library.process.pid), 0, "the program is gone")


class Sshd:
    """A real sshd on the loopback interface, for whose users the service's bus is that of the user."""

    def __init__(self, service):
        program = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
        if not program or not shutil.which("ssh") or not BRIDGE:
            raise Skip("sshd, ssh or systemd-stdio-bridge is not there")
        pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self.folder = service.folder / "sshd"
        self.folder.mkdir(mode=0o700)
        self.asked = self.folder / "asked"
        for key in ("host", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / key], check=True)
        command = rf'echo \"$SSH_ORIGINAL_COMMAND\" >>{self.asked}; eval \"$SSH_ORIGINAL_COMMAND\"'
        (self.folder / "authorized").write_text(f'restrict,command="{command}" {(self.folder / "key.pub").read_text()}')
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        (self.folder / "config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.folder}/host\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {self.folder}/authorized\nStrictModes no\nPasswordAuthentication no\n"
            f"SetEnv DBUS_SESSION_BUS_ADDRESS={service.address}\n"
        )
        self.log = open(self.folder / "log", "wb")
        self.process = subprocess.Popen([program, "-D", "-e", "-f", self.folder / "config"], stderr=self.log)
        wait_for(self._is_up, "sshd listens")

    def _is_up(self):
        with socket.socket() as probe:
            return self.process.poll() is not None or probe.connect_ex(("127.0.0.1", self.port)) == 0

    def environment(self, service):
        """Where `ssh` knows the key and the host."""
        options = f"-i {self.folder}/key -o IdentitiesOnly=yes -o UserKnownHostsFile={self.folder}/known"
        options += " -o StrictHostKeyChecking=accept-new -o LogLevel=ERROR"
        return fake_ssh(service, f'exec {shutil.which("ssh")} -F none {options} "$@"\n')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.close()


@needs_root
def over_ssh():
    """Over a real sshd: rows, refusals, SIGINT that a terminal sends, sshd gone and back"""
    with Service({"chinook": CHINOOK}) as service, Sshd(service) as sshd:
        environment = sshd.environment(service)
        opening = f"remote user root@127.0.0.1:{sshd.port}"

        def ignore_interrupts():
            signal.signal(signal.SIGINT, signal.SIG_IGN)

        with Library(
            service, opening=opening, environment=environment, start_new_session=True, preexec_fn=ignore_interrupts
        ) as library:
            expected = reference(CHINOOK, "SELECT * FROM Track")[1]
            library.ok("query chinook SELECT * FROM Track")
            rows, end = library.ask("rows 0")
            equal((end, library.via()), (f"end {len(expected)}", "dbus"), sshd.asked.read_text())
            same_rows(rows, expected)
            equal(sshd.asked.read_text(), USER_BRIDGE + "\n", "command")
            refused(library)

            library.ok(f"query chinook {STREAM}")
            (ssh,) = children(library.process.pid)
            os.killpg(library.process.pid, signal.SIGINT)
            library.ok("rows 20000")
            equal(children(library.process.pid), [ssh], "ssh, after SIGINT to all of the terminal's processes")

            library.ok("cancel")
            equal(library.ask("rows 0")[1].split()[1], "125", "errno of the cancelled run")
            os.kill(ssh, signal.SIGTERM)
            library.ask("query chinook SELECT 1")
            library.ok("query chinook SELECT 6 * 7")
            equal(library.ask("rows 0"), ([[42]], "end 1"), "rows over another ssh")
        wait_for(service.is_idle, "nothing is left")
        sshd.process.terminate()
        sshd.process.wait()
        with Library(service, opening=opening, environment=environment, stderr=subprocess.DEVNULL) as library:
            error, name, message = library.failure("query chinook SELECT 1")
            equal((error, name), (104, "DaemonLost"), message)


@needs_root
def shell_over_ssh():
    """The shell's --user --host= asks the user's bus of the other machine, also by .connect; without --user, it does not"""
    with Service({"chinook": CHINOOK}) as service, Sshd(service) as sshd:
        nowhere = {f"DBUS_{bus}_BUS_ADDRESS": f"unix:path={service.folder}/nowhere" for bus in ("SESSION", "SYSTEM")}
        host = f"--host=root@127.0.0.1:{sshd.port}"

        def ask(*words):
            done = service.run(CLI, *words, environment=nowhere | sshd.environment(service))
            asked = sshd.asked.read_text() if sshd.asked.exists() else ""
            sshd.asked.unlink(missing_ok=True)
            return done.returncode, done.stdout.decode(), done.stderr.decode(), asked

        count = "SELECT count(*) AS n FROM Track"
        equal(ask("--user", host, "--mode=csv", "chinook", count), (0, "n\n3503\n", "", USER_BRIDGE + "\n"), "--user")
        code, out, err, asked = ask("--user", host, "--list")
        true((code, asked) == (0, USER_BRIDGE + "\n") and "chinook" in out, f"--list: {code}, {out!r}, {err!r}, {asked!r}")
        words = (f"--address={service.address}", "--mode=csv", "chinook", f".connect --user {host}", count)
        equal(ask(*words), (0, "n\n3503\n", "", USER_BRIDGE + "\n"), ".connect")
        code, out, _, asked = ask(host, "--mode=csv", "chinook", count)
        equal((code != 0, out, asked), (True, "", "systemd-stdio-bridge\n"), "the system's bus, which has no service here")


main()
