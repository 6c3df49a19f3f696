#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs inside the container of test_system.py, as its root. Tests the installed service on the real system bus, mostly with
ordinary users. The tests are in inside_SUBJECT.py and run in the order of the imports below, in one boot.

usage: inside.py broker|daemon [TEST...]
"""
import sys

import inside_activation  # noqa: F401
import inside_sandbox  # noqa: F401
import inside_policy  # noqa: F401
import inside_exposure  # noqa: F401
import inside_attacks  # noqa: F401
import inside_failures  # noqa: F401
import inside_idle  # noqa: F401
import inside_ctl  # noqa: F401
import inside_writes  # noqa: F401
import inside_engine  # noqa: F401
import inside_log  # noqa: F401
import inside_user  # noqa: F401
import inside_sanitizers  # noqa: F401
from tap import run

sys.argv.pop(1)
sys.exit(run())
