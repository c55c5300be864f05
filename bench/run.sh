#!/usr/bin/env bash
# Times `genuma run` with 1, 2 and 4 instances beside the plain commands of other people's aligners, same reads, same threads,
# and compares what they write.
#
# usage: bench/run.sh [--only NAMES] [--instances LIST] [--scale SHARE] [--input gzip|text] [--genome-length BP] [--repeats SHARE]
#                     [--rounds N] [--threads N] [--out DIR]
#   --only NAMES         any of bwa-mem,bwa-aln,bowtie2,minimap2,snap with commas between (all)
#   --instances LIST     numbers of instances with commas between (1,2,4)
#   --scale SHARE        of the reads that each aligner gets; 1 keeps two cores busy for 20 s or more (1)
#   --input gzip|text    how the reads lie on disk (gzip)
#   --genome-length BP   of the made genome that the reads come from (20000000)
#   --repeats SHARE      of that genome (0.33)
#   --rounds N           how often everything is run, in turns; the table shows medians (1)
#   --threads N          threads of each contender, all held to the same N cores (2)
#   --out DIR            where data, runs, times.tsv and table.md go (target/bench-run)
set -euo pipefail
cd "$(dirname "$0")/.."

only=bwa-mem,bwa-aln,bowtie2,minimap2,snap instances=1,2,4 scale=1 input=gzip length=20000000 repeats=0.33
rounds=1 threads=2 out=target/bench-run
while [ $# -gt 0 ]; do
  if [ $# -lt 2 ]; then
    echo "run: $1 needs a value, or is no option: see the head of bench/run.sh" >&2
    exit 2
  fi
  case $1 in
    --only) only=$2 ;;
    --instances) instances=$2 ;;
    --scale) scale=$2 ;;
    --input) input=$2 ;;
    --genome-length) length=$2 ;;
    --repeats) repeats=$2 ;;
    --rounds) rounds=$2 ;;
    --threads) threads=$2 ;;
    --out) out=$2 ;;
    *)
      echo "run: no option $1: see the head of bench/run.sh" >&2
      exit 2
      ;;
  esac
  shift 2
done

mkdir -p "$out/logs"
genuma=${GENUMA:-${CARGO_TARGET_DIR:-target}/release/genuma}
[ -n "${GENUMA:-}" ] || cargo build --release --locked --package genuma

# Read pairs (bwa-aln: reads) that keep each aligner busy.
declare -A busy=([bwa-mem]=200000 [bwa-aln]=400000 [bowtie2]=45000 [minimap2]=350000 [snap]=1200000)
most=1200000

data=$out/data-$length-$repeats
genome=$data/genome.fa
if [ ! -f "$data/normal_2.fq.gz" ]; then
  depth=$(awk -v p="$most" -v l="$length" 'BEGIN { printf "%.4f", p * 300 / l + 0.1 }')
  "$genuma" bench simulate --genome-length "$length" --repeats "$repeats" --snvs 0 --indels 0 --svs 0 --germline-svs 0 \
    --depth-tumor 0.0001 --depth-normal "$depth" -o "$data"
fi

# reads JOB MATE: the file of reads of a job, made if it is not there.
reads() {
  local number file
  number=$(awk -v n="${busy[$1]}" -v s="$scale" 'BEGIN { printf "%d", n * s }')
  file=$data/$number.$2.fq
  [ "$input" = text ] || file+=.gz
  if [ ! -f "$file" ]; then
    local pack=cat
    [ "$input" = text ] || pack="gzip -4"
    # head ends before gzip has written all.
    { gzip -dc "$data/normal_$2.fq.gz" || true; } 2>/dev/null | head -n $((4 * number)) | $pack >"$file.new"
    mv "$file.new" "$file"
  fi
  echo "$file"
}

# plain_command JOB: the plain command.
plain_command() {
  case $1 in
    bwa-mem) echo "bwa mem -t $threads $genome $(reads "$1" 1) $(reads "$1" 2)" ;;
    bwa-aln) echo "bwa aln -t $threads $genome $(reads "$1" 1)" ;;
    bowtie2) echo "bowtie2 --reorder -p $threads -x $data/bowtie2 -1 $(reads "$1" 1) -2 $(reads "$1" 2)" ;;
    minimap2) echo "minimap2 -ax sr -t $threads $data/minimap2.mmi $(reads "$1" 1) $(reads "$1" 2)" ;;
    snap) echo "snap-aligner paired $data/snap $(reads "$1" 1) $(reads "$1" 2) -t $threads -o -sam -" ;;
    *)
      echo "run: no aligner $1: see the head of bench/run.sh" >&2
      exit 2
      ;;
  esac
}

# index JOB: makes the index of a job if it is not there.
index() {
  case $1 in
    bwa-*) [ -f "$genome.sa" ] || bwa index "$genome" ;;
    bowtie2) [ -f "$data/bowtie2.rev.2.bt2" ] || bowtie2-build -q --threads "$threads" "$genome" "$data/bowtie2" ;;
    minimap2) [ -f "$data/minimap2.mmi" ] || minimap2 -x sr -d "$data/minimap2.mmi" "$genome" ;;
    snap) [ -f "$data/snap/GenomeIndexHash" ] || snap-aligner index "$genome" "$data/snap" "-t$threads" ;;
  esac
}

times=$out/times.tsv
: >"$times"

# timed ROUND JOB CONTENDER COMMAND: runs a shell command on the cores they share and notes its cost.
timed() {
  local log=$out/logs/$2-$3
  echo "run: round $1, $2: $3" >&2
  if ! taskset -c "0-$((threads - 1))" /usr/bin/time -o "$log.time" -f '%e\t%U\t%S\t%M' \
    bash -c "$4 > $out/$2-$3.out" 2>"$log.err"; then
    tail -n 5 "$log.err" >&2
    echo "run: $2: $3 failed, its log is $log.err" >&2
    exit 1
  fi
  printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$(tail -n 1 "$log.time")" >>"$times"
}

# records FILE: what is compared, @PG lines aside.
records() { grep -av '^@PG' "$1"; }

# compared JOB CONTENDER: how its records stand to those of the plain run.
compared() {
  local plain=$out/$1-plain.out found=$out/$1-$2.out
  case $1 in
    bwa-aln) cmp -s "$plain" "$found" && echo "same bytes" || echo "DIFFERENT" ;;
    snap)
      if cmp -s <(records "$plain" | LC_ALL=C sort -S 1G) <(records "$found" | LC_ALL=C sort -S 1G); then
        echo "same set"
      else
        echo "DIFFERENT"
      fi
      ;;
    *) cmp -s <(records "$plain") <(records "$found") && echo "same bytes" || echo "DIFFERENT" ;;
  esac
}

declare -A verdict
for job in ${only//,/ }; do
  index "$job" >"$out/logs/$job-index" 2>&1
  plain=$(plain_command "$job")
  for round in $(seq 1 "$rounds"); do
    contenders="plain ${instances//,/ }"
    # The other way round every second time.
    [ $((round % 2)) = 1 ] || contenders=$(tr ' ' '\n' <<<"$contenders" | tac | tr '\n' ' ')
    for k in $contenders; do
      case $k in
        plain) timed "$round" "$job" plain "$plain" ;;
        1) timed "$round" "$job" 1 "$genuma run -q --strategy default -- $plain" ;;
        *) timed "$round" "$job" "$k" "$genuma run -q --strategy ${k}xdefault -- $plain" ;;
      esac
    done
    for k in ${instances//,/ }; do
      said=$(compared "$job" "$k")
      [ "${verdict[$job-$k]:-$said}" = "$said" ] || said=DIFFERENT
      verdict[$job-$k]=$said
    done
    rm -f "$out/$job"-*.out
  done
done

# Versions of what was run.
versions() {
  "$genuma" --version
  { bwa 2>&1 || true; } | sed -n 's/^Version: /bwa /p'
  bowtie2 --version | sed -n '1s/.* version/bowtie2/p'
  minimap2 --version | sed 's/^/minimap2 /'
  { snap-aligner 2>&1 || true; } | sed -n 's/^Welcome to SNAP version \(.*\)\.$/snap-aligner \1/p'
}

{
  printf 'Machine: %s, %s threads of %s. Reads: 2x150 bp of %s bp of made genome (repeats: %s), %s. %s round(s), medians.\n\n' \
    "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | sed -n 1p)" "$threads" "$(nproc)" "$length" "$repeats" "$input" "$rounds"
  printf 'Versions: %s.\n\n' "$(versions | paste -sd ';' | sed 's/;/; /g')"
  for job in ${only//,/ }; do printf '    %s\n' "$(plain_command "$job")"; done
  echo
  for key in "${!verdict[@]}"; do printf '%s\t%s\n' "$key" "${verdict[$key]}"; done |
    awk -f bench/run.awk - "$times"
} >"$out/table.md"
cat "$out/table.md"
