#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What tools/bench-shell.sh runs: ipcq-cli beside sqlite3, in pairs.

usage: tools/bench-shell.py CLI FOLDER PAIRS [REPORT-FOLDER]

FOLDER has data/study.sqlite, which a service publishes as `study`, and the service's configuration. Whole processes in turn:
first ours then sqlite3 in every second pair, the other way round in the others. Prints medians with the least and the most,
and writes them as report.json, for tools/update-performance.py.
"""
import json
import os
import pathlib
import pty
import select
import signal
import sqlite3
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


def figure(values):
    return {"values": values, "median": statistics.median(values)}


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


def measure_mode(mode):
    ours = [CLI, "--user", f"--mode={mode}", "study", SQL]
    theirs = ["sqlite3", f"-{mode}", FILE, SQL]
    run(ours)  # the service runs, the file is read
    run(theirs)
    pairs = [in_turn(i, lambda: with_service(ours), lambda: run(theirs)) for i in range(PAIRS)]
    columns = {
        "ipcq-cli, s": [o[0] for o, _ in pairs],
        "sqlite3, s": [t[0] for _, t in pairs],
        "ratio": [o[0] / t[0] for o, t in pairs],
        "ipcq-cli CPU, s": [o[1] for o, _ in pairs],
        "service CPU, s": [o[2] for o, _ in pairs],
        "sqlite3 CPU, s": [t[1] for _, t in pairs],
        "CPU ratio, with service": [(o[1] + o[2]) / t[1] for o, t in pairs],
    }
    print(f"{mode}: " + ", ".join(f"{name} {shown(values)}" for name, values in columns.items()), flush=True)
    return columns


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
    return columns


def measure_memory():
    peaks = {mode: peak([CLI, "--user", f"--mode={mode}", "study", SQL]) / MIB for mode in MODES}
    cell = f"SELECT zeroblob({60 * MIB})"
    cells = {mode: peak([CLI, "--user", f"--mode={mode}", "study", cell]) / MIB for mode in MODES}
    dump = peak([CLI, "--user", "study", ".dump"]) / MIB
    for mode in MODES:
        print(f"memory, {mode}: {peaks[mode]:.1f} MiB, of a value of 60 MiB {cells[mode]:.1f} MiB")
    print(f"memory, .dump: {dump:.1f} MiB", flush=True)
    return peaks, cells, dump


# ---- The report ----


def facts():
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    version = subprocess.run([CLI, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    return {
        "machine": f"{len(models)} x {models[0]}",
        "kernel": f"Linux {os.uname().release}",
        "sqlipc": version,
        "SQLite in process": sqlite3.sqlite_version,
    }


def table(title, rows_are, rows):
    """`rows`: (name, {column: values})."""
    columns = [{"name": name, "unit": ""} for name in rows[0][1]]
    cells = [{"name": name, "published": False, "cells": [figure(v) for v in row.values()]} for name, row in rows]
    return {"title": title, "rows-are": rows_are, "columns": columns, "rows": cells}


def report(n_rows, start, modes, memory):
    peaks, cells, dump = memory
    kept = [(mode, {"the whole table": [peaks[mode]], "a value of 60 MiB": [cells[mode]]}) for mode in MODES]
    load = os.getloadavg()
    return {
        "workload": "shell",
        "facts": facts(),
        "figures": {"memory of .dump": {"unit": "MiB"} | figure([dump])},
        "tables": [
            table("From the start to the prompt", "", [("warm service", start)]),
            table(f"{n_rows:,} rows of 31 columns to /dev/null", "mode", list(modes.items())),
            table("The most memory of its own (RssAnon), MiB", "mode", kept),
        ],
        "charts": [],
        "notes": [
            f"{PAIRS} pairs ({3 * PAIRS} of starts), in turn. Load of the machine at the end, the measured processes "
            f"included: {load[0]:.1f} over one minute, {load[1]:.1f} over five, {load[2]:.1f} over fifteen."
        ],
    }


def main():
    with sqlite3.connect(FILE) as database:
        n_rows = database.execute("SELECT count(*) FROM study").fetchone()[0]
    start = measure_start()
    modes = {mode: measure_mode(mode) for mode in ("csv", "json")}
    memory = measure_memory()
    if len(sys.argv) > 4:
        folder = pathlib.Path(sys.argv[4])
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"reports": [report(n_rows, start, modes, memory)]}, indent=1)
        (folder / "report.json").write_text(text + "\n", encoding="ascii")


main()
