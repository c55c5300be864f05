#!/usr/bin/env python3
"""Scores Mutect2 and freebayes on sets that `bench/assays.py --data` or `bench/rare_alleles.py --out` made, beside calls of genuma.

Reads are aligned with bwa mem; duplicates are marked, except those of amplicons and of consensus reads (`--keep-duplicates`). Mutect2 runs with
FilterMutectCalls. freebayes calls both samples at once and has no filters of its own for somatic variants, so thresholds are
needed. Those of either peer are chosen with the truth in hand: the ones of the highest recall at a precision of `--precision`. So the
figures are upper bounds of what a user would get. SNVs and indels below 50 bp are compared as normalised records.

usage: bench/assay_peers.py [--precision 0.98] [--keep-duplicates] [--min-fraction F] [--peers mutect2,freebayes] FOLDER...
Each folder has tumor_1.fq.gz, tumor_2.fq.gz, normal_1.fq.gz, normal_2.fq.gz, truth.vcf, genome.fa or ref.fa, and maybe targets.bed; bwa's
index and the alignments are kept in FOLDER/peers. Calls of genuma are those of FOLDER/calls*/somatic.vcf.gz. Writes a table (TSV) to
standard output.
"""

import argparse
import glob
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
GATK = os.path.join(HERE, "..", "scripts", "gatk.sh")
TARGET_PADDING_BP = 100
COLUMNS = ["set", "caller", "class", "truth", "default_found", "default_false", "best_found", "best_false", "thresholds"]


def run(command):
    """Runs a shell command; ends the benchmark if it fails."""
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"assay_peers.py: {command}: exit code {done.returncode}\n{done.stderr[-4000:]}")
    return done.stdout


def reference_of(folder):
    """The FASTA file of a set, indexed for all programs, in FOLDER/peers."""
    source = next(path for path in (f"{folder}/genome.fa", f"{folder}/ref.fa") if os.path.exists(path))
    reference = f"{folder}/peers/ref.fa"
    if not os.path.exists(f"{reference}.bwt"):
        run(f"cp {source} {reference} && samtools faidx {reference} && bwa index {reference} && rm -f {folder}/peers/ref.dict && {GATK} CreateSequenceDictionary -R {reference}")
    return reference


def align(folder, reference, keep_duplicates):
    """Sorted, indexed BAM files of both samples."""
    for sample in ("tumor", "normal"):
        bam = f"{folder}/peers/{sample}.bam"
        if os.path.exists(f"{bam}.bai"):
            continue
        reads = f"bwa mem -t 2 -R '@RG\\tID:{sample}\\tSM:{sample}' {reference} {folder}/{sample}_1.fq.gz {folder}/{sample}_2.fq.gz"
        marked = "samtools sort -m 1G -" if keep_duplicates else "samtools fixmate -m - - | samtools sort -m 1G - | samtools markdup - -"
        run(f"{reads} | {marked} > {bam} && samtools index {bam}")


def variants_of(vcf, reference, regions):
    """The normalised SNVs and short indels of a VCF file: (chromosome, position, REF, ALT) to (FILTER, QUAL, INFO, sample columns)."""
    restricted = f"-T {regions}" if regions else ""
    lines = run(f"bcftools norm -m -any -f {reference} -c w {vcf} | bcftools view -H {restricted}").splitlines()
    variants = {}
    for line in lines:
        chrom, pos, _, ref, alt, qual, filters, info, *samples = line.split("\t")
        if set(ref + alt) <= set("ACGTN") and abs(len(ref) - len(alt)) < 50 and ref != alt:
            for part in split_substitutions(chrom, int(pos), ref, alt):
                variants[part] = (filters, qual, info, samples)
    return variants


def split_substitutions(chrom, pos, ref, alt):
    """A substitution of several bases as single ones, without the bases that are the same; another variant as it is."""
    if len(ref) != len(alt):
        return [(chrom, pos, ref, alt)]
    return [(chrom, pos + i, a, b) for i, (a, b) in enumerate(zip(ref, alt)) if a != b]


def info_value(info, key):
    """The first number of a key of INFO, or None."""
    for entry in info.split(";"):
        name, _, value = entry.partition("=")
        if name == key:
            return float(value.split(",")[0])
    return None


def mutect2(folder, reference, regions, keep_duplicates):
    """Calls of Mutect2 with its filters: variant to a tuple of scores."""
    vcf = f"{folder}/peers/mutect2.vcf.gz"
    if not os.path.exists(f"{vcf}.tbi"):
        limits = f"-L {regions}" if regions else ""
        starts = "--max-reads-per-alignment-start 0" if keep_duplicates else ""
        raw = f"{folder}/peers/raw.vcf.gz"
        run(f"{GATK} Mutect2 -R {reference} -I {folder}/peers/tumor.bam -I {folder}/peers/normal.bam -normal normal {limits} {starts} -O {raw}")
        run(f"{GATK} FilterMutectCalls -R {reference} -V {raw} -O {vcf}")
    found = variants_of(vcf, reference, regions)
    return {variant: (info_value(info, "TLOD"), info_value(info, "NALOD") or 0.0) for variant, (filters, _, info, _) in found.items() if filters == "PASS"}


def freebayes(folder, reference, regions, min_fraction):
    """Calls of freebayes on both samples: variant to (QUAL, alternative reads of the tumour, −alternative reads of the normal, reads of the normal)."""
    vcf = f"{folder}/peers/freebayes.vcf"
    if not os.path.exists(vcf):
        targets = f"-t {regions}" if regions else ""
        options = f"-F {min_fraction} -C 2 --pooled-continuous --genotype-qualities {targets}"
        run(f"freebayes -f {reference} {options} {folder}/peers/tumor.bam {folder}/peers/normal.bam > {vcf}.tmp && mv {vcf}.tmp {vcf}")
    header = run(f"grep -m1 '^#CHROM' {vcf}").rstrip("\n").split("\t")[9:]
    tumor, normal = header.index("tumor"), header.index("normal")
    calls = {}
    for variant, (_, qual, _, (names, *samples)) in variants_of(vcf, reference, regions).items():
        fields = [dict(zip(names.split(":"), samples[i].split(":"))) for i in (tumor, normal)]
        alternative = [int(field.get("AO", "0").replace(".", "0").split(",")[0]) for field in fields]
        depth = [int(field.get("DP", "0").replace(".", "0")) for field in fields]
        if alternative[0] >= 2 and alternative[0] * max(depth[1], 1) > 3 * alternative[1] * max(depth[0], 1):
            calls[variant] = (float(qual), alternative[0], -alternative[1], depth[1])
    return calls


def best_thresholds(calls, truth, precision):
    """The thresholds of the highest recall at `precision`, with true and false calls: the first two scores by their quantiles, others by all values."""
    if not calls:
        return 0, 0, ()
    width = len(next(iter(calls.values())))
    grids = []
    for column in range(width):
        values = sorted({scores[column] for scores in calls.values()})
        grids.append(values if len(values) <= 30 else [values[i * (len(values) - 1) // 29] for i in range(30)])
    best = (0, 0, ())

    def search(judged, thresholds):
        """Tries all thresholds of the remaining scores on the calls that pass the first ones."""
        nonlocal best
        true = sum(is_true for _, is_true in judged)
        column = len(thresholds)
        if true <= best[0]:
            return
        if column < width:
            for limit in grids[column]:
                search([call for call in judged if call[0][column] >= limit], (*thresholds, limit))
        elif true >= precision * len(judged):
            best = (true, len(judged) - true, thresholds)

    search([(scores, variant in truth) for variant, scores in calls.items()], ())
    return best


def is_snv(variant):
    return len(variant[2]) == len(variant[3])


def print_scores(name, caller, calls, truth, precision, is_default_meaningful):
    """A line of the table for each class."""
    for kind, wanted in (("SNV", True), ("INDEL", False)):
        right = {variant for variant in truth if is_snv(variant) == wanted}
        these = {variant: scores for variant, scores in calls.items() if is_snv(variant) == wanted}
        found = len(right & set(these))
        default = [found, len(these) - found] if is_default_meaningful else ["", ""]
        true, false, thresholds = best_thresholds(these, right, precision)
        print(name, caller, kind, len(right), *default, true, false, ",".join(f"{limit:g}" for limit in thresholds), sep="\t", flush=True)


def score_set(args, folder):
    """All lines of one set."""
    folder = folder.rstrip("/")
    os.makedirs(f"{folder}/peers", exist_ok=True)
    reference = reference_of(folder)
    regions = None
    if os.path.exists(f"{folder}/targets.bed"):
        regions = f"{folder}/peers/padded.bed"
        run(f"awk -v OFS='\\t' '{{ print $1, ($2 > {TARGET_PADDING_BP} ? $2 - {TARGET_PADDING_BP} : 0), $3 + {TARGET_PADDING_BP} }}' {folder}/targets.bed > {regions}")
    truth = variants_of(f"{folder}/truth.vcf", reference, None)
    name = os.path.basename(folder)
    for vcf in sorted(glob.glob(f"{folder}/calls*/somatic.vcf.gz")):
        found = variants_of(vcf, reference, regions)
        calls = {variant: (float(qual),) for variant, (filters, qual, _, _) in found.items() if filters == "PASS"}
        print_scores(name, os.path.basename(os.path.dirname(vcf)), calls, truth, args.precision, True)
    peers = args.peers.split(",")
    align(folder, reference, args.keep_duplicates)
    if "freebayes" in peers:
        print_scores(name, "freebayes", freebayes(folder, reference, regions, args.min_fraction), truth, args.precision, False)
    if "mutect2" in peers:
        print_scores(name, "mutect2", mutect2(folder, reference, regions, args.keep_duplicates), truth, args.precision, True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--precision", type=float, default=0.98)
    parser.add_argument("--keep-duplicates", action="store_true", help="for amplicons and consensus reads")
    parser.add_argument("--min-fraction", type=float, default=0.05, help="smallest allele fraction of freebayes")
    parser.add_argument("--peers", default="freebayes,mutect2")
    args = parser.parse_args()
    print(*COLUMNS, sep="\t", flush=True)
    for folder in args.folders:
        score_set(args, folder)


if __name__ == "__main__":
    sys.exit(main())
