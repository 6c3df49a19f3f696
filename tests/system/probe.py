# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes attempts that the sandbox must refuse, and writes the outcome of each as JSON: "allowed", or the error.

usage: probe.py FILE      FILE: the output

The probe runs in the service's sandbox (ExecStartPre=), and outside for comparison.
"""
import ctypes
import json
import mmap
import os
import pathlib
import platform
import socket
import subprocess
import sys

libc = ctypes.CDLL(None, use_errno=True)
# ctypes passes a Python number to a variadic function as an int, so half of a long on the stack would be garbage. Therefore
# each argument has a declared type, and each call passes all arguments.
libc.syscall.argtypes, libc.syscall.restype = [ctypes.c_long] * 7, ctypes.c_long
libc.ptrace.argtypes, libc.ptrace.restype = [ctypes.c_long] * 4, ctypes.c_long
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PTRACE_TRACEME = 0
NR_PERSONALITY, NR_KEYCTL, NR_IO_URING_SETUP, NR_USERFAULTFD, NR_PROCESS_VM_READV = (
    (135, 250, 425, 323, 310) if platform.machine() == "x86_64" else (92, 219, 425, 282, 270)
)


def called(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def system_call(number, *arguments):
    called(libc.syscall(number, *arguments, *[0] * (6 - len(arguments))))


def forked(function):
    """Runs the attempt in a child process, so that its changes end with the child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 0
        try:
            function()
        except OSError as error:
            code = error.errno
        os.write(write, bytes([code]))
        os._exit(0)
    os.waitpid(child, 0)
    code = os.read(read, 1)[0]
    if code:
        raise OSError(code, os.strerror(code))


def write_below(folder):
    path = pathlib.Path(folder, "sqlipc-probe")
    path.write_text("x")
    path.unlink()


def setuid_file():
    with open("probe-setuid", "w") as file:
        try:
            os.fchmod(file.fileno(), 0o4755)
        finally:
            os.unlink("probe-setuid")


def writable_code():
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)


def sees(pid):
    os.stat(f"/proc/{pid}")


def effective_user(program):
    """Fails unless a set-user-id program of root runs as root."""
    user = subprocess.run([program, "-u"], capture_output=True, text=True, check=True).stdout.strip()
    if user != "0":
        raise PermissionError(1, f"it runs as {user}")


ATTEMPTS = {
    "AF_INET socket": lambda: socket.socket(socket.AF_INET).close(),
    "AF_INET6 socket": lambda: socket.socket(socket.AF_INET6).close(),
    "AF_NETLINK socket": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close(),
    "home directories": lambda: os.stat("/home/sqlipc-probe/open"),
    "/tmp of others": lambda: os.stat("/tmp/sqlipc-probe"),
    "write where everybody may": lambda: write_below("/srv/sqlipc-probe"),
    "set-user-id file": setuid_file,
    "set-user-id program": lambda: effective_user("/usr/lib/sqlipc-test/setuid-id"),
    "program": lambda: subprocess.run(["/usr/bin/true"], check=True),
    "processes of others": lambda: sees(1),
    "memory that is written and executed": writable_code,
    "ptrace": lambda: forked(lambda: called(libc.ptrace(PTRACE_TRACEME, 0, 0, 0))),
    "memory of processes": lambda: system_call(NR_PROCESS_VM_READV, os.getpid()),
    "user namespace": lambda: forked(lambda: called(libc.unshare(CLONE_NEWUSER))),
    "personality": lambda: system_call(NR_PERSONALITY, 0x0040000),
    "keys of the kernel": lambda: system_call(NR_KEYCTL, 0, -3, 1),
    "devices": lambda: os.stat("/dev/sqlipc-probe"),
}
# An ordinary user may do none of these, with or without a sandbox; so the run outside proves nothing about them.
ANYWHERE = {
    "write to /usr": lambda: write_below("/usr"),
    "write to /etc": lambda: write_below("/etc"),
    "write to /home": lambda: write_below("/home"),
    "write to /sys": lambda: write_below("/sys/kernel"),
    "network namespace": lambda: forked(lambda: called(libc.unshare(CLONE_NEWNET))),
    "real time": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    "signal to PID 1": lambda: os.kill(1, 0),
    "root": lambda: forked(lambda: os.setuid(0)),
}
# Operations that the service itself needs.
NEEDED = {
    "AF_UNIX socket": lambda: socket.socket(socket.AF_UNIX).close(),
    "state directory": lambda: write_below("/var/lib/sqlipc"),
    "temporary files": lambda: write_below("/var/tmp"),
    "sealed memory": lambda: os.close(os.memfd_create("probe", os.MFD_ALLOW_SEALING)),
    "budget of pipes": lambda: pathlib.Path("/proc/sys/fs/pipe-user-pages-soft").read_text(),
    "fork": lambda: forked(lambda: None),
    "the bus": lambda: socket.socket(socket.AF_UNIX).connect("/run/dbus/system_bus_socket"),
}


def outcome(attempt):
    try:
        attempt()
        return "allowed"
    except OSError as error:
        return str(error)


os.chdir("/var/lib/sqlipc")
results = {
    kind: {name: outcome(attempt) for name, attempt in attempts.items()}
    for kind, attempts in (("attempts", ATTEMPTS), ("anywhere", ANYWHERE), ("needed", NEEDED))
}
status = pathlib.Path("/proc/self/status").read_text()
results["status"] = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
pathlib.Path(sys.argv[1]).write_text(json.dumps(results))
