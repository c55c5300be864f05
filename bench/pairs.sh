#!/bin/sh
# Simulates pairs of samples, of one person and of two, and says how often `genuma check` takes the one for the other.
#   bench/pairs.sh [--pairs N] [--depth X] [--genome-length BP] [--kin unrelated|parent|sibling] [--seed S] [-- SIMULATE OPTIONS]
set -eu
pairs=20 depth=0.5 length=20000000 kin=unrelated seed=1
while [ $# -gt 0 ]; do
    case $1 in
    --pairs) pairs=$2 ;; --depth) depth=$2 ;; --genome-length) length=$2 ;; --kin) kin=$2 ;; --seed) seed=$2 ;;
    --) shift; break ;;
    *) echo "pairs.sh: unknown option $1" >&2; exit 2 ;;
    esac
    shift 2
done
genuma=${GENUMA:-target/release/genuma}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for who in one two; do
    case $who in one) foreign= ;; two) foreign="--foreign-normal 1 --foreign-kin $kin" ;; esac
    i=0
    while [ "$i" -lt "$pairs" ]; do
        # shellcheck disable=SC2086 # several words on purpose
        "$genuma" simulate -q --genome-length "$length" --depth-tumor "$depth" --depth-normal "$depth" --seed $((seed + i)) \
            --svs 0 $foreign "$@" -o "$work/pair"
        "$genuma" check -q --tumor "$work"/pair/tumor_?.fq.gz --normal "$work"/pair/normal_?.fq.gz --json "$work/pair.json" >/dev/null
        tr -d ' \n' <"$work/pair.json" | sed 's/.*"relation":"\([a-z]*\)".*/\1\n/'
        rm -rf "$work/pair"
        i=$((i + 1))
    done | sort | uniq -c | sed "s/^/of $who ($kin, ${depth}x, $length bp):/"
done
