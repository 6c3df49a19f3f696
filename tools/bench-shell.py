#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The measurements of tools/bench-shell.sh: ipcq-cli beside sqlite3, in pairs.

usage: tools/bench-shell.py CLI FOLDER PAIRS

FOLDER has data/study.sqlite, which a service publishes as `study`; data/write_study.sqlite with an empty table of the same
columns, which it publishes for writing; imported.sqlite, the same for sqlite3; and the service's configuration. Whole
processes in turn: first ours then sqlite3 in every second pair, the other way round in the others. Prints medians with the
least and the most.
"""
import os
import pathlib
import pty
import select
import signal
import statistics
import subprocess
import sys
import time

SQL = "SELECT * FROM study"
MODES = "csv json table box markdown column tsv jsonl line list html insert quote vertical".split()
TICK = os.sysconf("SC_CLK_TCK")
MIB = 1024 * 1024
CLI, FOLDER, PAIRS = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
FILE = str(FOLDER / "data" / "study.sqlite")


# ---- Processes ----


def service_pids():
    """The service's supervisor and its workers."""
    pids = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"--config-dir={FOLDER}/config".encode() in path.read_bytes().split(b"\0"):
                pid = path.parent.name
                pids += [pid, *pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        except OSError:  # it ended meanwhile
            pass
    return pids


def service_seconds():
    """Processor time that it took until now."""
    ticks = 0
    for pid in service_pids():
        ticks += sum(map(int, pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))
    return ticks / TICK


def rss_anon(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0  # it ended


def run(command):
    """Seconds, and seconds of processor time, of a whole process that writes to /dev/null."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command} ended with {process.returncode}")
    return seconds, usage.ru_utime + usage.ru_stime


def peak(command):
    """The most memory of its own that it was seen with, every millisecond."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        if pathlib.Path(f"/proc/{process.pid}/comm").read_text() == "ipcq-cli\n":
            most = max(most, rss_anon(process.pid))
        time.sleep(0.001)
    if process.returncode != 0:
        sys.exit(f"{command} ended with {process.returncode}")
    return most


def until_prompt(command, prompt):
    """Milliseconds from the start to the prompt, on a terminal."""
    start = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, os.environ | {"HOME": str(FOLDER), "TERM": "xterm", "NO_COLOR": "1"})
    shown = b""
    while prompt not in shown:
        if not select.select([terminal], [], [], 30)[0]:
            sys.exit(f"{command} shows no prompt: {shown}")
        shown += os.read(terminal, 4096)
    milliseconds = (time.perf_counter() - start) * 1000
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(terminal)
    return milliseconds


# ---- Figures ----


def shown(values, decimals=2):
    return f"{statistics.median(values):.{decimals}f} ({min(values):.{decimals}f} ... {max(values):.{decimals}f})"


def in_turn(i, ours, theirs):
    """Both, and which goes first changes."""
    if i % 2 == 0:
        mine = ours()
        return mine, theirs()
    other = theirs()
    return ours(), other


def with_service(command):
    before = service_seconds()
    seconds, own = run(command)
    return seconds, own, service_seconds() - before


def print_pairs(what, pairs):
    """Prints the times of whole processes: ours with that of the service, theirs."""
    columns = {
        "ipcq-cli, s": [o[0] for o, _ in pairs],
        "sqlite3, s": [t[0] for _, t in pairs],
        "ratio": [o[0] / t[0] for o, t in pairs],
        "ipcq-cli CPU, s": [o[1] for o, _ in pairs],
        "service CPU, s": [o[2] for o, _ in pairs],
        "sqlite3 CPU, s": [t[1] for _, t in pairs],
        "CPU ratio, with service": [(o[1] + o[2]) / t[1] for o, t in pairs],
    }
    print(f"{what}: " + ", ".join(f"{name} {shown(values)}" for name, values in columns.items()), flush=True)


def measure_mode(mode):
    ours = [CLI, "--user", f"--mode={mode}", "study", SQL]
    theirs = ["sqlite3", f"-{mode}", FILE, SQL]
    run(ours)  # the service runs, the file is read
    run(theirs)
    print_pairs(mode, [in_turn(i, lambda: with_service(ours), lambda: run(theirs)) for i in range(PAIRS)])


def check_and_empty(shell, data):
    """Reads the table, which must be the file that was imported, and deletes its rows, not too many by one statement."""
    if subprocess.run([*shell, "SELECT * FROM write_study"], stdout=subprocess.PIPE, check=True).stdout != data:
        sys.exit(f"the table that {shell} reads is not the file that was imported")
    n_rows = data.count(b"\n")
    delete = [f"DELETE FROM write_study WHERE id <= {row + 20000};" for row in range(0, n_rows, 20000)]
    subprocess.run([*shell, "\n".join(delete)], stdout=subprocess.DEVNULL, check=True)


def measure_import():
    """A CSV file into an empty table in WAL mode."""
    path, imported = FOLDER / "study.csv", str(FOLDER / "imported.sqlite")
    data = subprocess.run(["sqlite3", "-csv", FILE, SQL], stdout=subprocess.PIPE, check=True).stdout
    path.write_bytes(data)
    ours = [CLI, "--user", "write_study", f".import --no-header {path} write_study"]
    theirs = ["sqlite3", imported, ".mode csv", f".import {path} write_study"]
    pairs = []
    for i in range(PAIRS + 1):
        pairs.append(in_turn(i, lambda: with_service(ours), lambda: run(theirs)))
        check_and_empty([CLI, "--user", "--mode=csv", "--headers=off", "write_study"], data)
        check_and_empty(["sqlite3", "-csv", imported], data)
    print_pairs("import", pairs[1:])  # in the first, the files grow


def measure_start():
    ours, theirs = [CLI, "--user", "study"], ["sqlite3", "-interactive", FILE]
    until_prompt(ours, b"study> ")
    pairs = [
        in_turn(i, lambda: until_prompt(ours, b"study> "), lambda: until_prompt(theirs, b"sqlite> "))
        for i in range(3 * PAIRS)
    ]
    columns = {
        "ipcq-cli, ms": [o for o, _ in pairs],
        "sqlite3, ms": [t for _, t in pairs],
        "ratio": [o / t for o, t in pairs],
    }
    print("start to prompt: " + ", ".join(f"{name} {shown(values)}" for name, values in columns.items()), flush=True)


def measure_memory():
    peaks = {mode: peak([CLI, "--user", f"--mode={mode}", "study", SQL]) / MIB for mode in MODES}
    cell = f"SELECT zeroblob({60 * MIB})"
    cells = {mode: peak([CLI, "--user", f"--mode={mode}", "study", cell]) / MIB for mode in MODES}
    dump = peak([CLI, "--user", "study", ".dump"]) / MIB
    for mode in MODES:
        print(f"memory, {mode}: {peaks[mode]:.1f} MiB, of a value of 60 MiB {cells[mode]:.1f} MiB")
    print(f"memory, .dump: {dump:.1f} MiB")


def main():
    measure_start()
    for mode in ("csv", "json"):
        measure_mode(mode)
    measure_import()
    measure_memory()


main()
