#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Boots a real systemd with a real system bus over an installed tree, and runs inside.py there.

usage: test_system.py broker|daemon [TEST...]

boot-systemd.sh lists the requirements for the boot. If they are not met, the suite is skipped and says why.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SQLIPC_BUILD_ROOT", SOURCE / "build"))
SANITIZED = os.environ.get("SQLIPC_SANITIZED") == "1"
# The place of the tests in the container, with the same folders as here.
HOME = "usr/lib/sqlipc-test"
COPIED = [
    "tests/bus",
    "tests/system",
    "tests/vectors",
    "tests/data",
    "docs/examples",
    "dbus-interfaces/sqlipc-errors.h",
    "daemon/supervisor/base/log-events.h",
]
# The users of the container, besides the service's own user, which the installation creates.
USERS = """u sqlipc-reader - - /home/sqlipc-reader -
u sqlipc-other - - - -
u sqlipc-member - - - -
g accounting -
m sqlipc-member accounting
"""
# The package of each bus, and its unit.
BUSES = {
    "broker": {"dbus-broker": "system/dbus-broker.service"},
    "daemon": {"dbus": "system/dbus.service"},
}
# The sandbox refuses the ptrace calls of the leak check, and sanitizers reserve terabytes of address space.
FOR_SANITIZERS = "[Service]\nEnvironment=ASAN_OPTIONS=detect_leaks=0\n"


def missing(bus):
    """Why this cannot run here, or nothing."""
    if os.geteuid() != 0:
        return "needs root"
    if not shutil.which("systemd-nspawn"):
        return "needs systemd-nspawn (package systemd-container)"
    for package, file in {**BUSES[bus], "polkitd": "system/polkit.service", "dbus-user-session": "user/dbus.socket"}.items():
        if not pathlib.Path("/usr/lib/systemd", file).exists():
            return f"needs {package}"
    if " - cgroup2 " not in pathlib.Path("/proc/self/mountinfo").read_text():
        return "needs a cgroup2 mount"
    return None


def copy(name, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    if (SOURCE / name).is_dir():
        shutil.copytree(SOURCE / name, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    else:
        shutil.copy(SOURCE / name, target)


def make_layer(layer, bus):
    """Makes the tree that is copied over the root: an installation, the tests, and an administrator's files."""
    # One installation at a time, because it may build missing files.
    install = ["flock", BUILD / "meson-private", "meson", "install", "-C", BUILD, "--quiet", "--destdir", layer]
    subprocess.run(install, check=True, stdout=sys.stderr)
    # Some distributions keep units in /lib. If /lib is a link to /usr/lib, no folder can be copied over it.
    if (layer / "lib").is_dir() and pathlib.Path("/lib").is_symlink():
        shutil.copytree(layer / "lib", layer / "usr/lib", dirs_exist_ok=True)
        shutil.rmtree(layer / "lib")
    for name in COPIED:
        copy(name, layer / HOME / name)
    written = {
        "usr/lib/sysusers.d/sqlipc-test.conf": USERS,
        "etc/sqlipc/databases.d/chinook.conf": f"[Database]\nPath=/{HOME}/tests/data/chinook.sqlite\n"
        "Description=A store\nAllowUsers=*\n",
    }
    if SANITIZED:
        written |= {
            f"etc/systemd/{kind}/{unit}.service.d/sanitizers.conf": FOR_SANITIZERS
            for kind in ("system", "user")
            for unit in ("sqlipcd", "sqlipc-engine@")
        }
    for name, text in written.items():
        (layer / name).parent.mkdir(parents=True, exist_ok=True)
        (layer / name).write_text(text)
    if bus == "broker":
        (layer / "etc/systemd/user").mkdir(parents=True, exist_ok=True)
        (layer / "etc/systemd/user/dbus.service").symlink_to("/usr/lib/systemd/user/dbus-broker.service")
    for path in [layer, *layer.rglob("*")]:
        # The user of sqlipc-engine must not read it, but LeakSanitizer in its process must.
        if not path.is_symlink() and (SANITIZED or path.name != "sqlipc-engine"):
            path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o644))


def main():
    bus = sys.argv[1]
    reason = missing(bus)
    if reason:
        print(f"1..0 # SKIP {reason}")
        return 0
    with tempfile.TemporaryDirectory(prefix="sqlipc-layer-") as folder:
        layer, journal = pathlib.Path(folder, "layer"), pathlib.Path(folder, "journal")
        layer.mkdir()
        make_layer(layer, bus)
        boot = [SOURCE / "tests/system/boot-systemd.sh", "-l", layer, "-B", bus, "-J", journal]
        if SANITIZED:
            boot += ["-e", "SQLIPC_SANITIZED=1"]
        inside = ["/usr/bin/python3", "-B", f"/{HOME}/tests/system/inside.py", *sys.argv[1:]]
        done = subprocess.run([*boot, "--", *inside], check=False)
        if done.returncode != 0 and journal.exists():
            for line in journal.read_text(errors="replace").splitlines()[-80:]:
                print("#", line)
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
