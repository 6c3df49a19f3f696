# SPDX-License-Identifier: LGPL-2.1-or-later
"""Idle exit under a service manager: the service exits by itself, and calls at the moment of exit are not lost."""
from channel import Channel
from idle_race import race
from machine import ADDRESS, Client, equal, main_pid, query, stop, test, true, uid, unit, wait_for, written
from tap import diagnose

CONFIG = "/etc/sqlipc/sqlipcd.conf"
# A start in the sandbox takes tens of milliseconds, so the rounds take seconds and make a thousand calls.
IDLE, ROUNDS, CLIENTS = 0.005, 80, 12


def impatient(seconds):
    return written(CONFIG, f"[Service]\nIdleExitSec={seconds}\n", then=stop)


@test
def exits_when_idle():
    """An idle service exits with success, but not while a statement is open; the next call starts it again"""
    with impatient(0.05):
        client = Client(ADDRESS, uid("sqlipc-reader"))
        statement = client.prepare("chinook", "SELECT count(*) FROM Genre")
        pid = main_pid()
        other = Client(ADDRESS, uid("sqlipc-other"))
        for _ in range(50):
            other.point()
        equal(statement.fetch().read().rows, [[25]], "rows of a statement that was open meanwhile")
        equal(main_pid(), pid, "process")
        statement.close()
        wait_for(lambda: unit("ActiveState") == "inactive", "it exits")
        equal(unit("Result"), "success", "result")
        equal(query("SELECT count(*) FROM Genre"), "25\n", "rows")


@test
def exits_when_the_channel_is_closed():
    """The service does not exit while an unused channel is open; it exits after the channel is closed"""
    with impatient(0.05):
        client, other = Client(ADDRESS, uid("sqlipc-reader")), Client(ADDRESS, uid("sqlipc-other"))
        channel = Channel(client)
        equal(channel.ask("SELECT count(*) FROM Genre"), [[25]], "rows")
        pid = main_pid()
        for _ in range(50):
            other.point()
        equal(channel.ask("SELECT count(*) FROM Genre"), [[25]], "rows of a channel that was open meanwhile")
        equal(main_pid(), pid, "process")
        channel.close()
        wait_for(lambda: unit("ActiveState") == "inactive", "it exits")
        equal(unit("Result"), "success", "result")


@test
def race_with_exit():
    """Calls at the moment of exit cause no error, over dozens of instances"""
    with impatient(IDLE):
        outcome = race(ADDRESS, IDLE, ROUNDS, CLIENTS, by_name=True)
        diagnose(f"{outcome.calls} calls, {outcome.instances} instances, {outcome.taken_back} times a name was taken back")
        equal(outcome.errors, [], f"errors in {outcome.calls} calls over {outcome.instances} instances")
        true(outcome.calls >= 500 and outcome.instances >= 20, f"too few to tell: {outcome}")
