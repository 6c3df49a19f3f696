# SPDX-License-Identifier: LGPL-2.1-or-later
"""Access of users to databases, as decided by the bus, the configuration and the real polkitd."""
import contextlib
import shutil

from machine import (
    ADDRESS, CHINOOK, Client, Failure, HOME, call_reload_of_bus, command, done, equal, published, query, refused, test, true,
    uid, wait_for, written,
)

RULES = "/etc/polkit-1/rules.d/50-sqlipc.rules"
EXAMPLE = HOME / "docs/examples/50-sqlipc.rules"
INTERACTIVE = "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired"


def denied(database, user):
    """Returns the error of a refused user, which must equal the error for a database that does not exist."""
    absent = "x" * len(database)
    said = {name: query("SELECT 1", name, user=user, run=refused) for name in (database, absent)}
    equal(said[database].replace(database, absent), said[absent], "refusal, and that of no database")
    true(f"\n{database} " not in "\n" + done("ipcq-cli", "--system", "--list", user=user), "it is listed")


@test
def denied_by_the_bus():
    """A bus policy file of the administrator refuses a user before the service gets the call"""
    rule = '<busconfig><policy user="sqlipc-other"><deny send_destination="org.sqlipc1"/></policy></busconfig>'
    query("SELECT 1", user="sqlipc-other")
    with written("/etc/dbus-1/system.d/sqlipc-test-deny.conf", rule, then=call_reload_of_bus):
        try:
            Client(ADDRESS, uid("sqlipc-other")).manager("ListDatabases")
            raise AssertionError("allowed")
        except Failure as failure:
            equal(failure.name, "org.freedesktop.DBus.Error.AccessDenied", "error")
        query("SELECT 1", user="sqlipc-reader")
    query("SELECT 1", user="sqlipc-other")


@test
def users_by_name():
    """AllowUsers= admits the named user, and root"""
    with published("named", CHINOOK, "AllowUsers=sqlipc-reader"):
        for user in ("sqlipc-reader", "root"):
            equal(query("SELECT count(*) FROM Genre", "named", user=user), "25\n", user)
        denied("named", "sqlipc-other")


@test
def members_of_a_group():
    """AllowGroups= admits users with the group among the supplementary groups that the bus reports"""
    with published("grouped", CHINOOK, "AllowGroups=accounting"):
        equal(query("SELECT count(*) FROM Genre", "grouped", user="sqlipc-member"), "25\n", "rows for a member")
        denied("grouped", "sqlipc-other")
        # The same user without the group is refused: the credentials at the time of the connection count.
        number = str(uid("sqlipc-member"))
        refused("setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", "--",
                "ipcq-cli", "--system", "grouped", "SELECT 1")  # fmt: skip


@test
def nobody_by_default():
    """A database without access rules is only for root and the service's user"""
    with published("silent", CHINOOK):
        equal(query("SELECT count(*) FROM Genre", "silent", user="root"), "25\n", "rows for root")
        denied("silent", "sqlipc-reader")


def call(user, database="accounts"):
    """Runs busctl as a user; returns its exit code and output."""
    result = command(
        "busctl", "--system", "call", "org.sqlipc1", f"/org/sqlipc1/database/{database}", "org.sqlipc1.Database",
        "QueryRows", "sava{sv}a{sv}", "SELECT count(*) FROM Genre", "0", "0", "0", "--allow-interactive-authorization=no",
        user=user,
    )  # fmt: skip
    return result.returncode, result.stdout + result.stderr


@contextlib.contextmanager
def rules(text):
    with written(RULES, text):
        shutil.chown(RULES, "polkitd", "polkitd")
        yield


@test
def action_is_known():
    """polkitd knows the actions and their owner"""
    for action in ("org.sqlipc1.read", "org.sqlipc1.write", "org.sqlipc1.manage"):
        said = done("pkaction", "--verbose", "--action-id", action)
        true("org.freedesktop.policykit.owner -> unix-user:sqlipc" in said, said)


@test
def polkit_says_who_manages():
    """Reload is for users whom polkit allows org.sqlipc1.manage; without a rule an administrator must authenticate"""
    client = Client(ADDRESS, uid("sqlipc-member"))

    def outcome():
        try:
            client.manager("Reload")
            return "done"
        except Failure as failure:
            return failure.name

    equal(outcome(), INTERACTIVE, "without a rule")
    allow = 'polkit.addRule(function(action) { if (action.id == "org.sqlipc1.manage") return polkit.Result.YES; });\n'
    with rules(allow):
        wait_for(lambda: outcome() == "done", "the rule allows it")
    with rules(allow.replace("YES", "NO")):
        wait_for(lambda: outcome().endswith(".AccessDenied"), "the rule forbids it")


@test
def polkit_decides():
    """Polkit=yes with the example's rules: the group is allowed and others are refused, by the database's name"""
    with rules(EXAMPLE.read_text()), published("accounts", CHINOOK, "Polkit=yes"):
        wait_for(lambda: call("sqlipc-member")[0] == 0, "polkitd has read the rules")
        true(" 25" in call("sqlipc-member")[1], call("sqlipc-member")[1])
        denied("accounts", "sqlipc-other")


@test
def polkit_challenges():
    """Polkit=yes without a rule: an administrator must authenticate; a call that forbids interaction gets an error"""
    with published("accounts", CHINOOK, "Polkit=yes"):
        client = Client(ADDRESS, uid("sqlipc-member"))
        try:
            client.point("accounts")
            raise AssertionError("allowed")
        except Failure as failure:
            equal(failure.name, INTERACTIVE, "error")


@test
def polkit_changes_its_mind():
    """A polkit answer is kept for a client until polkit reports a change"""
    with published("accounts", CHINOOK, "Polkit=yes"):
        client = Client(ADDRESS, uid("sqlipc-other"))
        allow = 'polkit.addRule(function(action) { if (action.id == "org.sqlipc1.read") return polkit.Result.YES; });\n'

        def allowed():
            try:
                client.point("accounts")
                return True
            except Failure:
                return False

        with rules(allow):
            wait_for(allowed, "the rule lets it in")
        with rules(allow.replace("YES", "NO")):
            wait_for(lambda: not allowed(), "the new rule shuts it out")


@test
def polkit_is_absent():
    """Without polkit only root can use such a database"""
    done("systemctl", "mask", "--runtime", "--now", "polkit.service")
    try:
        with published("accounts", CHINOOK, "Polkit=yes"):
            denied("accounts", "sqlipc-member")
            equal(query("SELECT count(*) FROM Genre", "accounts", user="root"), "25\n", "rows for root")
    finally:
        done("systemctl", "unmask", "--runtime", "polkit.service")
