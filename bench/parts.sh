#!/usr/bin/env bash
# What a call in parts costs beside one process on the same reads: CPU time, the longest step, time if all steps of a kind ran at once, bytes
# a k-mer; and whether VCF, contigs and BAM are the same bytes.
#
# usage: bench/parts.sh [--genome-length BP] [--shards N] [--partitions N] [--threads N] [--memory SIZE] [--rounds N] [--out DIR]
#   --genome-length BP   of the made genome, which is like the human one, 30x/30x (25000000)
#   --shards N           (8)
#   --partitions N       (8)
#   --threads N          of the one process, and of each step (2)
#   --memory SIZE        of the one process (4G)
#   --rounds N           how often both are run, in turns (1)
#   --out DIR            where data and runs go: about 2 bytes a base of the reads (target/bench-parts)
set -euo pipefail
cd "$(dirname "$0")/.."

length=25000000 shards=8 parts=8 threads=2 memory=4G rounds=1 out=target/bench-parts
while [ $# -gt 0 ]; do
  if [ $# -lt 2 ]; then
    echo "parts: $1 needs a value, or is no option: see the head of bench/parts.sh" >&2
    exit 2
  fi
  case $1 in
    --genome-length) length=$2 ;;
    --shards) shards=$2 ;;
    --partitions) parts=$2 ;;
    --threads) threads=$2 ;;
    --memory) memory=$2 ;;
    --rounds) rounds=$2 ;;
    --out) out=$2 ;;
    *)
      echo "parts: no option $1: see the head of bench/parts.sh" >&2
      exit 2
      ;;
  esac
  shift 2
done

mkdir -p "$out"
genuma=${GENUMA:-${CARGO_TARGET_DIR:-target}/release/genuma}
[ -n "${GENUMA:-}" ] || cargo build --quiet --release --locked --package genuma

data=$out/data-$length
if [ ! -f "$data/normal_2.b.fq.gz" ]; then
  "$genuma" bench simulate --quiet -o "$data" --genome-like human --genome-length "$length" --depth-tumor 30 --depth-normal 30 \
    --library wgs --seed 7322 --snvs $((length / 250000)) --indels $((length / 1250000)) --svs $((length / 3700000)) --purity 0.8
  # In blocks, so that they can be cut.
  for reads in tumor_1 tumor_2 normal_1 normal_2; do
    zcat "$data/$reads.fq.gz" | bgzip -l 4 -@ "$threads" >"$data/$reads.new"
    rm "$data/$reads.fq.gz"
    mv "$data/$reads.new" "$data/$reads.b.fq.gz"
  done
fi
reads=(--tumor "$data"/tumor_{1,2}.b.fq.gz --normal "$data"/normal_{1,2}.b.fq.gz --reference "$data/genome.fa")

# timed NAME COMMAND ...: adds a line NAME, CPU s, s to the round's table.
timed() {
  local name=$1
  shift
  command time -a -o "$table" -f "$name %U %S %e" "$@"
}

for round in $(seq "$rounds"); do
  table=$out/times-$round
  rm -rf "$table" "$out/one" "$out/run" "$out/calls"
  timed one "$genuma" call --quiet "${reads[@]}" --threads "$threads" --memory "$memory" -o "$out/one"
  "$genuma" call --quiet --plan "$out/run" --shards "$shards" --partitions "$parts" --threads "$threads" "${reads[@]}" -o "$out/calls"
  while read -r step tasks; do
    for task in $(seq "$tasks"); do
      timed "$step" "$genuma" step --quiet "$out/run" "$step" "$task"
    done
  done < <(python3 -c 'import json, sys
for step in json.load(open(sys.argv[1]))["steps"]: print(step["name"], step["tasks"])' "$out/run/plan.json")
  for name in somatic.vcf.gz contigs.fa supporting.bam; do
    cmp "$out/one/$name" "$out/calls/$name"
  done
  echo "round $round: $shards shards, $parts partitions, $threads threads; the same bytes"
  awk '{
      cpu[$1] += $2 + $3; all += ($1 == "one") ? 0 : $2 + $3
      if ($2 + $3 > most[$1]) most[$1] = $2 + $3
      if ($4 > wall[$1]) wall[$1] = $4
      if (!($1 in seen)) { seen[$1] = ++n; name[n] = $1 }
    }
    END {
      printf "%-9s %8s %8s %8s\n", "", "CPU s", "longest", "s"
      for (i = 1; i <= n; i++) {
        printf "%-9s %8.1f %8.1f %8.1f\n", name[i], cpu[name[i]], most[name[i]], wall[name[i]]
        if (name[i] != "one") { at_once += wall[name[i]]; if (most[name[i]] > longest) longest = most[name[i]] }
      }
      printf "parts %.1f CPU s: %.3f of one process; longest step %.3f of them; %.1f s if all steps of a kind ran at once, one process %.1f\n", \
        all, all / cpu["one"], longest / all, at_once, wall["one"]
    }' "$table"
  "$genuma" step "$out/run"
done
