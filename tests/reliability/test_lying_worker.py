#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A worker that sends whatever a seed selects (lying/babbling-worker.c): all kinds of message, in all states.

Each seed is one job or channel of one client. The client gets an answer, whatever the worker sends. The supervisor kills
such a worker or ignores its message, holds nothing of it afterwards, and serves an honest database meanwhile.

    test_lying_worker.py --seed=N --lies=100000      more of them, from N on
"""
import collections
import concurrent.futures
import contextlib
import re
import sys

from settled import QUICK, as_before, settle, works

from channel import Channel
from client import Broken, Failure
from harness import BUILD_ROOT, CHINOOK, SANITIZED, WORKER, Service, main, wait_for
from tap import cases, diagnose, equal, test, true

OPTIONS = dict(re.fullmatch(r"--(\w+)=(\d+)", a).groups() for a in sys.argv[1:] if a.startswith("--"))
sys.argv[1:] = [a for a in sys.argv[1:] if not a.startswith("--")]
SEED = int(OPTIONS.get("seed", 1))
LIES = int(OPTIONS.get("lies", 300 if SANITIZED else 2000))
SILENT = 3
CLIENTS = 16  # some of them wait a second for a job whose worker is gone with it
# Short for the liars alone: others may have to wait for a CPU.
LIES_CONF = "[Database]\nAllowUsers=*\nPath={}\n[Limits]\nPrepareTimeoutSec=0.3\nRunTimeoutSec=0.3\n"


def over_a_channel(client, sql):
    with contextlib.closing(Channel(client, "lies")) as channel:
        channel.read(channel.query(sql), SILENT)


def prepare_and_fetch(client, sql):
    statement = client.prepare("lies", sql)
    try:
        statement.fetch().counted(SILENT)
    finally:
        client.drop(statement.pipe)
        client.finalize("lies", statement.number)


WAYS = [
    lambda client, sql: client.query("lies", sql).counted(SILENT),
    lambda client, sql: client.query_rows("lies", sql),
    lambda client, sql: client.all_rows("lies", sql),
    prepare_and_fetch,
    over_a_channel,
]


def ask(client, seed):
    """How it ended: the error's name, or the client's decoding of the bytes."""
    try:
        WAYS[seed % len(WAYS)](client, f"{seed} lies")
        return "an end"
    except Failure as failure:
        if failure.name.startswith("local:"):  # No reply came.
            raise AssertionError(f"seed {seed}: {failure}") from None
        return failure.name.rsplit(".", 1)[1]
    except Broken:
        return "a broken stream"
    except AssertionError as error:
        # It said that it had ended, wrote nothing, and lives: what lies there only the reader sees.
        if "nothing came down the" in str(error):
            return "silence in a pipe or channel"
        if "in time" in str(error) or "not answered" in str(error):
            raise AssertionError(f"seed {seed}: {error}") from None
        return "nonsense, told from rows"
    except Exception as error:  # noqa: BLE001 - of the page decoder of the tests
        return type(error).__name__


@test
def babble():
    """Whatever messages a worker sends, its client is answered, others are served, and nothing is kept afterwards"""
    program = BUILD_ROOT / "tests/reliability/lying/babbling-worker"
    with Service(worker=program, limits=QUICK, environment={"SQLIPC_REAL_WORKER": str(WORKER)}) as service:
        lies = service.data / "lies.sqlite"
        lies.write_bytes(CHINOOK.read_bytes())
        service.database("lies", LIES_CONF.format(lies))
        service.database("chinook", Path=CHINOOK)
        service.driver.manager("Reload")
        before, pid = settle(service), service.pid()
        outcomes, clients = collections.Counter(), [service.client() for _ in range(CLIENTS)]
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            shares = [range(SEED + k, SEED + LIES, CLIENTS) for k in range(CLIENTS)]
            answers = [pool.submit(lambda c, s: [ask(c, seed) for seed in s], c, s) for c, s in zip(clients, shares)]
            while not all(answer.done() for answer in answers):
                works(service)
                concurrent.futures.wait(answers, 0.5)
        for answer in answers:
            outcomes.update(answer.result())
        diagnose(f"outcomes: {outcomes}")
        equal(outcomes.total(), LIES, "answers")
        true(len(outcomes) > 2, "hardly any lie reached a client")
        wait_for(service.is_idle, "nothing is left of the lies")
        true(service.daemon.poll() is None and service.pid() == pid, "the supervisor ended")
        service.forget()
        as_before(service, before)
        equal(service.log_text().count("assert"), 0, "assertions")
    cases("lying worker", LIES, "what a worker said of a job or channel, by a seed")


if __name__ == "__main__":
    diagnose(f"seed {SEED}")
    main()
