#!/bin/sh
# Measures how often the identity test of `genuma check` errs on shallow samples: samples of one person reported as of two, or the reverse.
# Reads of each simulated person are drawn several times and each tumour is compared with each normal: --people 28 --reads 6 gives 1008 pairs
# of each relation.
#   bench/identity.sh [--people N] [--reads N] [--depth X] [--genome-length BP] [--kin one|unrelated|parent|sibling|half-sibling,...] [--seed S]
#                  [--lines FILE] [-- SIMULATE OPTIONS]
#   --kin     relation of the normal's person to the tumour's, comma-separated; one: the same person (one,unrelated)
#   --lines   a line a pair: kind, person, what was compared, what was said, how much more the samples differ than each in itself, its interval, pairs of reads
set -eu
people=8 reads=4 depth=0.5 length=10000000 kin=one,unrelated seed=1 lines=
while [ $# -gt 0 ]; do
    case $1 in
    --people) people=$2 ;; --reads) reads=$2 ;; --depth) depth=$2 ;; --genome-length) length=$2 ;; --kin) kin=$2 ;; --seed) seed=$2 ;;
    --lines) lines=$2 ;;
    --) shift; break ;;
    *) echo "identity.sh: unknown option $1" >&2; exit 2 ;;
    esac
    shift 2
done
genuma=${GENUMA:-target/release/genuma}
example=${IDENTITY:-target/release/examples/identity}
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
            # shellcheck disable=SC2086 # the variable holds several options
            "$genuma" bench simulate -q -t 1 --genome-length "$length" --depth-tumor "$depth" --depth-normal "$depth" --svs 0 \
                --seed $((seed + i)) --reads-seed $((1000 * r + seed)) $foreign "$@" -o "$work/$r"
            tumours="$tumours $work/$r/tumor" normals="$normals $work/$r/normal" r=$((r + 1))
        done
        # shellcheck disable=SC2086
        "$example" $tumours -- $normals | sed "s|$work/||g; s/^/$who\t$((seed + i))\t/" >>"$lines"
        rm -rf "${work:?}"/[0-9]*
    done
    i=$((i + 1))
done
cut -f 1,5 "$lines" | sort | uniq -c
