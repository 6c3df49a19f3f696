# SPDX-License-Identifier: LGPL-2.1-or-later
"""TAP for the bus tests: functions marked @test run in order, and each writes one line of the result.

A test passes if it returns and fails if it raises; Skip tells why it cannot run. A run without any test fails, so that
a file cannot pass without testing anything.
"""
import os
import subprocess
import sys
import traceback

# Seconds until a wait fails. The event must happen in a correct run, so a long limit costs nothing.
PATIENCE = int(os.environ.get("SQLIPC_TEST_PATIENCE", 120))
_tests = []


class Skip(Exception):
    """Raised by a test that cannot run on this machine, with the reason."""


def test(function):
    _tests.append(function)
    return function


def make_for_file(script, folder, what, *arguments):
    """Runs a script that makes what all tests of a file need, into the folder. If it fails, the file is skipped, but not in
    CI, which must have it. `what`: what cannot be done then."""
    made = subprocess.run([script, folder, *arguments], capture_output=True, text=True, check=False)
    if made.returncode == 0:
        return
    reason = f"{what}: " + (made.stderr.strip().splitlines() or ["?"])[-1]
    if os.environ.get("CI") == "true":
        sys.exit(reason)
    skip_file(reason)


def skip_file(reason):
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)


def diagnose(text):
    for line in str(text).rstrip("\n").split("\n"):
        print("#", line, flush=True)


def cases(kind, number, what):
    """Prints the number of tried cases of a class of attack or fault, for the table of `tests/run.sh --report`."""
    print(f"# cases: {kind}: {number}: {what}", flush=True)


def equal(got, expected, what="value"):
    if got != expected:
        raise AssertionError(f"{what}: got {_short(got)}, expected {_short(expected)}")


def at_most(got, limit, what="value"):
    if got > limit:
        raise AssertionError(f"{what}: {got} is more than {limit}")


def true(condition, what):
    if not condition:
        raise AssertionError(what)


def _short(value, size=600):
    text = repr(value)
    return text if len(text) <= size else text[:size] + f"... ({len(text)} characters)"


def run(on_failure=None, tests=None):
    """Runs the tests (all of the file, or those named on the command line); the exit code of the process is the verdict."""
    # "teardown" ends the processes of the file, so it always runs.
    chosen = [t for t in (tests or _tests) if not sys.argv[1:] or t.__name__ in (*sys.argv[1:], "teardown")]
    failed = 0
    print(f"1..{len(chosen)}", flush=True)
    for number, function in enumerate(chosen, 1):
        title = (function.__doc__ or function.__name__).strip().split("\n")[0].rstrip(".").replace("#", "no.")
        try:
            function()
            print(f"ok {number} - {title}", flush=True)
        except Skip as reason:
            print(f"ok {number} - {title} # SKIP {reason}", flush=True)
        except Exception:  # noqa: BLE001 - the test failed, whatever the exception is
            failed += 1
            diagnose(traceback.format_exc())
            if on_failure:
                on_failure()
            print(f"not ok {number} - {title}", flush=True)
    return 1 if failed or not chosen else 0
