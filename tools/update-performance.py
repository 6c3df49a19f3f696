#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Copies what tools/bench.sh or tools/bench-shell.sh found into docs/performance.md.

usage: tools/update-performance.py REPORT-FOLDER

Tables stand between the lines `<!-- bench: WORKLOAD -->` and `<!-- end -->`, one pair for each workload that is to be shown;
all between them is replaced. Charts go to docs/charts/, as SVG. A workload that failed is an error; one that is not in the
report stays as it is, as what was measured by the other script does.
"""
import json
import pathlib
import re
import shutil
import sys

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"


def number(value):
    size = abs(value)
    decimals = 0 if size >= 100 or size == 0 else 1 if size >= 10 else 2 if size >= 1 else 3 if size >= 0.01 else 6
    return f"{value:.{decimals}f}"


def cell_text(cell):
    if not isinstance(cell, dict):
        return (cell or "").replace("|", "\\|")
    if len(cell["values"]) == 1:
        return number(cell["median"])
    return f"{number(cell['median'])} ({number(min(cell['values']))} ... {number(max(cell['values']))})"


def line(cells):
    return "| " + " | ".join(cells) + " |\n"


def label(part):
    return ", ".join(filter(None, (part["name"], part["unit"])))


def table_text(table):
    text = f"**{table['title']}**\n\n" + line([table["rows-are"], *map(label, table["columns"])])
    text += line(["---"] * (len(table["columns"]) + 1))
    for row in table["rows"]:
        name = row["name"].replace("|", "\\|")
        text += line([f"*{name} (published)*" if row["published"] else name, *map(cell_text, row["cells"])])
    return text + "\n"


def report_text(report, folder):
    facts = report["facts"]
    text = f"\n{facts['machine']}, {facts['kernel']}, sqlipc {facts['sqlipc']}, SQLite {facts['SQLite in process']}.\n\n"
    if report["figures"]:
        text += line(["figure", "median"]) + line(["---", "---"])
        for name, figure in report["figures"].items():
            text += line([label({"name": name, "unit": figure["unit"]}), cell_text(figure)])
        text += "\n"
    text += "".join(map(table_text, report["tables"]))
    for chart in report["charts"]:
        name = f"{report['workload']}-{chart['id']}.svg"
        shutil.copy(folder / name, DOCS / "charts" / name)
        text += f"![{chart['title']}](charts/{name})\n\n"
    return text + "".join(note + "\n\n" for note in report["notes"])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    reports = {report["workload"]: report for report in json.loads((folder / "report.json").read_text())["reports"]}
    (DOCS / "charts").mkdir(exist_ok=True)

    def replacement(match):
        report = reports.get(match[2])
        if not report:
            print(f"{match[2]} stays: it was not measured.")
            return match[0]
        if "failure" in report:
            sys.exit(f"{match[2]} failed.")
        return match[1] + report_text(report, folder) + match[3]

    page = DOCS / "performance.md"
    text = re.sub(r"(<!-- bench: (\S+) -->\n).*?(<!-- end -->\n)", replacement, page.read_text(), flags=re.S)
    page.write_text(text)


main()
