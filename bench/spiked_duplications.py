#!/usr/bin/env python3
"""Measures how many tandem duplications that are spiked into real reads `genuma call` finds.

The read pairs of one real sample are split at random into a tumour and a normal, so that every somatic variant of the tumour is a
spiked one. bwa mem places the pairs of the tumour. Duplications of 20 to 500 bp (log-uniform) are put at random places without germline
variants or low depth nearby. One haplotype has the segment [START, END) twice in a row. The allele fraction F is its share of the
molecules:
- A fragment that starts before END and ends behind it comes from this haplotype with probability F. It keeps its start and length; the
  bases of both mates are taken from the haplotype, so that mates behind the junction agree with the duplication.
- The second copy of the segment has fragments of its own: for each fragment that starts in the segment, with probability F, one more is
  added with a uniform start in the segment. So the depth of the segment rises by F.
A changed read keeps its qualities, and its differences from the reference at the same cycles. This needs a pair of which both reads align
as a whole without gaps. For other pairs, and for added fragments, strand, length, qualities and differences are those of a random template:
such a pair that covers no germline variant. So the reads of the haplotype have fewer sequencing errors than the average: pairs with
soft-clipped ends are never templates.

A record matches a duplication exactly if both give the same haplotype (`exact`), or its ends are within 10 bp of those of the duplication
(`near`). `partial` is an insertion of partly unknown sequence at either end. A duplication is found if a record that is `exact` or `near` has
the filter PASS. Of the fragments of the haplotype, `fragments_at_junction` have the junction of the two copies between their ends,
`junction_molecules` have a read with 10 bases or more on both sides of it, and `spanning_molecules` have it between the mates.

usage: bench/spiked_duplications.py [--genuma PROGRAM] [--samples n_12878,...] [--fractions 0.3,0.5] [--seeds 1,2,3] [--out DIR] FOLDER
FOLDER has a folder for each sample with tumor_1.fq.gz, tumor_2.fq.gz, normal_1.fq.gz, normal_2.fq.gz (all of one person's normal, read
together) and ref.fa. `--out` keeps reads and calls. All fractions of a seed have the same split and places. Writes a table (TSV) to
standard output. Needs bwa.
"""

import argparse
import bisect
import collections
import gzip
import math
import os
import random
import re
import shutil
import sys
import tempfile

from assays import run_checked
from rare_alleles import reverse_complement

MIN_DUPLICATION_BP, MAX_DUPLICATION_BP = 20, 500
MIN_JUNCTION_FLANK_BP = 10
MATCH_DISTANCE_BP = 10
# Between the reads that two duplications change.
MIN_PLACE_DISTANCE_BP = 200
# A base below this quality (Phred) is no evidence of a germline variant.
MIN_BASE_QUALITY = 20
# A site is a germline variant if at least this share and this number of the reads of both halves differ from the reference.
MIN_GERMLINE_SHARE, MIN_GERMLINE_READS = 0.15, 3
# Of the median depth of both halves: depth that every base near a duplication must have.
MIN_DEPTH_SHARE = 0.5
COLUMNS = ["sample", "seed", "depth_tumor", "depth_normal", "place", "length_bp", "fraction", "fragments_at_junction", "junction_molecules"]
COLUMNS += ["spanning_molecules", "found", "match", "filter", "record", "alt", "svlen", "tumor_ad", "tumor_af"]

# Read of a pair as sequenced: bases and qualities.
Read = collections.namedtuple("Read", "bases quality")
# Place of a pair: `reads` are the indices in the pair of the left and the right read; `differences` those of the left and the right read
# as (offset, base) in the orientation of the reference, or None unless both reads align as a whole without gaps. Ends are 0-based, exclusive.
Fragment = collections.namedtuple("Fragment", "pair contig start end reads differences")
# The segment [start, end) of a contig, which the haplotype has twice.
Duplication = collections.namedtuple("Duplication", "contig start end")


def read_fasta(path):
    contigs = {}
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as opened:
        for line in opened:
            if line.startswith(">"):
                name = line[1:].split()[0]
                contigs[name] = []
            else:
                contigs[name].append(line.strip().upper())
    return {name: "".join(lines) for name, lines in contigs.items()}


def read_pairs(folder):
    """The pairs of both halves as (name, read 1, read 2)."""
    pairs = []
    for half in ("tumor", "normal"):
        with gzip.open(f"{folder}/{half}_1.fq.gz", "rt") as first, gzip.open(f"{folder}/{half}_2.fq.gz", "rt") as second:
            lines = zip(first, second)
            for names in lines:
                bases, _, quality = next(lines), next(lines), next(lines)
                name = names[0][1:].split()[0].removesuffix("/1")
                pairs.append((name, *(Read(bases[mate].strip().upper(), quality[mate].strip()) for mate in (0, 1))))
    return pairs


def write_pairs(pairs, prefix):
    for mate in (1, 2):
        with gzip.open(f"{prefix}_{mate}.fq.gz", "wt", compresslevel=1) as out:
            for pair in pairs:
                out.write(f"@{pair[0]}\n{pair[mate].bases}\n+\n{pair[mate].quality}\n")


def parse_cigar(cigar):
    return [(int(length), kind) for length, kind in re.findall(r"(\d+)([MIDNSHP=X])", cigar)]


class Alignments:
    """Fragments of a half, and its depth, differences and gaps by position."""

    def __init__(self, reference, contigs, prefix):
        self.depth = {name: [0] * len(bases) for name, bases in contigs.items()}
        self.differing = {name: [0] * len(bases) for name, bases in contigs.items()}
        self.contigs = contigs
        self.fragments = []
        threads = str(os.cpu_count())
        command = ["bwa", "mem", "-v", "1", "-t", threads, reference, f"{prefix}_1.fq.gz", f"{prefix}_2.fq.gz"]
        sam = f"{prefix}.sam"
        run_checked([*command, "-o", sam])
        # Pairs are named by their index in the half.
        mates, split = collections.defaultdict(list), set()
        with open(sam) as opened:
            for line in opened:
                if line.startswith("@"):
                    continue
                fields = line.rstrip("\n").split("\t")
                flag = int(fields[1])
                if flag & 0x900:
                    split.add(fields[0])
                    continue
                if not flag & 0x4:
                    self.count(fields)
                mates[fields[0]].append(fields)
        for name, records in mates.items():
            self.add_fragment(int(name), records, name in split)

    def count(self, fields):
        """Adds a record to the depths and differences."""
        contig, start, offset = fields[2], int(fields[3]) - 1, 0
        reference, depth, differing = self.contigs[contig], self.depth[contig], self.differing[contig]
        for length, kind in parse_cigar(fields[5]):
            if kind == "M":
                for at in range(length):
                    depth[start + at] += 1
                    if fields[9][offset + at] != reference[start + at] and ord(fields[10][offset + at]) >= 33 + MIN_BASE_QUALITY:
                        differing[start + at] += 1
                start, offset = start + length, offset + length
            elif kind in "ID":
                differing[max(start - 1, 0)] += 1
                start, offset = (start, offset + length) if kind == "I" else (start + length, offset)
            elif kind == "S":
                offset += length

    def add_fragment(self, pair, records, is_split):
        """Adds the fragment of a proper pair whose mates face each other."""
        if len(records) != 2 or not all(int(record[1]) & 0x2 for record in records):
            return
        left = 1 if int(records[0][1]) & 0x10 else 0
        if int(records[left][1]) & 0x10 or not int(records[1 - left][1]) & 0x10 or records[0][2] != records[1][2]:
            return
        contig, ends, differences = records[0][2], [], []
        for record in (records[left], records[1 - left]):
            operations = parse_cigar(record[5])
            start = int(record[3]) - 1
            end = start + sum(length for length, kind in operations if kind in "MDN")
            ends += [start - (operations[0][0] if operations[0][1] == "S" else 0), end + (operations[-1][0] if operations[-1][1] == "S" else 0)]
            if len(operations) == 1:
                reference = self.contigs[contig][start:end]
                differences.append([(at, base) for at, base in enumerate(record[9]) if base != reference[at]])
        start, end = ends[0], ends[3]
        if ends[2] < start or ends[1] > end or start < 0:
            return
        is_first = bool(int(records[left][1]) & 0x40)
        whole = len(differences) == 2 and not is_split
        self.fragments.append(Fragment(pair, contig, start, end, (0, 1) if is_first else (1, 0), differences if whole else None))


def rewrite_pair(pair, fragment, haplotype, start, name):
    """`pair`, whose fragment is `fragment`, with the bases of a fragment that starts at `start` of `haplotype`."""
    length = fragment.end - fragment.start
    reads = [None, None]
    for is_right, (mate, differences) in enumerate(zip(fragment.reads, fragment.differences)):
        original = pair[1 + mate]
        first = start + length - len(original.bases) if is_right else start
        bases = list(haplotype[first : first + len(original.bases)])
        for at, base in differences:
            bases[at] = base
        bases = "".join(bases)
        reads[mate] = Read(reverse_complement(bases) if is_right else bases, original.quality)
    return (name, *reads)


def germline_sites(contigs, halves):
    """Sorted positions at which the reads of both halves differ from the reference."""
    sites = {}
    for name in contigs:
        sites[name] = []
        for at in range(len(contigs[name])):
            differing = sum(half.differing[name][at] for half in halves)
            depth = sum(half.depth[name][at] for half in halves)
            if differing >= MIN_GERMLINE_READS and differing >= MIN_GERMLINE_SHARE * depth:
                sites[name].append(at)
    return sites


def has_germline_site(sites, start, end):
    at = bisect.bisect_left(sites, start)
    return at < len(sites) and sites[at] < end


def median(values):
    return sorted(values)[len(values) // 2]


def choose_duplications(contigs, halves, sites, distance, count, rng):
    """Random duplications without germline variants, unknown bases or a low depth within `distance`."""
    depths = {name: [a + b for a, b in zip(*(half.depth[name] for half in halves))] for name in contigs}
    min_depth = MIN_DEPTH_SHARE * median([depth for contig in depths.values() for depth in contig if depth])
    names, weights = list(contigs), [len(bases) for bases in contigs.values()]
    chosen = []
    for _ in range(20000):
        if len(chosen) == count:
            break
        contig = rng.choices(names, weights)[0]
        length = round(math.exp(rng.uniform(math.log(MIN_DUPLICATION_BP), math.log(MAX_DUPLICATION_BP))))
        start = rng.randrange(len(contigs[contig]))
        end = start + length
        first, last = start - distance, end + distance
        if first < 0 or last > len(contigs[contig]) or has_germline_site(sites[contig], first, last) or "N" in contigs[contig][first:last]:
            continue
        if min(depths[contig][first:last]) < min_depth:
            continue
        apart = 2 * distance + MIN_PLACE_DISTANCE_BP
        if any(other.contig == contig and start < other.end + apart and other.start < end + apart for other in chosen):
            continue
        chosen.append(Duplication(contig, start, end))
    return sorted(chosen)


def spike(pairs, tumor, duplications, fraction, templates, rng):
    """The tumour's pairs with the duplications, and the number of fragments, of junction and of spanning molecules of each."""
    spiked, added, counts = dict(enumerate(pairs)), [], []
    for duplication in duplications:
        contig, start, end = duplication
        reference = tumor.contigs[contig]
        haplotype = reference[:end] + reference[start:]
        fragments = junction = spanning = 0
        for fragment in tumor.fragments:
            if fragment.contig != contig:
                continue
            name = pairs[fragment.pair][0]
            if start <= fragment.start < end and rng.random() < fraction:
                template = rng.choice(templates)
                at = rng.randrange(start, end)
                added.append(rewrite_pair(pairs[template.pair], template, reference, at, f"{name}:copy{len(added)}"))
            if not fragment.start < end < fragment.end or rng.random() >= fraction:
                continue
            template = fragment if fragment.differences is not None else rng.choice(templates)
            spiked[fragment.pair] = pair = rewrite_pair(pairs[template.pair], template, haplotype, fragment.start, name)
            last = fragment.start + template.end - template.start
            if last <= end:
                continue
            left, right = (len(pair[1 + mate].bases) for mate in template.reads)
            reads = [(fragment.start, fragment.start + left), (last - right, last)]
            fragments += 1
            junction += any(min(end - first, behind - end) >= MIN_JUNCTION_FLANK_BP for first, behind in reads)
            spanning += reads[0][1] <= end <= reads[1][0]
        counts.append((fragments, junction, spanning))
    result = list(spiked.values()) + added
    rng.shuffle(result)
    return result, counts


def read_records(path):
    """The records of a VCF as dictionaries."""
    records = []
    with gzip.open(path, "rt") as opened:
        for line in opened:
            if line.startswith("##"):
                continue
            fields = line.rstrip("\n").split("\t")
            if line.startswith("#"):
                tumor = fields.index("TUMOR")
                continue
            info = dict(entry.partition("=")[::2] for entry in fields[7].split(";"))
            sample = dict(zip(fields[8].split(":"), fields[tumor].split(":")))
            record = dict(zip(["contig", "pos", "id", "ref", "alt", "qual", "filter"], fields))
            records.append({**record, "pos": int(fields[1]), "info": info, "sample": sample})
    return records


def near(a, b):
    return abs(a - b) <= MATCH_DISTANCE_BP


def match_of(record, duplication, reference):
    """How a record matches a duplication: exact, near, partial, or None."""
    contig, start, end = duplication
    pos, alt, info = record["pos"], record["alt"], record["info"]
    if record["contig"] != contig:
        return None
    first, last = start - MAX_DUPLICATION_BP, end + MAX_DUPLICATION_BP
    expected = reference[first:end] + reference[start:last]
    if alt == "<DUP>":
        record_end = int(info["END"])
        if not (first < pos < last and first < record_end < last):
            return None
        if reference[first:record_end] + info.get("SVINSSEQ", "") + reference[pos:last] == expected:
            return "exact"
        return "near" if near(pos, start) and near(record_end, end) else None
    if alt.startswith("<INS"):
        return "partial" if near(pos, start) or near(pos, end) else None
    breakend = re.fullmatch(r"\]([^:\]]+):(\d+)\]\w+", alt)
    if breakend:
        # The base at POS follows the mate's.
        return "near" if breakend.group(1) == contig and near(pos - 1, start) and near(int(breakend.group(2)), end) else None
    if not re.fullmatch(r"[ACGTN]+", alt):
        return None
    before = pos - 1
    if not first <= before < last:
        return None
    if reference[first:before] + alt + reference[before + len(record["ref"]) : last] == expected:
        return "exact"
    grown = len(alt) - len(record["ref"])
    return "near" if near(grown, end - start) and start - MATCH_DISTANCE_BP <= before <= end + MATCH_DISTANCE_BP else None


def best_record(records, duplication, reference):
    """The match and the record that describes a duplication best: (None, None) if no record does."""
    order = ["exact", "near", "partial"]
    matches = [(match_of(record, duplication, reference), record) for record in records]
    matches = [entry for entry in matches if entry[0]]
    return min(matches, key=lambda entry: (order.index(entry[0]), entry[1]["filter"] != "PASS"), default=(None, None))


def measure(args, sample, seed, out):
    """Spikes, calls and prints the rows of one sample and seed."""
    folder = f"{args.folder}/{sample}"
    os.makedirs(out)
    reference = f"{out}/ref.fa"
    shutil.copyfile(f"{folder}/ref.fa", reference)
    contigs = read_fasta(reference)
    run_checked(["bwa", "index", reference])
    pairs = read_pairs(folder)
    rng = random.Random(f"{sample} {seed}")
    rng.shuffle(pairs)
    halves, aligned = {}, {}
    for half, chosen in (("tumor", pairs[::2]), ("normal", pairs[1::2])):
        halves[half] = chosen
        write_pairs([(str(index), *pair[1:]) for index, pair in enumerate(chosen)], f"{out}/{half}.numbered")
        aligned[half] = Alignments(reference, contigs, f"{out}/{half}.numbered")
    write_pairs(halves["normal"], f"{out}/normal")
    tumor = aligned["tumor"]
    sites = germline_sites(contigs, aligned.values())
    lengths = sorted(fragment.end - fragment.start for fragment in tumor.fragments)
    distance = args.variant_distance or lengths[len(lengths) * 95 // 100]
    duplications = choose_duplications(contigs, list(aligned.values()), sites, distance, args.duplications, rng)
    templates = [fragment for fragment in tumor.fragments if fragment.differences is not None]
    templates = [fragment for fragment in templates if not has_germline_site(sites[fragment.contig], fragment.start, fragment.end)]
    # The contig goes on for `distance` behind a duplication; a fragment must not leave it.
    templates = [fragment for fragment in templates if fragment.end - fragment.start <= distance]
    print(f"{sample} seed {seed}: {len(tumor.fragments)} fragments, median length {median(lengths)} bp; {len(templates)} templates; "
          f"{len(duplications)} duplications without germline variants within {distance} bp", file=sys.stderr)
    for fraction in args.fractions.split(","):
        spiked, counts = spike(halves["tumor"], tumor, duplications, float(fraction), templates, random.Random(f"{sample} {seed} {fraction}"))
        write_pairs(spiked, f"{out}/tumor_{fraction}")
        calls = f"{out}/calls_{fraction}"
        command = [args.genuma, "call", "-q", "-o", calls, "--reference", reference]
        command += ["--tumor", f"{out}/tumor_{fraction}_1.fq.gz", f"{out}/tumor_{fraction}_2.fq.gz"]
        command += ["--normal", f"{out}/normal_1.fq.gz", f"{out}/normal_2.fq.gz"]
        run_checked(command)
        records = read_records(f"{calls}/somatic.vcf.gz")
        for duplication, planted in zip(duplications, counts):
            contig, start, end = duplication
            # Of the segment, without the spiked reads.
            depths = [sum(half.depth[contig][start:end]) / (end - start) for half in (tumor, aligned["normal"])]
            match, record = best_record(records, duplication, contigs[contig])
            found = "yes" if match in ("exact", "near") and record["filter"] == "PASS" else "no"
            row = [sample, seed, *(f"{depth:.0f}" for depth in depths), f"{contig}:{start + 1}-{end}", end - start, fraction, *planted, found]
            if record:
                length = record["info"].get("SVLEN") or (len(record["alt"]) - len(record["ref"]) if record["alt"].isalpha() else ".")
                alt = record["alt"] if not record["alt"].isalpha() else "sequence"
                row += [match, record["filter"], f"{record['id']}:{record['pos']}", alt, length, record["sample"]["AD"], record["sample"]["AF"]]
            else:
                row += ["none"] + ["."] * 6
            print(*row, sep="\t", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--genuma", default="target/release/genuma")
    parser.add_argument("--samples", default="n_12878,n_12889,n_12890,n_hg002a,n_hg002b,n_hg002c,n_hg002d")
    parser.add_argument("--fractions", default="0.3,0.5", help="allele fractions of the duplications")
    parser.add_argument("--seeds", default="1,2,3", help="seeds of the split and of the places")
    parser.add_argument("--duplications", type=int, default=4, help="maximum number in each sample and seed")
    parser.add_argument("--variant-distance", type=int, help="bases without germline variants on both sides (default: the 95th percentile of the fragment length)")
    parser.add_argument("--out", help="folder that keeps reads and calls (default: a temporary one)")
    parser.add_argument("folder", metavar="FOLDER")
    args = parser.parse_args()
    print(*COLUMNS, sep="\t", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        for sample in args.samples.split(","):
            for seed in args.seeds.split(","):
                out = f"{args.out or temporary}/{sample}.{seed}"
                shutil.rmtree(out, ignore_errors=True)
                measure(args, sample, seed, out)


if __name__ == "__main__":
    main()
