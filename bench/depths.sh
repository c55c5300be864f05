#!/usr/bin/env bash
# Measures recall and precision of `genuma call` on simulated tumour-normal pairs: over depths and purities, over kinds of libraries, and with the
# normal's DNA as tumour (no somatic variant). Prints a line for each set and variant class.
#
# usage: bench/depths.sh [--sets LIST] [--peers yes] [--bases N] [--seed N] [--threads N] [--out DIR]
#   --sets LIST    comma-separated: depths, libraries, same (all three), or names of single sets as in the table
#   --peers yes    bwa + samtools + Mutect2 + Delly on the same reads as well (no); each set then takes minutes to an hour
#   --bases N      length of the simulated genome, bp (5000000)
#   --seed N       of genome, variants and reads (1)
#   --threads N    of each program (2)
#   --out DIR      folder of the sets and of table.tsv (target/bench-depths). A set that is in the table is not run again.
#                  detection.svg plots recall by allele fraction, from the sets of `depths` whose normal has 30x
set -euo pipefail
cd "$(dirname "$0")/.."

sets=depths,libraries,same peers=no bases=5000000 seed=1 threads=2 out=target/bench-depths
while [ $# -gt 0 ]; do
  if [ $# -lt 2 ]; then
    echo "depths.sh: $1 needs a value, or is not an option: see the top of bench/depths.sh" >&2
    exit 2
  fi
  case $1 in
    --sets) sets=$2 ;;
    --peers) peers=$2 ;;
    --bases) bases=$2 ;;
    --seed) seed=$2 ;;
    --threads) threads=$2 ;;
    --out) out=$2 ;;
    *)
      echo "depths.sh: unknown option $1: see the top of bench/depths.sh" >&2
      exit 2
      ;;
  esac
  shift 2
done

genuma=${GENUMA:-${CARGO_TARGET_DIR:-target}/release/genuma}
[ -n "${GENUMA:-}" ] || cargo build --release --locked --package genuma
mkdir -p "$out"
table=$out/table.tsv
[ -f "$table" ] || printf 'set\tcaller\tclass\ttruth\tfound\tfalse\trecall\tprecision\tF1\twall_s\tpeak_kB\n' >"$table"

variants=(--snvs 300 --indels 240 --svs 60)
none=(--snvs 0 --indels 0 --svs 0)

# list: each set's kind, its name and the options of `genuma bench simulate`.
list() {
  local tumour normal purity library
  for tumour in 30 60 100 200; do
    for normal in 15 30 60; do
      for purity in 0.1 0.2 0.5 0.6 1; do
        case $tumour/$normal/$purity in 30/30/0.2 | 60/30/0.2 | 100/30/0.[16] | 200/30/0.1) ;; 30/*/0.2 | 60/*/0.2 | */0.[16]) continue ;; esac
        echo "depths ${tumour}x${normal}x$purity ${variants[*]} --depth-tumor $tumour --depth-normal $normal --purity $purity"
      done
    done
  done
  for library in wgs ffpe transposase old; do
    echo "libraries $library ${variants[*]} --library $library --depth-tumor 30 --depth-normal 30 --purity 0.8"
    echo "libraries $library-deep ${variants[*]} --library $library --depth-tumor 100 --depth-normal 30 --purity 0.6"
    echo "same same-$library ${none[*]} --library $library --depth-tumor 60 --depth-normal 60"
  done
  echo "libraries panel --library panel --depth-tumor 500 --depth-normal 200 --purity 0.5"
  echo "libraries exome --library exome --depth-tumor 150 --depth-normal 100 --purity 0.5"
  echo "libraries slippage ${variants[*]} --pcr-slippage 1 --sequencing-slippage 1 --duplicates 0.2 --depth-tumor 60 --depth-normal 30 --purity 0.7"
  echo "libraries amplified ${variants[*]} --amplifications 6 --losses 4 --aneuploidy 0.2 --clusters 40 --mnvs 30 --depth-tumor 60 --depth-normal 30 --purity 0.7"
  echo "libraries repeats ${variants[*]} --repeats 0.5 --depth-tumor 60 --depth-normal 30 --purity 0.8"
  echo "libraries mitochondrion ${variants[*]} --library wgs --mitochondrion 2000 --depth-tumor 60 --depth-normal 30 --purity 0.7"
  echo "same same-panel ${none[*]} --library panel --depth-tumor 500 --depth-normal 200"
  echo "same same-exome ${none[*]} --library exome --depth-tumor 150 --depth-normal 100"
}

# score SET CALLER VCF TIMES: adds one line for each variant class to the table.
score() {
  local dir=$out/$1
  "$genuma" bench evaluate "$dir/pair/truth.vcf" "$3" --reference "$dir/pair/genome.fa" --germline "$dir/pair/germline.vcf" --list 1000000 >"$dir/$2.eval"
  awk -v set="$1" -v caller="$2" -v times="$4" -v OFS='\t' '$2 == "all" { print set, caller, $1, $3, $4, $6, $7, $8, $9, times }' "$dir/$2.eval" |
    tee -a "$table"
}

# detected SET CALLER: each SNV and indel of the truth with its allele fraction, and 1 if it was found.
detected() {
  local dir=$out/$1
  awk -F '\t' -v OFS='\t' -v depth="${1%%x*}" -v caller="$2" '
    NR == FNR { if ($7 ~ /^CLASS=(SNV|INDEL);/) { missed[$3, $4, $5, $6]; misses++ } next }
    !/^#/ && match($8, /CLASS=(SNV|INDEL);/) {
      class = substr($8, RSTART + 6, RLENGTH - 7)
      match($8, /;AF=[0-9.]+/)
      listed += (($1, $2, $4, $5) in missed)
      print depth, caller, class, substr($8, RSTART + 4, RLENGTH - 4), !(($1, $2, $4, $5) in missed)
    }
    END { if (listed != misses) { print "depths.sh: " misses - listed " missed variants are not in the truth" >"/dev/stderr"; exit 1 } }
  ' <(sed '/^False calls/,$d' "$dir/$2.eval") "$dir/pair/truth.vcf"
}

list | while read -r kind set options; do
  [[ ",$sets," == *",$kind,"* || ",$sets," == *",$set,"* ]] || continue
  dir=$out/$set
  read -ra options <<<"$options"
  [ -f "$dir/pair/truth.vcf" ] ||
    "$genuma" bench simulate --genome-length "$bases" "${options[@]}" --seed "$seed" -t "$threads" -o "$dir/pair" >&2
  reads=(--tumor "$dir"/pair/tumor_{1,2}.fq.gz --normal "$dir"/pair/normal_{1,2}.fq.gz)
  if ! grep -q "^$set"$'\t'genuma$'\t' "$table"; then
    /usr/bin/time -o "$dir/time" -f '%e\t%M' \
      "$genuma" call "${reads[@]}" --reference "$dir/pair/genome.fa" -t "$threads" -o "$dir/genuma" 2>"$dir/genuma.err"
    score "$set" genuma "$dir/genuma/somatic.vcf.gz" "$(tail -n 1 "$dir/time")"
  fi
  if [ "$peers" = yes ] && ! grep -q "^$set"$'\t'peers$'\t' "$table"; then
    GENUMA=$genuma bench/call.sh --data "$dir/pair" --only peers --threads "$threads" --out "$dir/peers" >"$dir/peers.md" 2>"$dir/peers.err"
    wall=$(awk -F '\t' '$2 == "peers" { s += $4 } END { print s }' "$dir/peers/times.tsv")
    score "$set" peers "$dir/peers/peers-1/calls.vcf.gz" "$wall"$'\t'-
  fi
done

for eval in "$out"/*x30x*/{genuma,peers}.eval; do
  set=$(basename "$(dirname "$eval")")
  [ ! -f "$eval" ] || detected "$set" "$(basename "$eval" .eval)"
done | sort -t $'\t' -s -k 1n,1 >"$out/detection.tsv"
awk -f bench/detection.awk "$out/detection.tsv" >"$out/detection.svg"
