#!/usr/bin/env python3
"""Measures what naming the genes (`genuma call --gff`) costs.

A pair of 5.5 Mbp at 30x/30x is simulated, and a GFF3 file of 20,000 made transcripts: 2,000 genes of ten transcripts, each with five
exons and a coding sequence. The pair is called with and without the genes in turn. The CPU time of each call, user and system, is
written as a table (TSV) to standard output; the last lines have the medians and the difference.

usage: bench/annotation.py [--genuma PROGRAM] [--rounds N] [--bases N] [--transcripts N] [--data DIR] [--callgrind]
`--data` keeps the simulated reads, and uses reads that are there already. `--callgrind` counts instructions with valgrind in place of
CPU time, once with one thread; it takes about 50 times as long, so use it with few bases.
"""

import argparse
import os
import random
import re
import shutil
import statistics
import sys
import tempfile

from assays import run_checked

TRANSCRIPTS_PER_GENE = 10
EXONS = 5


def contig_lengths(fasta):
    """Names and lengths of the contigs of a FASTA file."""
    lengths = {}
    with open(fasta) as lines:
        for line in lines:
            if line.startswith(">"):
                name = line[1:].split()[0]
                lengths[name] = 0
            else:
                lengths[name] += len(line.strip())
    return lengths


def write_genes(path, lengths, num_transcripts):
    """Writes a GFF3 file of coding genes that are spread evenly over the contigs."""
    chance = random.Random(1)
    num_genes = max(1, num_transcripts // TRANSCRIPTS_PER_GENE)
    spacing = sum(lengths.values()) // num_genes
    number = 0
    with open(path, "w") as out:
        print("##gff-version 3", file=out)
        for contig, length in lengths.items():
            for start in range(1, length - spacing, spacing):
                end = start + spacing * 9 // 10
                strand = "+-"[number % 2]

                def feature(kind, first, last, phase, attributes):
                    print(contig, "made", kind, first, last, ".", strand, phase, attributes, sep="\t", file=out)

                number += 1
                feature("gene", start, end, ".", f"ID=gene:G{number};Name=GENE{number};biotype=protein_coding")
                for t in range(TRANSCRIPTS_PER_GENE):
                    name = f"T{number}.{t}"
                    tag = ";tag=MANE_Select" if t == 0 else ""
                    feature("mRNA", start, end, ".", f"ID=transcript:{name};Parent=gene:G{number};biotype=protein_coding{tag}")
                    step = (end - start) // EXONS
                    for exon in range(EXONS):
                        first = start + exon * step
                        # Whole codons, so that each exon begins a codon.
                        last = first + 3 * chance.randrange(20, max(21, step // 4)) - 1
                        feature("exon", first, last, ".", f"Parent=transcript:{name}")
                        feature("CDS", first, last, "0", f"ID=CDS:{name};Parent=transcript:{name}")
    return number * TRANSCRIPTS_PER_GENE


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--genuma", default="target/release/genuma")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bases", type=int, default=5_500_000)
    parser.add_argument("--transcripts", type=int, default=20_000)
    parser.add_argument("--data")
    parser.add_argument("--callgrind", action="store_true")
    args = parser.parse_args()
    data = args.data or tempfile.mkdtemp(prefix="annotation-")
    pair, gff = os.path.join(data, "pair"), os.path.join(data, "genes.gff3")
    if not os.path.exists(os.path.join(pair, "truth.vcf")):
        scale = args.bases / 1_000_000
        counts = ["--snvs", str(int(100 * scale)), "--indels", str(int(40 * scale)), "--svs", str(int(10 * scale))]
        size = ["--genome-length", str(args.bases), "--contigs", "3", "--depth-tumor", "30", "--depth-normal", "30"]
        run_checked([args.genuma, "bench", "simulate", "-q", *size, *counts, "--seed", "48", "-o", pair])
    made = write_genes(gff, contig_lengths(os.path.join(pair, "genome.fa")), args.transcripts)
    print(f"annotation.py: {made} transcripts", file=sys.stderr)
    reads = [[os.path.join(pair, f"{sample}_{mate}.fq.gz") for mate in "12"] for sample in ["tumor", "normal"]]
    call = [args.genuma, "call", "-q", "--tumor", *reads[0], "--normal", *reads[1], "--reference", os.path.join(pair, "genome.fa")]
    out = os.path.join(data, "calls")
    unit = "instructions" if args.callgrind else "CPU seconds"
    values = {"without": [], "with": []}
    print("round", "genes", unit, sep="\t")
    for number in range(1, (1 if args.callgrind else args.rounds) + 1):
        for genes, options in [("without", []), ("with", ["--gff", gff])]:
            shutil.rmtree(out, ignore_errors=True)
            command = [*call, *options, "-o", out]
            if args.callgrind:
                command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command, "--threads", "1"]
            seconds, messages = run_checked(command)
            value = int(re.search(r"Collected : (\d+)", messages)[1]) if args.callgrind else round(seconds, 2)
            values[genes].append(value)
            print(number, genes, value, sep="\t", flush=True)
    without, with_genes = (statistics.median(values[genes]) for genes in ["without", "with"])
    print("median", "without", without, sep="\t")
    print("median", "with", with_genes, sep="\t")
    print("median", "difference", f"{100 * (with_genes / without - 1):.1f} %", sep="\t")
    if not args.data:
        shutil.rmtree(data)


main()
