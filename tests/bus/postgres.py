# SPDX-License-Identifier: LGPL-2.1-or-later
"""A PostgreSQL server of the test, in a temporary folder, with a socket there and none on a network unless it is asked for.

    with Postgres() as server:
        server.sql("CREATE TABLE t(n int)")
        server.connection("app")       # the text for Connection=

The server runs as the user postgres if the test is root, because it refuses to run as root. It dies with the test.
"""
import glob
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile

from engine_unit import ENGINE, EngineUnit
from harness import PATIENCE, Service, children, die_with_test, wait_for
from tap import Skip, equal

# One commit after the other, few processes: the test shares the machine with others.
SETTINGS = {
    "fsync": "off",
    "shared_buffers": "16MB",
    "max_connections": "40",
    "autovacuum": "off",
    "wal_level": "replica",
    "max_wal_senders": "4",
    "listen_addresses": "",
    "log_min_messages": "panic",
    "client_min_messages": "error",
    "unix_socket_permissions": "0777",
}
ACCESS = "local all all trust\nlocal replication all trust\n"


def programs():
    """Returns the folder of the newest server's programs; Debian has them outside of PATH."""
    found = shutil.which("postgres")
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin")) or ([os.path.dirname(found)] if found else [])
    if not folders or not all(os.path.exists(f"{folders[-1]}/{name}") for name in ("initdb", "postgres", "psql")):
        raise Skip("PostgreSQL is not installed")
    if not ENGINE.exists():
        raise Skip("sqlipc-engine is not built: it needs libpq")
    return folders[-1]


def server_user():
    """Returns the keywords of subprocess for the server's processes."""
    if os.geteuid() != 0:
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        raise Skip("there is no user postgres") from None
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": os.getgrouplist("postgres", user.pw_gid)}


class Postgres:
    """`access`: pg_hba.conf; `settings` are added to SETTINGS; `source`: the Postgres that this is to be a replica of. The
    port is a part of the socket's name; with listen_addresses="127.0.0.1" it is also that of TCP."""

    def __init__(self, access=ACCESS, source=None, port=5432, **settings):
        self.programs, self.user = programs(), server_user()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sqlipc-postgres-"))
        self.folder.chmod(0o755)
        self.data, self.port = self.folder / "data", port
        self.process = None
        self.log = open(self.folder / "log", "ab")
        if self.user:
            os.chown(self.folder, self.user["user"], self.user["group"])
        try:
            if source:
                self.run("pg_basebackup", "--write-recovery-conf", "--checkpoint=fast", "--no-sync", f"--pgdata={self.data}",
                         f"--dbname=host={source.folder} port={source.port} user=postgres")  # fmt: skip
            else:
                self.run("initdb", "--no-sync", "--no-locale", "--encoding=UTF8", "--username=postgres", "--auth=trust",
                         f"--pgdata={self.data}")  # fmt: skip
                self.write("pg_hba.conf", access)
                self.write("sqlipc.conf", "".join(f"{k} = '{v}'\n" for k, v in (SETTINGS | settings).items()))
                with open(self.data / "postgresql.conf", "a") as file:
                    file.write("include 'sqlipc.conf'\n")
            self.start()
        except BaseException:
            self.close()
            raise

    def run(self, program, *arguments):
        done = subprocess.run(
            [f"{self.programs}/{program}", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=self.folder,
            check=False,
            **self.user,
        )
        equal(done.returncode, 0, f"{program}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode()

    def write(self, name, text):
        """Writes a file of the server, which only it can read."""
        path = self.data / name
        path.write_text(text)
        path.chmod(0o600)
        if self.user:
            os.chown(path, self.user["user"], self.user["group"])

    # ---- processes ----

    def start(self):
        self.process = subprocess.Popen(
            [f"{self.programs}/postgres", "-D", self.data, "-k", self.folder, "-p", str(self.port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.log,
            cwd=self.folder,
            preexec_fn=die_with_test,
            **self.user,
        )
        wait_for(self.answers, "the server answers")

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended:\n{self.log_text()}")
        return self.psql("SELECT 1", "postgres").returncode == 0

    def log_text(self):
        return (self.folder / "log").read_text(errors="replace")

    def kill(self):
        """All its processes die at once, as if the machine had lost its power: none says a last word to a client."""
        if not self.process or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGSTOP)  # otherwise it would end the others, and tell their clients
        for pid in [*children(self.process.pid), self.process.pid]:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Ends it as an administrator does: clients are told."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE)

    def promote(self):
        self.run("pg_ctl", "promote", "--wait", f"--pgdata={self.data}")

    def signal_child(self, kind, number):
        """Sends a signal to the server's process of this kind, as its title names it."""
        for pid in children(self.process.pid):
            title = pathlib.Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
            if title.startswith(f"postgres: {kind}"):
                os.kill(pid, number)
                return
        raise AssertionError(f"the server has no {kind}")

    def reload(self):
        self.sql("SELECT pg_reload_conf()")

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)  # at once; unlike SIGKILL it leaves no shared memory
            self.process.wait(PATIENCE)
        self.log.close()
        shutil.rmtree(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            print("# " + self.log_text()[-4000:].replace("\n", "\n# "))
        self.close()

    # ---- what the server has ----

    def psql(self, sql, database, user="postgres"):
        return subprocess.run(
            [f"{self.programs}/psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p", str(self.port), "-U", user,
             database],
            input=sql.encode(),
            capture_output=True,
            check=False,
        )

    def sql(self, sql, database="postgres", user="postgres"):
        """Runs SQL past the service; returns the lines of its result, with | between columns."""
        done = self.psql(sql, database, user)
        equal(done.returncode, 0, f"{sql:.200}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode().splitlines()

    def connection(self, user, database="postgres", **more):
        """Returns the text for Connection=."""
        keywords = {"host": self.folder, "port": self.port, "user": user, "dbname": database} | more
        return " ".join(f"{k}={v}" for k, v in keywords.items())

    def clients(self):
        """Returns the pids of the processes that serve sqlipc."""
        return [int(pid) for pid in self.sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'sqlipc'")]


def for_tests(schema="", **keywords):
    """Starts the server of a file of tests, which are skipped if there is none to start."""
    try:
        server = Postgres(**keywords)
    except Skip as reason:
        print(f"1..0 # SKIP {reason}")
        sys.exit(0)
    if schema:
        server.sql(schema)
    return server


class Relay:
    """A service with databases of servers, and its engine unit. `databases`: name -> keys without Engine=."""

    def __init__(self, databases, **keywords):
        self.unit = EngineUnit(ENGINE)
        try:
            databases = {name: {"Engine": "postgresql"} | keys for name, keys in databases.items()}
            self.service = Service(databases, environment=self.unit.environment, **keywords)
        except BaseException:
            self.unit.__exit__(AssertionError)
            raise

    def __enter__(self):
        return self.service

    def __exit__(self, *error):
        if error[0]:
            print("# " + self.service.log_text()[-4000:].replace("\n", "\n# "))
        try:
            self.service.__exit__(*error)
        except BaseException:
            self.unit.__exit__(AssertionError)
            raise
        self.unit.__exit__(*error)
