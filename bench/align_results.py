#!/usr/bin/env python3
"""Measures aligners on several kinds of reads, and writes the results as data: bench/results/align/VERSION-MACHINE.tsv.

Each kind of reads is simulated and given to bench/align.sh, which times and scores all programs on the same cores. A program that
cannot be had is a row without numbers. scripts/align-tables.py draws the tables of the documentation from the file.

Columns: genome; read_type; program; version; threads; cpu_s and wall_s (seconds; of the read type `index`: of making the index); reads;
mapped (reads); confident (reads of MAPQ 20 and more); wrong_60, wrong_20, wrong_10 (reads of at least this MAPQ that are not where they
come from). With several rounds, times are lower medians.
"""

import argparse
import csv
import pathlib
import re
import shutil
import subprocess
import sys

COLUMNS = ["genome", "read_type", "program", "version", "threads", "cpu_s", "wall_s", "reads", "mapped", "confident"]
COLUMNS += ["wrong_60", "wrong_20", "wrong_10"]
PROGRAMS = ["genuma", "bwa", "bwa-mem2", "strobealign", "minibwa"]
# Kinds of reads of bench/align.sh, and how tables name them.
READ_TYPES = {
    "easy": "2x150 0.3%",
    "hard": "2x150 1%",
    "100": "2x100 0.3%",
    "250": "2x250 0.3%",
    "single": "1x150 0.3%",
}
CONFIDENT_MAPQ = 20
NOT_AVAILABLE = "not available"
ROOT = pathlib.Path(__file__).resolve().parent.parent


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=200_000, help="read pairs of each kind (default: %(default)s)")
    parser.add_argument("--genome-length", type=int, default=5_500_000, help="length of the made genome in bp (default: %(default)s)")
    parser.add_argument("--genome", type=pathlib.Path, help="FASTA file of a genome to simulate the reads from instead")
    parser.add_argument("--read-types", default=",".join(READ_TYPES), help="kinds of reads of bench/align.sh (default: %(default)s)")
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="programs (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each program (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=1, help="how often everything is run (default: %(default)s)")
    parser.add_argument("--machine", help="name of the machine in the file's name (default: from /proc/cpuinfo)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target/bench-align-results", help="folder for reads and runs (default: %(default)s)")
    parser.add_argument("--tsv", type=pathlib.Path, help="file to write (default: bench/results/align/VERSION-MACHINE.tsv)")
    return parser.parse_args()


def machine_name():
    """Name of the processor, as part of a file name."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    found = re.search(r"model name\s*: (.*)", text)
    name = re.sub(r"\((R|TM)\)|@.*|\bCPU\b|\bProcessor\b|\d+-Core", " ", found[1]) if found else "unknown"
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def genome_name(options):
    if options.genome:
        return options.genome.name
    return f"made, {options.genome_length / 1e6:g} Mbp"


def bench(options, kind, programs, out):
    """Runs bench/align.sh for one kind of reads."""
    command = [str(ROOT / "bench/align.sh"), "--reads", kind, "--pairs", str(options.pairs), "--threads", str(options.threads)]
    command += ["--rounds", str(options.rounds), "--only", ",".join(programs), "--floors", "no", "--out", str(out)]
    source = ["--genome", str(options.genome)] if options.genome else ["--genome-length", str(options.genome_length)]
    return subprocess.run(command + source, stdout=subprocess.DEVNULL, check=False).returncode == 0


def peers(options, wanted):
    """The programs that can be had. Those that bench/align.sh makes are tried on a few reads."""
    tiny = argparse.Namespace(**{**vars(options), "pairs": 100, "genome": None, "genome_length": 100_000, "rounds": 1})
    for program in wanted:
        if program in ("genuma", "minibwa", "strobealign"):
            if bench(tiny, "easy", [program], options.out):
                yield program
            elif program == "genuma":
                sys.exit("align-results: genuma fails, see above")
        elif shutil.which(program):
            yield program


def median(values):
    return sorted(values)[(len(values) - 1) // 2]


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t"))


def results(out, programs, with_index):
    """Rows of the programs of one run of bench/align.sh, without genome and threads."""
    versions = {row[0]: row[1] for row in rows_of(out / "versions.tsv")}
    times, scores = rows_of(out / "times.tsv"), rows_of(out / "scores.tsv")
    for job, read_type in [("index", "index"), ("SAM", None)]:
        for program in programs:
            runs = [row for row in times if row[1] == job and row[2] == program]
            if not runs or (job == "index" and not with_index):
                continue
            row = {"read_type": read_type, "program": program, "version": versions[program]}
            row["wall_s"] = f"{median([float(run[3]) for run in runs]):.2f}"
            row["cpu_s"] = f"{median([float(run[4]) + float(run[5]) for run in runs]):.2f}"
            if job == "SAM":
                found = [[int(cell or 0) for cell in line[1:]] for line in scores if line[0] == program]
                row["reads"] = sum(reads for _, reads, _ in found)
                row["mapped"] = sum(reads for mapq, reads, _ in found if mapq >= 0)
                row["confident"] = sum(reads for mapq, reads, _ in found if mapq >= CONFIDENT_MAPQ)
                for least in (60, 20, 10):
                    row[f"wrong_{least}"] = sum(wrong for mapq, _, wrong in found if mapq >= least)
            yield row


def main():
    options = parse_options()
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in options.programs.split(",") if name]
    unknown = [name for name in wanted if name not in PROGRAMS] + [name for name in options.read_types.split(",") if name not in READ_TYPES]
    if unknown or "genuma" not in wanted:
        sys.exit(f"align-results: not known, or genuma is missing: {', '.join(unknown) or options.programs}")
    programs = list(peers(options, wanted))
    rows, genome = [], genome_name(options)
    for number, kind in enumerate(options.read_types.split(",")):
        if not bench(options, kind, programs, options.out):
            sys.exit(f"align-results: bench/align.sh fails on reads of the kind {kind}, see above")
        found = list(results(options.out, programs, with_index=number == 0))
        for row in found:
            rows.append({"genome": genome, "threads": options.threads, **row, "read_type": row["read_type"] or READ_TYPES[kind]})
        for program in wanted:
            if program not in programs:
                rows.append({"genome": genome, "read_type": READ_TYPES[kind], "program": program, "version": NOT_AVAILABLE, "threads": options.threads})
    version = next(row["version"] for row in rows if row["program"] == "genuma")
    path = options.tsv or ROOT / "bench/results/align" / f"{version}-{options.machine or machine_name()}.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="-", delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(path)


if __name__ == "__main__":
    main()
