#!/usr/bin/env bash
# Measures a machine with many cores in at most 8 minutes: `genuma align`, `count` and `call` with 1, 2, 4 ... threads, and, if there is a
# device, counting on it (bench/gpu.sh). The reads are simulated there. Results of all numbers of threads are compared byte by byte.
#
# usage: bench/card.sh [--genome-length BP] [--gpu-genome-length BP] [--threads "1 2 4 ..."] [--out DIR]
#   --genome-length BP       of the made genome, at 30x each (20000000)
#   --gpu-genome-length BP   of that for the device; 0 leaves the device out (50000000)
#   --threads LIST           numbers of threads (1, 2, 4 and so on up to all CPUs)
#   --out DIR                where data and runs go (target/bench-card); scaling.tsv there has the results, gpu.md those of the device
set -euo pipefail
cd "$(dirname "$0")/.."

length=20000000 gpu_length=50000000 list='' out=target/bench-card
while [ $# -gt 0 ]; do
  if [ $# -lt 2 ]; then
    echo "card: $1 needs a value, or is no option: see the head of bench/card.sh" >&2
    exit 2
  fi
  case $1 in
    --genome-length) length=$2 ;;
    --gpu-genome-length) gpu_length=$2 ;;
    --threads) list=$2 ;;
    --out) out=$2 ;;
    *)
      echo "card: no option $1: see the head of bench/card.sh" >&2
      exit 2
      ;;
  esac
  shift 2
done
if [ -z "$list" ]; then
  for ((n = 1; n < $(nproc); n *= 2)); do list+=" $n"; done
  list+=" $(nproc)"
fi
genuma=${GENUMA:-${CARGO_TARGET_DIR:-target}/release/genuma}
[ -n "${GENUMA:-}" ] || cargo build --quiet --release --locked --package genuma
mkdir -p "$out"
data=$out/data-$length
[ -f "$data/truth.vcf" ] ||
  "$genuma" bench simulate --quiet -o "$data" --genome-length "$length" --repeats 0.5 --depth-normal 30 --depth-tumor 30
normal=("$data"/normal_[12].fq.gz) tumor=("$data"/tumor_[12].fq.gz) genome=$data/genome.fa

table=$out/scaling.tsv
printf 'job\tthreads\twall_s\tuser_s\tsystem_s\tmachine\tcpus\tversion\tgenome_bp\n' >"$table"
machine=$(sed -n 's/^model name.*: //p' /proc/cpuinfo | sed -n 1p)
version=$("$genuma" --version)
# timed JOB THREADS COMMAND...: notes the wall, user and system time of a command.
timed() {
  local job=$1 threads=$2 times TIMEFORMAT='%R %U %S'
  shift 2
  echo "card: $job, $threads threads" >&2
  times=$({ time "$@" >"$out/last.out" 2>"$out/last.log"; } 2>&1) || {
    tail -n 5 "$out/last.log" >&2
    echo "card: $job failed with $threads threads" >&2
    exit 1
  }
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$job" "$threads" ${times} "$machine" "$(nproc)" "$version" "$length" >>"$table"
}

# same FIRST OTHER: ends the bench if the contents differ; the first run's file is kept.
same() {
  if [ -f "$1" ]; then
    cmp "$1" "$2"
    rm "$2"
  else
    mv "$2" "$1"
  fi
}

rm -f "$out"/first.*
timed index "$(nproc)" "$genuma" index --quiet -t "$(nproc)" "$genome"
for n in $list; do
  timed align "$n" "$genuma" align --quiet -t "$n" "$genome" "${normal[@]}" -o "$out/x.sam"
  grep -v '^@PG' "$out/x.sam" >"$out/y.sam"
  same "$out/first.sam" "$out/y.sam"
  timed 'align to marked BAM' "$n" "$genuma" align --quiet -t "$n" --mark-duplicates --memory 4G "$genome" "${normal[@]}" -o "$out/x.bam"
  timed count "$n" "$genuma" kmers count --quiet -t "$n" --memory 8G --normal "${normal[@]}" --tumor "${tumor[@]}" -o "$out/x.gkt"
  same "$out/first.gkt" "$out/x.gkt"
  rm -rf "$out/call"
  timed call "$n" "$genuma" call --quiet -t "$n" --memory 8G --normal "${normal[@]}" --tumor "${tumor[@]}" --reference "$genome" -o "$out/call"
  gzip -dc "$out/call/somatic.vcf.gz" | grep -v '^##' >"$out/x.vcf"
  same "$out/first.vcf" "$out/x.vcf"
done
rm -rf "$out/call" "$out"/first.* "$out"/x.* "$out"/last.*
cat "$table"

if [ "$gpu_length" -gt 0 ] && "$genuma" machine show | grep -q ': GPU,'; then
  GENUMA=$genuma bench/gpu.sh --genome-length "$gpu_length" --rounds 1 --memory 48 --out "$out/gpu" | tee "$out/gpu.md"
else
  echo "card: no GPU is measured"
fi
