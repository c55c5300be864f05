#!/usr/bin/env python3
"""Numbers of cells, as `stat -json` of yosys writes them to FAMILY.json.

usage: cell_table.py write LANES FAMILY.json ...              prints them as a table
       cell_table.py compare TABLE FAMILY LANES FAMILY.json   compares them with a table

Exit status of `compare`: 1 if a number differs by more than 5 %, 3 if the table has none of this version of yosys.
"""
import json
import pathlib
import re
import sys

# A change of a few gates is no news; a memory that becomes flip-flops, or a lost multiplier, is.
MARGIN = 0.05
HEADER = ["family", "lanes", "yosys", "cell", "number"]


def read_statistics(path):
    """Version of yosys, and the number of cells of each type."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    # Some versions print a heading first.
    statistics = json.loads(text[text.index("{"):])
    version = re.match(r"Yosys (\S+)", statistics["creator"])[1]
    (module,) = (module for name, module in statistics["modules"].items() if name.lstrip("\\") == "scatter_device")
    # A $scopeinfo is a note of newer versions, no cell.
    cells = {cell: number for cell, number in module["num_cells_by_type"].items() if cell != "$scopeinfo"}
    return version, cells


def write(lanes, paths):
    print(*HEADER, sep="\t")
    for path in paths:
        version, cells = read_statistics(path)
        for cell, number in sorted(cells.items()):
            print(pathlib.Path(path).stem, lanes, version, cell, number, sep="\t")


def compare(table, family, lanes, path):
    version, cells = read_statistics(path)
    with open(table, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    if rows[0] != HEADER:
        sys.exit(f"fpga: {table} has the columns {' '.join(rows[0])}, not {' '.join(HEADER)}")
    rows = [row for row in rows[1:] if row[:2] == [family, lanes]]
    expected = {cell: int(number) for _, _, of_version, cell, number in rows if of_version == version}
    if not expected:
        versions = " and ".join(sorted({row[2] for row in rows})) or "no version"
        print(f"fpga: {table} has the cells of {family} by yosys {versions}, not by {version}", file=sys.stderr)
        sys.exit(3)
    wrong = 0
    for cell in sorted(expected | cells):
        before, now = expected.get(cell, 0), cells.get(cell, 0)
        differs = abs(now - before) > MARGIN * before
        wrong += differs
        print(family, lanes, version, cell, now, before, "differs" if differs else "ok", sep="\t")
    if wrong:
        sys.exit(
            f"fpga: {wrong} of the numbers differ by more than {MARGIN:.0%} from {table}; "
            "if the design should have these cells, run scripts/fpga.sh synth"
        )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write", lanes, *paths] if paths:
            write(lanes, paths)
        case ["compare", table, family, lanes, path]:
            compare(table, family, lanes, path)
        case _:
            sys.exit(__doc__)
