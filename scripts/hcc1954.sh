#!/usr/bin/env bash
# Turns the HCC1954 sample (breast cancer cell line and its normal, 2 x 101 bp, one small region) from BAM into what
# `genuma call` reads: FASTQ pairs and a reference.
#
# usage: scripts/hcc1954.sh BAM_DIR OUT
#   BAM_DIR  holds G15512.HCC1954.*.bam (tumour), HCC1954.NORMAL.*.bam and Homo_sapiens_assembly19.*.fa.tar.bz2
#   OUT      gets {tumor,normal}_{1,2}.fq.gz, genome.fa (chromosomes 8 and 11 at their full lengths, N but for the region) and
#            region.fa (its pieces that are not N, each named CHROMOSOME_START, START being its first base, counted from 1)
set -euo pipefail
if [ $# -ne 2 ]; then
  echo "usage: scripts/hcc1954.sh BAM_DIR OUT" >&2
  exit 2
fi
data=$1 out=$2
"$(dirname "$0")/setup.sh" test
mkdir -p "$out"

only() {
  if [ $# -ne 1 ] || [ ! -f "$1" ]; then
    echo "hcc1954: expected one file like $1 in $data" >&2
    exit 1
  fi
  echo "$1"
}

# Pairs only: a read whose mate lies outside the region, or was left out of the BAM, cannot be used.
pairs() {
  local sample=$1 bam=$2
  samtools collate -u -O "$bam" "$out/collate.$sample" | samtools fastq --verbosity 1 -n -c 6 -0 /dev/null \
    -1 "$out/${sample}_1.fq.gz" -2 "$out/${sample}_2.fq.gz" -s "$out/$sample.single.fq" -
  printf '%s: %s pairs, %s reads dropped (no mate in the BAM)\n' "$sample" \
    "$(($(zcat "$out/${sample}_1.fq.gz" | wc -l) / 4))" "$(($(wc -l <"$out/$sample.single.fq") / 4))"
  rm -f "$out/$sample.single.fq"
}

tumor=$(only "$data"/G15512.HCC1954.*.bam)
normal=$(only "$data"/HCC1954.NORMAL.*.bam)
archive=$(only "$data"/Homo_sapiens_assembly19.*.fa.tar.bz2)

pairs tumor "$tumor"
pairs normal "$normal"
tar -xjOf "$archive" >"$out/genome.fa"
samtools faidx "$out/genome.fa"
awk '
  /^>/ { close_piece(); name = substr($1, 2); at = 0; next }
  /^N+$/ { close_piece(); at += length($0); next }
  {
    # A line can hold the end of one piece and the start of the next: walk its bases.
    for (i = 1; i <= length($0); i++)
      if (substr($0, i, 1) == "N") close_piece(i - 1)
      else if (!start) start = at + i
    at += length($0)
  }
  END { close_piece() }
  function close_piece(into) {
    if (start) print name ":" start "-" at + into
    start = 0
  }' "$out/genome.fa" >"$out/pieces.txt"
samtools faidx -r "$out/pieces.txt" "$out/genome.fa" | sed 's/^\(>[^:]*\):\([0-9]*\)-.*/\1_\2/' >"$out/region.fa"
rm "$out/pieces.txt"
samtools faidx "$out/region.fa"
printf 'reference: %s\n' "$(awk '{ printf "%s%s (%s bp)", sep, $1, $2; sep = ", " }' "$out/region.fa.fai")"
