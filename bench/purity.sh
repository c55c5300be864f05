#!/bin/sh
# Simulates tumours of known purity and copies, and says what `genuma check` tells of them, and how often its intervals hold the truth.
#   bench/purity.sh [--seeds N] [--seed S] [--purities "0.2 0.5"] [--kinds "even unbalanced"] [--genome-length BP] [--depths "30/30"] [--threads N]
# Kinds: even (two copies), unbalanced (contigs lost and gained), doubled, subclonal. Seeds decide how many contigs there are, too.
set -eu
seeds=3 seed=1 purities="0.2 0.3 0.5 0.65 0.8 0.9 1" kinds="even unbalanced doubled subclonal" length=3000000 depths="30/30" threads=1
while [ $# -gt 0 ]; do
    case $1 in
    --seeds) seeds=$2 ;; --seed) seed=$2 ;; --purities) purities=$2 ;; --kinds) kinds=$2 ;; --genome-length) length=$2 ;;
    --depths) depths=$2 ;; --threads) threads=$2 ;;
    *) echo "purity.sh: unknown option $1" >&2; exit 2 ;;
    esac
    shift 2
done
genuma=${GENUMA:-target/release/genuma}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# value FILE KEY PREFIX: the number after "KEY":PREFIX in a JSON file.
value() { tr -d ' \n' <"$1" | sed -n "s/.*\"$2\":$3\([-0-9.e]*\|null\)[,}].*/\1/p"; }
number() { # object of three numbers, as "value low high", or "- - -"
    tr -d ' \n' <"$1" | grep -o "\"$2\":{[^}]*}" | head -1 |
        sed 's/.*"high":\([-0-9.e]*\).*"low":\([-0-9.e]*\).*"value":\([-0-9.e]*\).*/\3 \2 \1/' | grep . || echo "- - -"
}
printf 'kind\tdepths\tseed\tpurity\ttold\tlow\thigh\tploidy\ttold\tlow\thigh\tlost\ttold\tothers\n'
for kind in $kinds; do
    case $kind in
    even) options= ;;
    unbalanced) options="--aneuploidy 0.35" ;;
    doubled) options="--aneuploidy 0.35 --doubled" ;;
    subclonal) options="--aneuploidy 0.25 --subclones 0.4 --subclonal-aneuploidy 0.15" ;;
    *) echo "purity.sh: unknown kind $kind" >&2; exit 2 ;;
    esac
    for both in $depths; do
        for purity in $purities; do
            i=0
            while [ "$i" -lt "$seeds" ]; do
                own=$((seed + i))
                # shellcheck disable=SC2086 # several words on purpose
                "$genuma" bench simulate -q -t "$threads" --library wgs --genome-length "$length" --contigs $((5 + own * 7 % 16)) --snvs 150 --indels 40 --svs 4 \
                    --depth-tumor "${both%/*}" --depth-normal "${both#*/}" --purity "$purity" --seed "$own" $options -o "$work/pair"
                "$genuma" check -q -t "$threads" --tumor "$work"/pair/tumor_?.fq.gz --normal "$work"/pair/normal_?.fq.gz \
                    --reference "$work/pair/genome.fa" --json "$work/pair.json" >/dev/null
                made=$(tr -d ' \n' <"$work/pair/simulate.json" | sed -n 's/.*"tumor_content":{"loh_fraction":\([0-9.e-]*\),"ploidy":\([0-9.e-]*\).*/\2 \1/p')
                made=${made:-2 0}
                others=$(tr -d ' \n' <"$work/pair.json" | grep -o '"alternatives":\[[^]]*\]' | grep -o '"delta_log_likelihood"' | wc -l)
                lost=$(value "$work/pair.json" loh_fraction '' | tail -1)
                # shellcheck disable=SC2046 # several words on purpose
                printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$kind" "$both" "$own" "$purity" $(number "$work/pair.json" purity) \
                    "${made% *}" $(number "$work/pair.json" ploidy) "${made#* }" "${lost:--}" "$others"
                rm -rf "$work/pair"
                i=$((i + 1))
            done
        done
    done
done | tee "$work/table"
awk -F '\t' '
    function off(a, b) { return a > b ? a - b : b - a }
    { n++
      if ($5 != "-") { told++; held += $4 >= $6 - 0.0005 && $4 <= $7 + 0.0005; near += off($4, $5) <= 0.03 }
      if ($9 != "-") { p_told++; p_held += $8 >= $10 && $8 <= $11; p_near += off($8, $9) <= 0.1 }
      if ($13 != "-" && $13 != "null") { l_told++; l_near += off($12, $13) <= 0.05 } }
    END { printf "of %d: purity told %d, within 0.03 %d, in the interval %d; ploidy told %d, within 0.1 %d, in the interval %d; lost told %d, within 0.05 %d\n",
          n, told, near, held, p_told, p_near, p_held, l_told, l_near }' "$work/table"
