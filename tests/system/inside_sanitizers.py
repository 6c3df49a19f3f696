# SPDX-License-Identifier: LGPL-2.1-or-later
"""For builds with sanitizers: checks their reports from all tests before. This must be the last test."""
from machine import done, equal, sanitized, stop, test


def nothing_reported():
    """No sanitizer has reported an error in the service or a worker"""
    stop()
    done("journalctl", "--sync")
    lines = done("journalctl", "--no-pager", "--output=cat").splitlines()
    equal([line for line in lines if "Sanitizer" in line or "runtime error:" in line], [], "reports")


if sanitized:
    test(nothing_reported)
