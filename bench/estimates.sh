#!/bin/sh
# Compares two estimates of `genuma call` with the truth of simulated pairs: the share of tumour in the normal, or the share of unstable tandem
# repeats. Prints truth, estimate, its interval and whether the interval contains the truth, then how many intervals do and the mean error.
#   bench/estimates.sh [--of contamination|repeats] [--shares "0 0.01 0.03"] [--seeds "1 2 3"] [--purity P] [--depths "30 30"] [--library wgs] [-- SIMULATE OPTIONS]
set -eu
of=contamination shares= seeds="1 2 3" purity=0.7 depths="30 30" library=wgs
while [ $# -gt 0 ]; do
    case $1 in
    --of) of=$2 ;; --shares) shares=$2 ;; --seeds) seeds=$2 ;; --purity) purity=$2 ;; --depths) depths=$2 ;; --library) library=$2 ;;
    --) shift; break ;;
    *) echo "estimates.sh: unknown option $1" >&2; exit 2 ;;
    esac
    shift 2
done
case $of in
contamination) options="--genome-length 2000000 --contigs 4 --snvs 250 --indels 30 --svs 6" option=--tumor-in-normal field=tumour_in_normal ;;
repeats) options="--genome-like human --genome-length 5000000 --mitochondrion 0 --snvs 150 --indels 30 --svs 6" option=--unstable field=repeats ;;
*) echo "estimates.sh: --of contamination or repeats" >&2; exit 2 ;;
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
        # shellcheck disable=SC2086 # the variable holds several options
        "$genuma" bench simulate -q -t "$threads" $options --library "$library" --depth-tumor "${depths% *}" --depth-normal "${depths#* }" --purity "$purity" $option "$share" \
            --seed "$seed" "$@" -o "$work/pair" >/dev/null 2>&1
        "$genuma" call -q -t "$threads" --tumor "$work"/pair/tumor_?.fq.gz --normal "$work"/pair/normal_?.fq.gz --reference "$work/pair/genome.fa" \
            -o "$work/calls" >/dev/null 2>&1
        truth=$share
        if [ "$of" = repeats ] && [ "$share" != 0 ]; then
            # The simulator changes whole tracts, so the true share is that of the tracts changed.
            truth=$(tr -d ' \n' <"$work/pair/simulate.json" | sed 's/.*"unstable_tracts":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/' | awk '{ print $1 / $2 }')
        fi
        tr -d ' \n' <"$work/calls/summary.json" | sed 's/.*"'$field'":\({[^}]*}\|null\).*/\1/' | tr '{},' ':  ' | sed 's/"[a-z_]*":/ /g; s/://g' |
            awk -v share="$truth" -v seed="$seed" -v of="$of" '{ n = NF; print share, seed, (n < 3 ? "- - -" : $(n-2) " " $(n-1) " " $n) }'
        rm -rf "$work/pair" "$work/calls"
    done
done | awk '
    BEGIN { print "truth seed estimate low high contained" }
    { contained = $3 == "-" ? "-" : ($4 <= $1 && $1 <= $5 ? "yes" : "no"); print $1, $2, $3, $4, $5, contained }
    contained != "-" { n++; yes += contained == "yes"; d = $3 - $1; off += d; square += d * d }
    END { if (n) printf "%d estimates, %d intervals contain the truth; mean error %+.4f, root of mean square %.4f\n", n, yes, off / n, sqrt(square / n) }'
