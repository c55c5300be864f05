#!/usr/bin/env bash
# Checks the crates that genuma is built from with `cargo deny`, if it is installed; without it cli/tests/supply.rs checks by the same rules
# (deny.toml) all but the advisories.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo deny --version >/dev/null 2>&1; then
  echo "supply: advisories are not checked: there is no cargo-deny here (cargo install --locked cargo-deny);" \
    "licences, bans, duplicates and sources are checked by cli/tests/supply.rs" >&2
  exit 0
fi
cargo deny --locked check bans licenses sources
if cargo deny --locked fetch db >/dev/null 2>&1; then
  cargo deny --locked check --disable-fetch advisories
else
  echo "supply: advisories are not checked: their database cannot be reached" >&2
fi
