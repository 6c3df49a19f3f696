#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Links of README.md and docs lead to files, files that they name exist, and the manual names only what is installed."""
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bus"))
import pages  # noqa: E402
from tap import equal, run, test, true  # noqa: E402

MANUAL = sorted((ROOT / "docs/man").glob("*.rst"))
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/*/README.md")]
# Patterns, headers of libraries, and files that tools write.
NO_SOURCES = ("test_BEHAVIOUR.py", "tests/fuzz/fuzz-NAME.c", "sd-bus.h", "build-")


def sources():
    known = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=False)
    if known.returncode == 0:
        return known.stdout.splitlines()
    return [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if not str(p.relative_to(ROOT)).startswith(("build", "."))]


def files_of(word):
    """`x.[ch]` is x.c and x.h."""
    word = word.removeprefix("./")
    return [word[:-4] + "c", word[:-4] + "h"] if word.endswith("[ch]") else [word]


@test
def links_lead_somewhere():
    """Links lead to files"""
    true(len(PAGES) > 10, f"only {PAGES}")
    link = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")
    links = [(page, target) for page in PAGES for target in link.findall(page.read_text())]
    found = [f"{page.relative_to(ROOT)} links to {target}" for page, target in links if not (page.parent / target).exists()]
    equal(found, [], "links")


@test
def named_files_exist():
    """A file that a page names exists, and a name without a folder is that of one file only"""
    paths = sources()
    names = [pathlib.PurePath(path).name for path in paths]
    found = []
    for page in PAGES:
        for word in re.findall(r"`([\w./-]+\.(?:c|h|py|sh|xml|md|toml|\[ch\]))`", page.read_text()):
            number = min((paths if "/" in name else names).count(name) for name in files_of(word))
            if number != 1 and not word.startswith(NO_SOURCES):
                found.append(f"{page.relative_to(ROOT)} names {word}, and there are {number}")
    equal(found, [], "names")


@test
def paths_in_sources_exist():
    """Files and modules that C sources name by their path, as fuzz targets and unit tests do, exist"""
    paths = sources()
    known = {*paths, *(path.removesuffix(".c").removesuffix(".h") for path in paths)}
    name = re.compile(r"(?<![\w/.-])((?:daemon|client-lib|dbus-interfaces|tools)/[\w/-]+(?:\.[ch]\b|(?=: )))")
    texts = {path: (ROOT / path).read_text() for path in paths if path.endswith((".c", ".h")) and (ROOT / path).exists()}
    found = [f"{path} names {word}" for path, text in texts.items() for word in name.findall(text) if word not in known]
    true(len(texts) > 600, f"only {len(texts)} files")
    equal(found, [], "paths")


@test
def named_modules_exist():
    """The modules of the table in "The life of a query" exist"""
    text = (ROOT / "docs/ARCHITECTURE.md").read_text()
    rows = re.search(r"^\| Step \| In \| Modules \|\n(.*?)\n\n", text, re.M | re.S)[1]
    named = re.findall(r"`([\w-]+)`", rows)
    true(len(named) > 15, f"only {named}")
    stems = {pathlib.PurePath(path).stem for path in sources() if path.endswith((".c", ".h"))}
    equal([name for name in named if name not in stems], [], "modules that do not exist")


def unknown_words(line, paths):
    """The words of a command of a checkout that are no file, no test, and no option of its program."""
    words = [word for word in shlex.split(re.sub(r"[][]|-C \S+", "", line)) if not re.match("[A-Z_]+=", word)]
    program = words[0].removeprefix("./")
    if program in ("meson", "ninja"):
        tests = [path for path in paths if path.startswith("tests/")]
        names = {pathlib.PurePath(path).stem.replace("-", "_").removeprefix("test_") for path in tests}
        names |= {path.split("/")[1] for path in tests}  # the suites
        named = [word for word in words[2:] if words[1] == "test" and not word.startswith("-")]
        return [word for word in named if word.replace("-", "_").removeprefix("reliability_") not in names]
    if program.startswith("build/"):  # meson has the name of the program
        made = pathlib.PurePath(program.removeprefix("build/"))
        return [] if f"'{made.name}'" in (ROOT / made.parent / "meson.build").read_text() else [program]
    if program not in paths:
        return [program]
    # A script passes options on to sqlipc-bench or to a script beside it. An argument may be the name of a fuzz target.
    read = [path for path in paths if path == program or path.startswith(("tools/bench", "tests/reliability/faults."))]
    text = "\n".join([*((ROOT / path).read_text() for path in read), *paths])
    found = []
    for before, word in zip(words, words[1:]):
        is_value = before.startswith("--") and "=" not in before and not word.startswith("--")
        name = re.sub("^--(.*?)(=.*)?$", r'(--|")\1', word)
        if not is_value and not re.fullmatch(r"[A-Z]+|\d+", word) and not re.search(rf"(?<![\w-]){name}\b", text):
            found.append(word)
    return found


@test
def commands_of_a_checkout():
    """Commands that pages give for a checkout are those of scripts and tests that exist, with options that they have"""
    paths, found, n = sources(), [], 0
    for page in pages.PAGES:
        for line in (line for block in pages.blocks(page) for line in pages.commands(block)):
            for command in line.removesuffix(" &").split(" && "):
                if pages.OF_A_CHECKOUT.match(command):
                    n += 1
                    found += [f"{page.name}: {word} in {command}" for word in unknown_words(command, paths)]
    true(n > 60, f"only {n} commands")
    equal(found, [], "unknown words")


@test
def manual_names_what_is_installed():
    """A page of the manual names no file of the sources, and only pages of ours that exist"""
    listed = (ROOT / "docs/man/meson.build").read_text()
    known = {path.name.removesuffix(".rst") for path in MANUAL}
    known |= {f"{name}.3" for name in re.findall(r"'(sqlipc_\w+)'", listed)} | {"sqlipc.conf.5"}
    folders = "|".join(path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "build")))
    found = []
    for page in MANUAL:
        text = page.read_text()
        found += [f"{page.name} names {word}" for word in re.findall(rf"(?<![\w/*.])(?:{folders})/[\w/.-]+", text)]
        found += [f"{page.name} names {words}" for words in re.findall(r"(?:of|in) the sources", text)]
        cited = re.findall(r"\*\*((?:libsqlipc|sqlipc|ipcq|org\.sqlipc)[\w.-]*)\*\*\\\((\d)\)", text)
        found += [f"{page.name} names {name}({section})" for name, section in cited if f"{name}.{section}" not in known]
    true(len(MANUAL) > 20, f"only {MANUAL}")
    equal(found, [], "what is not installed")


@test
def manual_has_one_entry():
    """sqlipc(7) names every page but those of functions, which libsqlipc(3) names; man -k sqlipc finds all"""
    entries = {section: (ROOT / f"docs/man/{page}").read_text()
               for section, page in (("", "sqlipc.7.rst"), ("3", "libsqlipc.3.rst"))}
    for page in MANUAL:
        name, section = page.name.removesuffix(".rst").rsplit(".", 1)
        entry = entries["3" if section == "3" and name != "libsqlipc" else ""]
        true(page.name == "sqlipc.7.rst" or rf"**{name}**\({section})" in entry, f"no entry names {page.name}")
        title = re.search(r"^=+\n(.*)\n=+\n\n-+\n(.*)\n-+$", page.read_text(), re.M)
        true("sqlipc" in f"{title[1]} {title[2]}", f"man -k sqlipc would not find {page.name}")


sys.exit(run())
