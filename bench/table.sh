#!/usr/bin/env bash
# Times `genuma kmers` beside copying its input with cat, and beside kmc_tools on KMC's databases of the same reads, in turns: union, intersection,
# subtraction of two samples, and the panel of all of them. Input is in the page cache as far as the file system has one for it.
#
# usage: bench/table.sh [--samples N] [--genome-length BP] [--depth X] [--threads N] [--rounds N] [--kmc yes|no] [--out DIR]
#   --samples N          samples of one genome, of reads of their own (4)
#   --genome-length BP   of the made genome (12000000)
#   --depth X            of each sample; k-mers of errors are kept (12)
#   --threads N          (2)
#   --rounds N           how often everything is run, in turns; the table shows medians (5)
#   --kmc yes|no         whether kmc_tools is timed as well (yes)
#   --out DIR            where data, runs and tables go (target/bench-table)
set -euo pipefail
cd "$(dirname "$0")/.."

samples=4 length=12000000 depth=12 threads=2 rounds=5 kmc=yes out=target/bench-table
while [ $# -gt 0 ]; do
  if [ $# -lt 2 ]; then
    echo "table: $1 needs a value, or is no option: see the head of bench/table.sh" >&2
    exit 2
  fi
  case $1 in
    --samples) samples=$2 ;;
    --genome-length) length=$2 ;;
    --depth) depth=$2 ;;
    --threads) threads=$2 ;;
    --rounds) rounds=$2 ;;
    --kmc) kmc=$2 ;;
    --out) out=$2 ;;
    *)
      echo "table: no option $1: see the head of bench/table.sh" >&2
      exit 2
      ;;
  esac
  shift 2
done
if [ "$samples" -lt 2 ]; then
  echo "table: --samples has to be 2 or more" >&2
  exit 2
fi

mkdir -p "$out/work"
genuma=${GENUMA:-${CARGO_TARGET_DIR:-target}/release/genuma}
[ -n "${GENUMA:-}" ] || cargo build --quiet --release --locked --package genuma
trap 'rm -rf "$out"/work "$out"/result* "$out"/data' EXIT

tables=() source=(--genome-length "$length")
for ((i = 1; i <= samples; i++)); do
  tables+=("$out/$i.gkt")
  if [ -f "$out/$i.gkt" ] && { [ "$kmc" = no ] || [ -f "$out/$i.kmc_suf" ]; }; then
    source=(--genome "$out/genome.fa")
    continue
  fi
  "$genuma" bench simulate --quiet -o "$out/data" "${source[@]}" --seed "$i" --depth-normal "$depth" --depth-tumor 1
  [ "$i" -gt 1 ] || cp "$out/data/genome.fa" "$out/genome.fa"
  "$genuma" kmers count --quiet -k 31 --min-count 1 -t "$threads" -o "$out/$i.gkt" "$out/data/normal_1.fq.gz" "$out/data/normal_2.fq.gz"
  if [ "$kmc" = yes ]; then
    printf '%s\n' "$out"/data/normal_[12].fq.gz >"$out/data/list"
    kmc -k31 -ci1 -cs1000000 -m4 -t"$threads" "@$out/data/list" "$out/$i" "$out/work" >/dev/null 2>&1
  fi
  source=(--genome "$out/genome.fa")
done

times=$out/times.tsv
: >"$times"
# timed WHAT CONTENDER COMMAND...: notes what a run took: what, contender, wall s, CPU s, peak in MB.
timed() {
  local what=$1 who=$2
  shift 2
  rm -f "$out"/result*
  /usr/bin/time -o "$out/work/time" -f '%e %U %S %M' "$@" >"$out/work/log" 2>&1 || {
    tail -n 5 "$out/work/log" >&2
    exit 1
  }
  awk -v what="$what" -v who="$who" -v OFS='\t' '{ print what, who, $1, $2 + $3, $4 / 1024 }' "$out/work/time" >>"$times"
}
copy() { timed "$1" "$2" sh -c "cat \"\$@\" >\"$out/result\" ${3:+&& sync \"$out/result\"}" sh "${@:4}"; }

two=("${tables[@]:0:2}")
cat "${tables[@]}" >/dev/null
for ((round = 1; round <= rounds; round++)); do
  echo "table: round $round of $rounds" >&2
  for what in union intersect subtract; do
    copy "$what" cat '' "${two[@]}"
    copy "$what" 'cat, to the disk' yes "${two[@]}"
    timed "$what" genuma "$genuma" kmers "$what" --quiet -t "$threads" "${two[@]}" -o "$out/result.gkt"
    theirs=$what
    [ "$what" != subtract ] || theirs=kmers_subtract
    [ "$kmc" = no ] || timed "$what" kmc_tools kmc_tools -t"$threads" simple "$out/1" -ci1 "$out/2" -ci1 "$theirs" "$out/result" -ci1
  done
  copy panel cat '' "${tables[@]}"
  copy panel 'cat, to the disk' yes "${tables[@]}"
  timed panel genuma "$genuma" kmers union --counts samples --quiet -t "$threads" "${tables[@]}" -o "$out/result.gkt"
done

bytes() { du -cb "$@" | tail -n 1 | cut -f 1; }
{
  echo "| what | contender | wall s | CPU s | peak MB | input GB / s |"
  echo "|---|---|---|---|---|---|"
  sort -t $'\t' -k1,1 -k2,2 -k3,3g "$times" | awk -F '\t' -v two="$(bytes "${two[@]}")" -v all="$(bytes "${tables[@]}")" '
    function close_group() {
      if (!n) return
      m = int((n + 1) / 2)
      printf "| %s | %s | %.2f | %.2f | %.0f | %.2f |\n", what, who, wall[m], cpu[m], peak[m], (what == "panel" ? all : two) / wall[m] / 1e9
    }
    $1 != what || $2 != who { close_group(); what = $1; who = $2; n = 0 }
    { wall[++n] = $3; cpu[n] = $4; peak[n] = $5 }
    END { close_group() }'
} | tee "$out/table.md"
