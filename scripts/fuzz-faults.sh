#!/usr/bin/env bash
# Builds genuma so that a preloaded shim sees its calls, and runs a fault campaign against it (docs/internals/reliability.md).
#
# usage: scripts/fuzz-faults.sh [--minutes N] [--jobs N] [--case NAME] [--trial TRIAL] [--json FILE] ...
set -euo pipefail
cd "$(dirname "$0")/.."

# Without link-time optimisation the build takes a third of the time; rustix is to call the C library, where the shim is.
RUSTFLAGS="--cfg=rustix_use_libc" CARGO_TARGET_DIR=target/faults \
  CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=false \
  cargo build --release --locked -p genuma
cargo build --locked -p genuma-faults
exec "${CARGO_TARGET_DIR:-target}/debug/genuma-faults" --program target/faults/release/genuma "$@"
