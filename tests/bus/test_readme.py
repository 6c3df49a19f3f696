#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Promises of README.md about an installation: its C program, files, packages. The package suite runs all of its blocks."""
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess

from harness import BUILD_ROOT, SANITIZED, SOURCE_ROOT, Service, main
from tap import Skip, equal, test, true

README = (SOURCE_ROOT / "README.md").read_text()
EXAMPLE = SOURCE_ROOT / "docs/examples/readme.c"

service = Service()
packages = service.data / "packages.sqlite"
db = sqlite3.connect(packages)
db.execute("CREATE TABLE package(name TEXT, version TEXT, installed_size INTEGER)")
db.executemany("INSERT INTO package VALUES(?, ?, ?)", [(f"lib{n:03}", f"{n}.0-1", n * 1000) for n in range(500)])
db.commit()
db.close()
service.database("packages", Path=packages)
service.driver.manager("Reload")


def installed():
    """An installation in a folder of its own, and the environment in which pkg-config finds it."""
    root = service.folder / "installed"
    if not root.exists():
        command = ["flock", BUILD_ROOT / "meson-private", "meson", "install", "-C", BUILD_ROOT, "--quiet", "--destdir", root]
        subprocess.run(command, check=True, capture_output=True)
    found = list(root.rglob("libsqlipc.pc"))
    equal(len(found), 1, "libsqlipc.pc files installed")
    library = next(root.rglob("libsqlipc.so.0")).parent
    return os.environ | {
        "PKG_CONFIG_PATH": str(found[0].parent),
        "PKG_CONFIG_SYSROOT_DIR": str(root),
        "LD_LIBRARY_PATH": str(library),
        "DBUS_SESSION_BUS_ADDRESS": service.address,
        "ASAN_OPTIONS": service.environment["ASAN_OPTIONS"],
    }


@test
def program_is_the_file():
    """The program in README.md is docs/examples/readme.c"""
    (block,) = re.findall(r"```c\n(.*?)```", README, re.S)
    equal(block, EXAMPLE.read_text(), "program")
    true(len(block.splitlines()) <= 30, "the program is no longer short")


@test
def decoder_is_installed():
    """The page decoder in Python is installed as an example, and runs from there"""
    installed()
    (decoder,) = (service.folder / "installed").rglob("doc/sqlipc/examples/page_decoder.py")
    stream = bytes.fromhex(re.sub("#.*", "", (SOURCE_ROOT / "tests/vectors/example.hex").read_text()))
    done = subprocess.run(["/usr/bin/python3", decoder], input=stream, capture_output=True, check=True)
    true(b"'rows': [" in done.stdout, f"printed {done.stdout}")


@test
def program_builds_and_runs():
    """The program compiles through pkg-config against an installation, and prints rows"""
    environment = installed()
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "libsqlipc"], env=environment, check=True, capture_output=True, text=True
    )
    program = service.folder / "readme"
    extra = ["-fsanitize=address,undefined"] if SANITIZED else []
    command = ["cc", "-Wall", "-Wextra", "-Werror", *extra, EXAMPLE, "-o", program, *shlex.split(flags.stdout)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    equal((done.returncode, done.stderr), (0, ""), "compiler")
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=False, timeout=120)
    equal((done.returncode, done.stderr), (0, ""), "program")
    true(len(done.stdout.splitlines()) >= 3 and "lib" in done.stdout, f"it printed {done.stdout}")


@test
def what_is_installed():
    """Programs, library, interfaces, activation and manual are installed, and refer to each other"""
    environment = installed()
    root = service.folder / "installed"
    files = {path.relative_to(root) for path in root.rglob("*") if not path.is_dir()}
    for path in files:
        true((root / path).exists(), f"{path} is a link to nothing")
    names = {path.name: path for path in files if "completion" not in str(path)}
    for name in ("ipcq-cli", "sqlipc-bench", "sqlipcctl"):
        equal(names[name].parent.name, "bin", f"folder of {name}")
    for name in ("sqlipcd", "sqlipc-worker"):
        true(os.access(root / names[name], os.X_OK), f"{name} is no program")
    true(f"/{names['sqlipc-worker']}".encode() in (root / names["sqlipcd"]).read_bytes(), "sqlipcd knows another worker")
    sqlipcd = f"/{names['sqlipcd']}"
    # The system's starts in its sandbox or not at all; a session bus may have no systemd behind it.
    for folder, unit_folder, program in (("services", "user", sqlipcd), ("system-services", "system", "/bin/false")):
        (path,) = [p for p in files if p.match(f"dbus-1/{folder}/org.sqlipc1.service")]
        activation = dict(re.findall(r"^(\w+)=(\S+)", (root / path).read_text(), re.M))
        equal(activation["Exec"], program, f"program of {path}")
        (unit,) = [p for p in files if p.match(f"{unit_folder}/{activation['SystemdService']}")]
        equal(re.findall(r"^ExecStart=(\S+)", (root / unit).read_text(), re.M), [sqlipcd], f"program of {unit}")
    for name in ("system.d/org.sqlipc1.conf", "interfaces/org.sqlipc1.Manager.xml", "interfaces/org.sqlipc1.Database.xml"):
        true(any(path.match(f"dbus-1/{name}") for path in files), f"{name} is not installed")
    headers = {path.name for path in files if path.suffix == ".h" and "include" in path.parts}
    true(headers in ({"sqlipc.h"}, {"sqlipc.h", "sqlipc-glib.h", "sqlipc-glib-enums.h"}), f"headers: {headers}")
    version = subprocess.run(
        ["pkg-config", "--modversion", "libsqlipc"], env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()
    true(f"libsqlipc.so.{version}" in names, f"no library of version {version}")
    # Only where man pages are wanted.
    if "sqlipcd.8" in names:
        for page in ("ipcq-cli.1", "libsqlipc.3", "sqlipc_cursor_next.3", "org.sqlipc1.5", "sqlipc-page.5"):
            equal(names[page].parent.name, f"man{page[-1]}", f"folder of {page}")


@test
def installed_elsewhere():
    """Under another prefix all files are below it, except those that the system bus and driver managers read from /etc"""
    if not shutil.which("meson"):
        raise Skip("no meson")
    folder = service.folder / "elsewhere"
    options = ["--prefix=/usr/local", "-Dtests=false", "-Ddocs=false"]
    subprocess.run(["meson", "setup", *options, folder, SOURCE_ROOT], check=True, capture_output=True)
    done = subprocess.run(["meson", "introspect", "--installed", folder], check=True, capture_output=True, text=True)
    paths = set(json.loads(done.stdout).values())
    outside = {"/etc/dbus-1/system.d/org.sqlipc1.conf", "/etc/adbc/drivers/sqlipc.toml"}
    equal({path for path in paths if not path.startswith("/usr/local/")}, outside, "files outside")
    for path in (
        "lib/systemd/system/sqlipcd.service", "lib/sysusers.d/sqlipc.conf", "lib/tmpfiles.d/sqlipc.conf",
        "libexec/sqlipcd",
    ):
        true(f"/usr/local/{path}" in paths, f"{path} is not there")


@test
def packages_exist():
    """Each Debian package that a document installs is one of debian/control"""
    control = (SOURCE_ROOT / "debian/control").read_text()
    packages = set(re.findall(r"^Package: (\S+)$", control, re.M))
    documents = [README, (SOURCE_ROOT / "docs/python.md").read_text()]
    named = {name for text in documents for name in re.findall(r"\.\./([a-z0-9.+-]+)_\*\.deb", text)}
    true({"python3-sqlipc", "libadbc-driver-sqlipc"} <= named, f"only {named}")
    equal(named - packages, set(), "unknown packages")


main(service)
