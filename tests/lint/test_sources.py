#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every source states its licence, meson runs every test, and no text names a thing that outsiders cannot reach.

Checks the files that git tracks, or, outside a checkout, all files. usage: test_sources.py BUILD-ROOT
"""
import json
import math
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(ROOT / "tests/bus"))
from tap import equal, run, test, true  # noqa: E402


def files():
    known = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=False)
    if known.returncode == 0:
        paths = [ROOT / name for name in known.stdout.decode().split("\0") if name]
    else:
        paths = [
            p for p in ROOT.rglob("*") if p.is_file() and not re.match(r"(\.git|build[^/]*)/", str(p.relative_to(ROOT)))
        ]
    return [p for p in paths if p.exists()]


SOURCE = {".c", ".h", ".py", ".sh", ".xml", ".build", ".sym", ".in", ".rst"}
# Kept together from pieces, so that this file is not its own finding.
FORBIDDEN = [
    r"/wo" + "rk/",
    r"\.\./sha" + "red",
    r"DESIGN" + r"\.md",
    r"STYLE" + r"\.md",
    r"\bdeb\.debi" + "an",
    r"pypi\." + "org",
    r"registry\.n" + "pmjs",
    r"proxy\.gol" + "ang",
    r"crates\.i" + "o",
    r"\bTO" + "DO",
    r"\bFIX" + "ME",
    r"\bXX" + r"X\b",
]
BINARY = {".sqlite", ".png", ".bin", ".hex"}
# Times that docs/ARCHITECTURE.md and docs/design state: the file below daemon/, the constant, microseconds of the unit, and
# the words.
DOCUMENTED_TIMES = (
    ("supervisor/access/peer.h", "PEER_CREDENTIALS_USEC", 1000000, "asks the bus driver about a new peer, for {} s at most"),
    ("supervisor/workers/group.c", "SIBLING_USEC", 1000, "A sibling starts when a job waits {} ms"),
    ("worker/core/row-sink.h", "ROW_SINK_WAIT_USEC", 1000, "A page also goes out {} ms after its first row"),
    ("worker/core/served-channel.c", "QUIET_USEC", 1000000, "quiet for {} s"),
    ("worker/core/worker-loop.c", "LOOK_USEC", 1000, "which its progress handler sees within {} ms"),
)


@test
def licence():
    """An SPDX line near the top of each source"""
    chosen = [p for p in files() if p.suffix in SOURCE or p.name in ("meson_options.txt", "run")]
    true(len(chosen) > 20, f"only {len(chosen)} sources found")
    equal(
        [str(p.relative_to(ROOT)) for p in chosen if "SPDX-License-Identifier: " not in p.read_text()[:600]],
        [],
        "files without",
    )


@test
def words():
    """No text names one machine or one workplace, or has unfinished thoughts"""
    found = []
    for path in files():
        # Cargo writes Cargo.lock, in which each crate has the address of its registry.
        if path.suffix in BINARY or "corpus" in path.parts or path.name in ("LICENSE", "Cargo.lock"):
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            found += [f"{path.relative_to(ROOT)}:{number}: {word}" for word in FORBIDDEN if re.search(word, line)]
    equal(found, [], "forbidden words")


@test
def shape():
    """No tabs, no trailing blanks, no line over 125 columns in code"""
    found = []
    for path in files():
        if path.suffix not in {".c", ".h", ".py", ".sh"} or "corpus" in path.parts:
            continue
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if "\t" in line or line != line.rstrip() or len(line) > 125:
                found.append(f"{path.relative_to(ROOT)}:{number}")
    equal(found, [], "lines")


@test
def comments():
    """C comments are /* */"""
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files()
        if path.suffix in {".c", ".h"}
        for number, line in enumerate(path.read_text().split("\n"), 1)
        if re.match(r"\s*//", line)
    ]
    equal(found, [], "lines")


@test
def annotations():
    """No user_data is annotated as a closure, which is for callbacks: the scanner of Debian 13 takes that for an error"""
    annotated = re.compile(r"\* @user_data: .*\(closure")
    found = [f"{p.relative_to(ROOT)}" for p in files() if p.suffix in {".c", ".h"} and annotated.search(p.read_text())]
    equal(found, [], "files")


@test
def every_test_is_listed():
    """Every file that is a test is run by meson: as a script, or as a source of a program"""
    named = re.compile(r"(test[-_].*|fuzz-.*)\.(py|c|sh)$")
    tests = [p for p in files() if p.is_relative_to(ROOT / "tests") and named.match(p.name)]
    true(len(tests) > 5, f"only {len(tests)} tests found")
    info = BUILD / "meson-info"
    commands = [word for entry in json.loads((info / "intro-tests.json").read_text()) for word in entry["cmd"]]
    run_by_meson = {pathlib.Path(word).resolve() for word in commands if "/" in word}
    for target in json.loads((info / "intro-targets.json").read_text()):
        if any(pathlib.Path(name).resolve() in run_by_meson for name in target["filename"]):
            groups = [group.get("sources", []) for group in target["target_sources"]]  # that of a linker has none
            run_by_meson |= {pathlib.Path(name).resolve() for group in groups for name in group}
    missing = [str(p.relative_to(ROOT)) for p in tests if p.resolve() not in run_by_meson]
    equal(missing, [], "tests that nothing runs")


@test
def either_build():
    """Tests that run in one build only, because both builds would show the same, do not depend on sanitizers"""
    entries = json.loads((BUILD / "meson-info/intro-tests.json").read_text())
    either = {entry["name"]: entry["cmd"][1] for entry in entries if "sqlipc:either" in entry["suite"]}
    true(len(either) > 20, f"only {len(either)} tests found")
    found = [name for name, path in either.items() if re.search("SANITIZED|unsanitized", pathlib.Path(path).read_text())]
    equal(found, [], "tests that do")


@test
def manual_pages():
    """Every page of the manual is installed, and those that it refers to are there, or others'"""
    pages = {p.name.removesuffix(".rst"): p.read_text() for p in files() if p.match("docs/man/*.rst")}
    true(len(pages) > 10, f"only {len(pages)} pages found")
    listed = (ROOT / "docs/man/meson.build").read_text()
    equal([page for page in pages if f"'{page}' :" not in listed], [], "pages that meson does not install")
    links = {f"{name}.3" for name in re.findall(r"'(sqlipc_\w+)'", listed)}
    others = {"busctl.1", "errno.3", "inotify.7", "poll.2", "sd-event.3", "sd_notify.3", "sd_bus_path_encode.3"}
    others |= {"pkttyagent.1", "sqlite3.1", "syslog.3", "gnuplot.1", "perf.1", "strace.1", "vmsplice.2", "ssh.1"}
    others |= {"dbus-send.1", "gdbus.1", "nice.1", "systemd-stdio-bridge.1", "psql.1", "readline.3", "sh.1"}
    named = {
        (f"{name}.{section}", page)
        for page, text in pages.items()
        for name, section in re.findall(r"\*\*([\w.-]+)\*\*\\\((\d)\)", text)
    }
    equal(sorted(pair for pair in named if pair[0] not in pages.keys() | links | others), [], "pages that are nowhere")


def microseconds(path, name):
    """The value of the constant in a source below daemon/."""
    (text,) = re.findall(rf"^#define {name} (.*?)(?: */\*.*)?$", (ROOT / "daemon" / path).read_text(), re.M)
    for unit, value in (("USEC_PER_SEC", "1000000"), ("USEC_PER_MSEC", "1000")):
        text = text.replace(unit, value)
    factors = re.findall(r"\d+", text.replace("UINT64_C", ""))
    return math.prod(map(int, factors))


@test
def documented_times():
    """Each time that docs/ARCHITECTURE.md and the design notes state is that of the code"""
    pages = [ROOT / "docs/ARCHITECTURE.md", *sorted((ROOT / "docs/design").glob("*.md"))]
    text = " ".join(" ".join(page.read_text() for page in pages).split())
    stated = [words.format(microseconds(path, name) // unit) for path, name, unit, words in DOCUMENTED_TIMES]
    equal([words for words in stated if words not in text], [], "sentences that no page has")


@test
def variadic_calls():
    """Each variadic C function that a script calls declares its arguments: an int leaves half of a long to chance"""
    call = re.compile(r"(?:[lL]ibc|LIBC|CDLL\(.*\))\.(syscall|prctl|ptrace|fcntl|ioctl|open|openat|semctl)\(")
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files()
        if path.suffix == ".py"
        for name in set(call.findall(path.read_text()))
        if f".{name}.argtypes" not in path.read_text()
    ]
    equal(found, [], "calls")


@test
def scripts_are_executable():
    """Files that start with #! are executable"""
    found = [str(p.relative_to(ROOT)) for p in files() if p.read_bytes()[:3] == b"#!/" and not p.stat().st_mode & 0o100]
    equal(found, [], "scripts")


sys.exit(run())
