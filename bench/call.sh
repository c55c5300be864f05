#!/usr/bin/env bash
# Times and scores `genuma call` beside bwa mem alone and beside bwa + samtools + Mutect2 + Delly: same reads, same threads. Also
# Mutect2 and Delly on what `genuma align` writes.
#
# usage: bench/call.sh [--data DIR] [--rounds N] [--threads N] [--only NAMES] [--out DIR]
#   --data DIR     genome.fa, truth.vcf, {tumor,normal}_{1,2}.fq.gz as `genuma bench simulate` writes them; without it, a pair is
#                  simulated: a made genome of 5 Mbp, 30x/30x, purity 0.7, seed 1
#   --rounds N     how often everything is run; the table shows medians (1)
#   --threads N    threads of each contender, all held to the same N cores (2)
#   --only NAMES   contenders, any of bwa,peers,engine,genuma with commas between (bwa,peers,genuma); engine is peers with genuma's
#                  own aligner in place of bwa and samtools
#   --out DIR      where the runs, times.tsv and table.md go (target/bench-call)
set -euo pipefail
cd "$(dirname "$0")/.."

data='' rounds=1 threads=2 only=bwa,peers,genuma out=target/bench-call
while [ $# -gt 0 ]; do
  if [ $# -lt 2 ]; then
    echo "call: $1 needs a value, or is no option: see the head of bench/call.sh" >&2
    exit 2
  fi
  case $1 in
    --data) data=$2 ;;
    --rounds) rounds=$2 ;;
    --threads) threads=$2 ;;
    --only) only=$2 ;;
    --out) out=$2 ;;
    *)
      echo "call: no option $1: see the head of bench/call.sh" >&2
      exit 2
      ;;
  esac
  shift 2
done

runs() { [[ ",$only," == *",$1,"* ]]; }

mkdir -p "$out"
genuma=${GENUMA:-${CARGO_TARGET_DIR:-target}/release/genuma}
[ -n "${GENUMA:-}" ] || cargo build --release --locked --package genuma
versions=$(bench/peers.sh)
if [ -z "$data" ]; then
  data=$out/pair
  [ -f "$data/truth.vcf" ] || "$genuma" bench simulate --genome-length 5000000 --snvs 400 --indels 200 --svs 60 \
    --depth-tumor 30 --depth-normal 30 --purity 0.7 --seed 1 -o "$data"
fi
data=$(realpath "$data")
times=$out/times.tsv
: >"$times"

# timed ROUND CONTENDER STEP COMMAND: runs a shell command on the cores they share and notes its cost.
timed() {
  local round=$1 contender=$2 step=$3 command=$4 log=$out/logs/$1-$2-$3
  mkdir -p "$out/logs"
  echo "call: round $round, $contender: $step" >&2
  if ! taskset -c "0-$((threads - 1))" /usr/bin/time -o "$log.time" -f '%e\t%U\t%S\t%M' \
    bash -o pipefail -c "$command" >"$log.out" 2>"$log.err"; then
    tail -n 5 "$log.err" >&2
    echo "call: $contender: $step failed, its log is $log.err" >&2
    exit 1
  fi
  printf '%s\t%s\t%s\t%s\n' "$round" "$contender" "$step" "$(tail -n 1 "$log.time")" >>"$times"
}

# Indexes are made once for many samples: their cost is shown apart.
reference=$out/reference/genome.fa
mkdir -p "$out/reference"
cp "$data/genome.fa" "$reference"
timed 0 index bwa "bwa index $reference"
if runs engine; then timed 0 index engine "$genuma index -t $threads $reference"; fi
timed 0 index faidx "samtools faidx $reference && samtools dict $reference -o ${reference%.fa}.dict"

# The command that aligns one sample.
bwa_mem() {
  local sample=$1
  local group="@RG\\tID:$sample\\tSM:$sample\\tLB:$sample\\tPL:ILLUMINA"
  printf '%s ' "bwa mem -t $threads -R '$group' $reference" "$data/$sample"_{1,2}.fq.gz
}

bwa_alone() {
  local sample
  for sample in normal tumor; do
    timed "$1" bwa "align_$sample" "$(bwa_mem "$sample") > /dev/null"
  done
}

# The command that makes one sample's sorted BAM, duplicates marked: bwa's and samtools', genuma's.
peers_bam() {
  printf '%s' "$(bwa_mem "$2") | samtools fixmate -m -u - - | samtools sort -@ $threads -m 512M -u -T $1/$2 - |
    samtools markdup -@ $threads - $1/$2.bam && samtools index $1/$2.bam"
}

engine_bam() {
  printf '%s ' "$genuma align -t $threads -R 'ID:$2\\tSM:$2\\tLB:$2\\tPL:ILLUMINA' --mark-duplicates -o $1/$2.bam" \
    "$reference" "$data/$2"_{1,2}.fq.gz
}

# Mutect2 and Delly on the BAM files of peers or engine.
peers() {
  local round=$1 contender=$2 dir=$out/$2-$1 sample
  mkdir -p "$dir"
  for sample in normal tumor; do
    timed "$round" "$contender" "align_$sample" "$("${contender}_bam" "$dir" "$sample")"
  done
  timed "$round" "$contender" mutect2 "scripts/gatk.sh Mutect2 -R $reference -I $dir/tumor.bam -I $dir/normal.bam -normal normal \
    --native-pair-hmm-threads $threads -O $dir/mutect2.vcf.gz"
  timed "$round" "$contender" mutect2_filter \
    "scripts/gatk.sh FilterMutectCalls -R $reference -V $dir/mutect2.vcf.gz -O $dir/small.vcf.gz"
  printf 'tumor\ttumor\nnormal\tcontrol\n' >"$dir/samples.tsv"
  timed "$round" "$contender" delly \
    "OMP_NUM_THREADS=$threads delly call -g $reference -o $dir/delly.bcf $dir/tumor.bam $dir/normal.bam"
  timed "$round" "$contender" delly_filter \
    "delly filter -f somatic -p -s $dir/samples.tsv -o $dir/large.bcf $dir/delly.bcf"
  peers_vcf "$dir" >"$out/logs/$round-$contender-vcf.err" 2>&1
}

# One VCF of both callers' PASS calls: all of Mutect2's, and Delly's from 50 bp on, as it gives shorter ones a second time.
# Mutect2 joins neighbouring SNVs: atomize parts them, as the truth has them.
peers_vcf() {
  local dir=$1
  bcftools view -f PASS -s tumor,normal -Ou "$dir/small.vcf.gz" | bcftools norm -f "$reference" -m -any --atomize -Ou |
    bcftools annotate -x INFO,^FORMAT/GT -Ou | bcftools sort -Oz -o "$dir/small.pass.vcf.gz"
  bcftools view -f PASS -s tumor,normal -Ou "$dir/large.bcf" |
    bcftools view -e '(SVTYPE="DEL" && END-POS<50) || (SVTYPE="INS" && SVLEN<50)' -Ou |
    bcftools annotate -x ^FORMAT/GT -Ou | bcftools sort -Oz -o "$dir/large.pass.vcf.gz"
  bcftools index -f "$dir/small.pass.vcf.gz"
  bcftools index -f "$dir/large.pass.vcf.gz"
  bcftools concat -a -Oz -o "$dir/calls.vcf.gz" "$dir/small.pass.vcf.gz" "$dir/large.pass.vcf.gz"
  bcftools index -f "$dir/calls.vcf.gz"
}

genuma_call() {
  local dir=$out/genuma-$1
  rm -rf "$dir"
  timed "$1" genuma call "$genuma call --tumor $data/tumor_1.fq.gz $data/tumor_2.fq.gz \
    --normal $data/normal_1.fq.gz $data/normal_2.fq.gz --reference $reference -t $threads -o $dir"
}

for round in $(seq 1 "$rounds"); do
  if runs bwa; then bwa_alone "$round"; fi
  for contender in peers engine; do
    if runs $contender; then peers "$round" $contender; fi
  done
  if runs genuma; then genuma_call "$round"; fi
done

# score TITLE VCF: what `genuma bench evaluate` says of the calls.
score() {
  local germline=()
  if [ -f "$data/germline.vcf" ]; then germline=(--germline "$data/germline.vcf"); fi
  printf '\n%s:\n\n```\n' "$1"
  "$genuma" bench evaluate "$data/truth.vcf" "$2" --reference "$reference" "${germline[@]}" --list 0
  printf '```\n'
}

{
  printf 'Machine: %s, %s threads of %s. Reads: %s pairs a sample; %s bp of genome; %s round(s), medians. Peak: the largest process.\n\n' \
    "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | sed -n 1p)" "$threads" "$(nproc)" \
    "$(($(zcat "$data/tumor_1.fq.gz" | wc -l) / 4))" "$(awk '{ s += $2 } END { print s }' "$reference.fai")" "$rounds"
  printf 'Versions: %s; %s.\n\n' "$(echo "$versions" | paste -sd, | sed 's/,/, /g')" "$("$genuma" --version)"
  awk -f bench/table.awk "$times"
  if runs genuma; then score 'genuma call' "$out/genuma-1/somatic.vcf.gz"; fi
  if runs peers; then score 'Mutect2 and Delly' "$out/peers-1/calls.vcf.gz"; fi
  if runs engine; then score "Mutect2 and Delly on genuma's own engine" "$out/engine-1/calls.vcf.gz"; fi
} >"$out/table.md"
cat "$out/table.md"
