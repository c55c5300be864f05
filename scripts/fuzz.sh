#!/usr/bin/env bash
# Runs the fuzz targets one after the other, each from its corpus in fuzz/corpus, for so many seconds.
#
# usage: scripts/fuzz.sh [--seconds N] [--jobs N] [TARGET ...]
#
# New inputs go to target/fuzz/corpus, those that break a target to target/fuzz/artifacts; exit 1 if there is one.
# The flags are libFuzzer's coverage, which the stable compiler can do; `cargo fuzz run` works in fuzz/ too, with its sanitizers.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=60
jobs=2
targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=$2; shift 2 ;;
    --jobs) jobs=$2; shift 2 ;;
    -*) echo "usage: scripts/fuzz.sh [--seconds N] [--jobs N] [TARGET ...]" >&2; exit 2 ;;
    *) targets+=("$1"); shift ;;
  esac
done
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(sed -n 's/^name = "\([a-z_]*\)"$/\1/p' fuzz/Cargo.toml)

coverage=(-sanitizer-coverage-level=4 -sanitizer-coverage-inline-8bit-counters -sanitizer-coverage-pc-table
  -sanitizer-coverage-trace-compares -sanitizer-coverage-stack-depth -simplifycfg-branch-fold-threshold=0)
flags="--cfg fuzzing -Cpasses=sancov-module -Cdebug-assertions -Ccodegen-units=1"
for option in "${coverage[@]}"; do flags+=" -Cllvm-args=$option"; done
# A target of its own, so that build scripts and macros are not built with these flags.
host=$(rustc -vV | sed -n 's/^host: //p')
folder=$PWD/target/fuzz
RUSTFLAGS=$flags CARGO_TARGET_DIR=$folder \
  cargo build --manifest-path fuzz/Cargo.toml --locked --release --target "$host" --bins

one() {
  local target=$1
  mkdir -p "$folder/corpus/$target" "$folder/artifacts/$target" "fuzz/corpus/$target"
  if "$folder/$host/release/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$folder/artifacts/$target/" "$folder/corpus/$target" "fuzz/corpus/$target" >"$folder/$target.log" 2>&1; then
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/$target.log") inputs in $seconds s"
  else
    echo "$target: FOUND: $(grep -m 1 -E 'panicked at|ERROR: ' "$folder/$target.log"); see $folder/$target.log"
    return 1
  fi
}
export -f one
export folder host seconds
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I{} bash -c 'one {}'
