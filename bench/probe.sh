#!/usr/bin/env bash
# Holds the probe's triad and chase beside the same in plain C: same sizes, pages and threads, in turns.
#
# usage: bench/probe.sh [--rounds N] [--out DIR]
#   --rounds N     how often each contender runs, first one first, then the other (7)
#   --out DIR      where the C programs, results.tsv and table.md go (target/bench-probe)
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=7 out=target/bench-probe
while [ $# -gt 0 ]; do
  if [ $# -lt 2 ]; then
    echo "probe: $1 needs a value, or is no option: see the head of bench/probe.sh" >&2
    exit 2
  fi
  case $1 in
    --rounds) rounds=$2 ;;
    --out) out=$2 ;;
    *)
      echo "probe: no option $1: see the head of bench/probe.sh" >&2
      exit 2
      ;;
  esac
  shift 2
done

mkdir -p "$out"
cc -O3 -march=native -fopenmp -o "$out/stream" bench/stream.c
cc -O3 -march=native -o "$out/chase" bench/chase.c
cargo build --quiet --release --locked --package genuma-probe --example bench
probe=${CARGO_TARGET_DIR:-target}/release/examples/bench
results=$out/results.tsv
: >"$results"

# Arrays of 4 times the last-level cache, as STREAM asks for; rings inside each cache and beyond all.
last=$(numfmt --from=iec <"/sys/devices/system/cpu/cpu0/cache/index3/size" 2>/dev/null || echo $((32 << 20)))
array=$((4 * last))
cores=$(nproc)

# noted NAME CONTENDER COMMAND...: notes the best and the median repetition of one run.
noted() {
  local name=$1 contender=$2 better
  shift 2
  better=$([[ $name == triad* ]] && echo -rg || echo -g)
  "$@" | sort "$better" | awk -v name="$name" -v who="$contender" \
    '{ x[NR] = $1 } END { print name "\t" who "\t" x[1] "\t" x[int((NR + 1) / 2)] }' >>"$results"
}

triad() {
  local name="triad, $2 threads, arrays of $((array >> 20)) MiB, GB/s"
  case $1 in
    C) OMP_NUM_THREADS=$2 OMP_PROC_BIND=true OMP_PLACES=threads noted "$name" C "$out/stream" "$array" 30 ;;
    genuma) noted "$name" genuma "$probe" triad "$2" "$array" 30 ;;
  esac
}

chase() {
  local name="chase, $(($2 >> 10)) KiB, ns"
  case $1 in
    C) noted "$name" C "$out/chase" "$2" "$3" 100 ;;
    genuma) noted "$name" genuma "$probe" chase "$2" "$3" 100 ;;
  esac
}

for ((round = 1; round <= rounds; round++)); do
  echo "probe: round $round of $rounds" >&2
  contenders=(C genuma)
  ((round % 2)) || contenders=(genuma C)
  for contender in "${contenders[@]}"; do
    triad "$contender" 1
    [ "$cores" -eq 1 ] || triad "$contender" "$cores"
  done
  # About 2 ms a repetition: many short ones find the moments when nothing else runs.
  for ring in "16384 1600000" "262144 500000" "4194304 120000" "$array 20000"; do
    for contender in "${contenders[@]}"; do
      # shellcheck disable=SC2086
      chase "$contender" $ring
    done
  done
done

# For each contender the best of all repetitions, and the median over rounds of the rounds' medians; genuma / C of both.
table=$out/table.md
{
  echo "| what | C best | genuma best | ratio | C median | genuma median | ratio |"
  echo "|---|---|---|---|---|---|---|"
  sort -t $'\t' -k1,1 -k2,2 -k4,4g "$results" | awk -F '\t' '
    function close_group() {
      if (name != "") { best[name, who] = top; median[name, who] = m[int((n + 1) / 2)]; if (!(name in seen)) { order[++count] = name; seen[name] } }
    }
    $1 != name || $2 != who { close_group(); name = $1; who = $2; n = 0; top = $3 }
    { m[++n] = $4; if (name ~ /^triad/ ? $3 > top : $3 < top) top = $3 }
    END {
      close_group()
      for (i = 1; i <= count; i++) {
        k = order[i]
        printf "| %s | %.2f | %.2f | %.3f | %.2f | %.2f | %.3f |\n", k, best[k, "C"], best[k, "genuma"],
          best[k, "genuma"] / best[k, "C"], median[k, "C"], median[k, "genuma"], median[k, "genuma"] / median[k, "C"]
      }
    }'
} >"$table"
cat "$table"
