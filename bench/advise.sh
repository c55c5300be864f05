#!/usr/bin/env bash
# Scores the advisor on the published run times of lenis2017. No time is measured: the numbers are the same on every machine.
#
# usage: bench/advise.sh [FILE]
#   FILE           a table like strategy/data/lenis2017.csv (that one)
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --locked --quiet
"${CARGO_TARGET_DIR:-target}/release/genuma" machine advise --replay "${1:-strategy/data/lenis2017.csv}"
