#!/bin/sh
# Simulates pairs of samples with some of the tumour in the normal, or with tandem repeats of another length, and says what `genuma call` tells of it:
# truth, told, interval, whether the interval holds the truth; at last how many do, and the mean error.
#   bench/portrait.sh [--of contamination|repeats] [--shares "0 0.01 0.03"] [--seeds "1 2 3"] [--purity P] [--depths "30 30"] [--library wgs] [-- SIMULATE OPTIONS]
set -eu
of=contamination shares= seeds="1 2 3" purity=0.7 depths="30 30" library=wgs
while [ $# -gt 0 ]; do
    case $1 in
    --of) of=$2 ;; --shares) shares=$2 ;; --seeds) seeds=$2 ;; --purity) purity=$2 ;; --depths) depths=$2 ;; --library) library=$2 ;;
    --) shift; break ;;
    *) echo "portrait.sh: unknown option $1" >&2; exit 2 ;;
    esac
    shift 2
done
case $of in
contamination) made="--genome-length 2000000 --contigs 4 --snvs 250 --indels 30 --svs 6" option=--tumor-in-normal field=tumour_in_normal ;;
repeats) made="--genome-like human --genome-length 5000000 --mitochondrion 0 --snvs 150 --indels 30 --svs 6" option=--unstable field=repeats ;;
*) echo "portrait.sh: --of contamination or repeats" >&2; exit 2 ;;
esac
if [ -z "$shares" ]; then
    case $of in contamination) shares="0 0.005 0.01 0.02 0.03 0.05 0.08 0.1" ;; repeats) shares="0 0.03 0.1 0.3" ;; esac
fi
genuma=${GENUMA:-target/release/genuma}
threads=${THREADS:-2}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for share in $shares; do
    for seed in $seeds; do
        # shellcheck disable=SC2086 # several words on purpose
        "$genuma" bench simulate -q -t "$threads" $made --library "$library" --depth-tumor "${depths% *}" --depth-normal "${depths#* }" --purity "$purity" $option "$share" \
            --seed "$seed" "$@" -o "$work/pair" >/dev/null 2>&1
        "$genuma" call -q -t "$threads" --tumor "$work"/pair/tumor_?.fq.gz --normal "$work"/pair/normal_?.fq.gz --reference "$work/pair/genome.fa" \
            -o "$work/calls" >/dev/null 2>&1
        truth=$share
        if [ "$of" = repeats ] && [ "$share" != 0 ]; then
            # The share that was changed, of all that could be.
            truth=$(tr -d ' \n' <"$work/pair/simulate.json" | sed 's/.*"unstable_tracts":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/' | awk '{ print $1 / $2 }')
        fi
        tr -d ' \n' <"$work/calls/summary.json" | sed 's/.*"'$field'":\({[^}]*}\|null\).*/\1/' | tr '{},' ':  ' | sed 's/"[a-z_]*":/ /g; s/://g' |
            awk -v share="$truth" -v seed="$seed" -v of="$of" '{ n = NF; print share, seed, (n < 3 ? "- - -" : $(n-2) " " $(n-1) " " $n) }'
        rm -rf "$work/pair" "$work/calls"
    done
done | awk '
    BEGIN { print "truth seed told low high holds" }
    { holds = $3 == "-" ? "-" : ($4 <= $1 && $1 <= $5 ? "yes" : "no"); print $1, $2, $3, $4, $5, holds }
    holds != "-" { n++; yes += holds == "yes"; d = $3 - $1; off += d; square += d * d }
    END { if (n) printf "%d told, %d hold; mean error %+.4f, root of mean square %.4f\n", n, yes, off / n, sqrt(square / n) }'
