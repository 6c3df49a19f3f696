#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/modules.md lists every module of the sources with the first sentence of its comment.

    test_modules.py               the test
    test_modules.py --update      writes docs/modules.md
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bus"))
from tap import equal, run, test  # noqa: E402

INDEX = ROOT / "docs/modules.md"
PARTS = ("dbus-interfaces", "daemon", "client-lib", "tools", "tests/rigs")
HEAD = """<!-- SPDX-License-Identifier: LGPL-2.1-or-later -->
# Modules

A module is a header with the `.c` file beside it, or one of them alone. Each line is the first sentence of its comment.
`tests/lint/test_modules.py --update` writes this file.
"""


def modules():
    """Folder -> paths of its modules: headers, and .c files without one."""
    folders = {}
    for part in PARTS:
        for path in sorted((ROOT / part).rglob("*.[ch]")):
            if path.suffix == ".h" or not path.with_suffix(".h").exists():
                folders.setdefault(path.parent.relative_to(ROOT), []).append(path)
    return folders


def first_sentence(text):
    """Of the first comment that is not the licence, on one line; two, if the first one is very short."""
    comment = next(c for c in re.findall(r"/\*(.*?)\*/", text, re.S) if "SPDX-License-Identifier" not in c)
    paragraph = re.split(r"\n\s*\*?\s*\n", comment)[0]
    plain = re.sub(r"\s+", " ", re.sub(r"(?m)^\s*\*+", " ", paragraph)).strip()
    plain = re.sub(r"^@file \S+ - ", "", re.sub(r"^(?:Side: )?(?:worker|library|supervisor|pure)\. ", "", plain, flags=re.I))
    sentence = re.match(r"(?:.{,17}\. )?.*?\.(?= +(?:[A-Z]|\w+_)|$)|.*", plain)[0]
    if len(sentence) > 180:
        sentence = re.sub(r"^(.{40,180})[:;,] .*$", r"\1.", sentence)
    return sentence.replace("|", "\\|")


def index():
    text = HEAD
    for folder, paths in modules().items():
        text += f"\n## {folder}/\n\n| Module | Purpose |\n|---|---|\n"
        text += "".join(f"| `{path.stem}` | {first_sentence(path.read_text())} |\n" for path in paths)
    return text


@test
def current():
    """docs/modules.md is current (if not, run tests/lint/test_modules.py --update)"""
    lines, wanted = (set(text.splitlines()) for text in (INDEX.read_text(), index()))
    equal((sorted(lines - wanted), sorted(wanted - lines)), ([], []), "lines too many, lines that are missing")


@test
def sentences():
    """The first sentence ends at a full stop before a capital letter"""
    text = "/* SPDX-License-Identifier: x */\n/*\n * Reads NAME.conf, e.g.\n * one. Pure.\n */"
    equal(first_sentence(text), "Reads NAME.conf, e.g. one.", "first sentence")


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        INDEX.write_text(index())
    else:
        sys.exit(run())
