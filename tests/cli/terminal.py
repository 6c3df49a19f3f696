# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a program on a pseudo-terminal: a test sends keystrokes and reads the screen that a terminal would show."""
import contextlib
import fcntl
import os
import pathlib
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unicodedata

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bus"))
from tap import PATIENCE  # noqa: E402

try:
    import pyte
    from wcwidth import wcwidth
except ImportError:
    sys.exit("python3-pyte is missing: tools/install-dependencies.sh test")

HISTORY_MAX = 200000  # number of lines above the screen that are kept


class Terminal:
    """A program on its own terminal. Leaving the block ends the program."""

    def __init__(self, command, environment, size=(24, 80), cwd="/"):
        self.raw = b""
        self.screen = pyte.HistoryScreen(size[1], size[0], history=HISTORY_MAX)
        self.stream = pyte.ByteStream(self.screen)
        self.shown = {}  # text of each line of the screen, as it was when it was last asked for
        self.terminal, slave = os.openpty()
        self._set_size(*size)
        self.first_modes = self.modes()
        self.process = subprocess.Popen(
            list(map(str, command)),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            cwd=cwd,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # With a controlling terminal, Ctrl-C sends a signal.
        )
        os.close(slave)
        os.set_blocking(self.terminal, False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _set_size(self, rows, columns):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def modes(self):
        """Flags of input, output, control and lines."""
        return termios.tcgetattr(self.terminal)[:4]

    # ---- keys ----

    def send(self, keys):
        """Presses keys; does not wait for their effect."""
        data = keys.encode() if isinstance(keys, str) else keys
        while data:
            try:
                data = data[os.write(self.terminal, data) :]
            except BlockingIOError:
                self.pump(0.05)

    def type(self, text):
        """Types text that the program echoes, and waits until the screen shows it."""
        self.send(text)
        seen = re.sub(r"\s", "", unicodedata.normalize("NFC", text))[-40:]
        self.wait_for(lambda: self.before_cursor().endswith(seen), f"{text!r} is shown")

    def resize(self, rows, columns):
        """Changes the size of the window; the kernel notifies the program."""
        self.screen.resize(rows, columns)
        self._set_size(rows, columns)

    # ---- screen ----

    def pump(self, seconds=0.0):
        """Reads output of the program; waits for it at most `seconds`. Returns False after the program's side is closed."""
        readable, _, _ = select.select([self.terminal], [], [], seconds)
        if not readable:
            return True
        try:
            data = os.read(self.terminal, 65536)
        except BlockingIOError:
            return True
        except OSError:  # No process has the terminal open any more.
            data = b""
        self.raw += data
        self.stream.feed(data)
        return bool(data)

    def _text_of(self, line):
        text = "".join([line[x].data for x in range(self.screen.columns)])
        if text.isascii():
            return text
        text, is_covered = "", False
        for x in range(self.screen.columns):
            text += "" if is_covered else line[x].data
            is_covered = not is_covered and wcwidth(line[x].data[:1]) == 2
        return text

    def display(self):
        """Returns the lines of the screen. Waiting asks for them again and again, so only changed ones are read anew."""
        changed = self.screen.dirty
        # A combining character at the start of a line belongs to the line before.
        for y in range(self.screen.lines):
            if y in changed or y + 1 in changed:
                self.shown[y] = self._text_of(self.screen.buffer[y])
        changed.clear()
        return [self.shown[y] for y in range(self.screen.lines)]

    def lines(self):
        """Returns the lines of the screen, without blanks at their ends."""
        return [line.rstrip() for line in self.display()]

    def text(self):
        return "\n".join(self.lines())

    def all_lines(self):
        """Returns the lines of the screen, after those that scrolled away, which do not change any more."""
        for line in self.screen.history.top:
            if not hasattr(line, "text"):
                line.text = "".join([line[x].data for x in range(self.screen.columns)]).rstrip()
        return [line.text for line in self.screen.history.top] + self.lines()

    def before_cursor(self):
        """Returns the text before the cursor without blanks and line ends."""
        y, x = self.screen.cursor.y, self.screen.cursor.x
        last = "".join(self.screen.buffer[y][i].data for i in range(x))
        return re.sub(r"\s", "", "".join(self.display()[:y]) + last)

    def cursor_line(self):
        return self.display()[self.screen.cursor.y].rstrip()

    def cell(self, row, column):
        """Returns a cell of the screen, with .data, .fg, .bg, .bold, .reverse."""
        return self.screen.buffer[row][column]

    def find(self, text):
        """Returns row and column of the first place that shows `text`."""
        for row, line in enumerate(self.display()):
            if text in line:
                return row, line.index(text)
        raise AssertionError(f"{text!r} is not shown:\n{self.text()}")

    # ---- waiting ----

    def wait_for(self, what, describe=None, seconds=PATIENCE):
        """Waits until the screen shows this text, or this function returns true; returns the function's result."""
        condition = what if callable(what) else lambda: what in self.text()
        end = time.monotonic() + seconds
        while True:
            result = condition()
            if result:
                return result
            if time.monotonic() > end:
                raise AssertionError(f"waited {seconds} s without success: {describe or what}; the screen:\n{self.text()}")
            if not self.pump(0.05):
                if condition():
                    return condition()
                raise AssertionError(f"it ended before: {describe or what}; the screen:\n{self.text()}")

    def wait_exit(self, seconds=PATIENCE):
        """Waits for the end of the program and reads all its output; returns its exit code."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            if time.monotonic() > end:
                raise AssertionError(f"it did not leave in {seconds} s; the screen:\n{self.text()}")
            self.pump(0.05)
        while self.pump():
            if not select.select([self.terminal], [], [], 0)[0]:
                break
        return self.process.returncode

    def foreground(self):
        """Returns the process group that keys of the terminal signal: that of the program or of a pager."""
        return os.tcgetpgrp(self.terminal)

    def close(self):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)
