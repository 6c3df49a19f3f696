# SPDX-License-Identifier: LGPL-2.1-or-later
"""How much the tests try that take most of the processor's time. `tests/run.sh --long` (SQLIPC_TEST_LONG=1) has them try
more; so do the options of each test.
"""
import os

from harness import SANITIZED

LONG = os.environ.get("SQLIPC_TEST_LONG") == "1"
SIZES = {
    # name: (for each change, under sanitizers, --long)
    "seconds of soak": (60, 20, 120),
    "queries of differential": (20000, 2000, 100000),
    "rounds of writes_kills": (208, 78, 520),
    "transactions of serializable": (4000, 1000, 10000),
    "statements in a file of each kind": (300, 100, 20000),
    "seconds of outcomes": (6, 4, 120),  # of each engine
    "answers of hostile": (10, 8, 25),  # to each neighbour, each way, beside each attack
    "calls of floods": (30000, 10000, 100000),
    "seconds of a query of masses": (0.11, 0.11, 0.2),
    "share of faults at start and end": (0.1, 0.05, 1.0),
}


def size(name):
    usual, sanitized, long = SIZES[name]
    if SANITIZED:
        return sanitized
    return long if LONG else usual
