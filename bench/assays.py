#!/usr/bin/env python3
"""Scores `genuma call` on one simulated set of each assay.

Each set is simulated, called with its targets if it has some, and compared with its truth. The recall and the precision of calls
that pass are written as a table (TSV) to standard output, with the CPU time of the call.

usage: bench/assays.py [--genuma PROGRAM] [--caller NAME] [--sets w30,n5] [--seed-offset N] [--data DIR]
`--data` keeps the simulated reads and the calls, and uses reads that are there already. `--seed-offset` is added to all seeds: sets
that no setting was chosen on.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile

PANEL_UMI = "--umi 3M1S+T --duplex --family-size 3"
WGS_3MB = "--genome-length 3000000 --snvs 150 --indels 80 --svs 30"
WGS_1MB = "--genome-length 1200000 --snvs 100 --indels 50 --svs 20"
RAW_UMI = "--umi 3M1S+T 3M1S+T"
# Mutations about as rare as in patients: one false call lowers the precision as much as it would there.
FEW_ON_TARGET = "--genome-length 15000000 --snvs 6 --indels 3 --svs 2"
FEW_WGS = "--genome-like human --genome-length 25000000 --snvs 25 --indels 20 --svs 8"

# name: options of `genuma bench simulate`, options of `genuma call`
SETS = {
    "amp1000": ("--library amplicon --capture panel --genome-length 3000000 --depth-tumor 1000 --depth-normal 500 --purity 0.5 --subclones 0.2 --seed 301", ""),
    "amp300": ("--library amplicon --capture panel --genome-length 3000000 --depth-tumor 300 --depth-normal 150 --purity 0.5 --subclones 0.2 --seed 302", ""),
    "umi500": (f"--library panel --genome-length 1500000 {PANEL_UMI} --consensus --depth-tumor 500 --depth-normal 200 --purity 0.1 --seed 303", ""),
    "umi1000": (f"--library panel --genome-length 1500000 {PANEL_UMI} --consensus --depth-tumor 1000 --depth-normal 500 --purity 0.04 --seed 304", ""),
    "cf2000": ("--library cfdna --capture panel --genome-length 1500000 --depth-tumor 2000 --depth-normal 500 --purity 0.1 --seed 305", ""),
    "cf500": ("--library cfdna --capture panel --genome-length 1500000 --depth-tumor 500 --depth-normal 200 --purity 0.2 --seed 306", ""),
    "short60": (f"{WGS_1MB} --read-length 36 --insert-mean 250 --depth-tumor 60 --depth-normal 40 --purity 0.8 --seed 307", ""),
    "short30": (f"{WGS_1MB} --read-length 36 --insert-mean 250 --depth-tumor 30 --depth-normal 30 --purity 0.8 --seed 308", ""),
    "tin10": (f"{WGS_1MB} --depth-tumor 60 --depth-normal 30 --purity 0.9 --tumor-in-normal 0.1 --seed 309", ""),
    "for2": (f"{WGS_1MB} --depth-tumor 60 --depth-normal 30 --purity 0.8 --foreign-tumor 0.02 --seed 310", ""),
    "ffpe30": (f"--library ffpe {WGS_1MB} --depth-tumor 30 --depth-normal 30 --purity 0.8 --seed 311", ""),
    "ffpe90": (f"--library ffpe {WGS_3MB} --depth-tumor 90 --depth-normal 50 --purity 0.8 --seed 312", ""),
    "ion300": ("--library ion --amplicons --capture panel --genome-length 1500000 --depth-tumor 300 --depth-normal 150 --purity 0.6 --seed 313", ""),
    "ion60": (f"--library ion {WGS_1MB} --depth-tumor 60 --depth-normal 30 --purity 0.8 --seed 314", ""),
    "exome150": ("--library exome --genome-length 3000000 --depth-tumor 150 --depth-normal 100 --purity 0.5 --seed 315", ""),
    "panel500": ("--library panel --genome-length 1500000 --depth-tumor 500 --depth-normal 200 --purity 0.4 --subclones 0.3 --seed 316", ""),
    "rawumi": (f"--library panel --genome-length 1500000 {PANEL_UMI} --depth-tumor 1500 --depth-normal 600 --purity 0.1 --seed 319", RAW_UMI),
    "w30": (f"{WGS_3MB} --depth-tumor 30 --depth-normal 30 --purity 1.0 --seed 71", ""),
    "p50": (f"{WGS_3MB} --depth-tumor 30 --depth-normal 30 --purity 0.5 --seed 72", ""),
    "d100": (f"{WGS_3MB} --depth-tumor 100 --depth-normal 30 --purity 0.5 --seed 73", ""),
    "n5": (f"{WGS_3MB} --depth-tumor 60 --depth-normal 5 --purity 0.8 --seed 74", ""),
    "n15": (f"{WGS_3MB} --depth-tumor 60 --depth-normal 15 --purity 0.8 --seed 75", ""),
    "tin20": (f"{WGS_3MB} --depth-tumor 60 --depth-normal 30 --purity 0.9 --tumor-in-normal 0.2 --seed 76", ""),
    "few-panel500": (f"--library panel {FEW_ON_TARGET} --depth-tumor 500 --depth-normal 200 --purity 0.4 --seed 320", ""),
    "few-amp300": (f"--library amplicon --capture panel {FEW_ON_TARGET} --depth-tumor 300 --depth-normal 150 --purity 0.5 --seed 321", ""),
    "few-cf500": (f"--library cfdna --capture panel {FEW_ON_TARGET} --depth-tumor 500 --depth-normal 200 --purity 0.2 --seed 322", ""),
    "few-w60": (f"--library wgs {FEW_WGS} --depth-tumor 60 --depth-normal 30 --purity 0.4 --seed 323", ""),
    "for5": (f"{WGS_3MB} --depth-tumor 60 --depth-normal 30 --purity 0.8 --foreign-tumor 0.05 --seed 77", ""),
}
CLASSES = ["SNV", "INDEL", "SV"]


def shift_seed(options, offset):
    """The options with `offset` added to the value of --seed."""
    words = options.split()
    seed = words.index("--seed") + 1
    words[seed] = str(int(words[seed]) + offset)
    return words


def run_checked(command):
    """Runs a command; returns its CPU time in seconds and its messages. Ends the benchmark if the command fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stderr


def call_genuma(program, folder, calls, reference, options=()):
    """Calls the pair of samples in a folder into the folder `calls`; returns the CPU time in seconds."""
    shutil.rmtree(calls, ignore_errors=True)
    command = [program, "call", "-q", "-o", calls]
    for sample in ["tumor", "normal"]:
        command += [f"--{sample}", f"{folder}/{sample}_1.fq.gz", f"{folder}/{sample}_2.fq.gz"]
    seconds, _ = run_checked([*command, "--reference", reference, *options])
    return seconds


def score_set(args, name, data):
    """Simulates, calls and evaluates one set; returns the evaluation and the CPU seconds of the call."""
    simulate_options, call_options = SETS[name]
    folder = os.path.join(data, f"{name}.{args.seed_offset}")
    if not os.path.exists(os.path.join(folder, "truth.vcf")):
        run_checked([args.genuma, "bench", "simulate", "-q", *shift_seed(simulate_options, args.seed_offset), "-o", folder])
    calls = os.path.join(folder, f"calls_{args.caller}")
    options = call_options.split()
    if os.path.exists(f"{folder}/targets.bed"):
        options += ["--targets", f"{folder}/targets.bed"]
    seconds = call_genuma(args.genuma, folder, calls, f"{folder}/genome.fa", options)
    scores = f"{calls}/scores.json"
    run_checked([args.genuma, "bench", "evaluate", f"{folder}/truth.vcf", f"{calls}/somatic.vcf.gz", "--reference", f"{folder}/genome.fa", "--json", scores])
    with open(scores) as opened:
        return json.load(opened), seconds


def class_scores(scores, kind):
    """The columns of one class of variants."""
    counts = scores["classes"][kind]["all"]
    rates = ["" if counts[rate] is None else f"{counts[rate]:.3f}" for rate in ["recall", "precision"]]
    return [counts["tp"] + counts["fn"], counts["tp"], counts["fp"], *rates]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--genuma", default="target/release/genuma")
    parser.add_argument("--caller", default="genuma", help="name of this build in the table")
    parser.add_argument("--sets", default=",".join(SETS), help="comma-separated names (default: all)")
    parser.add_argument("--seed-offset", type=int, default=0)
    parser.add_argument("--data", help="folder that keeps reads and calls (default: a temporary one)")
    args = parser.parse_args()
    unknown = [name for name in args.sets.split(",") if name not in SETS]
    if unknown:
        parser.error(f"unknown set {unknown[0]}: use {', '.join(SETS)}")
    with tempfile.TemporaryDirectory() as temporary:
        data = args.data or temporary
        columns = [f"{kind.lower()}_{column}" for kind in CLASSES for column in ["truth", "true", "false", "recall", "precision"]]
        print("set", "seed_offset", "caller", *columns, "call_cpu_s", sep="\t", flush=True)
        for name in args.sets.split(","):
            scores, seconds = score_set(args, name, data)
            row = [name, args.seed_offset, args.caller]
            for kind in CLASSES:
                row += class_scores(scores, kind)
            print(*row, f"{seconds:.1f}", sep="\t", flush=True)


if __name__ == "__main__":
    main()
