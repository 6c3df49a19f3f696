# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs dbus-broker on its own socket. The launcher needs systemd and the journal, so this module is the controller instead.

A policy of one batch for every uid allows everything, like the configuration that harness.py writes for dbus-daemon.
"""
import contextlib
import functools
import os
import shutil
import socket
import subprocess

import gi

gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib  # noqa: E402
from tap import Skip, test  # noqa: E402

BATCH = "bta(btbs)a(btssssuutt)a(btssssuutt)"  # connect, own, send, receive
POLICY = f"(a(u({BATCH}))a(buu({BATCH}))a(ss)bs)"  # by uid, by gid, SELinux, AppArmor, type of the bus
EVERYBODY = 2**32 - 1
MACHINE = "0" * 31 + "1"
MANY = {"max-bytes": 2**29, "max-fds": 2**16, "max-matches": 2**16, "max-objects": 2**16}  # of each uid


def policy():
    message = (True, 1, "", "", "", "", 0, 0, 0, 2**64 - 1)
    everything = (True, 1, [(True, 1, True, "")], [message], [message])
    return GLib.Variant(POLICY, ([(EVERYBODY, everything)], [], [], False, "session"))


def add_listener(controller, listener):
    fds = Gio.UnixFDList.new_from_array([os.dup(listener.fileno())])
    body = GLib.Variant("(ohv)", ("/org/bus1/DBus/Listener/0", 0, policy()))
    path, interface, no_flags = "/org/bus1/DBus/Broker", "org.bus1.DBus.Broker", Gio.DBusCallFlags.NONE
    controller.call_with_unix_fd_list_sync(None, path, interface, "AddListener", body, None, no_flags, -1, fds, None)


def needed(function):
    """A test that needs the program."""

    @functools.wraps(function)
    def wrapped():
        if not shutil.which("dbus-broker"):
            raise Skip("needs dbus-broker")
        function()

    return test(wrapped)


def start(path, log):
    """Returns the process. Its attribute `controller` is a connection that must stay open while dbus-broker runs."""
    with contextlib.suppress(FileNotFoundError):  # The socket file of a killed bus still exists.
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    listener.bind(str(path))
    os.chmod(path, 0o666)
    listener.listen(128)
    ours, theirs = socket.socketpair()
    limits = [word for name, number in MANY.items() for word in (f"--{name}", str(number))]
    with theirs, listener:
        process = subprocess.Popen(
            ["dbus-broker", "--controller", str(theirs.fileno()), "--machine-id", MACHINE, *limits],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        stream = Gio.Socket.new_from_fd(ours.detach()).connection_factory_create_connection()
        flags = Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT
        process.controller = Gio.DBusConnection.new_sync(stream, None, flags, None, None)
        process.controller.set_exit_on_close(False)
        add_listener(process.controller, listener)
    return process
