# SPDX-License-Identifier: LGPL-2.1-or-later
"""Descriptors of this process's epoll sets that are ready for ever, although there is nothing to read.

    make_ready(fd, data)      # in the set `fd`, as if the descriptor that the library added with `data` were ready
"""
import contextlib
import ctypes
import os
import pathlib
import platform
import re

BUS, WAKE = 0, 1  # the data of the library; higher values: an object that waits


class _Event(ctypes.Structure):
    _pack_ = 1 if platform.machine() == "x86_64" else 0
    _fields_ = [("events", ctypes.c_uint32), ("data", ctypes.c_uint64)]


def sets():
    """Returns the data in each epoll set of the process, by its descriptor."""
    found = {}
    for path in pathlib.Path("/proc/self/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):  # that of the directory itself
            text = path.read_text()
            if "tfd:" in text:
                found[int(path.name)] = [int(data, 16) for data in re.findall(r"^tfd:.*\bdata:\s*([0-9a-f]+)", text, re.M)]
    return found


def make_ready(fd, data):
    event = _Event(1, data)  # EPOLLIN
    if ctypes.CDLL(None, use_errno=True).epoll_ctl(fd, 1, os.eventfd(1), ctypes.byref(event)) < 0:  # EPOLL_CTL_ADD
        raise OSError(ctypes.get_errno(), "epoll_ctl")
