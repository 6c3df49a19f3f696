# SPDX-License-Identifier: LGPL-2.1-or-later
"""A private bus with sqlipcd, in a temporary folder. The machine's own buses are not used.

Service owns, and takes down in reverse order:

    folder       configuration, databases, bus socket, logs, sanitizer reports
    bus          dbus-daemon with a generated configuration, or dbus-broker (broker=True): everything allowed, any uid
    daemon       sqlipcd of the build tree, started by us, or by the bus on the first call (activation=True)
    clients      the connections that it returned

The teardown is itself a test: sqlipcd must end by SIGTERM with exit code 0, without leaving a process (this process is a
subreaper, so orphans become its children) or a file beside a database, and no sanitizer may have reported an error.
"""
import contextlib
import ctypes
import fcntl
import functools
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import broker
import on_postgresql
import tap
from client import Client, Failure, MANAGER
from tap import PATIENCE, Skip, test

SOURCE_ROOT = pathlib.Path(os.environ.get("SQLIPC_SOURCE_ROOT", pathlib.Path(__file__).resolve().parents[2]))
BUILD_ROOT = pathlib.Path(os.environ.get("SQLIPC_BUILD_ROOT", SOURCE_ROOT / "build"))
SANITIZED = os.environ.get("SQLIPC_SANITIZED") == "1"
INVARIANTS = "SQLIPC_INVARIANTS 1" in (BUILD_ROOT / "config.h").read_text()  # errors of ours abort
# The same for dbus-daemon(1), in milliseconds: the start of a service, and a connection that has not said Hello.
BUS_PATIENCE = {"service_start_timeout": PATIENCE * 1000, "auth_timeout": PATIENCE * 1000}
# [Limits] that no test reaches because the machine is slow, or stops a program. The defaults are 5 s and more.
WAITS = ("ParkTimeoutSec", "ParkTimeoutRollbackSec", "QueueTimeoutSec", "PrepareTimeoutSec", "BusyTimeoutSec",
         "TransactionTimeoutSec", "TransactionIdleSec")  # fmt: skip
PATIENT = dict.fromkeys(WAITS, 600)

# A program that a shell starts in the background, or by nohup, ignores signals, and its children inherit this.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# The report of LeakSanitizer about a process that is killed during the leak check; empty if it had only opened its file.
KILLED_AT_ITS_END = re.compile(r"(==\d+==Unable to get registers from thread \d+\.\n)*")

# If other users cannot enter the checkout (a clone in a private folder), they run and read copies of its files. Programs of
# a test use the copies of that test, so they leave none when they are killed at its end.
CLOSED = os.geteuid() == 0 and any(
    not parent.stat().st_mode & 0o001 for root in (BUILD_ROOT, SOURCE_ROOT) for parent in (root / "x").parents
)
OPEN_FOLDER = os.environ.get("SQLIPC_TEST_OPEN_FOLDER", "")
if CLOSED and not OPEN_FOLDER:
    made_here = tempfile.TemporaryDirectory(prefix="sqlipc-open-")
    os.environ["SQLIPC_TEST_OPEN_FOLDER"] = OPEN_FOLDER = made_here.name
    os.chmod(OPEN_FOLDER, 0o755)


def reachable(path):
    """Returns a path of the file that every user can reach. A copy keeps its folders, so that programs find the library."""
    if not CLOSED or path.is_relative_to(OPEN_FOLDER):
        return path
    root = BUILD_ROOT if path.is_relative_to(BUILD_ROOT) else SOURCE_ROOT
    copy = pathlib.Path(OPEN_FOLDER, path.relative_to(root))
    if copy.exists():  # The copy may be running.
        return copy
    copy.parent.mkdir(parents=True, exist_ok=True)
    for parent in copy.relative_to(OPEN_FOLDER).parents:
        pathlib.Path(OPEN_FOLDER, parent).chmod(0o755)
    shutil.copy(path, copy)
    copy.chmod(0o755 if os.access(path, os.X_OK) else 0o644)  # The mode must not depend on the umask of the checkout.
    return copy


reachable(BUILD_ROOT / "client-lib/libsqlipc.so.0")
SQLIPCD = reachable(BUILD_ROOT / "daemon/supervisor/sqlipcd")
WORKER = reachable(BUILD_ROOT / "daemon/worker/sqlipc-worker")
CLI = reachable(BUILD_ROOT / "tools/cli/ipcq-cli")
CTL = reachable(BUILD_ROOT / "tools/ctl/sqlipcctl")
CHINOOK = reachable(SOURCE_ROOT / "tests/data/chinook.sqlite")


def test_unsanitized(function):
    """A test of other programs that load our libraries: they cannot load a sanitized one, so only other builds have it."""
    return function if SANITIZED else test(function)


def python_package():
    """The environment of a Python program that imports the package of the build tree."""
    package = BUILD_ROOT / "client-lib/python"
    environment = {"PYTHONPATH": str(package), "LD_LIBRARY_PATH": f"{package}/sqlipc:{BUILD_ROOT}/client-lib"}
    if SANITIZED:  # the interpreter is not built with the sanitizers, so their library must be loaded first
        preload = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
        environment |= {"LD_PRELOAD": preload.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0"}
    return environment


def sqlalchemy_python():
    """Returns an interpreter that has SQLAlchemy 2 and pytest, from the registry of Python's packages."""
    folder = BUILD_ROOT / "sqlalchemy-venv"
    program = folder / "bin/python"
    check = [program, "-c", "import sqlalchemy, pytest; assert sqlalchemy.__version__ >= '2'"]
    with open(BUILD_ROOT / "sqlalchemy-venv.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another test may install them at the same time
        if program.exists() and subprocess.run(check, capture_output=True, check=False).returncode == 0:
            return program
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        packages = ["sqlalchemy>=2.0,<2.1", "pytest"]
        done = subprocess.run([program, "-m", "pip", "install", "--quiet", *packages], capture_output=True, check=False)
        if done.returncode != 0:
            raise Skip("SQLAlchemy 2 cannot be installed: " + done.stderr.decode().strip().split("\n")[-1])
    return program


def needs_root(function):
    """Marks a test that needs root, because it acts as several users."""

    @functools.wraps(function)
    def wrapped():
        if os.geteuid() != 0:
            raise Skip("needs root, to be several users")
        function()

    return test(wrapped)


# Users that exist on every Debian system and run no important processes: two clients, and one for the daemon.
UID_A, UID_B, UID_DAEMON = 1, 2, 65534

PR_SET_CHILD_SUBREAPER = 36
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
LIBC.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

BUS_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={folder}/bus</listen>
  <auth>EXTERNAL</auth>
  <servicedir>{folder}/services</servicedir>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*" eavesdrop="true"/>
    <allow receive_sender="*"/>
  </policy>
{limits}</busconfig>
"""


def die_with_test():
    """For preexec_fn=: a server must not outlive a test that is killed."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def on_server():
    """Returns the module that puts a server in the place of files that a test publishes; None: they are files."""
    if os.environ.get("SQLIPC_TEST_RQLITE"):
        import on_rqlite

        return on_rqlite
    return on_postgresql if on_postgresql.FOLDER else None


def placed(keys):
    """Returns the keys of a database, on that server if they are of a file that is there."""
    server, path = on_server(), keys.get("Path")
    if not server or not path or "Engine" in keys or not pathlib.Path(path).exists():
        return keys
    with open(path, "rb") as file:
        if file.read(16) != b"SQLite format 3\0":
            return keys
    return server.keys_of(path, {k: v for k, v in keys.items() if k != "Path"})


def free_ports(n):
    """Returns ports that nothing listens at now."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def wait_for(condition, what, seconds=PATIENCE):
    """Polls until `condition` returns a true value; returns that value."""
    end = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s without success: {what}")
        time.sleep(0.01)


def children(pid):
    """Returns the pids of the children of `pid`, from all its threads."""
    pids = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                pids += map(int, pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return pids


def descendants(pid):
    below = children(pid)
    return below + [p for child in below for p in descendants(child)]


def executable(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except PermissionError:  # Only root may read this of the daemon's processes.
        with contextlib.suppress(OSError):
            name = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
            return str(WORKER) if name == WORKER.name else name
    except OSError:
        pass
    return ""


def fds(pid):
    """Returns the target of each descriptor of `pid`."""
    result = {}
    if os.geteuid() != 0:
        raise Skip("needs root: the daemon's descriptors are shown only to root")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                result[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
    return result


def processor_time(pid):
    """Returns the seconds that the process has computed, user and system."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def status_of(pid):
    """Returns the fields of /proc/PID/status."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def rss_anon(pid):
    """Returns the private memory in bytes."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"process {pid} is gone")


def locks(path):
    """Returns the POSIX and OFD locks of all processes on a file, as the kernel lists them."""
    file = os.stat(path)
    key = f" {os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino} "
    return [line for line in pathlib.Path("/proc/locks").read_text().splitlines() if key in line]


class Service:
    alive = set()

    def __init__(
        self,
        databases=None,
        limits=None,
        activation=False,
        uid=None,
        start=True,
        arguments=(),
        environment=None,
        service=None,
        sqlipcd=SQLIPCD,
        worker=WORKER,
        bus_limits=None,
        broker=False,
    ):
        """`databases`: name -> path, or name -> dict of keys; `limits`, `service`: keys of [Limits] and [Service];
        `sqlipcd`, `worker`: programs in place of those that users get; `bus_limits`: name -> number, of dbus-daemon(1)."""
        self.sqlipcd, self.worker = reachable(sqlipcd), reachable(worker)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sqlipc-test-"))
        self.folder.chmod(0o755)
        self.config_dir = self.folder / "config"
        self.data = self.folder / "data"
        self.uid, self.activation, self.arguments = uid, activation, tuple(arguments)
        self.address = f"unix:path={self.folder}/bus"
        self.clients, self.helpers = [], []
        self.broker = broker
        assert not (broker and (activation or bus_limits)), "dbus-broker is given neither services nor limits"
        limits_of_bus = BUS_PATIENCE | (bus_limits or {})
        self.bus_limits = "".join(f'  <limit name="{name}">{n}</limit>\n' for name, n in limits_of_bus.items())
        self.bus = self.daemon = None
        self.unit = None
        if on_server():
            from engine_unit import ENGINE, EngineUnit

            self.unit = EngineUnit(ENGINE, supervisor_uid=uid)
            environment = (environment or {}) | self.unit.environment
        Service.alive.add(self)
        for folder in (self.config_dir / "databases.d", self.data, self.folder / "services", self.folder / "reports"):
            folder.mkdir(parents=True)
        (self.folder / "reports").chmod(0o777)
        self.environment = self._environment(environment or {})
        self.service_keys = service or {}
        self.limits(**(limits or {}))
        for name, keys in (databases or {}).items():
            self.database(name, **(keys if isinstance(keys, dict) else {"Path": keys}))
        if uid is not None:
            os.chown(self.data, uid, uid)
        try:
            self._start_bus()
            if start and not activation:
                self.start()
        except BaseException:
            self.close(check=False)
            raise

    def _environment(self, extra):
        reports = self.folder / "reports"
        keep = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TMPDIR", "LSAN_OPTIONS")}
        return (
            keep
            | {
                "SQLIPC_WORKER_PATH": str(self.worker),
                "SYSTEMD_BUS_TIMEOUT": f"{PATIENCE}s",  # of calls that their program gives no limit; it is 25 s
                # A mapped file that is truncated causes SIGBUS; the log names the process that died of it.
                # Tests preload libraries of their own (clocks.py).
                "ASAN_OPTIONS": f"log_path={reports}/asan:detect_leaks=1:abort_on_error=0:handle_sigbus=0:"
                "verify_asan_link_order=0",
                "UBSAN_OPTIONS": f"log_path={reports}/ubsan:print_stacktrace=1",
            }
            | extra
        )

    # ---- configuration ----

    def limits(self, **keys):
        """Writes sqlipcd.conf, which takes effect at the next start or reload. Limits that are not given are PATIENT."""
        keys |= {key: value for key, value in (PATIENT | getattr(on_server(), "LIMITS", {})).items() if key not in keys}
        sections = {"Service": self.service_keys, "Limits": keys}
        text = "".join(
            f"[{section}]\n" + "".join(f"{key}={value}\n" for key, value in of_it.items())
            for section, of_it in sections.items()
            if of_it or section == "Limits"
        )
        (self.config_dir / "sqlipcd.conf").write_text(text)

    def database(self, name, text=None, **keys):
        """Writes a database's configuration and returns its file; all users may use it unless `keys` has AllowUsers=."""
        path = self.config_dir / "databases.d" / f"{name}.conf"
        if text is None:
            keys = placed(keys)
            keys.setdefault("AllowUsers", "*")
            text = "[Database]\n" + "".join(f"{key}={value}\n" for key, value in keys.items())
        path.write_text(text)
        return path

    # ---- processes ----

    def _start_bus(self):
        self.log = open(self.folder / "log", "ab")
        if self.broker:
            self.bus = broker.start(self.folder / "bus", self.log)
        else:
            self._start_dbus_daemon()
        self.driver = Client(self.address)

    def _start_dbus_daemon(self):
        (self.folder / "bus.conf").write_text(BUS_CONFIG.format(folder=self.folder, limits=self.bus_limits))
        if self.activation:
            command = " ".join(
                [str(self.sqlipcd), f"--address={self.address}", f"--config-dir={self.config_dir}", *self.arguments]
            )
            (self.folder / "services/org.sqlipc1.service").write_text(f"[D-BUS Service]\nName=org.sqlipc1\nExec={command}\n")
        self.bus = subprocess.Popen(
            ["dbus-daemon", f"--config-file={self.folder}/bus.conf", "--nofork", "--nopidfile", "--print-address=1"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=self.environment,
        )
        true_address = self.bus.stdout.readline()
        if not true_address:
            raise AssertionError(f"dbus-daemon did not start:\n{self.log_text()}")

    def kill_bus(self):
        self.bus.kill()
        self.bus.wait()
        if self.bus.stdout:
            self.bus.stdout.close()

    def restart_bus(self):
        """Starts a bus in place of one that a test has killed. The service ended with the old bus, and is started again."""
        self.log.close()
        if self.bus.stdout:
            self.bus.stdout.close()
        self._start_bus()
        self.start()

    def start(self):
        """Starts sqlipcd and waits until it owns its name."""
        who = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        self.daemon = subprocess.Popen(
            [self.sqlipcd, f"--address={self.address}", f"--config-dir={self.config_dir}", *self.arguments],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env=self.environment,
            cwd="/",
            **who,
        )
        wait_for(self._is_up, "sqlipcd owns its name")

    def _is_up(self):
        if self.daemon.poll() is not None:
            raise AssertionError(f"sqlipcd ended with {self.daemon.returncode}:\n{self.log_text()}")
        return self.has_owner()

    def has_owner(self):
        if self.driver.connection.is_closed():  # Rarely seen after a test had ended the bus and started it again.
            self.driver = Client(self.address)
        return self.driver.bus_call("NameHasOwner", "(s)", "org.sqlipc1")[0]

    def pid(self):
        """Returns the supervisor's pid, whether we or the bus started it."""
        if self.daemon:
            return self.daemon.pid
        return self.driver.bus_call("GetConnectionUnixProcessID", "(s)", "org.sqlipc1")[0]

    def workers(self):
        own = [pid for pid in children(self.pid()) if executable(pid) == str(self.worker)]
        return own + (self.unit.workers() if self.unit else [])

    def stop(self):
        """Ends sqlipcd as systemd does; it must exit, and leave no process behind."""
        workers, pid = self.workers(), self.pid()
        os.kill(pid, signal.SIGTERM)
        if self.daemon:
            code = self.daemon.wait(PATIENCE)
            if code != 0:
                raise AssertionError(f"sqlipcd ended by SIGTERM with {code}:\n{self.log_text()}")
            self.daemon = None
        wait_for(
            lambda: not any(executable(p) in (str(self.worker), str(self.sqlipcd)) for p in [pid, *workers]),
            "sqlipcd and its workers end",
        )

    def kill(self):
        """Ends sqlipcd by SIGKILL; its workers must notice it and end."""
        workers = self.workers()
        self.daemon.kill()
        self.daemon.wait()
        self.daemon = None
        wait_for(lambda: not any(executable(p) == str(self.worker) for p in workers), "workers die with their supervisor")
        if self.bus.poll() is None and not self.activation:  # otherwise the next one may find the name taken
            wait_for(lambda: not self.has_owner(), "the bus has noticed it")

    # ---- clients ----

    def client(self, uid=None, groups=()):
        client = Client(self.address, uid, groups)
        self.clients.append(client)
        return client

    def counters(self, client=None):
        return (client or self.driver).properties(MANAGER)

    def states(self):
        """Returns the states of all runs, as root sees them."""
        return sorted(more["state"] for _, _, _, more in self.driver.manager("ListRuns")[0])

    def is_over(self):
        """Returns true if no run goes on. The end of one may wait for room in its pipe, which a reader keeps open."""
        return self.states() in ([], ["draining"])

    def forget(self):
        """Closes every client, and waits until the daemon has freed their sessions."""
        while self.clients:
            self.clients.pop().close()
        wait_for(self.is_idle, "the daemon forgets clients that left")

    def is_idle(self):
        now = self.counters()
        return not any(now[name] for name in ("NStatements", "NRuns", "NParked", "NChannels", "NWatches"))

    def run(self, *command, environment=None, **keywords):
        """Runs a program of the build tree against this bus; returns the finished process with bytes as output."""
        return subprocess.run(
            list(map(str, command)),
            env=self.environment
            | {"DBUS_SESSION_BUS_ADDRESS": self.address}
            | (environment or {}),
            capture_output=True,
            timeout=PATIENCE * 2,
            check=False,
            **({"input": b""} | keywords),
        )

    def log_text(self):
        self.log.flush()
        return (self.folder / "log").read_text(errors="replace")

    # ---- the end ----

    def _left_behind(self):
        others = {other.daemon.pid for other in Service.alive if other is not self and other.daemon}
        ours = (str(self.worker), str(self.sqlipcd))
        return [pid for pid in children(os.getpid()) if executable(pid) in ours and pid not in others]

    def close(self, check=True):
        problems = []
        Service.alive.discard(self)
        try:
            for client in self.clients:
                client.close()
            if self.daemon or (self.activation and self.bus and self.bus.poll() is None and self.has_owner()):
                try:
                    self.stop()
                except (AssertionError, subprocess.TimeoutExpired) as problem:
                    problems.append(str(problem))
            # A daemon that a test told to stop has given up its name, but its process may not have ended yet.
            with contextlib.suppress(AssertionError):
                wait_for(lambda: not self._left_behind(), "processes end")
            problems += [f"left behind: {executable(pid)} ({pid})" for pid in self._left_behind()]
        finally:
            for process in (self.daemon, self.bus):
                if process:
                    process.kill()
                    process.wait()
            if self.bus and self.bus.stdout:
                self.bus.stdout.close()
            self.log.close()
            if self.unit:
                self.unit.close()
        reports = {report.name: report.read_text(errors="replace") for report in (self.folder / "reports").iterdir()}
        problems += [f"{name}:\n{text}" for name, text in reports.items() if not KILLED_AT_ITS_END.fullmatch(text)]
        if problems and check:
            log = (self.folder / "log").read_text(errors="replace")
            shutil.rmtree(self.folder, ignore_errors=True)
            raise AssertionError("\n".join(problems) + f"\nlog:\n{log}")
        shutil.rmtree(self.folder, ignore_errors=True)

    def diagnose(self):
        """Prints the traces of a hang: the log, and where each process waits."""
        if self.log.closed:
            return
        tap.diagnose(self.log_text()[-20000:])
        for pid in descendants(os.getpid()):
            with contextlib.suppress(OSError):
                status = status_of(pid)
                stack = pathlib.Path(f"/proc/{pid}/stack").read_text().splitlines() if os.geteuid() == 0 else []
                tap.diagnose(f"{pid} {status['Name']}, {status['State'].strip()}: {' < '.join(map(str.strip, stack[:4]))}")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind and not issubclass(kind, tap.Skip):
            self.diagnose()
        self.close(check=kind is None)


def expect(name, function, *arguments, **keywords):
    """Fails unless the call returns the error org.sqlipc1.Error.`name` with a sentence; returns the failure."""
    try:
        result = function(*arguments, **keywords)
    except Failure as failure:
        wanted = name if "." in name else "org.sqlipc1.Error." + name
        if failure.name != wanted:
            raise AssertionError(f"got {failure}, expected {wanted}") from None
        if len(failure.message.split()) < 2:
            raise AssertionError(f"{failure.name} says only {failure.message!r}") from None
        return failure
    raise AssertionError(f"got {str(result)[:300]}, expected the error {name}")


def main(service=None):
    """Runs the tests of the calling file. A shared `service` is taken down as the last test."""
    if not SQLIPCD.exists() or not WORKER.exists():
        sys.exit(f"not built: {SQLIPCD}, {WORKER}; set SQLIPC_BUILD_ROOT")
    tests = list(tap._tests)
    if service:

        def teardown():
            """Nothing is left: process, descriptor, sanitizer report"""
            service.close()

        tests.append(teardown)
    sys.exit(tap.run(tests=tests, on_failure=service.diagnose if isinstance(service, Service) else None))
