#!/usr/bin/env bash
# Times `genuma align` beside other aligners, samtools sort and markdup: same reads, same threads; and counts whose reads are where they come from and whose mapping qualities can be believed.
#
# usage: bench/align.sh [--data DIR] [--pairs N] [--genome-length BP] [--genome FASTA] [--repeats SHARE] [--reads SET] [--rounds N] [--threads N] [--only NAMES] [--floors yes|no] [--out DIR]
#   --data DIR           genome.fa, normal_1.fq.gz and normal_2.fq.gz as `genuma bench simulate --true-positions` writes them; single reads where
#                        there is no normal_2.fq.gz. Without it pairs are simulated:
#   --pairs N            read pairs (1000000)
#   --genome-length BP   of the made genome that they come from (100000000)
#   --genome FASTA       simulate the pairs from this genome instead
#   --repeats SHARE      of the made genome (0.6)
#   --reads SET          what the reads are like (easy): easy, 2x150 bp with 0.3% wrong bases, of a sample with 0.1% SNVs and 0.01%
#                        indels; hard, the same with 1%, 0.3% and 0.05%; 100 or 250, easy ones of that many bases; single, the first reads of easy pairs
#   --rounds N           how often everything is run, in turns; the table shows medians (1)
#   --threads N          threads of each contender, all held to the same N cores (2)
#   --only NAMES         any of genuma,minibwa,strobealign,sort,markdup,bwa,bwa-mem2,minimap2,bowtie2,snap with commas between
#                        (genuma,minibwa,strobealign,sort,markdup); others is short for bwa and the last three. sort and markdup make files with
#                        those of genuma, minibwa, strobealign and bwa that are named; with the first three where no program is
#   --floors yes|no      whether inflating, parsing, sorting, marking and compressing are each measured beside a floor (yes, if genuma is run)
#   --out DIR            where data, runs, times.tsv, versions.tsv, scores.tsv and table.md go (target/bench-align); reliability.svg there
#                        shows how often qualities are wrong beside how often they say so
set -euo pipefail
cd "$(dirname "$0")/.."

data='' pairs=1000000 length=100000000 repeats=0.6 kind=easy rounds=1 threads=2 out=target/bench-align
only=genuma,minibwa,strobealign,sort,markdup genome_file='' floors=yes
while [ $# -gt 0 ]; do
  if [ $# -lt 2 ]; then
    echo "align: $1 needs a value, or is no option: see the head of bench/align.sh" >&2
    exit 2
  fi
  case $1 in
    --data) data=$2 ;;
    --pairs) pairs=$2 ;;
    --genome-length) length=$2 ;;
    --genome) genome_file=$2 ;;
    --repeats) repeats=$2 ;;
    --floors) floors=$2 ;;
    --reads) kind=$2 ;;
    --rounds) rounds=$2 ;;
    --threads) threads=$2 ;;
    --only) only=$2 ;;
    --out) out=$2 ;;
    *)
      echo "align: no option $1: see the head of bench/align.sh" >&2
      exit 2
      ;;
  esac
  shift 2
done

only=${only/others/bwa,minimap2,bowtie2,snap}
runs() { [[ ",$only," == *",$1,"* ]]; }

files=,genuma,minibwa,strobealign,
if [[ $only =~ (^|,)(genuma|minibwa|strobealign|bwa|bwa-mem2|minimap2|bowtie2|snap)(,|$) ]]; then files=,$only,; fi
# Whether a program makes files, and whether it is run at all.
makes() { { runs sort || runs markdup; } && [[ $files == *",$1,"* ]]; }
wanted() { runs "$1" || makes "$1"; }

bases=150 changes=()
case $kind in
  easy | single) ;;
  hard) changes=(--error-rate 0.01 --germline-snv-rate 0.003 --germline-indel-rate 0.0005) ;;
  100 | 250) bases=$kind changes=(--read-length "$kind") ;;
  *)
    echo "align: no reads $kind: easy, hard, 100, 250 or single" >&2
    exit 2
    ;;
esac

mkdir -p "$out/logs" "$out/scores"
genuma=${GENUMA:-${CARGO_TARGET_DIR:-target}/release/genuma}
[ -n "${GENUMA:-}" ] || cargo build --release --locked --package genuma

# Peers from the crate registry.
minibwa=$out/peers/minibwa strobealign=$out/peers/bin/strobealign
minibwa_version=0.2.0 strobealign_version=0.19.1
if wanted minibwa && [ ! -x "$minibwa" ]; then
  rm -rf "$out/peers/minibwa-source"
  mkdir -p "$out/peers/minibwa-source"
  curl -sSfL "https://static.crates.io/crates/minibwa-sys/minibwa-sys-$minibwa_version.crate" |
    tar -xzf - --strip-components 1 -C "$out/peers/minibwa-source"
  make -s -C "$out/peers/minibwa-source/vendor/minibwa" CC=cc mimalloc=0 gpl=0 omp=0 minibwa
  cp "$out/peers/minibwa-source/vendor/minibwa/minibwa" "$minibwa"
fi
if wanted strobealign && [ ! -x "$strobealign" ]; then
  cargo install --quiet strobealign --version "=$strobealign_version" --locked --root "$out/peers"
fi

source=(--genome-length "$length" --repeats "$repeats") origin="$length bp of made genome (repeats: $repeats)"
if [ -n "$genome_file" ]; then
  source=(--genome "$genome_file") origin=$(basename "$genome_file")
  length=$(awk '!/^>/ { n += length($0) } END { print n }' "$genome_file")
fi
set="2x$bases bp ($kind), $origin"
if [ -n "$data" ]; then
  set=$(basename "$data")
  counts=$(zcat "$data/normal_1.fq.gz" | awk 'NR == 2 { bases = length($0) } END { print NR / 4, bases }')
  read -r pairs bases <<<"$counts"
else
  data=$out/data-$kind-$pairs-$length-${genome_file:+file-}$repeats
fi
if [ ! -f "$data/normal_1.fq.gz" ]; then
  depth=$(awk -v p="$pairs" -v b="$bases" -v l="$length" 'BEGIN { printf "%.4f", p * 2 * b / l }')
  "$genuma" bench simulate "${source[@]}" --true-positions --snvs 0 --indels 0 --svs 0 \
    --germline-svs 0 --depth-tumor 0.0001 --depth-normal "$depth" "${changes[@]}" -o "$data"
  [ "$kind" != single ] || rm "$data/normal_2.fq.gz"
fi
times=$out/times.tsv
: >"$times"

# timed ROUND JOB CONTENDER COMMAND: runs a shell command on the cores they share and notes its cost.
timed() {
  local round=$1 job=$2 contender=$3 command=$4 log=$out/logs/$1-$2-$3
  echo "align: round $round, $job: $contender" >&2
  if ! taskset -c "0-$((threads - 1))" /usr/bin/time -o "$log.time" -f '%e\t%U\t%S\t%M' \
    bash -o pipefail -c "$command" >"$log.out" 2>"$log.err"; then
    tail -n 5 "$log.err" >&2
    echo "align: $job: $contender failed, its log is $log.err" >&2
    exit 1
  fi
  printf '%s\t%s\t%s\t%s\n' "$round" "$job" "$contender" "$(tail -n 1 "$log.time")" >>"$times"
}

# mapped ROUND CONTENDER COMMAND: times a command that writes SAM; the first time it is scored.
mapped() {
  timed "$1" SAM "$2" "$3 > $out/$2.sam"
  [ "$1" -gt 1 ] || awk -f bench/score.awk "$out/$2.sam" | sort -n >"$out/scores/$2.tsv"
}

rm -f "$out"/scores/*.tsv "$out/floors.md"
genome=$data/genome.fa one=$data/normal_1.fq.gz two=$data/normal_2.fq.gz
reads="$one $two" ends=paired what=pairs bowtie2="-1 $one -2 $two"
if [ ! -f "$two" ]; then reads=$one ends=single bowtie2="-U $one" what='single reads'; fi
if wanted genuma; then timed 0 index genuma "$genuma index -t $threads $genome"; fi
if wanted minibwa; then timed 0 index minibwa "$minibwa index $genome $data/peer"; fi
if wanted bwa; then timed 0 index bwa "bwa index -p $data/bwa $genome"; fi
if runs bwa-mem2; then timed 0 index bwa-mem2 "bwa-mem2 index -p $data/bwa-mem2 $genome"; fi
if runs minimap2; then timed 0 index minimap2 "minimap2 -x sr -d $data/minimap2.mmi $genome"; fi
if runs bowtie2; then timed 0 index bowtie2 "bowtie2-build --threads $threads $genome $data/bowtie2"; fi
if runs snap; then timed 0 index snap "snap-aligner index $genome $data/snap -t$threads"; fi

sort="samtools sort -@ $threads -T $out/sort --write-index -o $out/peer.bam -"
markdup="samtools fixmate -m -u - - | samtools sort -@ $threads -u -T $out/sort - |
  samtools markdup -@ $threads --write-index - $out/peer.bam"
# piped ROUND PROGRAM COMMAND: times a command that writes SAM before samtools.
piped() {
  makes "$2" || return 0
  if runs sort; then timed "$1" BAM "$2+sort" "$3 | $sort"; fi
  if runs markdup; then timed "$1" markdup "$2+fixmate+sort+markdup" "$3 | $markdup"; fi
}

# alone ROUND COMMAND: times genuma's command, which makes those files by itself.
alone() {
  makes genuma || return 0
  if runs sort; then timed "$1" BAM genuma "$2 -o $out/ours.bam"; fi
  if runs markdup; then timed "$1" markdup genuma "$2 --mark-duplicates -o $out/ours.bam"; fi
}

snap="snap-aligner $ends $data/snap $reads -t $threads"
bwa="bwa mem -t $threads $data/bwa $reads"
for round in $(seq 1 "$rounds"); do
  ours="$genuma align -t $threads $genome $reads"
  if runs genuma; then mapped "$round" genuma "$ours"; fi
  alone "$round" "$ours"
  for engine in minibwa strobealign; do
    case $engine in
      minibwa) own="$minibwa map -t $threads $data/peer $reads" ;;
      strobealign) own="$strobealign -t $threads $genome $reads" ;;
    esac
    if runs $engine; then mapped "$round" $engine "$own"; fi
    piped "$round" $engine "$own"
  done
  if runs bwa; then mapped "$round" bwa "$bwa"; fi
  piped "$round" bwa "$bwa"
  if runs bwa-mem2; then mapped "$round" bwa-mem2 "bwa-mem2 mem -t $threads $data/bwa-mem2 $reads"; fi
  if runs minimap2; then mapped "$round" minimap2 "minimap2 -t $threads -ax sr $data/minimap2.mmi $reads"; fi
  if runs bowtie2; then mapped "$round" bowtie2 "bowtie2 -p $threads -x $data/bowtie2 $bowtie2"; fi
  if runs snap; then
    mapped "$round" snap "$snap -o -sam -"
    # Sorts and marks duplicates itself.
    if runs markdup; then timed "$round" markdup snap "$snap -so -o $out/peer.bam"; fi
  fi
done
if [ "$floors" = yes ] && runs genuma; then
  echo "align: stages beside their floors" >&2
  cargo bench --quiet --locked --package genuma-align --bench floors -- "$(realpath "$one")" "$(realpath "$out/genuma.sam")" >"$out/floors.md"
fi
for name in genuma minibwa strobealign bwa bwa-mem2 minimap2 bowtie2 snap; do rm -f "$out/$name.sam"; done

# Versions of the peers that were run.
versions() {
  "$genuma" --version
  if wanted minibwa; then "$minibwa" version 2>&1 | sed -n '1s/^/minibwa /p'; fi
  if wanted strobealign; then echo "strobealign $strobealign_version"; fi
  if runs sort || runs markdup; then samtools --version | sed -n 1p; fi
  if wanted bwa; then { bwa 2>&1 || true; } | sed -n 's/^Version: /bwa /p'; fi
  if runs bwa-mem2; then bwa-mem2 version 2>/dev/null | sed -n '$s/^/bwa-mem2 /p'; fi
  if runs minimap2; then minimap2 --version | sed 's/^/minimap2 /'; fi
  if runs bowtie2; then bowtie2 --version | sed -n '1s/.* version/bowtie2/p'; fi
  if runs snap; then { snap-aligner 2>&1 || true; } | sed -n 's/^Welcome to SNAP version \(.*\)\.$/snap-aligner \1/p'; fi
}

versions | sed 's/ /\t/' >"$out/versions.tsv"
{
  printf 'Machine: %s, %s threads of %s. %s %s of %s; %s round(s), medians. Peak: the largest process.\n\n' \
    "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | sed -n 1p)" "$threads" "$(nproc)" "$pairs" "$what" "$set" "$rounds"
  printf 'Versions: %s.\n\n' "$(versions | paste -sd ';' | sed 's/;/; /g')"
  echo "| output | program | wall s | CPU s | peak MB |"
  echo "|---|---|---|---|---|"
  awk -F '\t' '
    # Lower median of numbers in a string.
    function median(list, n, x, i, j, t) {
      n = split(list, x, " ")
      for (i = 2; i <= n; i++) for (j = i; j > 1 && x[j - 1] + 0 > x[j] + 0; j--) { t = x[j]; x[j] = x[j - 1]; x[j - 1] = t }
      return x[int((n + 1) / 2)]
    }
    { k = $2 " | " $3; if (!(k in wall)) { order[++n] = k; output[n] = $2 } wall[k] = wall[k] " " $4; cpu[k] = cpu[k] " " $5 + $6; peak[k] = peak[k] " " $7 / 1000 }
    END {
      outputs = split("index SAM BAM markdup", name, " ")
      for (o = 1; o <= outputs; o++) for (i = 1; i <= n; i++) if (output[i] == name[o]) {
        k = order[i]
        printf "| %s | %.1f | %.1f | %.0f |\n", k, median(wall[k]), median(cpu[k]), median(peak[k])
      }
    }' "$times"
  echo
  if ls "$out"/scores/*.tsv >/dev/null 2>&1; then
    for scores in "$out"/scores/*.tsv; do
      awk -v name="$(basename "$scores" .tsv)" '{ print name "\t" $0 }' "$scores"
    done >"$out/scores.tsv"
    awk -f bench/scores.awk "$out/scores.tsv"
    awk -v OFS='\t' -v title="$set" '{ print title, $0 }' "$out/scores.tsv" | awk -f bench/reliability.awk >"$out/reliability.svg"
  fi
  if [ -f "$out/floors.md" ]; then
    printf '\nStages of `genuma align` in one process with one thread, the least of three rounds. Sorting and marking are differences of runs with and without them.\n\n'
    cat "$out/floors.md"
  fi
} >"$out/table.md"
cat "$out/table.md"
