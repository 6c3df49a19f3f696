#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Channel requests written by hand: requests cut at each byte, numbers in the wrong order or of other clients, requests that
race their cancellation, descriptors, answers that are never read. Neighbours are answered meanwhile, and afterwards the
service is as before.

    test_hostile_channel.py [TEST]... [--seed N] [--races N]      N rounds of races
"""
import contextlib
import itertools
import os
import random
import socket
import struct

import settled
from channel import CANCEL, FETCH, FINALIZE, PREPARE, QUERY, STATEMENT, Channel, frame, parameters
from client import END, ERROR, Broken, Failure, decode
from harness import CHINOOK, SANITIZED, UID_A, UID_B, Service, expect, fds, main, wait_for
from neighbours import besieged
from tap import cases, diagnose, equal, true

A = UID_A if os.geteuid() == 0 else None
ENDLESS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT x, 'some text' FROM n"
AT_ONCE = 16


seed = settled.option("--seed", 1)
RACES = settled.option("--races", 40 if SANITIZED else 300)
CHANNELS_MAX = 64
service = Service({"chinook": CHINOOK}, limits={**settled.QUICK, "ChannelsMax": CHANNELS_MAX})


def query_payload(sql, *positional):
    counts, row = parameters(positional, None)
    return struct.pack("<Q", 0) + counts + struct.pack("<II", len(sql), 0) + sql + row


def fetch_payload(statement, *positional):
    counts, row = parameters(positional, None)
    return struct.pack("<QQ", statement, 0) + counts + row


# Each kind of request, whole; the statement 1 is prepared before.
REQUESTS = {
    "prepare": frame(PREPARE, 2, b"SELECT ?"),
    "fetch": frame(FETCH, 2, fetch_payload(1, "a text", 7, None, b"bytes")),
    "query": frame(QUERY, 2, query_payload(b"SELECT ?, ?", 1, "x")),
    "cancel": frame(CANCEL, 1),
    "finalize": frame(FINALIZE, 1),
}


@contextlib.contextmanager
def opened(client):
    channel = Channel(client)
    try:
        yield channel
    finally:
        channel.close()


def prepared(client, stack):
    channel = stack.enter_context(opened(client))
    channel.statement(channel.prepare("SELECT ?, ?, ?, ?"))
    return channel


def in_groups(items):
    """Few enough for ChannelsMax=: a channel counts until its worker has let it go, and workers may lack CPU time."""
    for start in range(0, len(items), AT_ONCE):
        wait_for(lambda: service.counters()["NChannels"] <= CHANNELS_MAX // 2, "channels that closed are forgotten")
        yield items[start : start + AT_ONCE]


@besieged(service, UID_B)
def cut_requests():
    """Each request cut at each of its bytes, then silence, end of writing, or close: no part of it runs"""
    client = service.client(A)
    cuts = [
        (request[:size], how)
        for request in REQUESTS.values() for size in range(0, len(request), 4 if SANITIZED else 1)
        for how in ("silence", "half", "closed")
    ]  # fmt: skip
    for group in in_groups(cuts):
        with contextlib.ExitStack() as stack:
            channels = []
            for data, how in group:
                channel = prepared(client, stack)
                channel.send(data)
                if how == "half":
                    channel.socket.shutdown(socket.SHUT_WR)
                elif how == "closed":
                    channel.close()
                channels.append((channel, data, how))
            for channel, data, how in channels:
                if how == "half":
                    true(channel.is_closed(), f"{len(data)} bytes had an answer")
            client.point()
    cases("hostile channel", len(cuts), "a request cut at a byte, and silence or the end behind it")


@besieged(service, UID_B)
def spoiled_requests():
    """Each request with a byte altered: an answer, an error, or the end of the channel; no other channel notices"""
    client, tried = service.client(A), 0
    spoiled = [
        request[:at] + bytes([request[at] ^ flip]) + request[at + 1 :]
        for request in REQUESTS.values() for at in range(0, len(request), 3 if SANITIZED else 1) for flip in (1, 0x80)
    ]  # fmt: skip
    for group in in_groups(spoiled):
        with contextlib.ExitStack() as stack:
            other, channels = prepared(client, stack), []
            for request in group:
                channel = prepared(client, stack)
                channel.send(request)
                channel.socket.shutdown(socket.SHUT_WR)
                channels.append(channel)
            for channel in channels:
                with contextlib.suppress(Broken):
                    while True:
                        channel.frame()
                tried += 1
            equal(other.ask("SELECT 6 * 7"), [[42]], "rows of a channel beside")
    cases("hostile channel", tried, "a request with a byte spoiled")


@besieged(service, UID_B)
def numbers_out_of_order():
    """Numbers that are 0, repeated, decreasing or of another channel: InvalidRequest and the end, or UnknownStatement"""
    client, tried = service.client(A), 0
    with contextlib.ExitStack() as stack:
        victim = prepared(client, stack)
        theirs = victim.prepare("SELECT 1")
        victim.statement(theirs)
        for number in (0, 1):
            for kind, payload in ((PREPARE, b"SELECT 1"), (QUERY, query_payload(b"SELECT 1"))):
                channel = prepared(client, stack)
                channel.send(frame(kind, number, payload))
                _, kind_of_answer, _, _ = channel.frame()
                equal(kind_of_answer, ERROR, "the answer")
                true(channel.is_closed(), "the channel goes on")
                tried += 1
        channel = prepared(client, stack)
        for number in (theirs, 0, 77, 2**53, 2**64 - 1):
            expect("UnknownStatement", channel.read, channel.request(FETCH, fetch_payload(number)))
            channel.cancel(number)
            channel.finalize(number)
            tried += 3
        equal(channel.ask("SELECT 1"), [[1]], "rows")
        equal(victim.read(victim.fetch(theirs)).rows, [[1]], "rows of the other's statement")
        channel.finalize(1)
        for _ in range(2):
            expect("UnknownStatement", channel.read, channel.fetch(1, 1, 2, 3, 4))
            channel.finalize(1)
            tried += 2
    cases("hostile channel", tried, "a number that is out of order, another channel's or unknown")


@besieged(service, UID_B)
def races():
    """Thousands of requests on four channels without waiting, many cancelled or finalized: one answer each, in order"""
    diagnose(f"--seed {seed} --races {RACES}")
    chance, tried, client = random.Random(seed), 0, service.client(A)
    with contextlib.ExitStack() as stack:
        channels = [stack.enter_context(opened(client)) for _ in range(4)]
        for _ in range(RACES):
            wanted = {channel: send_some(channel, chance) for channel in channels}
            for channel, numbers in wanted.items():
                unknown = False
                for number, endless, finalized in numbers:
                    outcome = answer(channel, number)
                    fine = {"Cancelled"} | ({"UnknownStatement"} if finalized or unknown else set() if endless else {""})
                    true(outcome in fine, f"the answer is {outcome!r}, and none of {fine}")
                    unknown = unknown or (number == numbers[0][0] and outcome == "Cancelled")
                    tried += 1
    cases("hostile channel", tried, "a request that races others, its cancel and its statement's end: one answer")


def send_some(channel, chance):
    """Requests without waiting: (number, whether it would never end, whether its statement was finalized before)."""
    sql = chance.choice(["SELECT 1", "SELECT * FROM Genre", ENDLESS])
    statement = channel.prepare(sql)
    sent, finalized = [(statement, False, False)], False
    for _ in range(chance.randrange(1, 8)):
        if chance.random() < 0.2 and not finalized:
            channel.finalize(statement)
            finalized = True
            continue
        number = channel.fetch(statement)
        sent.append((number, sql is ENDLESS and not finalized, finalized))
        if sql is ENDLESS or chance.random() < 0.3:
            channel.cancel(number)
        if chance.random() < 0.2:
            channel.cancel(chance.choice(sent)[0])
    return sent


def answer(channel, number):
    """The name of the error that it is, "" for none; all frames of it have this number."""
    last = None
    while last not in (END, ERROR, STATEMENT):
        run, last, _, data = channel.frame()
        equal(run, number, "the number of a frame")
    if last != ERROR:
        return ""
    try:
        decode([data])
    except Failure as failure:
        return failure.name.removeprefix("org.sqlipc1.Error.")
    raise AssertionError("an ERROR frame without error")


@besieged(service, UID_B)
def closed_under_way():
    """Channels closed, half or whole, at every step of their requests, without reading"""
    client, chance = service.client(A), random.Random(seed)
    for _ in itertools.chain.from_iterable(in_groups(range(RACES))):
        with opened(client) as channel:
            send_some(channel, chance)
            if chance.random() < 0.5:
                channel.socket.shutdown(chance.choice([socket.SHUT_RD, socket.SHUT_RDWR]))
    cases("hostile channel", RACES, "a channel closed under way")


@besieged(service, UID_B)
def descriptors():
    """Descriptors of every kind sent through a channel with its bytes are closed, and the channel works on"""
    client, tried = service.client(A), 0
    kept = [os.open("/dev/zero", os.O_RDONLY), os.open("/", os.O_PATH), os.memfd_create("x"), *os.pipe()]
    with opened(client) as channel:
        for n in (1, 2, 50, 253):
            for fd in kept:
                channel.last += 1
                data = frame(QUERY, channel.last, query_payload(b"SELECT 6 * 7"))
                true(socket.send_fds(channel.socket, [data], [fd] * n) == len(data), "it was not taken whole")
                equal(channel.read(channel.last).rows, [[42]], "rows")
                tried += n
        for pid in [service.pid(), *service.workers()] if os.geteuid() == 0 else []:
            equal([link for link in fds(pid).values() if "zero" in link], [], "the client's descriptors in the service")
    for fd in kept:
        os.close(fd)
    cases("hostile channel", tried, "a descriptor sent down a channel")


@besieged(service, UID_B)
def answers_that_nobody_reads():
    """As many channels as allowed, each with endless unread answers, and requests until it accepts no more"""
    client = service.client(A)
    with contextlib.ExitStack() as stack:
        n = CHANNELS_MAX if A else CHANNELS_MAX - 1  # without root the neighbour, who has one, is of this user
        channels = [stack.enter_context(opened(client)) for _ in range(n)]
        expect("LimitsExceeded", Channel, client)
        for channel in channels:
            with contextlib.suppress(BlockingIOError):
                while True:
                    channel.last += 1
                    channel.socket.send(frame(QUERY, channel.last, query_payload(ENDLESS.encode())))
        wait_for(lambda: service.counters()["NRuns"] >= 1, "some run")
    cases("hostile channel", len(channels), "a channel whose answers are not read")


if __name__ == "__main__":
    main(service)
