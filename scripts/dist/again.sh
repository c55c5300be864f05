#!/usr/bin/env bash
# Makes what is given away once more, of a clone in another folder and from nothing, and compares it with target/dist/out: it has to be the same bytes.
#
# usage: scripts/dist/again.sh [x86_64|aarch64 ...]
set -euo pipefail
cd "$(dirname "$0")/../.."

[ $# -gt 0 ] || set -- x86_64 aarch64
if [ -n "$(git status --porcelain --untracked-files=no)" ]; then
  echo "dist: there are changes that are not committed: a clone would not have them" >&2
  exit 1
fi
clone=$(mktemp -d)/elsewhere
trap 'rm -rf "$(dirname "$clone")"' EXIT
git clone -q . "$clone"
for arch in "$@"; do
  (cd "$clone" && env -u CARGO_TARGET_DIR scripts/dist/build.sh "$arch" && scripts/dist/pack.sh "$arch" target/dist/out) >&2
done
for file in "$clone"/target/dist/out/*; do
  cmp "$file" "target/dist/out/$(basename "$file")"
  echo "dist: $(basename "$file"): the same bytes" >&2
done
