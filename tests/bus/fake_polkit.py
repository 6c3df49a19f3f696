# SPDX-License-Identifier: LGPL-2.1-or-later
"""A replacement of polkit's authority on the private bus, with answers that a test chooses. It runs in its own thread,
because the tests' clients block.

`rules` has the answers: for reading by the database's name, for writing by "NAME/write", and by the action of a question
without a database. An answer is "yes", "no", "challenge", "error" or "hang" (until answer() or CancelCheckAuthorization); a
pair is (without interaction, with interaction). The answer is "no" if there is no rule. Like polkit, it identifies an open
question by its sender and cancellation id, and refuses a second question with the same ones.
"""
import threading

from client import SECONDS, connect, own
from gi.repository import Gio, GLib

BUS_NAME = "org.freedesktop.PolicyKit1"
PATH = "/org/freedesktop/PolicyKit1/Authority"
INTERFACE = "org.freedesktop.PolicyKit1.Authority"

XML = """<node><interface name="org.freedesktop.PolicyKit1.Authority">
  <method name="CheckAuthorization">
    <arg type="(sa{sv})" direction="in"/><arg type="s" direction="in"/><arg type="a{ss}" direction="in"/>
    <arg type="u" direction="in"/><arg type="s" direction="in"/><arg type="(bba{ss})" direction="out"/>
  </method>
  <method name="CancelCheckAuthorization"><arg type="s" direction="in"/></method>
  <signal name="Changed"/>
</interface></node>"""

RESULTS = {"yes": (True, False, {}), "no": (False, False, {}), "challenge": (False, True, {})}


class Question:
    def __init__(self, arguments):
        (kind, subject), self.action, self.details, self.flags, self.cancellation_id = arguments
        self.kind, self.client, self.database = kind, subject["name"], self.details.get("database", "org.sqlipc1.manage")
        self.rule = f"{self.database}/write" if self.action == "org.sqlipc1.write" else self.database


class FakePolkit:
    def __init__(self, address, rules=None):
        self.address, self.rules = address, rules or {}
        self.questions, self.cancelled = [], []  # since the start, or forget()
        self.open = {}  # cancellation id -> (question, invocation)
        self.context = GLib.MainContext.new()
        self.loop = GLib.MainLoop.new(self.context, False)
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        if not self.ready.wait(SECONDS):
            raise AssertionError("the fake polkit did not come up")

    def _run(self):
        self.context.push_thread_default()
        self.connection = connect(self.address)
        self.connection.set_exit_on_close(False)
        self.connection.register_object(PATH, Gio.DBusNodeInfo.new_for_xml(XML).interfaces[0], self._on_call, None, None)
        own(self.connection, BUS_NAME)
        self.ready.set()
        self.loop.run()
        self.connection.close_sync(None)
        self.context.pop_thread_default()

    def _on_call(self, _connection, _sender, _path, _interface, method, arguments, invocation):
        if method == "CancelCheckAuthorization":
            (cancellation_id,) = arguments.unpack()
            self.cancelled.append(cancellation_id)
            _, hanging = self.open.pop(cancellation_id)
            hanging.return_dbus_error(f"{BUS_NAME}.Error.Cancelled", "Cancelled")
            invocation.return_value(None)
            return
        question = Question(arguments.unpack())
        self.questions.append(question)
        if question.cancellation_id in self.open:
            invocation.return_dbus_error(f"{BUS_NAME}.Error.CancellationIdNotUnique", "not unique")
            return
        rule = self.rules.get(question.rule, "no")
        self._answer(question, invocation, rule if isinstance(rule, str) else rule[question.flags & 1])

    def _answer(self, question, invocation, answer):
        if answer == "hang":
            self.open[question.cancellation_id] = (question, invocation)
        elif answer == "error":
            invocation.return_dbus_error(f"{BUS_NAME}.Error.Failed", f"Action {question.action} is not registered")
        else:
            invocation.return_value(GLib.Variant("((bba{ss}))", (RESULTS[answer],)))

    def _in_thread(self, function):
        done = threading.Event()

        def call():
            function()
            done.set()
            return False

        self.context.invoke_full(GLib.PRIORITY_DEFAULT, call)
        if not done.wait(SECONDS):
            raise AssertionError("the fake polkit does not answer")

    def answer(self, answer):
        """Answers all open questions."""

        def call():
            while self.open:
                _, (question, invocation) = self.open.popitem()
                self._answer(question, invocation, answer)

        self._in_thread(call)

    def changed(self):
        """Sends the signal Changed, and returns after the bus has delivered it."""

        def call():
            self.connection.emit_signal(None, PATH, INTERFACE, "Changed", None)
            self.connection.call_sync(
                "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetId",
                None, None, Gio.DBusCallFlags.NONE, SECONDS * 1000, None,
            )  # fmt: skip

        self._in_thread(call)

    def forget(self):
        self.questions, self.cancelled = [], []

    def asked(self):
        """Returns (key of its rule, True if with interaction) of each question since the last call."""
        questions, self.questions = self.questions, []
        return [(q.rule, bool(q.flags & 1)) for q in questions]

    def close(self):
        """Leaves the bus; open questions are never answered."""
        if self.thread.is_alive():
            self._in_thread(self.loop.quit)
            self.thread.join(SECONDS)
