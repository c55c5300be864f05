#!/usr/bin/env bash
# Fails if a binary is larger than 30 MB.
#
# usage: scripts/binary-size.sh [BINARY]      BINARY: target/release/genuma unless given
set -euo pipefail
cd "$(dirname "$0")/.."

max_bytes=30000000
binary=${1:-${CARGO_TARGET_DIR:-target}/release/genuma}
bytes=$(stat -Lc %s -- "$binary")
if [ "$bytes" -gt "$max_bytes" ]; then
  echo "size: $binary has $bytes bytes; at most $max_bytes are allowed: see [profile.release] in Cargo.toml, and cargo bloat for what takes the room" >&2
  exit 1
fi
