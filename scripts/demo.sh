#!/usr/bin/env bash
# Simulates a small tumour and normal pair, calls it, scores the calls against the truth.
#
# usage: scripts/demo.sh [DIR]        DIR: where everything is written, target/demo unless given
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-target/demo}
target=${CARGO_TARGET_DIR:-target}

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
run() {
  say "$@"
  "$@"
}

# Without network and OpenCL, and optimised less, so that it compiles in half of the time. `make build` makes the
# whole program.
run cargo build --profile quick --locked --package genuma --no-default-features
genuma=$target/quick/genuma
rm -rf "$out"
mkdir -p "$out"

run "$genuma" bench simulate --genome-length 1000000 --snvs 60 --indels 30 --svs 10 \
  --depth-tumor 30 --depth-normal 30 --purity 0.7 --seed 1 -o "$out/pair"
run "$genuma" call --tumor "$out"/pair/tumor_{1,2}.fq.gz --normal "$out"/pair/normal_{1,2}.fq.gz \
  --reference "$out/pair/genome.fa" -o "$out/calls"
run "$genuma" bench evaluate "$out/pair/truth.vcf" "$out/calls/somatic.vcf.gz" --reference "$out/pair/genome.fa"

printf '\nThis build is for the demo only: make build compiles the whole program, which runs twice as fast.\n'
printf 'The calls, each with its tumour and normal reads side by side: %s\n' "$(realpath "$out/calls/report.html")"
