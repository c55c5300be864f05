#!/usr/bin/env python3
"""Draws the tables of aligners in the documentation from bench/results/align/*.tsv.

A line `<!-- bench/results/align/FILE.tsv -->` of a page in docs/ is followed by the tables of this file, up to the line `<!-- end -->`.
A file that no page names gets a page of its own in docs/evidence, which must be added to the list in docs/evidence/README.md.

usage: scripts/align-tables.py [--check | --self-test]
  --check      changes nothing, exits with 1 if a table differs from its file, or if a file has no table
  --self-test  draws tables of made results
"""

import csv
import datetime
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = "bench/results/align"
MARKED = re.compile(r"(?ms)^<!-- (" + RESULTS + r"/[^\n ]+\.tsv) -->\n(.*?)^<!-- end -->$")
HEAD = "| reads | program | CPU s | wall s | mapped % | MAPQ ≥ 20 % | wrong with MAPQ ≥ 60 | ≥ 20 | ≥ 10 |\n"
HEAD += "|---|---|---|---|---|---|---|---|---|\n"
INDEX_HEAD = "| index of | program | CPU s | wall s |\n|---|---|---|---|\n"
NOT_AVAILABLE = "not available"


def draw(rows):
    """Tables of one file: a line on programs and threads, reads, and indexes."""
    versions = dict.fromkeys(f"{row['program']} {row['version']}" for row in rows)
    threads = sorted({int(row["threads"]) for row in rows})
    text = f"Programs: {', '.join(versions)}. Threads: {', '.join(map(str, threads))}.\n"
    for genome in dict.fromkeys(row["genome"] for row in rows):
        of_genome = [row for row in rows if row["genome"] == genome and row["version"] != NOT_AVAILABLE]
        numbers = sorted({int(row["reads"]) for row in of_genome if row["read_type"] != "index"})
        text += f"\nGenome: {genome}. Reads of each kind: {', '.join(f'{n:,}' for n in numbers)}.\n\n" + HEAD
        for row in of_genome:
            if row["read_type"] == "index":
                continue
            share = [f"{100 * int(row[name]) / int(row['reads']):.3f}" for name in ("mapped", "confident")]
            cells = [row[name] for name in ("read_type", "program", "cpu_s", "wall_s")] + share
            text += "| " + " | ".join(cells + [row[f"wrong_{mapq}"] for mapq in (60, 20, 10)]) + " |\n"
        indexes = [row for row in of_genome if row["read_type"] == "index"]
        if indexes:
            text += "\n" + INDEX_HEAD
            for row in indexes:
                text += "| " + " | ".join(row[name] for name in ("genome", "program", "cpu_s", "wall_s")) + " |\n"
    return "\n" + text + "\n"


def redraw(page, read):
    """A page with the tables of the files that it names; `read` gives the rows of a file."""
    return MARKED.sub(lambda match: f"<!-- {match[1]} -->\n{draw(read(match[1]))}<!-- end -->", page)


def new_page(name, date):
    """A page for a file that no page names."""
    version, machine = pathlib.Path(name).stem.split("-", 1)
    return f"""# Aligners side by side: genuma {version} on {machine}

Date: {date}. Command: `make bench-align-results`. Data: `{name}`. All programs ran on the same cores, one after the other, on reads of
`genuma bench simulate --true-positions` without somatic variants. A read is right when one of its ends, clipped bases counted, is at most
10 bp from its origin. CPU seconds include loading the index; strobealign makes its index in each run.

<!-- {name} -->
<!-- end -->

## Limits

One machine, simulated reads. A program that is not available has no rows.
"""


def read_rows(name):
    path = ROOT / name
    if not path.is_file():
        sys.exit(f"align-tables: there is no {name}, which a page names")
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def self_test():
    columns = "genome read_type program version threads cpu_s wall_s reads mapped confident wrong_60 wrong_20 wrong_10".split()
    lines = ["g|index|a|1|2|3.00|2.00|-|-|-|-|-|-", "g|2x150|a|1|2|1.00|0.50|1000|990|900|0|1|2", "g|2x150|b|not available|2|-|-|-|-|-|-|-|-"]
    rows = [dict(zip(columns, line.split("|"), strict=True)) for line in lines]
    page = f"text\n<!-- {RESULTS}/x.tsv -->\nold\n<!-- end -->\nmore\n"
    made = redraw(new_page(f"{RESULTS}/0.2.0-some-cpu.tsv", "2026-01-02"), lambda _: rows)
    assert made.startswith("# Aligners side by side: genuma 0.2.0 on some-cpu\n") and "| g | a | 3.00 | 2.00 |\n" in made, made
    drawn = redraw(page, lambda _: rows)
    assert "| 2x150 | a | 1.00 | 0.50 | 99.000 | 90.000 | 0 | 1 | 2 |\n" in drawn, drawn
    assert "| g | a | 3.00 | 2.00 |\n" in drawn and "b not available" in drawn and "old" not in drawn, drawn
    assert "| 2x150 | b" not in drawn and drawn.startswith("text\n") and drawn.endswith("<!-- end -->\nmore\n"), drawn
    assert redraw(drawn, lambda _: rows) == drawn


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    check, stale, named = bool(sys.argv[1:]), [], set()
    for path in sorted((ROOT / "docs").rglob("*.md")):
        old = path.read_text(encoding="utf-8")
        named.update(match[1] for match in MARKED.finditer(old))
        new = redraw(old, read_rows)
        if new != old:
            stale.append(str(path.relative_to(ROOT)))
            if not check:
                path.write_text(new, encoding="utf-8")
    without = [str(path.relative_to(ROOT)) for path in sorted((ROOT / RESULTS).glob("*.tsv")) if str(path.relative_to(ROOT)) not in named]
    if check and stale:
        sys.exit("differs from its data, run scripts/align-tables.py: " + ", ".join(stale))
    if check and without:
        sys.exit("no page in docs/ has the tables of " + ", ".join(without))
    for name in without:
        date = datetime.date.today().isoformat()
        path = ROOT / "docs/evidence" / f"{date}-align-{pathlib.Path(name).stem}.md"
        path.write_text(redraw(new_page(name, date), read_rows), encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: a new page; add it to docs/evidence/README.md")


if __name__ == "__main__":
    main()
