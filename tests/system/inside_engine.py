# SPDX-License-Identifier: LGPL-2.1-or-later
"""A database of a PostgreSQL server, by sqlipc-engine.socket and its sandbox, as ordinary users."""
import contextlib
import glob
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from inside_sandbox import exposure
from machine import (
    HOME, PATIENCE, UNIT, bus, command, done, dropped, equal, main_pid, refused, reload, sanitized, status, stop, test, true,
    wait_for, words_of, written,
)
from served import FOLDER, PASSWORD, SOCKET, administer, genre, instances, processes, published, server
from tap import Skip

ENGINE_DROP_IN = pathlib.Path("/run/systemd/system/sqlipc-engine@.service.d/test.conf")
NETWORK = HOME / "docs/examples/network.conf"
NAMESPACE = HOME / "docs/examples/network-namespace.conf"


@test
def exposure_of_engines():
    """systemd-analyze security rates the unit of engines 0.2, by TCP 0.5 or 1.0, and verify reports nothing about it"""
    exposure("sqlipc-engine@.service", 2)
    for drop_in, limit in ((NAMESPACE, 5), (NETWORK, 10)):
        with dropped(drop_in.read_text(), ENGINE_DROP_IN):
            exposure("sqlipc-engine@.service", limit)
    for scope in ("--system", "--user"):
        environment = os.environ | {"XDG_RUNTIME_DIR": "/run"}
        for name in (SOCKET, "sqlipc-engine@1.service"):
            verified = command("systemd-analyze", "verify", scope, "--man=no", name, env=environment)
            equal(verified.stderr, "", f"{scope} {name}")


@test
def engine_answers():
    """Two users get rows of a server by two instances of the unit, which the server knows by the unit's user"""
    one_each = written("/etc/sqlipc/sqlipcd.conf", "[Limits]\nWorkersMax=1\n", then=reload)  # also if a start takes long
    with one_each, server(), published(f"host={FOLDER} dbname=postgres user=sqlipc-engine"):
        equal(genre(), "Rock\n", "rows of a reader")
        equal(genre("sqlipc-other"), "Rock\n", "rows of another user")
        equal(len(instances()), 2, "instances")
        equal(len(processes()), 4, "keepers and workers")
        for pid in processes():
            equal(status(pid, "Uid").split()[0], str(pwd.getpwnam("sqlipc-engine").pw_uid), "user")
            equal(status(pid, "CapBnd"), "0" * 16, "capabilities")
            equal(status(pid, "NoNewPrivs"), "1", "NoNewPrivs")
            true(sanitized or os.stat(f"/proc/{pid}/exe").st_mode & 0o777 == 0o711, "its user cannot read it")
            true(sanitized or int(status(pid, "Seccomp_filters")) > 1, "filters of the unit and of the process")
        os.kill(main_pid(), 9)
        wait_for(lambda: not processes(), "engine processes end with the service")
        wait_for(lambda: not instances(), "and so do their units")
        equal(genre(), "Rock\n", "after the service's death")


@test
def only_the_service_starts_engines():
    """No other user can connect to the socket of engines"""
    with server():
        code = "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect('/run/sqlipc-engine/socket')"
        true("PermissionError" in refused("/usr/bin/python3", "-c", code, user="sqlipc-reader"), "what a user gets")
        true("PermissionError" in refused("/usr/bin/python3", "-c", code, user="sqlipc-engine"), "what an engine gets")
        equal(instances(), [], "instances")


@test
def password_and_network():
    """A password file that only the service may read; a server is reached by TCP only with network.conf"""
    connection = "host=127.0.0.1 dbname=postgres user=reader sslmode=disable"
    file = pathlib.Path("/etc/sqlipc/served.password")
    with server(), written(file, PASSWORD + "\n"), published(connection, f"PasswordFile={file}"):
        file.chmod(0o600)
        true("PasswordFile=" in genre(run=refused), "the service may not read the file of root")
        shutil.chown(file, "sqlipc", "sqlipc")
        true("network.conf" in genre(run=refused), "the error names what gives a network")
        with written(ENGINE_DROP_IN, NETWORK.read_text(), then=lambda: done("systemctl", "daemon-reload")):
            done("systemctl", "stop", "sqlipc-engine@*")
            equal(genre(), "Rock\n", "rows by TCP")


def places_of(text):
    """Returns the names of the journal, the lists, the environments and the command lines that have a text."""
    done("journalctl", "--sync")
    outputs = {"the journal": done("journalctl", "--no-pager", "-o", "export", "-b")}
    for verb in ("list", "status", "status served", "security", "check"):
        outputs[verb] = command("sqlipcctl", *verb.split()).stdout
    true(all(outputs.values()), f"nothing is empty: {outputs}")
    found = [name for name, output in outputs.items() if text in output]
    for path in (*glob.glob("/proc/[0-9]*/environ"), *glob.glob("/proc/[0-9]*/cmdline")):
        with contextlib.suppress(OSError):  # The process has ended.
            found += [path] if text.encode() in pathlib.Path(path).read_bytes() else []
    return found


@test
def password_by_credential():
    """LoadCredential= gives the service a password that only root may read, which is shown nowhere; each mistake is told"""
    file, errors = pathlib.Path("/etc/sqlipc/served.password"), []

    def mistake(*words):
        """Fails unless a query ends with an error, and it or the journal has the words."""
        errors.append(genre(run=refused))
        done("journalctl", "--sync")
        told = errors[-1] + done("journalctl", "--no-pager", "-o", "cat", "-b", "-n", "10", "-u", UNIT)
        for word in words:
            true(word in told, f"{word}: {told}")

    database = published(f"host={FOLDER} dbname=postgres user=reader", "PasswordFile=served")
    with server(), written(file, PASSWORD + "\n"), database:
        file.chmod(0o600)
        mistake("PasswordFile=served", "LoadCredential=")
        with dropped(f"[Service]\nLoadCredential=other:{file}\n"):
            mistake("PasswordFile=served", "LoadCredential=")
        with dropped(f"[Service]\nLoadCredential=served:{file}.absent\n"):
            # dbus-daemon would make the client wait for its own time limit.
            if bus == "broker":
                mistake("could not be started", "status=243/CREDENTIALS")
        with dropped(f"[Service]\nLoadCredential=served:{file}\n"):
            equal(genre(), "Rock\n", "rows")
            equal(places_of(PASSWORD), [], "places that have the password")
            file.write_text("open " + PASSWORD + "\n")
            stop()
            mistake("LoginFailed", "PasswordFile=")
        equal(places_of(PASSWORD), [], "places that have the wrong password")
        true(PASSWORD not in "".join(errors), "no error has it")


@contextlib.contextmanager
def namespace():
    """The namespace as network-namespace.conf makes it, with a route to 192.0.2.1 alone."""
    if not shutil.which("ip"):
        raise Skip("ip is not installed (package iproute2)")
    try:
        for line in re.findall("^#     (ip .*)$", NAMESPACE.read_text(), re.M):
            done(*line.split())
        done("ip", "address", "add", "198.51.100.1/32", "dev", "lo")
        yield
    finally:
        command("ip", "netns", "delete", "sqlipc-engine")  # and both ends of the link
        command("ip", "address", "delete", "198.51.100.1/32", "dev", "lo")


@test
def network_namespace():
    """With network-namespace.conf, the namespace's servers are reached; others only by a route and IPAddressAllow="""
    file, near, far = pathlib.Path("/etc/sqlipc/served.password"), "192.0.2.1", "198.51.100.1"

    def at(host):
        connection = f"host={host} dbname=postgres user=reader connect_timeout=5 sslmode=disable"
        return published(connection, f"PasswordFile={file}")

    with server(), written(file, PASSWORD + "\n"), contextlib.ExitStack() as stack:
        shutil.chown(file, "sqlipc", "sqlipc")
        file.chmod(0o600)
        with dropped(NAMESPACE.read_text(), ENGINE_DROP_IN), at(near):
            true("sqlipc-engine@*.service" in genre(run=refused), "without the namespace the error names the units' log")
            equal(failed_units(), "", "failed units")
        stack.enter_context(namespace())
        with dropped(NAMESPACE.read_text(), ENGINE_DROP_IN):
            with at(near):
                equal(genre(), "Rock\n", "rows by the namespace")
            for host in (far, "127.0.0.1"):
                with at(host):
                    true("ServerUnreachable" in genre(run=refused), f"{host} is not reached")
            done("ip", "-n", "sqlipc-engine", "route", "add", "default", "via", near)
            with at(far):
                true("ServerUnreachable" in genre(run=refused), "an address that is not allowed")
        with dropped(NAMESPACE.read_text() + f"IPAddressAllow={far}\n", ENGINE_DROP_IN), at(far):
            equal(genre(), "Rock\n", "rows of an address with a route, once it is allowed")


@contextlib.contextmanager
def asking(sql, user="sqlipc-reader", other=None):
    """A client whose statement waits in the server, and its unit, the only one except for that of another client."""

    def own_unit():
        found = set(instances()) - {other}
        return found if len(found) == 1 else None

    process = subprocess.Popen(words_of(user, "ipcq-cli", "--system", "served", sql), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        quoted = sql.replace("'", "''")
        wait_for(lambda: administer(f"SELECT count(*) FROM pg_stat_activity WHERE query = '{quoted}'") == "1", "it waits")
        (name,) = wait_for(own_unit, "it has one unit")
        yield process, name
    finally:
        process.kill()
        process.communicate()


def members(instance):
    """Returns the pids of an instance's keeper and worker, which are alone in its cgroup."""
    values = dict(line.split("=", 1) for line in done("systemctl", "show", instance).splitlines())
    keeper = int(values["MainPID"])
    pids = {int(pid) for pid in pathlib.Path("/sys/fs/cgroup" + values["ControlGroup"], "cgroup.procs").read_text().split()}
    (worker,) = pids - {keeper}
    for key, value in {"MemoryMax": 512 << 20, "MemoryHigh": 384 << 20, "TasksMax": 16}.items():
        equal(values[key], str(value), f"{key}= of {instance}")
    return keeper, worker


def lost(process):
    """Fails unless the client ends with the error of a lost worker."""
    output, error = process.communicate(timeout=PATIENCE)
    true(process.returncode != 0 and "WorkerLost" in error, f"{process.returncode}: {output[:200]} {error}")


def failed_units():
    return done("systemctl", "list-units", "--plain", "--no-legend", "--state=failed", "sqlipc-engine*")


@test
def lost_engines():
    """Each engine process has a cgroup; if it is killed or stopped, its client gets WorkerLost and others nothing"""
    ways = {
        "the worker is killed": lambda name: os.kill(members(name)[1], signal.SIGKILL),
        "the keeper is killed": lambda name: os.kill(members(name)[0], signal.SIGKILL),
        "the unit is killed": lambda name: done("systemctl", "kill", "--signal=KILL", name),
        "the unit is stopped": lambda name: done("systemctl", "stop", name),
    }
    with server(), published(f"host={FOLDER} dbname=postgres user=sqlipc-engine"):
        with asking("SELECT pg_sleep(601)", "sqlipc-other") as (other, kept):
            for what, end in ways.items():
                with asking("SELECT pg_sleep(600)", other=kept) as (process, name):
                    end(name)
                    lost(process)
                wait_for(lambda: name not in instances(), f"{what}: the unit ends")
                equal(genre(), "Rock\n", f"{what}: the next query")
            done("systemctl", "restart", SOCKET)
            equal(genre("sqlipc-member"), "Rock\n", "a new user, after a restart of the socket")
            true(other.poll() is None and kept in instances(), "the other client goes on")
            done("systemctl", "stop", UNIT)
            true(other.wait(PATIENCE) != 0, "its query ends with the service")
            wait_for(lambda: not instances(), "all units end with the service")
        equal(failed_units(), "", "failed units")


@test
def most_connections():
    """When MaxConnections= of the socket is reached, a job is left to its user's process; a user who has none is told"""
    drop_in = pathlib.Path("/run/systemd/system/sqlipc-engine.socket.d/test.conf")

    def n_dropped():
        done("journalctl", "--sync")
        return done("journalctl", "--no-pager", "-o", "cat", "-b", "-u", SOCKET).count("Too many incoming connections")

    with contextlib.ExitStack() as stack:
        stack.enter_context(written("/etc/sqlipc/sqlipcd.conf", "[Limits]\nQueueTimeoutSec=600\n", then=reload))
        stack.enter_context(
            written(drop_in, "[Socket]\nMaxConnections=1\n", then=lambda: done("systemctl", "daemon-reload"))
        )
        stack.enter_context(server())
        stack.enter_context(published(f"host={FOLDER} dbname=postgres user=sqlipc-engine"))
        with ThreadPoolExecutor(1) as pool:
            with asking("SELECT pg_sleep(600)"):
                true("MaxConnections=" in genre("sqlipc-other", run=refused), "what another user gets")
                before = n_dropped()
                waits = pool.submit(genre)
                wait_for(lambda: waits.done() or n_dropped() > before, "it is done, or another process is refused")
            equal(waits.result(), "Rock\n", "the job of the user who has a process")
        wait_for(lambda: "Rock" in genre("sqlipc-other", run=command).stdout, "the other user gets an answer")


@contextlib.contextmanager
def memory_limited(instance, size):
    """Limits the memory of an instance, as MemoryMax= does; if this systemd has no controller, by cgroup v1's."""
    if "memory" in pathlib.Path("/sys/fs/cgroup/cgroup.controllers").read_text().split():
        done("systemctl", "set-property", "--runtime", instance, f"MemoryMax={size}", "MemorySwapMax=0")
        yield
        return
    mount = pathlib.Path("/run/sqlipc-test-memory")
    mount.mkdir()
    if command("mount", "-t", "cgroup", "-o", "memory", "cgroup", mount).returncode != 0:
        raise Skip("there is no memory controller")
    group = pathlib.Path(tempfile.mkdtemp(prefix="sqlipc-test.", dir=mount))
    try:
        for name in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"):
            (group / name).write_text(str(size))
        for pid in members(instance):
            (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        wait_for(lambda: not (group / "cgroup.procs").read_text(), "the group is empty")
        group.rmdir()
        done("umount", mount)


def out_of_memory():
    """If the kernel kills an engine process for memory, its client gets WorkerLost, and no unit stays failed"""
    with server(), published(f"host={FOLDER} dbname=postgres user=sqlipc-engine"):
        hold = ["psql", "-qh", FOLDER, "-U", "postgres", "-c", "SELECT pg_advisory_lock(1), pg_sleep(600)"]
        quiet = {name: subprocess.DEVNULL for name in ("stdin", "stdout", "stderr")}
        with subprocess.Popen(hold, **quiet) as holder:
            wait_for(lambda: administer("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == "1", "the lock")
            with asking("SELECT pg_advisory_lock(1), repeat('x', 100000000)") as (process, name):
                with memory_limited(name, 48 << 20):
                    holder.kill()
                    administer("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted")
                    lost(process)
        wait_for(lambda: name not in instances(), "the unit ends")
        equal(genre(), "Rock\n", "the next query")
        equal(failed_units(), "", "failed units")


if not sanitized:  # sanitizers need more memory
    test(out_of_memory)


@test
def no_unit_no_server():
    """Without the socket unit the error says what to install"""
    with published("host=/nonexistent"):
        command("systemctl", "stop", SOCKET)
        true("sqlipc-engine.socket" in genre(run=refused), "the error names the unit")
        true("sqlipc-engine.socket" in command("sqlipcctl", "check").stdout, "so does check")
