# SPDX-License-Identifier: LGPL-2.1-or-later
"""Attacks of an ordinary user and of root on a database that publishes only a view and two tables."""
import contextlib
import shutil
import sqlite3

import exposure_attacks as attacks
from machine import ADDRESS, Client, Failure, STATE, equal, published, query, test, true, uid
from tap import diagnose


@contextlib.contextmanager
def target(*lines):
    """Creates the database of the attacks, in the service's own folder."""
    query("SELECT 1")  # Starts the service, and systemd then creates the folder.
    path = STATE / "target.sqlite"
    database = sqlite3.connect(path)
    database.executescript(attacks.SCHEMA)
    database.close()
    shutil.chown(path, "sqlipc", "sqlipc")
    try:
        with published("target", path, *lines):
            yield
    finally:
        path.unlink()


def asker(user):
    """Returns a function that sends SQL as a user and returns the answer as plain values."""
    client = Client(ADDRESS, uid(user))

    def ask(sql):
        try:
            result = client.query("target", sql, options={"error-details": True}).read()
            return "rows", result.columns, result.rows
        except Failure as failure:
            return "error", failure.name, failure.message, failure.extended, failure.offset

    return ask


@test
def nothing_hidden_is_told():
    """Dozens of attacks, also by root, give the same results as if the hidden objects had never existed"""
    with target("AllowUsers=sqlipc-reader", f"Expose={' '.join(attacks.EXPOSED)}"):
        for user in ("sqlipc-reader", "root"):
            ask = asker(user)
            for sql, hidden, absent in attacks.NAMED_ATTACKS:
                attacks.check_named(ask, sql, hidden, absent)
            for sql in attacks.UNNAMED_ATTACKS:
                attacks.check_unnamed(ask, sql)
            equal(ask("SELECT id, has_password FROM public ORDER BY id")[2], [[1, 1], [2, 1], [3, 0]], "rows of the view")
    n = len(attacks.NAMED_ATTACKS) + len(attacks.UNNAMED_ATTACKS)
    diagnose(f"{n} attacks")
    true(n >= 40, f"only {n} attacks")


@test
def attacks_are_real():
    """If everything is exposed, the first of the attacks returns the secret"""
    with target("AllowUsers=sqlipc-reader"):
        true(attacks.SECRET in attacks.text_of(asker("sqlipc-reader")("SELECT * FROM secret")), "the secret")
