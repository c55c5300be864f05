#!/usr/bin/env python3
"""Measures the recall of rare alleles in deep libraries with reads of a simulator that shares no code with `genuma bench simulate`.

Each set is a piece of a genome with heterozygous germline substitutions, and somatic substitutions and indels of one allele
fraction, 100 bp or more apart. Fragments have random ends, or those of amplicons. Base qualities fall along the read, and a base is wrong
with the probability that its quality states; consensus reads have quality 90 and two errors in a million bases.

usage: bench/rare_alleles.py [--genome FASTA] [--genuma PROGRAM] [--seeds 11,12] [--out DIR]
Without a genome the pieces are random sequence. Writes a table (TSV) to standard output.
"""

import argparse
import gzip
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile

COMPLEMENT = str.maketrans("ACGT", "TGCA")
READ_BP = 150

# name: allele fractions, tumour and normal depth, mean and deviation of the fragment length, whether reads are consensus
# reads, whether fragments are amplicons
SETS = {
    "consensus_1pct": ([0.01], 600, 300, (300, 50), True, False),
    "consensus_2pct": ([0.02], 600, 300, (300, 50), True, False),
    "raw_0.5pct": ([0.005], 1000, 500, (300, 50), False, False),
    "raw_1pct": ([0.01], 1000, 500, (300, 50), False, False),
    "raw_2pct": ([0.02], 1000, 500, (300, 50), False, False),
    "cfdna_1pct": ([0.01], 2000, 1000, (167, 12), False, False),
    "amplicon": ([0.05, 0.1, 0.25, 0.5], 1000, 500, (180, 0), False, True),
}
PIECE_BP, SNVS, INDELS, GERMLINE = 5000, 20, 6, 8


def reverse_complement(seq):
    return seq[::-1].translate(COMPLEMENT)


def read_genome(path):
    """The longest contig of a FASTA file."""
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    contigs = [[]]
    for line in opened:
        contigs.append([]) if line.startswith(">") else contigs[-1].append(line.strip().upper())
    return max(("".join(lines) for lines in contigs), key=len)


def left_align(ref, pos, reference, alternative):
    """The variant as VCF writes it: minimal and as far left as possible. `pos` is 0-based."""
    while True:
        if reference and alternative and reference[-1] == alternative[-1]:
            reference, alternative = reference[:-1], alternative[:-1]
        elif not reference or not alternative:
            pos -= 1
            reference, alternative = ref[pos] + reference, ref[pos] + alternative
        else:
            break
    while len(reference) > 1 and len(alternative) > 1 and reference[0] == alternative[0]:
        pos, reference, alternative = pos + 1, reference[1:], alternative[1:]
    return pos, reference, alternative


def choose_variants(rng, ref):
    """Somatic and germline variants at regular distances, in random order: (position, REF, ALT)."""
    count = SNVS + INDELS + GERMLINE
    step = (len(ref) - 600) // count
    positions = [300 + i * step for i in range(count)]
    rng.shuffle(positions)
    variants = []
    for number, pos in enumerate(positions):
        if number < SNVS or number >= SNVS + INDELS:
            variants.append((pos, ref[pos], rng.choice([b for b in "ACGT" if b != ref[pos]])))
            continue
        size = rng.randint(1, 12)
        inserted = "".join(rng.choice("ACGT") for _ in range(size))
        deletion = (pos, ref[pos : pos + size + 1], ref[pos])
        variants.append(left_align(ref, *(deletion if rng.random() < 0.5 else (pos, ref[pos], ref[pos] + inserted))))
    return variants[: SNVS + INDELS], variants[SNVS + INDELS :]


def make_qualities(rng, length, is_consensus):
    if is_consensus:
        return [90] * length
    return [max(2, min(41, int(rng.gauss(38 - 9 * (i / READ_BP) ** 2, 3.2)))) for i in range(length)]


def sequence_mate(rng, seq, is_consensus):
    qualities = make_qualities(rng, len(seq), is_consensus)
    wrong = [2e-6 if is_consensus else 10 ** (-q / 10) for q in qualities]
    bases = (rng.choice([b for b in "ACGT" if b != base]) if rng.random() < p else base for base, p in zip(seq, wrong))
    return "".join(bases), "".join(chr(33 + q) for q in qualities)


def write_reads(rng, folder, sample, ref, alleles, depth, fragment, is_consensus, is_amplicon):
    """`alleles` are (position, REF, ALT, probability that a molecule has it)."""
    mean, deviation = fragment
    bases_per_pair = 2 * min(READ_BP, mean)
    pairs = depth * len(ref) // bases_per_pair
    amplicons = [(start, start + mean) for start in range(50, len(ref) - mean - 50, mean - 60)] if is_amplicon else None
    if amplicons:
        pairs = depth * len(amplicons)
    files = [gzip.open(f"{folder}/{sample}_{mate}.fq.gz", "wt", 1) for mate in (1, 2)]
    for number in range(pairs):
        if amplicons:
            start, end = rng.choice(amplicons)
        else:
            length = max(60, int(rng.gauss(mean, deviation)))
            start = rng.randrange(len(ref) - length)
            end = start + length
        seq, at = [], start
        for pos, reference, alternative, share in alleles:
            if at <= pos and pos + len(reference) <= end and rng.random() < share:
                seq += [ref[at:pos], alternative]
                at = pos + len(reference)
        seq = "".join(seq) + ref[at:end]
        if rng.random() < 0.5:
            seq = reverse_complement(seq)
        for mate, (file, read) in enumerate(zip(files, (seq, reverse_complement(seq))), 1):
            bases, qualities = sequence_mate(rng, read[:READ_BP], is_consensus)
            file.write(f"@{sample}:{number}/{mate}\n{bases}\n+\n{qualities}\n")
    for file in files:
        file.close()


def make_set(folder, name, seed, genome):
    """Writes reads and reference; returns the somatic variants."""
    fractions, tumour_depth, normal_depth, fragment, is_consensus, is_amplicon = SETS[name]
    rng = random.Random(f"{name} {seed}")
    start = rng.randrange(len(genome) - PIECE_BP)
    ref = genome[start : start + PIECE_BP]
    while set(ref) - set("ACGT"):
        start = rng.randrange(len(genome) - PIECE_BP)
        ref = genome[start : start + PIECE_BP]
    somatic, germline = choose_variants(rng, ref)
    with open(f"{folder}/ref.fa", "w") as fasta:
        fasta.write(">contig\n" + "\n".join(ref[i : i + 80] for i in range(0, len(ref), 80)) + "\n")
    inherited = [(*variant, 0.5) for variant in germline]
    acquired = [(*variant, fractions[i % len(fractions)]) for i, variant in enumerate(somatic)]
    library = (fragment, is_consensus, is_amplicon)
    write_reads(rng, folder, "tumor", ref, sorted(inherited + acquired), tumour_depth, *library)
    write_reads(rng, folder, "normal", ref, sorted(inherited), normal_depth, *library)
    with open(f"{folder}/truth.vcf", "w") as vcf:
        vcf.write(f"##fileformat=VCFv4.2\n##contig=<ID=contig,length={len(ref)}>\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n")
        vcf.writelines(f"contig\t{pos + 1}\t.\t{reference}\t{alternative}\t.\tPASS\t.\n" for pos, reference, alternative in sorted(somatic))
    return {(pos + 1, reference, alternative) for pos, reference, alternative in somatic}


def call(genuma, folder):
    """The variants that pass, and the CPU seconds of the call."""
    out = f"{folder}/calls"
    shutil.rmtree(out, ignore_errors=True)
    reads = [f"{folder}/{sample}_{mate}.fq.gz" for sample in ("tumor", "normal") for mate in (1, 2)]
    command = [genuma, "call", "-q", "--tumor", *reads[:2], "--normal", *reads[2:], "--reference", f"{folder}/ref.fa", "-o", out]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with gzip.open(f"{out}/somatic.vcf.gz", "rt") as vcf:
        records = [line.rstrip("\n").split("\t") for line in vcf if not line.startswith("#")]
    passed = {(int(record[1]), record[3], record[4]) for record in records if record[6] == "PASS"}
    return passed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--genome", help="FASTA file, plain or gzipped")
    parser.add_argument("--genuma", default="target/release/genuma")
    parser.add_argument("--seeds", default="11,12")
    parser.add_argument("--out", help="folder for reads and calls (default: a temporary folder)")
    args = parser.parse_args()
    genome = read_genome(args.genome) if args.genome else "".join(random.Random(1).choices("ACGT", k=1_000_000))
    base = args.out or tempfile.mkdtemp(prefix="rare-alleles-")
    print("set", "seed", "snvs", "snvs_found", "indels", "indels_found", "false", "cpu_s", sep="\t")
    for name in SETS:
        for seed in args.seeds.split(","):
            folder = f"{base}/{name}_{seed}"
            os.makedirs(folder, exist_ok=True)
            truth = make_set(folder, name, seed, genome)
            passed, cpu_s = call(args.genuma, folder)
            found, snvs = truth & passed, {v for v in truth if len(v[1]) == len(v[2]) == 1}
            counts = [len(snvs), len(found & snvs), len(truth - snvs), len(found - snvs), len(passed - truth)]
            print(name, seed, *counts, f"{cpu_s:.1f}", sep="\t", flush=True)
    if not args.out:
        shutil.rmtree(base)


if __name__ == "__main__":
    sys.exit(main())
