#!/usr/bin/env bash
# Measures random lookups of a table of genuma beside what the device gives to fio, and beside RocksDB with the same keys and values; cache off.
# Then how many absent keys read flash, and how long an absent key takes in a set of 110 million in memory.
#
# usage: bench/flash.sh [--entries N] [--rounds N] [--seconds N] [--out DIR]
#   --entries N    entries of 8 + 128 bytes (24000000: 3.3 GB, and as much again for RocksDB)
#   --rounds N     how often each contender runs, in turns (3)
#   --seconds N    how long each run looks keys up (4)
#   --out DIR      where tables and results go; its file system is measured (target/bench-flash)
#
# RocksDB is Debian's unless ROCKSDB_INCLUDE and ROCKSDB_LIBS name another: Debian's is built without io_uring, so its MultiGet reads one block
# after the other.
set -euo pipefail
cd "$(dirname "$0")/.."

entries=24000000 rounds=3 seconds=4 out=target/bench-flash
while [ $# -gt 0 ]; do
  if [ $# -lt 2 ]; then
    echo "flash: $1 needs a value, or is no option: see the head of bench/flash.sh" >&2
    exit 2
  fi
  case $1 in
    --entries) entries=$2 ;;
    --rounds) rounds=$2 ;;
    --seconds) seconds=$2 ;;
    --out) out=$2 ;;
    *)
      echo "flash: no option $1: see the head of bench/flash.sh" >&2
      exit 2
      ;;
  esac
  shift 2
done

mkdir -p "$out"
cargo build --quiet --release --locked --package genuma-flash --example flash
flash=${CARGO_TARGET_DIR:-target}/release/examples/flash
# shellcheck disable=SC2086
g++ -O2 -std=c++17 ${ROCKSDB_INCLUDE:+-I"$ROCKSDB_INCLUDE"} -o "$out/rocksdb" bench/rocksdb.cpp ${ROCKSDB_LIBS:--lrocksdb} -lpthread
table=$out/table rocks=$out/rocks results=$out/results.tsv
trap 'rm -rf "$table" "$rocks" "$out/set"' EXIT
rm -rf "$rocks"
"$flash" build "$table" "$entries" >&2
mkdir -p "$rocks"
"$out/rocksdb" build "$rocks" "$entries"
: >"$results"

# noted NAME RATE CPU: what a run gave, lookups a second and CPU µs a lookup.
noted() { printf '%s\t%s\t%s\n' "$@" >>"$results"; }

# device THREADS DEPTH
device() {
  local fields
  fields=$(fio --name=read --filename="$table" --readonly --rw=randread --bs=4k --direct=1 --ioengine=io_uring --fixedbufs=1 \
    --registerfiles=1 --nonvectored=1 --norandommap --randrepeat=0 --time_based --runtime="$seconds" --numjobs="$1" --iodepth="$2" \
    --group_reporting --output-format=terse --terse-version=3 | tail -n 1)
  # Fields of terse version 3: 8 is reads a second, 88 and 89 user and system time in percent of one CPU.
  awk -F ';' -v name="fio, $1 x $2" '{ print name "\t" $8 "\t" ($88 + $89) * 1e4 * jobs / $8 }' jobs="$1" <<<"$fields" | tr -d '%' >>"$results"
}

# genuma ACCESS THREADS DEPTH
genuma() {
  local rate cpu
  read -r rate cpu _ < <("$flash" get "$table" "$1" "$2" "$3" "$seconds")
  noted "genuma $1, $2 x $3" "$rate" "$cpu"
}

# peer THREADS BATCH
peer() {
  local rate cpu
  read -r rate cpu < <("$out/rocksdb" get "$rocks" "$entries" "$1" "$2" "$seconds")
  noted "RocksDB, $1 thread$([ "$1" -eq 1 ] || echo s), $([ "$2" -eq 1 ] && echo Get || echo "MultiGet of $2")" "$rate" "$cpu"
}

for ((round = 1; round <= rounds; round++)); do
  echo "flash: round $round of $rounds" >&2
  for shape in "1 32" "1 128" "1 256" "2 64" "4 128"; do
    # shellcheck disable=SC2086
    device $shape
    # shellcheck disable=SC2086
    genuma io_uring $shape
  done
  genuma libaio 1 128
  genuma pread 1 1
  for shape in "1 1" "1 32" "1 128" "16 32" "128 1"; do
    # shellcheck disable=SC2086
    peer $shape
  done
done

{
  echo "| what | lookups/s | CPU µs a lookup |"
  echo "|---|---|---|"
  sort -t $'\t' -k1,1 -k2,2g "$results" | awk -F '\t' '
    function close_group() { if (n) printf "| %s | %.0f | %.2f |\n", name, rate[int((n + 1) / 2)], cpu[int((n + 1) / 2)] }
    $1 != name { close_group(); name = $1; n = 0 }
    { rate[++n] = $2; cpu[n] = $3 }
    END { close_group() }'
} >"$out/table.md"
cat "$out/table.md"
"$flash" absent "$table" 2000000
"$flash" memory "$out/set" 110000000 16000000
