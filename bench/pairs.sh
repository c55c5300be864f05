#!/bin/sh
# Simulates people and says how often samples of one of them, or of two, are taken for the other by what `genuma check` looks at in shallow samples.
# Each person's reads are drawn several times, and each tumour is compared with each normal: --people 28 --reads 6 makes 1008 pairs of a kind.
#   bench/pairs.sh [--people N] [--reads N] [--depth X] [--genome-length BP] [--kin one|unrelated|parent|sibling|half-sibling,...] [--seed S]
#                  [--lines FILE] [-- SIMULATE OPTIONS]
#   --kin     who the normal is of, with commas between: the same person (one), or another one (one,unrelated)
#   --lines   a line a pair: kind, person, what was compared, what was said, how much more the samples differ than each in itself, its interval, pairs of reads
set -eu
people=8 reads=4 depth=0.5 length=10000000 kin=one,unrelated seed=1 lines=
while [ $# -gt 0 ]; do
    case $1 in
    --people) people=$2 ;; --reads) reads=$2 ;; --depth) depth=$2 ;; --genome-length) length=$2 ;; --kin) kin=$2 ;; --seed) seed=$2 ;;
    --lines) lines=$2 ;;
    --) shift; break ;;
    *) echo "pairs.sh: unknown option $1" >&2; exit 2 ;;
    esac
    shift 2
done
genuma=${GENUMA:-target/release/genuma}
pairs=${PAIRS:-target/release/examples/pairs}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
lines=${lines:-$work/lines}
: >"$lines"
i=0
while [ "$i" -lt "$people" ]; do
    for who in $(echo "$kin" | tr ',' ' '); do
        case $who in one) foreign= ;; *) foreign="--foreign-normal 1 --foreign-kin $who" ;; esac
        tumours='' normals='' r=1
        while [ "$r" -le "$reads" ]; do
            # shellcheck disable=SC2086 # several words on purpose
            "$genuma" bench simulate -q -t 1 --genome-length "$length" --depth-tumor "$depth" --depth-normal "$depth" --svs 0 \
                --seed $((seed + i)) --reads-seed $((1000 * r + seed)) $foreign "$@" -o "$work/$r"
            tumours="$tumours $work/$r/tumor" normals="$normals $work/$r/normal" r=$((r + 1))
        done
        # shellcheck disable=SC2086
        "$pairs" $tumours -- $normals | sed "s|$work/||g; s/^/$who\t$((seed + i))\t/" >>"$lines"
        rm -rf "${work:?}"/[0-9]*
    done
    i=$((i + 1))
done
cut -f 1,5 "$lines" | sort | uniq -c
