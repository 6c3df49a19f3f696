#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks every vector of this folder (README.md) in both directions, and that two decoders mean the same.

    test_vectors.py VECTOR-TOOL               TAP on standard output
    test_vectors.py --update VECTOR-TOOL NAME writes NAME.hex

The JSON is the measure. The C codec is reached through VECTOR-TOOL (vector-tool.c), the second decoder is
docs/examples/page_decoder.py. Both are compared to the JSON as the lines that page-text.h describes.
"""

import json
import random
import re
import struct
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1] / "docs" / "examples"))
import page_decoder  # noqa: E402

MAN_PAGE = FOLDER.parents[1] / "docs" / "man" / "sqlipc-page.5.rst"
COUNTERS = ("n_rows", "n_bytes", "usec", "vm_steps", "fullscan_steps", "sorts", "autoindexes")
CHANGES = ("n_changes", "last_rowid")  # of a run that wrote
NO_CHANGES = (-1, 0)  # of another run, if its END has the field after them
N_MUTATIONS = 25  # a vector


def text_bytes(value):
    """The bytes of a string or of an object for TEXT."""
    if isinstance(value, str):
        return value.encode()
    (key, what), = value.items()
    return {"text": lambda: what.encode(), "text_hex": lambda: bytes.fromhex(what),
            "text_repeat": lambda: what[0].encode() * what[1]}[key]()


def string_word(value):
    return "-" if value is None else "x" + text_bytes(value).hex()


def value_word(value):
    if value is None:
        return "n"
    (key, what), = value.items()
    if key == "integer":
        return f"i:{int(what)}"
    if key == "real":
        return f"r:{int(what, 16):016x}"
    if key == "blob_hex":
        return "b:" + bytes.fromhex(what).hex()
    if key == "blob_repeat":
        return "b:" + (bytes.fromhex(what[0]) * what[1]).hex()
    return "t:" + text_bytes(value).hex()


def rows_of(run):
    for row in run.get("rows", []):
        yield from [row["row"]] * row["repeat"] if isinstance(row, dict) else [row]


def item_lines(frame, owner):
    for tag, data in owner.get("extension", []):
        yield f"{frame}-item {tag} x{data}"


def end_line(fields):
    *counters, n_changes, last_rowid, sequence = fields
    if sequence is not None and n_changes is None:
        n_changes, last_rowid = NO_CHANGES
    return " ".join(["end", *(str(field) for field in (*counters, n_changes, last_rowid, sequence) if field is not None)])


def lines_of_run(run, encode):
    """The lines for one run of the JSON: what a decoder is to find, or with `encode` what the encoder is to be told."""
    yield f"run {run['run']} {run['page_size'] if encode or 'columns' in run else '-'}"
    if encode and "columns" in run:
        yield "columns"
    for name, declared_type in run.get("columns", []):
        yield f"column {string_word(name)} {string_word(declared_type)}"
    yield from item_lines("columns", run)
    for row in rows_of(run):
        yield " ".join(["row", *map(value_word, row)])
    if encode and "partial" in run:
        yield " ".join(["partial", str(run["partial"]["frames"]), *map(value_word, run["partial"]["row"])])
    if "end" in run:
        if encode and "fields_hex" in run["end"]:
            yield f"end-fields x{run['end']['fields_hex']}"
        yield end_line([run["end"].get(name) for name in (*COUNTERS, *CHANGES, "sequence")])
    else:
        error = run["error"]
        yield from item_lines("error", error)
        yield f"error {error['number']} {error['extended_code']} {error['sql_offset']} {string_word(error['message'])}"


def lines_of(vector, encode=False):
    return [line for run in vector["runs"] for line in lines_of_run(run, encode)]


def python_value_word(value):
    if value is None:
        return "n"
    if isinstance(value, int):
        return f"i:{value}"
    if isinstance(value, float):
        return "r:" + struct.pack(">d", value).hex()
    if isinstance(value, str):
        return "t:" + value.encode("utf-8", "surrogateescape").hex()
    return "b:" + value.hex()


def as_python_holds(lines):
    """On i386 the x87 makes a signalling NaN quiet when it is loaded, so Python has no other."""
    def word(match):
        return "r:" + struct.pack(">d", struct.unpack(">d", bytes.fromhex(match[1]))[0]).hex()

    return [re.sub(r"\br:([0-9a-f]{16})\b", word, line) for line in lines]


def python_string_word(value):
    return "-" if value is None else "x" + value.encode("utf-8", "surrogateescape").hex()


def python_item_lines(frame, event):
    return [f"{frame}-item {tag} x{data.hex()}" for tag, data in event.extension]


def lines_of_python(stream, chunk):
    """What page_decoder.py finds, fed in pieces of `chunk` bytes."""
    decoder, lines, in_run = page_decoder.PageDecoder(), [], False
    for at in range(0, len(stream), chunk):
        for event in decoder.feed(stream[at:at + chunk]):
            if isinstance(event, page_decoder.Columns):
                lines.append(f"run {event.run} {event.page_size}")
                lines += [f"column {python_string_word(a)} {python_string_word(b)}" for a, b in event.columns]
                lines += python_item_lines("columns", event)
                in_run = True
                continue
            if not in_run:
                lines.append(f"run {event.run} -")
            in_run = isinstance(event, page_decoder.Row)
            if isinstance(event, page_decoder.Row):
                lines.append(" ".join(["row", *map(python_value_word, event.values)]))
            elif isinstance(event, page_decoder.End):
                lines.append(end_line(event[1:]))
            else:
                lines += python_item_lines("error", event)
                lines.append(f"error {event.number} {event.extended_code} {event.sql_offset} "
                             + python_string_word(event.message))
    decoder.close()
    return lines


def tool(path, mode, data):
    """What vector-tool writes; None where it says that the stream is broken."""
    done = subprocess.run([path, mode], input=data, capture_output=True, check=False)
    if done.returncode == 1 and mode == "decode" and b"vector-tool: " in done.stderr:
        return None
    if done.returncode != 0:
        raise RuntimeError(f"vector-tool {mode}: {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def encode(path, vector):
    return tool(path, "encode", "".join(line + "\n" for line in lines_of(vector, encode=True)).encode())


def frames(stream):
    """(offset, kind, run) of each frame of a stream that is known to be sound."""
    offset = 0
    while offset < len(stream):
        size, kind, _, _, run = struct.unpack_from("<IBBHQ", stream, offset)
        yield offset, kind, run
        offset += 16 + (size + 7) // 8 * 8


def read_hex(text):
    return bytes.fromhex("".join(line.partition("#")[0] for line in text.splitlines()))


def write_hex(name, stream):
    names = {1: "COLUMNS", 2: "ROWS", 3: "BIG_ROW", 4: "END", 5: "ERROR"}
    starts = list(frames(stream))
    lines = [f"# {name}: {len(stream)} bytes"]
    for (start, kind, run), end in zip(starts, [at for at, _, _ in starts[1:]] + [len(stream)]):
        lines += [f"# {names[kind]} of run {run}, at {start}", stream[start:start + 16].hex()]
        lines += [stream[at:min(at + 32, end)].hex() for at in range(start + 16, end, 32)]
    return "\n".join(lines) + "\n"


def example_of_man_page():
    section = MAN_PAGE.read_text(encoding="utf-8").split("\nEXAMPLE\n")[1].split("\nREADING\n")[0]
    return bytes.fromhex("".join(re.findall(r"^    ([0-9a-f ]+)$", section, re.MULTILINE)))


def counts_are_true(vector, stream):
    """What END says of rows and bytes is what stands before it."""
    start = 0
    ends = [at for at, kind, _ in frames(stream) if kind in (page_decoder.END, page_decoder.ERROR)]
    for run, end in zip(vector["runs"], ends):
        if "end" in run and (run["end"]["n_bytes"], run["end"]["n_rows"]) != (end - start, len(list(rows_of(run)))):
            raise AssertionError(f"END says {run['end']}, there are {end - start} bytes in {len(list(rows_of(run)))} rows")
        start = next((at for at, _, _ in frames(stream) if at > end), len(stream))


def same(got, expected):
    if got == expected:
        return
    for index, (a, b) in enumerate(zip(got, expected)):
        if a != b:
            raise AssertionError(f"at {index}: {str(a)[:200]!r}, expected {str(b)[:200]!r}")
    raise AssertionError(f"{len(got)} items, expected {len(expected)}")


def mutate(random_numbers, stream):
    """A stream with one thing wrong, mostly in the first bytes of a frame: there the lengths are."""
    broken = bytearray(stream)
    what = random_numbers.randrange(8)
    if what == 0:
        return bytes(broken[:random_numbers.randrange(len(broken))])
    start = random_numbers.choice([at for at, _, _ in frames(stream)])
    at = min(start + random_numbers.randrange(64), len(broken) - 1)
    if what == 1:
        del broken[start:start + 8 * random_numbers.randrange(1, 8)]
    elif what == 2:
        broken[at] = random_numbers.randrange(256)
    else:
        broken[at] ^= 1 << random_numbers.randrange(8)
    return bytes(broken)


def decoders_agree(path, name, stream):
    """What one decoder refuses, the other refuses: the man page says all that the C code checks."""
    random_numbers = random.Random(name)
    for index in range(N_MUTATIONS):
        broken = mutate(random_numbers, stream)
        by_c = tool(path, "decode", broken)
        try:
            by_python = lines_of_python(broken, len(broken) + 1)
        except page_decoder.BrokenStream as error:
            if by_c is not None:
                raise AssertionError(f"mutation {index}: only Python refuses it: {error}: {broken.hex()[:400]}") from error
            continue
        if by_c is None:
            raise AssertionError(f"mutation {index}: only C refuses it: {broken.hex()[:400]}")
        same(as_python_holds(by_c.decode().splitlines()), by_python)


def refused_streams():
    for part in (FOLDER / "refused.txt").read_text(encoding="ascii").split("\n\n")[1:]:
        why, _, data = part.partition(":\n")
        yield why, bytes.fromhex(data)


def refused(path, stream):
    """Both decoders refuse it before its end, which would be an error of its own."""
    if tool(path, "decode", stream) is not None:
        raise AssertionError("the C decoder takes it")
    try:
        decoded = list(page_decoder.PageDecoder().feed(stream))
    except page_decoder.BrokenStream:
        return
    raise AssertionError(f"page_decoder.py takes it: {decoded}")


def checks(path):
    names = sorted(file.stem for file in FOLDER.glob("*.json"))
    for name in names:
        vector = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        stream, lines = read_hex((FOLDER / f"{name}.hex").read_text(encoding="ascii")), lines_of(vector)
        yield f"{name}: encoded", lambda v=vector, s=stream: same(encode(path, v), s)
        yield f"{name}: decoded", lambda s=stream, e=lines: same(tool(path, "decode", s).decode().splitlines(), e)
        lines = as_python_holds(lines)
        yield f"{name}: decoded by Python", lambda s=stream, e=lines: same(lines_of_python(s, len(s)), e)
        yield f"{name}: decoded by Python in pieces", lambda s=stream, e=lines: same(lines_of_python(s, 7), e)
        yield f"{name}: END tells the truth", lambda v=vector, s=stream: counts_are_true(v, s)
        yield f"{name}: both decoders refuse the same", lambda n=name, s=stream: decoders_agree(path, n, s)
    for why, stream in refused_streams():
        yield f"refused: {why}", lambda s=stream: refused(path, s)
    yield "every stream has its JSON", lambda: same(sorted(file.stem for file in FOLDER.glob("*.hex")), names)
    yield "the example of sqlipc-page(5)", lambda: same(
        example_of_man_page(), read_hex((FOLDER / "example.hex").read_text(encoding="ascii")))


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--update":
        name = sys.argv[3]
        stream = encode(sys.argv[2], json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))
        (FOLDER / f"{name}.hex").write_text(write_hex(name, stream), encoding="ascii")
        return 0
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2

    failed, number = 0, 0
    for number, (name, check) in enumerate(checks(sys.argv[1]), 1):
        try:
            check()
            print(f"ok {number} - {name}")
        except Exception as error:  # whatever it is, it is this check that failed
            failed += 1
            print(f"not ok {number} - {name}\n# {type(error).__name__}: {error}")
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
