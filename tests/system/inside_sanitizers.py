# SPDX-License-Identifier: LGPL-2.1-or-later
"""Of a build with sanitizers: what they found in the tests before. The last of all."""
from machine import done, equal, sanitized, stop, test


def nothing_reported():
    """No sanitizer has reported anything of the service or a worker"""
    stop()
    done("journalctl", "--sync")
    lines = done("journalctl", "--no-pager", "--output=cat").splitlines()
    equal([line for line in lines if "Sanitizer" in line or "runtime error:" in line], [], "reports")


if sanitized:
    test(nothing_reported)
