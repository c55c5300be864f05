#!/usr/bin/env bash
# Makes what is given away, and tries it where there is nothing else.
#
# usage: scripts/dist.sh [x86_64|aarch64 ...]      both unless given; leaves all in target/dist/out
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- x86_64 aarch64
for arch in "$@"; do
  scripts/dist/build.sh "$arch"
  scripts/dist/pack.sh "$arch" target/dist/out
  scripts/dist/check.sh "$arch" target/dist/out
done
scripts/dist/sums.sh target/dist/out
