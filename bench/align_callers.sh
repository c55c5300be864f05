#!/usr/bin/env bash
# Measures recall and precision of Mutect2 and Delly on alignments of `genuma align` and on alignments of bwa mem, from the same simulated reads.
#
# usage: bench/align_callers.sh [--genome FASTA] [--bases N] [--snvs N] [--indels N] [--svs N] [--threads N] [--out DIR]
#   --genome FASTA  real sequence, from which a second pair is simulated (none)
#   --bases N       length of the first pair's simulated genome, 60% repeats, bp (5000000)
#   --snvs N, --indels N, --svs N
#                   number of somatic variants of each pair (2000, 1000, 200)
#   --threads N     of each program (2)
#   --out DIR       folder of the pairs, the runs and table.md (target/bench-align-callers). differ.tsv lists the variants that are missed
#                   with one of the two alignments only, and the false calls with one only
set -euo pipefail
cd "$(dirname "$0")/.."

genome='' bases=5000000 snvs=2000 indels=1000 svs=200 threads=2 out=target/bench-align-callers
while [ $# -gt 0 ]; do
  if [ $# -lt 2 ]; then
    echo "align_callers.sh: $1 needs a value, or is not an option: see the top of bench/align_callers.sh" >&2
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
      echo "align_callers.sh: unknown option $1: see the top of bench/align_callers.sh" >&2
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

# list_errors PROGRAM: prints each missed variant and false call of a pair, without qualities.
list_errors() {
  awk -F '\t' -v OFS='\t' '
    /^Misses/ { what = "missed"; next }
    /^False calls/ { what = "false"; next }
    NF > 5 && $1 != "class" { print what, $1, $2, $3, $4, $5, $6, what == "missed" ? $7 : $9 }' "$dir/$1.eval" | sort
}

# score PAIR OPTIONS: simulates a pair, aligns it with both programs, calls and compares.
score() {
  local pair=$1 dir=$out/$1 program
  shift
  [ -f "$dir/pair/truth.vcf" ] ||
    "$genuma" bench simulate "$@" --snvs "$snvs" --indels "$indels" --svs "$svs" --largest-sv 20000 --depth-tumor 60 --depth-normal 30 --purity 0.7 \
      -t "$threads" -o "$dir/pair" >&2
  GENUMA=$genuma bench/call.sh --data "$dir/pair" --only peers,engine --threads "$threads" --out "$dir" >"$dir.md"
  for program in peers engine; do
    "$genuma" bench evaluate "$dir/pair/truth.vcf" "$dir/$program-1/calls.vcf.gz" --reference "$dir/pair/genome.fa" \
      --germline "$dir/pair/germline.vcf" --list 1000000 >"$dir/$program.eval"
    list_errors $program >"$dir/$program.listed"
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

score simulated --genome-length "$bases" --repeats 0.6 --seed 21
if [ -n "$genome" ]; then score real --genome "$genome" --seed 22; fi

{
  sed -n '/^Versions/p' "$out/simulated.md"
  printf '\nMutect2 (SNVs, indels) and Delly (SVs) at 60x and 30x, purity 0.7; bwa: bwa mem, samtools markdup; genuma: its own engine.\n\n'
  echo "| pair | class | truth | bwa: found | false | recall | precision | genuma: found | false | recall | precision | recall, genuma − bwa | precision | missed with one only: bwa, genuma | false with one only: bwa, genuma |"
  echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
  cat "$out/rows"
} >"$out/table.md"
cat "$out/table.md"
