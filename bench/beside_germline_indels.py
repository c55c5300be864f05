#!/usr/bin/env python3
"""Compares genuma, Mutect2 and freebayes on somatic changes within 10 bp of germline indels.

The script makes its own pairs of samples, with no code of `genuma bench simulate`. Every 1,000 bp of a genome it plants a germline indel of 1
to 12 bp, heterozygous in three of four places, and a somatic SNV (half of the places), insertion or deletion of 1 to 10 bp at a distance of 1
to 10 bp, on the haplotype of the indel in half of the heterozygous places. Germline SNVs lie between the places. Reads are 2x150 with
fragments of 350 ± 60 bp and 0.3 % wrong bases, at 60x and 30x; the purity is 0.6.

A change may be written in several ways, so sequences are compared: the calls that pass within 30 bp of a place are applied to the reference,
and to the reference with the germline indel, however that is written. The place is found if the result is the sequence with the somatic
change, and wrong if there are calls with another result. Calls elsewhere are false. Mutect2 runs with FilterMutectCalls. freebayes calls
both samples at once; its calls count with QUAL >= 20, three reads in the tumour and none in the normal.

usage: bench/beside_germline_indels.py [--genuma PROGRAM]... [--seeds 1,2,3] [--genome FASTA] [--places N] [--data DIR]
`--genuma` may be given several times. Without `--genome` the genome is random, with 42 % G and C. With one, the first places of its longest
sequences without N are used. Writes a table (TSV) to standard output. Needs bwa, samtools, bcftools, freebayes and GATK (bench/peers.sh).
"""

import argparse
import collections
import gzip
import os
import random
import sys
import tempfile

import assay_peers
from assays import call_genuma
from rare_alleles import reverse_complement
from spiked_duplications import read_fasta

SPACING_BP = 1000
WINDOW_BP = 30
READ_BP = 150
DEPTHS = {"tumor": 60, "normal": 30}
PURITY = 0.6
ERROR_RATE = 0.003
MIN_FREEBAYES_QUAL, MIN_FREEBAYES_READS = 20, 3
KINDS = ["heterozygous, same haplotype", "heterozygous, other haplotype", "homozygous"]
COLUMNS = ["seed", "caller", "germline_indel", "places", "found", "wrong", "false_elsewhere"]

# A place: position of the germline indel, its kind, and both changes as (position, reference, alternative) with a common first base.
Place = collections.namedtuple("Place", "contig kind germline somatic")


def random_change(rng, sequence, position, kind, longest):
    """A change after the base at `position` (0-based), as VCF writes it."""
    first = sequence[position]
    if kind == "snv":
        return (position, first, rng.choice([base for base in "ACGT" if base != first]))
    length = min(1 + int(rng.expovariate(0.4)), longest)
    if kind == "insertion":
        return (position, first, first + "".join(rng.choices("ACGT", k=length)))
    return (position, sequence[position : position + length + 1], first)


def plan_places(rng, contig, sequence, places):
    """The germline and somatic changes of a contig."""
    planned = []
    for position in range(SPACING_BP, len(sequence) - SPACING_BP, SPACING_BP):
        if len(planned) == places:
            break
        germline = random_change(rng, sequence, position, rng.choice(["insertion", "deletion"]), 12)
        kind = rng.choice(["snv", "snv", "insertion", "deletion"])
        distance = rng.randint(1, 10)
        if rng.random() < 0.5:
            start = position + len(germline[1]) - 1 + distance
        else:
            start = position - distance
        somatic = random_change(rng, sequence, start, kind, 10)
        if start < position and start + len(somatic[1]) > position:
            somatic = (start, sequence[start : position], sequence[start]) if position - start > 1 else random_change(rng, sequence, start, "snv", 1)
        planned.append(Place(contig, rng.choice([KINDS[0], KINDS[1], KINDS[2], rng.choice(KINDS[:2])]), germline, somatic))
    return planned


def apply(sequence, changes, start=0):
    """`sequence`, whose first base has position `start`, with the changes; None if two of them overlap."""
    out, at = [], start
    for position, reference, alternative in sorted(changes):
        # The common first base of an indel isn't changed.
        shared = len(reference) != len(alternative)
        if position + shared < at:
            return None
        if position >= at:
            out.append(sequence[at - start : position - start] + alternative)
        else:
            out.append(alternative[1:])
        at = position + len(reference)
    return "".join(out) + sequence[at - start :]


def equivalent_changes(sequence, change, start):
    """All ways to write a change of `sequence`, whose first base has position `start`."""
    position, reference, alternative = change
    length = len(alternative) - len(reference)
    changed = apply(sequence, [change], start)
    ways = [change]
    for at in range(max(start, position - WINDOW_BP), position + WINDOW_BP):
        first = sequence[at - start : at - start + 1 + max(-length, 0)]
        other = (at, first, changed[at - start : at - start + 1 + max(length, 0)])
        if length != 0 and other != change and other[1][0] == other[2][0] and apply(sequence, [other], start) == changed:
            ways.append(other)
    return ways


def haplotypes(rng, sequence, places):
    """The two haplotypes of the normal and of the tumour."""
    germline, somatic = [[], []], [[], []]
    for place in places:
        carrier = rng.randrange(2)
        for haplotype in range(2):
            if place.kind == KINDS[2] or haplotype == carrier:
                germline[haplotype].append(place.germline)
        somatic[1 - carrier if place.kind == KINDS[1] else carrier].append(place.somatic)
        middle = place.germline[0] + SPACING_BP // 2 + rng.randint(-200, 200)
        for haplotype in rng.choice([[0], [1], [0, 1]]):
            germline[haplotype].append((middle, sequence[middle], "ACGT"[("ACGT".index(sequence[middle]) + 1) % 4]))
    normal = [apply(sequence, changes) for changes in germline]
    tumour = [apply(sequence, own + changes) for own, changes in zip(germline, somatic)]
    return normal, tumour


def write_reads(rng, folder, sample, sources, bases):
    """Writes pairs of reads from the sequences `sources`: (sequences of equal share, share of all reads)."""
    pairs = int(bases * DEPTHS[sample] / (2 * READ_BP))
    with gzip.open(f"{folder}/{sample}_1.fq.gz", "wt", 1) as first, gzip.open(f"{folder}/{sample}_2.fq.gz", "wt", 1) as second:
        for number in range(pairs):
            sequences = rng.choices([s for s, _ in sources], [share for _, share in sources])[0]
            sequence = rng.choices(sequences, [len(s) for s in sequences])[0]
            length = max(READ_BP, int(rng.gauss(350, 60)))
            start = rng.randint(0, len(sequence) - length)
            fragment = sequence[start : start + length]
            mates = [fragment[:READ_BP], reverse_complement(fragment[-READ_BP:])]
            if rng.random() < 0.5:
                mates.reverse()
            for out, mate in zip((first, second), mates):
                wrong = [i for i in range(READ_BP) if rng.random() < ERROR_RATE]
                bases_of_read, qualities = list(mate), ["F"] * READ_BP
                for i in wrong:
                    bases_of_read[i] = rng.choice([b for b in "ACGT" if b != mate[i]])
                    qualities[i] = rng.choice("-5:F")
                out.write(f"@{sample}.{number}\n{''.join(bases_of_read)}\n+\n{''.join(qualities)}\n")


def contigs_of(args, rng):
    """The sequences in which the places are planted, by name."""
    needed = (args.places + 2) * SPACING_BP
    if args.genome is None:
        return {"chr1": "".join(rng.choices("ACGT", [29, 21, 21, 29], k=needed))}
    chosen = {}
    for name, text in read_fasta(args.genome).items():
        sequence = max(text.split("N"), key=len)[:needed]
        if set(sequence) <= set("ACGT") and len(sequence) >= 3 * SPACING_BP and needed > 0:
            chosen[name] = sequence
            needed -= len(sequence)
    return chosen


def make_set(args, seed, folder):
    """Writes the reads and the genome of a seed, and returns the contigs and the places."""
    rng = random.Random(seed)
    contigs = contigs_of(args, rng)
    places, normal, tumour = [], [], []
    for name, sequence in contigs.items():
        own = plan_places(rng, name, sequence, args.places - len(places))
        places += own
        of_normal, of_tumour = haplotypes(rng, sequence, own)
        normal += of_normal
        tumour += of_tumour
    if not os.path.exists(f"{folder}/genome.fa"):
        os.makedirs(f"{folder}/peers", exist_ok=True)
        bases = sum(map(len, contigs.values()))
        write_reads(rng, folder, "normal", [(normal, 1.0)], bases)
        write_reads(rng, folder, "tumor", [(normal, 1.0 - PURITY), (tumour, PURITY)], bases)
        with open(f"{folder}/genome.fa", "w") as out:
            for name, sequence in contigs.items():
                out.write(f">{name}\n" + "".join(f"{sequence[i : i + 80]}\n" for i in range(0, len(sequence), 80)))
    return contigs, places


def score(contigs, places, calls):
    """Counts of found and wrong places by kind, and the number of calls elsewhere. `calls` are (contig, position, reference, alternative)."""
    calls = {(contig, position - 1, reference, alternative) for contig, position, reference, alternative in calls}
    counts, used = collections.Counter(), set()
    for place in places:
        sequence = contigs[place.contig]
        position = place.germline[0]
        near = {call for call in calls if call[0] == place.contig and abs(call[1] - position) <= WINDOW_BP}
        used |= near
        counts[place.kind, "places"] += 1
        if not near:
            continue
        start = position - 3 * WINDOW_BP
        window = sequence[start : position + 3 * WINDOW_BP]
        own = [call[1:] for call in near]
        right = [apply(window, [place.somatic], start), apply(window, [place.germline, place.somatic], start)]
        with_germline = (apply(window, [germline, *own], start) for germline in equivalent_changes(window, place.germline, start))
        is_found = apply(window, own, start) in right or right[1] in with_germline
        counts[place.kind, "found" if is_found else "wrong"] += 1
    return counts, len(calls - used)


def genuma_calls(program, folder, number):
    """The passing small variants of a build of genuma."""
    out = f"{folder}/calls{number}"
    call_genuma(program, folder, out, f"{folder}/genome.fa")
    found = assay_peers.variants_of(f"{out}/somatic.vcf.gz", f"{folder}/peers/ref.fa", None)
    return [variant for variant, (filters, *_) in found.items() if filters == "PASS"]


def freebayes_calls(folder, reference):
    """The calls of freebayes that look somatic."""
    scored = assay_peers.freebayes(folder, reference, None, 0.05)
    return [
        variant
        for variant, (qual, tumour, minus_normal, _) in scored.items()
        if qual >= MIN_FREEBAYES_QUAL and tumour >= MIN_FREEBAYES_READS and minus_normal == 0
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--genuma", action="append", help="a build of genuma (default: target/release/genuma)")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--genome", help="FASTA file (default: a random genome)")
    parser.add_argument("--places", type=int, default=100, help="germline indels of each set")
    parser.add_argument("--data", help="folder that keeps reads, alignments and calls (default: a temporary one)")
    args = parser.parse_args()
    print(*COLUMNS, sep="\t", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        for seed in args.seeds.split(","):
            folder = os.path.join(args.data or temporary, f"seed{seed}")
            contigs, places = make_set(args, int(seed), folder)
            reference = assay_peers.reference_of(folder)
            assay_peers.align(folder, reference, False)
            callers = {program: genuma_calls(program, folder, number) for number, program in enumerate(args.genuma or ["target/release/genuma"])}
            callers["freebayes"] = freebayes_calls(folder, reference)
            callers["Mutect2"] = list(assay_peers.mutect2(folder, reference, None, False))
            for caller, calls in callers.items():
                counts, elsewhere = score(contigs, places, calls)
                for kind in KINDS:
                    print(seed, caller, kind, *(counts[kind, column] for column in COLUMNS[3:6]), elsewhere, sep="\t", flush=True)


if __name__ == "__main__":
    sys.exit(main())
