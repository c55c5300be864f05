#!/usr/bin/env bash
# Scores Mutect2 and Delly on what genuma's own engine aligns beside the same on what bwa mem aligns, on simulated pairs.
#
# usage: bench/called.sh [--genome FASTA] [--bases N] [--snvs N] [--indels N] [--svs N] [--threads N] [--out DIR]
#   --genome FASTA  real sequence: a second pair is made of it (none)
#   --bases N       of the made genome of the first pair, 60% repeats (5000000)
#   --snvs N, --indels N, --svs N
#                   somatic variants of each pair (2000, 1000, 200)
#   --threads N     of each program (2)
#   --out DIR       where pairs, runs and table.md go (target/bench-called); differ.tsv there has each variant that is missed,
#                   and each false call, with one of the two only
set -euo pipefail
cd "$(dirname "$0")/.."

genome='' bases=5000000 snvs=2000 indels=1000 svs=200 threads=2 out=target/bench-called
while [ $# -gt 0 ]; do
  if [ $# -lt 2 ]; then
    echo "called: $1 needs a value, or is no option: see the head of bench/called.sh" >&2
    exit 2
  fi
  case $1 in
    --genome) genome=$2 ;;
    --bases) bases=$2 ;;
    --snvs) snvs=$2 ;;
    --indels) indels=$2 ;;
    --svs) svs=$2 ;;
    --threads) threads=$2 ;;
    --out) out=$2 ;;
    *)
      echo "called: no option $1: see the head of bench/called.sh" >&2
      exit 2
      ;;
  esac
  shift 2
done

genuma=${GENUMA:-${CARGO_TARGET_DIR:-target}/release/genuma}
[ -n "${GENUMA:-}" ] || cargo build --release --locked --package genuma
mkdir -p "$out"
differ=$out/differ.tsv
: >"$out/rows"
printf 'pair\twith\twhat\tclass\tpart\tchrom\tpos\tref\talt\tmore\n' >"$differ"

# listed PROGRAM: the misses and false calls of a pair, a line each, without qualities.
listed() {
  awk -F '\t' -v OFS='\t' '
    /^Misses/ { what = "missed"; next }
    /^False calls/ { what = "false"; next }
    NF > 5 && $1 != "class" { print what, $1, $2, $3, $4, $5, $6, what == "missed" ? $7 : $9 }' "$dir/$1.eval" | sort
}

# scored PAIR OPTIONS: one pair through both.
scored() {
  local pair=$1 dir=$out/$1 program
  shift
  [ -f "$dir/pair/truth.vcf" ] ||
    "$genuma" bench simulate "$@" --snvs "$snvs" --indels "$indels" --svs "$svs" --largest-sv 20000 --depth-tumor 60 --depth-normal 30 --purity 0.7 \
      -t "$threads" -o "$dir/pair" >&2
  GENUMA=$genuma bench/call.sh --data "$dir/pair" --only peers,engine --threads "$threads" --out "$dir" >"$dir.md"
  for program in peers engine; do
    "$genuma" bench evaluate "$dir/pair/truth.vcf" "$dir/$program-1/calls.vcf.gz" --reference "$dir/pair/genome.fa" \
      --germline "$dir/pair/germline.vcf" --list 1000000 >"$dir/$program.eval"
    listed $program >"$dir/$program.listed"
  done
  comm -3 "$dir/peers.listed" "$dir/engine.listed" |
    awk -v pair="$pair" '{ with = sub(/^\t/, "") ? "genuma" : "bwa"; print pair "\t" with "\t" $0 }' >"$dir/differ.tsv"
  cat "$dir/differ.tsv" >>"$differ"
  awk -v pair="$pair" '
    FILENAME ~ /differ.tsv$/ { only[toupper($4), $2, $3]++; next }
    $2 == "all" { n = FILENAME ~ /peers.eval$/; truth[$1] = $3; found[$1, n] = $4; wrong[$1, n] = $6; recall[$1, n] = $7; precision[$1, n] = $8 }
    END {
      for (c = split("SV INDEL SNV", class, " "); c; c--) {
        k = class[c]
        printf "| %s | %s | %d |", pair, k, truth[k]
        for (n = 1; n >= 0; n--) printf " %d | %d | %s | %s |", found[k, n], wrong[k, n], recall[k, n], precision[k, n]
        printf " %+.4f | %+.4f | %d, %d | %d, %d |\n", recall[k, 0] - recall[k, 1], precision[k, 0] - precision[k, 1],
          only[k, "bwa", "missed"], only[k, "genuma", "missed"], only[k, "bwa", "false"], only[k, "genuma", "false"]
      }
    }' "$dir/differ.tsv" "$dir/peers.eval" "$dir/engine.eval" >>"$out/rows"
}

scored made --genome-length "$bases" --repeats 0.6 --seed 21
if [ -n "$genome" ]; then scored real --genome "$genome" --seed 22; fi

{
  sed -n '/^Versions/p' "$out/made.md"
  printf '\nMutect2 (SNVs, indels) and Delly (SVs) at 60x and 30x, purity 0.7; bwa: bwa mem, samtools markdup; genuma: its own engine.\n\n'
  echo "| pair | class | truth | bwa: found | false | recall | precision | genuma: found | false | recall | precision | recall, genuma − bwa | precision | missed with one only: bwa, genuma | false with one only: bwa, genuma |"
  echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
  cat "$out/rows"
} >"$out/table.md"
cat "$out/table.md"
