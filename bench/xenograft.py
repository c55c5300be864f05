#!/usr/bin/env python3
"""Counts false calls where the tumour's reads are partly those of another species, as in a xenograft of a tumour in a mouse.

The script makes its own pairs of samples, with no code of `genuma bench simulate`. The genome has a somatic change every 4,000 bp: SNVs in two
of three places, indels of 1 to 10 bp in the others. The host's genome is a copy in which conserved blocks of 100 to 1,500 bp differ from the
patient's at the rate of the set, one difference in ten being an indel, and unrelated sequence lies between them; at rates of at most 5 % it is
conserved everywhere, as in a related species. The host's share of the tumour's reads is that of the set; the normal has none. Reads are 2x150
with fragments of 350 ± 60 bp and 0.3 % wrong bases, at 60x and 30x.

Results are requested with --force; `withheld` says whether they are withheld otherwise. A call that passes is true if a somatic change is within 10 bp, false otherwise. Mutect2 and freebayes can't tell the host's reads either; users
remove them with a program such as Disambiguate or BBSplit. The table shows what happens to those who don't know about them.

usage: bench/xenograft.py [--genuma PROGRAM]... [--seeds 1,2] [--rates 0.02,0.05,0.1,0.15] [--host-share 0.2] [--genome FASTA] [--length BP] [--data DIR]
`--genuma` may be given several times. Without `--genome` the genome is random. Writes a table (TSV) to standard output.
"""

import argparse
import collections
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile

from assays import call_genuma
from beside_germline_indels import apply, random_change, write_reads
from spiked_duplications import read_fasta

SPACING_BP = 4000
NEAR_BP = 10
CONSERVED_EVERYWHERE = 0.05
COLUMNS = ["seed", "rate", "host_share", "caller", "planted", "found", "false", "marked", "withheld", "warned"]


def diverge(rng, sequence, rate):
    """`sequence` with differences at `rate`; one in ten is an indel of one to six bases."""
    out, at = [], 0
    while at < len(sequence):
        if rng.random() >= rate:
            out.append(sequence[at])
        elif rng.random() < 0.9:
            out.append(rng.choice([base for base in "ACGT" if base != sequence[at]]))
        elif rng.random() < 0.5:
            out.append(sequence[at] + "".join(rng.choices("ACGT", k=rng.randint(1, 6))))
        else:
            at += rng.randint(1, 6) - 1
        at += 1
    return "".join(out)


def host_of(rng, sequence, rate):
    """The host's copy of `sequence`."""
    if rate <= CONSERVED_EVERYWHERE:
        return diverge(rng, sequence, rate)
    out, at = [], 0
    while at < len(sequence):
        block = rng.randint(100, 1500)
        out.append(diverge(rng, sequence[at : at + block], rate))
        gap = rng.randint(200, 3000)
        out.append("".join(rng.choices("ACGT", k=gap)))
        at += block + gap
    return "".join(out)


def make_set(args, seed, rate, folder):
    """Writes the genome and the reads of a set, and returns the places of the somatic changes."""
    rng = random.Random(seed)
    sequence = "".join(rng.choices("ACGT", [29, 21, 21, 29], k=args.length))
    if args.genome:
        sequence = max("".join(read_fasta(args.genome).values()).upper().split("N"), key=len)[: args.length]
    kinds = ["snv", "snv", "snv", "snv", "insertion", "deletion"]
    changes = [random_change(rng, sequence, at, rng.choice(kinds), 10) for at in range(SPACING_BP, len(sequence) - SPACING_BP, SPACING_BP)]
    if not os.path.exists(f"{folder}/genome.fa"):
        os.makedirs(folder, exist_ok=True)
        share = args.host_share
        tumour = [([sequence], (1 - share) / 2), ([apply(sequence, changes)], (1 - share) / 2), ([host_of(rng, sequence, rate)], share)]
        write_reads(rng, folder, "normal", [([sequence], 1.0)], len(sequence))
        write_reads(rng, folder, "tumor", tumour, len(sequence))
        with open(f"{folder}/genome.fa", "w") as out:
            out.write(">chr1\n" + "".join(f"{sequence[i : i + 80]}\n" for i in range(0, len(sequence), 80)))
    return [position + 1 for position, *_ in changes]


def score(places, vcf):
    """Counts of found changes, of false calls that pass, and of calls that `divergent` or `discordant_mates` filters."""
    counts = collections.Counter()
    found = set()
    with gzip.open(vcf, "rt") as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            _, position, _, _, _, _, filters, *_ = line.split("\t")
            near = [place for place in places if abs(place - int(position)) <= NEAR_BP]
            if filters == "PASS":
                found.update(near)
                counts["false"] += not near
            elif {"divergent", "discordant_mates"} & set(filters.split(";")):
                counts["marked"] += 1
    counts["found"] = len(found)
    counts["planted"] = len(places)
    return counts


def warnings_of(summary):
    """Whether the results would be withheld, and whether there is a warning of another species."""
    with open(summary) as text:
        warnings = json.load(text).get("warnings", [])
    withheld = any(warning.get("withholds_results") for warning in warnings)
    warned = any(warning.get("topic") == "other_species" for warning in warnings)
    return ["yes" if found else "no" for found in (withheld, warned)]


def force_of(program):
    """The option that requests withheld results; none for version 0.2.0, which writes all."""
    options = subprocess.run([program, "call", "--help"], capture_output=True, text=True, check=True).stdout
    return ["--force"] if "--force" in options else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--genuma", action="append", help="a build of genuma (default: target/release/genuma)")
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--rates", default="0.02,0.05,0.1,0.15", help="differences of the host per base")
    parser.add_argument("--host-share", type=float, default=0.2, help="share of the tumour's reads that are the host's")
    parser.add_argument("--genome", help="FASTA file (default: a random genome)")
    parser.add_argument("--length", type=int, default=200_000, help="bases of the genome")
    parser.add_argument("--data", help="folder that keeps reads and calls (default: a temporary one)")
    args = parser.parse_args()
    print(*COLUMNS, sep="\t", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        for seed in args.seeds.split(","):
            for rate in args.rates.split(","):
                folder = os.path.join(args.data or temporary, f"seed{seed}_{rate}")
                places = make_set(args, int(seed), float(rate), folder)
                for number, program in enumerate(args.genuma or ["target/release/genuma"]):
                    out = f"{folder}/calls{number}"
                    call_genuma(program, folder, out, f"{folder}/genome.fa", force_of(program))
                    counts = score(places, f"{out}/somatic.vcf.gz")
                    counted = [counts[column] for column in COLUMNS[4:8]]
                    row = [seed, rate, args.host_share, os.path.basename(program), *counted, *warnings_of(f"{out}/summary.json")]
                    print(*row, sep="\t", flush=True)


if __name__ == "__main__":
    sys.exit(main())
