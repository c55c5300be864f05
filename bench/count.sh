#!/usr/bin/env bash
# Times `genuma kmers count` beside KMC 3 on the same reads, in turns: k-mers seen twice or more, same k, threads and memory cap. Then tumour
# and normal jointly with selection, as the somatic caller counts, beside KMC on one after the other.
#
# usage: bench/count.sh [--reads FILE,...] [--tumor FILE,...] [--k K] [--memory GB,...] [--threads N] [--rounds N]
#                       [--genome-length BP] [--out DIR]
#   --reads FILE,...     FASTQ of one sample, the normal (30x of a made genome, 2x150 bp)
#   --tumor FILE,...     FASTQ of another, of as many files in pairs (as --reads); none: no joint count
#   --k K                length of k-mers (31)
#   --memory GB,...      caps, each with its own runs; KMC takes 2 at least (4)
#   --threads N          (2)
#   --rounds N           how often everything is run, in turns; the tables show medians (1)
#   --genome-length BP   of the made genome (170000000: 5.1 Gbp of reads a sample)
#   --out DIR            where data, runs and tables go; bins spill there too (target/bench-count)
#
# The floor is one pass of igzip over the reads, and all bins written and read once, those in memory at the speed of bench/stream.c, those
# in the spill file at that of direct reads and writes of 1 MiB.
set -euo pipefail
cd "$(dirname "$0")/.."

reads='' tumor='' k=31 memory=4 threads=2 rounds=1 length=170000000 out=target/bench-count
while [ $# -gt 0 ]; do
  if [ $# -lt 2 ]; then
    echo "count: $1 needs a value, or is no option: see the head of bench/count.sh" >&2
    exit 2
  fi
  case $1 in
    --reads) reads=$2 ;;
    --tumor) tumor=$2 ;;
    --k) k=$2 ;;
    --memory) memory=$2 ;;
    --threads) threads=$2 ;;
    --rounds) rounds=$2 ;;
    --genome-length) length=$2 ;;
    --out) out=$2 ;;
    *)
      echo "count: no option $1: see the head of bench/count.sh" >&2
      exit 2
      ;;
  esac
  shift 2
done

mkdir -p "$out/work"
genuma=${GENUMA:-${CARGO_TARGET_DIR:-target}/release/genuma}
[ -n "${GENUMA:-}" ] || cargo build --quiet --release --locked --package genuma
cargo build --quiet --release --locked --package genuma-kmers --example count
joint=${CARGO_TARGET_DIR:-target}/release/examples/count
cc -O3 -march=native -fopenmp -o "$out/stream" bench/stream.c

if [ -z "$reads" ]; then
  data=$out/data-$length
  if [ ! -f "$data/truth.vcf" ]; then
    "$genuma" bench simulate --quiet -o "$data" --genome-length "$length" --depth-normal 30 --depth-tumor 30
  fi
  reads=$data/normal_1.fq.gz,$data/normal_2.fq.gz tumor=$data/tumor_1.fq.gz,$data/tumor_2.fq.gz
fi
IFS=, read -ra reads <<<"$reads"
IFS=, read -ra tumor <<<"$tumor"
IFS=, read -ra memory <<<"$memory"

times=$out/times.tsv
: >"$times"
trap 'rm -rf "$out"/work "$out"/normal.kmc_* "$out"/tumor.kmc_* "$out"/table.gkt "$out"/disk' EXIT

# timed CONTENDER GB COMMAND...: notes what a run took: contender, cap in GB, round, wall s, CPU s, peak in MB.
timed() {
  local contender=$1 cap=$2
  shift 2
  /usr/bin/time -o "$out/time" -f '%e %U %S %M' "$@" >"$out/last.log" 2>&1 || {
    tail -n 5 "$out/last.log" >&2
    exit 1
  }
  awk -v who="$contender" -v cap="$cap" -v round="$round" -v OFS='\t' '{ print who, cap, round, $1, $2 + $3, $4 / 1024 }' "$out/time" >>"$times"
}

# by_kmc NAME GB FILE...
by_kmc() {
  local name=$1 cap=$2
  shift 2
  printf '%s\n' "$@" >"$out/$name.list"
  timed "KMC, $name" "$cap" kmc -k"$k" -ci2 -t"$threads" -m"$cap" "@$out/$name.list" "$out/$name" "$out/work"
  rm -f "$out/$name".kmc_*
}

for ((round = 1; round <= rounds; round++)); do
  echo "count: round $round of $rounds" >&2
  timed igzip - xargs -P "$threads" -n 1 sh -c 'igzip -dc "$0" >/dev/null' < <(printf '%s\n' "${reads[@]}")
  for cap in "${memory[@]}"; do
    timed "genuma kmers count" "$cap" "$genuma" kmers count --quiet -k "$k" --min-count 2 -t "$threads" --memory "${cap}G" --work "$out/work" -o "$out/table.gkt" \
      --json "$out/genuma-$cap.json" "${reads[@]}"
    [ "$cap" -lt 2 ] || by_kmc normal "$cap" "${reads[@]}"
    if [ ${#tumor[@]} -gt 0 ]; then
      timed "genuma, joint with selection" "$cap" "$joint" "$k" "$threads" "$((cap * 1024))" "$out/work" "${reads[@]}" "${tumor[@]}"
      [ "$cap" -lt 2 ] || by_kmc tumor "$cap" "${tumor[@]}"
    fi
  done
done

# Bandwidths in bytes a second.
in_memory=$("$out/stream" 2000000000 5 | sort -g | tail -n 1 | awk '{ print $1 * 1e9 }')
through() { awk '/copied/ { for (i = 1; i <= NF; i++) if ($i == "s,") print $1 / $(i - 1) }'; }
written=$(LC_ALL=C dd if="${reads[0]}" of="$out/disk" bs=1M count=1024 oflag=direct 2>&1 | through)
read_back=$(LC_ALL=C dd if="$out/disk" of=/dev/null bs=1M iflag=direct 2>&1 | through)

# number KEY: of the last summary of genuma.
number() { sed -n "s/^ *\"$1\": \([0-9.]*\),*$/\1/p" "$out/genuma-$cap.json"; }

{
  echo "| memory, GB | contender | wall s | CPU s | peak MB |"
  echo "|---|---|---|---|---|"
  sort -t $'\t' -k1,1 -k2,2n -k4,4g "$times" | awk -F '\t' '
    function close_group() { if (n) { m = int((n + 1) / 2); printf "| %s | %s | %.1f | %.1f | %.0f |\n", cap, name, wall[m], cpu[m], peak[m] } }
    $1 != name || $2 != cap { close_group(); name = $1; cap = $2; n = 0 }
    { wall[++n] = $4; cpu[n] = $5; peak[n] = $6 }
    END { close_group() }' | sort -s -t '|' -k2,2
} | tee "$out/table.md"

{
  echo
  echo "| memory, GB | M k-mers | k-mers / CPU s, M | packed B / k-mer | spilled B / k-mer | floor s | share of the floor |"
  echo "|---|---|---|---|---|---|---|"
  for cap in "${memory[@]}"; do
    kmers=$(sed -n '/"samples"/,/^  \]/s/^ *"kmers": \([0-9]*\).*/\1/p' "$out/genuma-$cap.json")
    sort -t $'\t' -k4,4g "$times" | awk -F '\t' -v cap="$cap" -v kmers="$kmers" -v packed="$(number packed_bytes)" -v spilled="$(number spilled_bytes)" \
      -v memory="$in_memory" -v written="$written" -v read_back="$read_back" '
      $1 == "igzip" { inflating[++n] = $4 }
      $1 == "genuma kmers count" && $2 == cap { wall[++m] = $4; cpu[m] = $5 }
      END {
        held = packed > spilled ? packed - spilled : 0
        floor = inflating[int((n + 1) / 2)] + 2 * held / memory + spilled / written + spilled / read_back
        middle = int((m + 1) / 2)
        printf "| %s | %.0f | %.1f | %.2f | %.2f | %.1f | %.2f |\n", cap, kmers / 1e6, kmers / cpu[middle] / 1e6, packed / kmers, spilled / kmers, floor,
          floor / wall[middle]
      }'
  done
  printf '\nbandwidth in GB/s: memory %.1f, disk written %.2f, read %.2f\n' "$(awk "BEGIN { print $in_memory / 1e9 }")" "$(awk "BEGIN { print $written / 1e9 }")" \
    "$(awk "BEGIN { print $read_back / 1e9 }")"
} | tee -a "$out/table.md"
