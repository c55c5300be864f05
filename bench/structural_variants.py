#!/usr/bin/env python3
"""Compares genuma and Delly on simulated somatic structural variants (SVs), scored by `truvari bench` and by junctions.

For each seed, `genuma bench simulate` writes a pair of samples. genuma calls from the reads. For Delly, the reads are aligned with bwa mem
and duplicates are marked (samtools); `delly call` calls both samples, and `delly filter -f somatic -p` keeps somatic calls that pass, with
its default thresholds. Neither program has a panel of normals. Germline SVs are not in the truth: to report one is a false call.

Records that pass, of at least 30 bp, are written to files that differ only in their calls: one genotype, and each junction of a pair of
breakends once, at its lower position (genuma and the truth have a record for either breakend, Delly has one for both). Two scores:

1. `truvari bench --pctseq 0 --sizemin 50 --sizemax -1 --bnddist 100 --pick multi`, other options at their defaults: types must agree,
   sizes must agree to 70 %, `--dup-to-ins` is off. A breakend (BND) may match a DEL, DUP or INV that has this junction: a dispersed copy
   within a contig is two pairs of breakends in the truth, and Delly reports a DEL, DUP or INV for each. `--pick multi`, because Delly
   writes a record for each of the two junctions of an inversion. Truvari ignores an insertion without a length: genuma reports one if
   reads don't reach through the insertion. Breakends match if their intervals of ±100 bp overlap.
2. Junctions: a DEL or DUP has one, an INV two, a pair of breakends one, and an INS is a position. A junction is found if a call has both
   positions within 100 bp with the same orientation, an insertion if one is called within 100 bp, whatever its length. A tandem
   duplication and an insertion at one of its ends are the same if their lengths agree to 70 %: to Truvari these are two types.

usage: bench/structural_variants.py [--genuma PROGRAM]... [--seeds 7101,7102] [--simulate OPTIONS] [--types] [--data DIR]
`--genuma` may be given several times; the programs are named by their paths, and the first one simulates. `--data` keeps reads,
alignments and calls, and uses reads and alignments that are there already. Writes a table (TSV) to standard output: a row for each seed
and program, then sums over the seeds; with `--types` also one for each type of SV. `found` and `missed` count SVs of the truth,
`true_calls` and `false_calls` count calls, each by its own type. CPU time is that of the caller; `align_cpu_s` that of aligning and
sorting, which Delly needs. Needs bwa, samtools, bcftools, and Truvari of scripts/test-peers.sh; without delly its rows say "not available".
"""

import argparse
import collections
import gzip
import os
import shutil
import subprocess
import tempfile

from assay_peers import align
from assays import call_genuma, run_checked

CACHE = os.environ.get("GENUMA_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "genuma")
VARIANTS = "--genome-length 3000000 --snvs 150 --indels 80 --svs 120 --largest-sv 50000"
SIMULATE = f"{VARIANTS} --depth-tumor 60 --depth-normal 30 --purity 0.7"
TRUVARI_OPTIONS = "--pctseq 0 --sizemin 50 --sizemax -1 --bnddist 100 --pick multi"
MIN_SV_BP = 50
MIN_CALL_BP = 30  # as truvari's --sizefilt: smaller calls can't match, and false calls below MIN_SV_BP don't count
MAX_DISTANCE_BP = 100
MIN_LENGTH_RATIO = 0.7  # as truvari's --pctsize
TYPES = ["ALL", "DEL", "DUP", "INV", "INS", "BND"]
COUNTS = ["truth", "found", "missed", "true_calls", "false_calls"]
RATES = ["recall", "precision", "f1"]
JUNCTION_COLUMNS = [f"junction_{name}" for name in COUNTS + RATES]
COLUMNS = ["seed", "program", "version", "type", *COUNTS, *RATES, *JUNCTION_COLUMNS, "call_cpu_s", "align_cpu_s"]

# A structural variant. `mate` is (contig, position) of the other breakend of a BND. `strands` are those of both breakends of a BND, or of
# an INV if it has only one of its junctions: `+` if the sequence before the position is kept, `-` if that after it. `length_bp` is None for
# a BND, and for an insertion whose length isn't known.
Variant = collections.namedtuple("Variant", "kind contig position end length_bp mate strands")


def read_variants(vcf, contigs, min_bp):
    """The structural variants of a VCF file that pass, each pair of breakends once."""
    variants = []
    with gzip.open(vcf, "rt") if vcf.endswith(".gz") else open(vcf) as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            contig, position, _, ref, alt, _, filters, info = line.rstrip("\n").split("\t")[:8]
            if filters not in ("PASS", "."):
                continue
            info = dict(entry.partition("=")[::2] for entry in info.split(";"))
            variant = parse_variant(contig, int(position), ref, alt, info, contigs)
            if variant and (variant.kind == "BND" or variant.length_bp is None or variant.length_bp >= min_bp):
                variants.append(variant)
    return sorted(set(variants), key=lambda variant: (contigs.index(variant.contig), variant.position, str(variant)))


def parse_variant(contig, position, ref, alt, info, contigs):
    """The structural variant of a record, or None for another variant or alleles of the same length."""
    if "[" in alt or "]" in alt:
        return parse_breakend(contig, position, alt, contigs)
    if not alt.startswith("<"):
        change_bp = len(alt) - len(ref)
        if change_bp == 0 or "," in alt:
            return None
        return Variant("INS" if change_bp > 0 else "DEL", contig, position, position + len(ref) - 1, abs(change_bp), None, None)
    kind = alt[1:4]
    end = int(info.get("END", position))
    if kind == "INS":
        return Variant(kind, contig, position, position, abs(int(info["SVLEN"])) if "SVLEN" in info else None, None, None)
    # Delly names the junction of an inversion by the ends that it joins: 3' ends keep the sequence before the positions.
    strands = {"3to3": "++", "5to5": "--"}.get(info.get("CT")) if kind == "INV" else None
    return Variant(kind, contig, position, end, end - position, None, strands)


def parse_breakend(contig, position, alt, contigs):
    """The BND of a record, as its breakend at the lower position has it."""
    bracket = "[" if "[" in alt else "]"
    before, mate, after = alt.split(bracket)
    mate_contig, _, mate_position = mate.rpartition(":")
    sides = [(contig, position, "+" if before else "-"), (mate_contig, int(mate_position), "-" if bracket == "[" else "+")]
    lower, upper = sorted(sides, key=lambda side: (contigs.index(side[0]), side[1]))
    return Variant("BND", lower[0], lower[1], lower[1], None, upper[:2], lower[2] + upper[2])


def junctions_of(variant):
    """Junctions (contig, position, strand, contig, position, strand); for an insertion (contig, position, length or None)."""
    kind, contig, position, end, _, mate, strands = variant
    if kind == "INS":
        return [(contig, position, variant.length_bp)]
    if kind == "BND":
        return [(contig, position, strands[0], *mate, strands[1])]
    if kind == "DEL":
        return [(contig, position, "+", contig, end + 1, "-")]
    if kind == "DUP":
        return [(contig, position + 1, "-", contig, end, "+")]
    both = {"++": (contig, position, "+", contig, end, "+"), "--": (contig, position + 1, "-", contig, end + 1, "-")}
    return [both[strands]] if strands else list(both.values())


def is_near(contig, position, other_contig, other_position):
    """Whether two positions are the same within MAX_DISTANCE_BP."""
    return contig == other_contig and abs(position - other_position) <= MAX_DISTANCE_BP


def is_tandem_copy(insertion, junction):
    """Whether an insertion is the copy of the tandem duplication that has this junction."""
    contig, position, length_bp = insertion
    if junction[0] != junction[3] or (junction[2], junction[5]) != ("-", "+"):
        return False
    lengths_bp = [junction[4] - junction[1] + 1, length_bp or 0]
    is_at_end = is_near(contig, position, *junction[:2]) or is_near(contig, position, *junction[3:5])
    return is_at_end and min(lengths_bp) >= MIN_LENGTH_RATIO * max(lengths_bp)


def is_same_junction(a, b):
    """Whether two junctions, or insertions, of a call and of the truth are the same."""
    if len(a) != len(b):
        insertion, junction = sorted((a, b), key=len)
        return is_tandem_copy(insertion, junction)
    if len(a) == 3:
        return is_near(*a[:2], *b[:2])
    return (a[2], a[5]) == (b[2], b[5]) and is_near(*a[:2], *b[:2]) and is_near(*a[3:5], *b[3:5])


def score_junctions(truth, calls):
    """The counts of each type by junctions."""
    counts = collections.Counter()
    real, called = ([(variant, junction) for variant in variants for junction in junctions_of(variant)] for variants in (truth, calls))
    for variant, junction in real:
        is_found = any(is_same_junction(other, junction) for _, other in called)
        add_count(counts, variant.kind, "found" if is_found else "missed")
    for variant, junction in called:
        if any(is_same_junction(junction, other) for _, other in real):
            add_count(counts, variant.kind, "true_calls")
        elif variant.length_bp is None or variant.length_bp >= MIN_SV_BP:
            add_count(counts, variant.kind, "false_calls")
    return counts


def add_count(counts, kind, name):
    """Adds one to a count of a type and of all types."""
    for each in ("ALL", kind):
        counts[each, name] += 1
        if name in ("found", "missed"):
            counts[each, "truth"] += 1


def write_vcf(variants, contigs, lengths_bp, path):
    """Writes what Truvari reads, compressed and indexed."""
    plain = path.removesuffix(".gz")
    with open(plain, "w") as out:
        print("##fileformat=VCFv4.2", '##FILTER=<ID=PASS,Description="All filters passed">', sep="\n", file=out)
        for contig, length_bp in zip(contigs, lengths_bp):
            print(f"##contig=<ID={contig},length={length_bp}>", file=out)
        for name, kind, meaning in (("SVTYPE", "String", "Type"), ("SVLEN", "Integer", "Length"), ("END", "Integer", "Last base")):
            print(f'##INFO=<ID={name},Number=1,Type={kind},Description="{meaning} of the structural variant">', file=out)
        print('##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">', file=out)
        print("#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT", "TUMOR", sep="\t", file=out)
        for number, variant in enumerate(variants):
            alt, info = f"<{variant.kind}>", f"SVTYPE={variant.kind}"
            if variant.kind == "BND":
                bracket = "[" if variant.strands[1] == "-" else "]"
                mate = f"{bracket}{variant.mate[0]}:{variant.mate[1]}{bracket}"
                alt = f"N{mate}" if variant.strands[0] == "+" else f"{mate}N"
            else:
                info += f";END={variant.end}"
                if variant.length_bp is not None:
                    info += f";SVLEN={-variant.length_bp if variant.kind == 'DEL' else variant.length_bp}"
            print(variant.contig, variant.position, f"v{number}", "N", alt, ".", "PASS", info, "GT", "0/1", sep="\t", file=out)
    run_checked(["bcftools", "view", "-Oz", "-o", path, plain])
    run_checked(["bcftools", "index", "-f", "-t", path])


def score_by_truvari(args, truth_vcf, calls_vcf, out):
    """The counts of each type by Truvari."""
    shutil.rmtree(out, ignore_errors=True)
    run_checked([args.truvari, "bench", *TRUVARI_OPTIONS.split(), "-b", truth_vcf, "-c", calls_vcf, "-o", out])
    counts = collections.Counter()
    for file, name in (("tp-base", "found"), ("fn", "missed"), ("tp-comp", "true_calls"), ("fp", "false_calls")):
        with gzip.open(f"{out}/{file}.vcf.gz", "rt") as lines:
            for line in lines:
                if not line.startswith("#"):
                    add_count(counts, line.split("SVTYPE=")[1][:3], name)
    return counts


def rates_of(counts, kind):
    """Recall, precision and F1 of a type, blank if undefined."""
    truth, found, _, true, false = (counts[kind, name] for name in COUNTS)
    recall = found / truth if truth else None
    precision = true / (true + false) if true + false else None
    f1 = 2 * recall * precision / (recall + precision) if recall and precision else None
    return ["" if rate is None else f"{rate:.3f}" for rate in (recall, precision, f1)]


def print_rows(args, label, program, version, scores, seconds):
    """The rows of one seed, or of the sums, for one program. `scores` are the counts of both scores; `seconds` of caller and alignment."""
    for kind in TYPES if args.types else TYPES[:1]:
        fields = []
        for counts in scores:
            fields += [*(counts[kind, name] for name in COUNTS), *rates_of(counts, kind)]
        times = ["" if value is None or kind != "ALL" else f"{value:.1f}" for value in seconds]
        print(label, program, version, kind, *fields, *times, sep="\t", flush=True)


def simulate(args, seed, folder):
    """Writes the samples of a seed, if they aren't there."""
    if not os.path.exists(f"{folder}/truth.vcf"):
        run_checked([args.genuma[0], "bench", "simulate", "-q", *args.simulate.split(), "--seed", str(seed), "-o", folder])


def call_delly(folder):
    """Aligns the reads, unless that was done, and calls with Delly; returns the calls and the CPU seconds of the caller and of the alignment."""
    peers = f"{folder}/peers"
    os.makedirs(peers, exist_ok=True)
    reference, align_cpu = f"{peers}/ref.fa", f"{peers}/align_cpu_s"
    if not os.path.exists(f"{reference}.bwt"):
        shutil.copyfile(f"{folder}/genome.fa", reference)
        run_checked(["samtools", "faidx", reference])
        run_checked(["bwa", "index", reference])
    if not os.path.exists(align_cpu):
        before = os.times()
        align(folder, reference, False)
        after = os.times()
        with open(align_cpu, "w") as out:
            print(after.children_user + after.children_system - before.children_user - before.children_system, file=out)
    with open(align_cpu) as opened:
        align_seconds = float(opened.read())
    with open(f"{peers}/samples.tsv", "w") as out:
        print("tumor\ttumor\nnormal\tcontrol", file=out)
    unfiltered, somatic, vcf = f"{peers}/unfiltered.bcf", f"{peers}/somatic.bcf", f"{peers}/delly.vcf.gz"
    call_seconds, _ = run_checked(["delly", "call", "-g", reference, "-o", unfiltered, f"{peers}/tumor.bam", f"{peers}/normal.bam"])
    filter_options = ["-f", "somatic", "-p", "-s", f"{peers}/samples.tsv"]
    filter_seconds, _ = run_checked(["delly", "filter", *filter_options, "-o", somatic, unfiltered])
    run_checked(["bcftools", "view", "-f", "PASS", "-Oz", "-o", vcf, somatic])
    return vcf, (call_seconds + filter_seconds, align_seconds)


def version_of(program):
    """The last word of the first line that a program prints with --version."""
    done = subprocess.run([program, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout.splitlines()[0].split()[-1].removeprefix("v")


def score_seed(args, seed, folder, versions, sums):
    """Calls with each program, prints its rows of this seed and adds them to the sums."""
    with open(f"{folder}/genome.fa.fai") as index:
        contigs, lengths_bp = zip(*(line.split("\t")[:2] for line in index))
    truth = read_variants(f"{folder}/truth.vcf", contigs, MIN_SV_BP)
    truth_vcf = f"{folder}/truth_svs.vcf.gz"
    write_vcf(truth, contigs, lengths_bp, truth_vcf)
    for number, (program, version) in enumerate(versions.items()):
        if version is None:
            print(seed, program, "not available", *[""] * (len(COLUMNS) - 3), sep="\t", flush=True)
            continue
        out = f"{folder}/scored{number}"
        if program == "delly":
            vcf, seconds = call_delly(folder)
        else:
            folder_of_calls = f"{folder}/calls{number}"
            seconds = (call_genuma(program, folder, folder_of_calls, f"{folder}/genome.fa"), None)
            vcf = f"{folder_of_calls}/somatic.vcf.gz"
        calls = read_variants(vcf, contigs, MIN_CALL_BP)
        write_vcf(calls, contigs, lengths_bp, f"{out}.vcf.gz")
        scores = [score_by_truvari(args, truth_vcf, f"{out}.vcf.gz", out), score_junctions(truth, calls)]
        print_rows(args, seed, program, version, scores, seconds)
        for total, counts in zip(sums[program][0], scores):
            total.update(counts)
        for i, value in enumerate(seconds):
            if value is not None:
                sums[program][1][i] = (sums[program][1][i] or 0.0) + value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--genuma", action="append", metavar="PROGRAM", help="default: target/release/genuma")
    parser.add_argument("--seeds", default="7101,7102,7103", help="comma-separated (default: %(default)s)")
    parser.add_argument("--simulate", default=SIMULATE, metavar="OPTIONS", help="of `genuma bench simulate` (default: %(default)s)")
    parser.add_argument("--types", action="store_true", help="also a row for each type of SV")
    parser.add_argument("--truvari", default=f"{CACHE}/python/bin/truvari", help="default: %(default)s")
    parser.add_argument("--data", help="folder that keeps reads, alignments and calls (default: a temporary one)")
    args = parser.parse_args()
    args.genuma = args.genuma or ["target/release/genuma"]
    if not os.path.exists(args.truvari):
        parser.error(f"{args.truvari} is missing: run scripts/test-peers.sh")
    versions = {program: version_of(program) for program in args.genuma}
    versions["delly"] = version_of("delly") if shutil.which("delly") else None
    sums = {program: ([collections.Counter(), collections.Counter()], [0.0, None]) for program in versions}
    print(*COLUMNS, sep="\t", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        for seed in args.seeds.split(","):
            folder = os.path.join(args.data or temporary, f"seed{seed}")
            simulate(args, seed, folder)
            score_seed(args, seed, folder, versions, sums)
    for program, version in versions.items():
        if version:
            print_rows(args, "all", program, version, *sums[program])


if __name__ == "__main__":
    main()
