# SPDX-License-Identifier: LGPL-2.1-or-later
"""The blocks of code in README.md, docs and the manual, for the tests that run them; and a screen for those that draw."""
import contextlib
import pathlib
import re
import subprocess
import textwrap

from tap import true

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("docs/man/*.rst"))]
# Commands of a checkout. lint/documents checks their files and options; most of them take minutes, or hours.
OF_A_CHECKOUT = re.compile(r"(?:[A-Z_]+=\S+ )*(?:\./)?(?:(?:\.ci|tests|tools|build)/|meson |ninja )")
# The sections of docs/HACKING.md that need a build tree: system/test_package.py follows them.
IN_A_BUILD = ("Run from the build tree", "A first patch")


def text_of(page, *left_out):
    """The text of a page without the sections of these titles."""
    text = page.read_text()
    for title in left_out:
        text, n = re.subn(rf"^## {title}\n[\s\S]*?(?=^## )", "", text, flags=re.M)
        true(n == 1, f"{page.name} has no section {title}")
    return text


def blocks(page, text=None):
    """Returns the blocks of code of a page, without their indentation: in Markdown those that are indented or fenced, else
    those after "::". A block that is marked as text, by "```text" or ".. code:: text", is none."""
    text = page.read_text() if text is None else text
    if page.suffix == ".md":
        found = re.findall(r"^```(\w*)\n([\s\S]*?)^```$|(?<=\n\n)((?: {4}.*\n|\n(?= {4}))+)", text, re.M)
        found = [fenced or indented for kind, fenced, indented in found if kind != "text"]
    else:
        found = re.findall(r"^( *)\S.*::\n\n((?:\1 +.*\n|\n)+)|^::\n\n((?: +.*\n|\n)+)", text, re.M)
        found = [more or alone for _, more, alone in found]
    return [textwrap.dedent(block).strip("\n") for block in found]


def commands(block):
    """Returns the commands of a block: without prompts and comments, and continued lines as one."""
    lines = re.sub(r"\\\n *", "", block).splitlines()
    return [line for line in (re.sub(r"^\$ |(?:^| +)#.*", "", line) for line in lines) if line]


@contextlib.contextmanager
def screen():
    """An X server without a screen; yields the variables of a program that draws on it."""
    with subprocess.Popen(
        ["Xvfb", "-displayfd", "1", "-screen", "0", "1024x768x24", "-nolisten", "tcp"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            number = server.stdout.readline().strip()
            true(number, "Xvfb has started")
            # Without a GPU GTK draws by cairo; and it must not look for a portal or accessibility bus.
            yield [f"DISPLAY=:{number}", "GDK_BACKEND=x11", "GSK_RENDERER=cairo", "GTK_A11Y=none"]
        finally:
            server.terminate()
