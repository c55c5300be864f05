#!/usr/bin/env bash
# Checks that the crates compile without their optional features, and that genuma-somatic then has no network code.
#
# usage: scripts/features.sh
set -euo pipefail
cd "$(dirname "$0")/.."

for crate in genuma-storage genuma-gpu genuma-kmers genuma-somatic genuma; do
  RUSTFLAGS='-D warnings' cargo check --quiet --locked --no-default-features --package "$crate" --target-dir "${CARGO_TARGET_DIR:-target}/features"
done

banned=$(cargo tree --locked --package genuma-somatic --edges normal --prefix none |
  awk '$1 ~ /^(tokio|reqwest|rustls|hyper|object_store|url|opencl3)$/ { print $1 }' | sort -u)
if [ -n "$banned" ]; then
  echo "features: genuma-somatic depends without features on: $(paste -sd ' ' <<<"$banned")" >&2
  exit 1
fi
