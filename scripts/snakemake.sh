#!/usr/bin/env bash
# Runs Snakemake with its Slurm plugin, fetching both at the first call: scripts/snakemake.sh -s workflow/Snakefile ...
#
# They come from PyPI into a virtual environment in ~/.cache/genuma, or in the folder that GENUMA_CACHE names.
#
# usage: scripts/snakemake.sh --fetch | ARGUMENTS OF SNAKEMAKE
set -euo pipefail
packages=(snakemake==9.27.1 snakemake-executor-plugin-slurm==2.8.0 snakemake-executor-plugin-slurm-jobstep==0.6.1)
cache=${GENUMA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/genuma}
home=$cache/snakemake-$(echo "${packages[@]}" | sha256sum | cut -c1-8)

if [ ! -e "$home/whole" ]; then
  mkdir -p "$cache"
  # An environment cannot be moved, so it is made where it stays, by one at a time.
  exec 9>"$home.lock"
  flock 9
  if [ ! -e "$home/whole" ]; then
    rm -rf "$home"
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    if ! python3 -m venv "$home" >"$log" 2>&1; then
      echo "snakemake: python3 cannot make a virtual environment (apt-get install python3-venv): $(tail -n 1 "$log")" >&2
      exit 1
    fi
    if ! "$home/bin/pip" install -q --disable-pip-version-check "${packages[@]}" >"$log" 2>&1; then
      echo "snakemake: pip could not fetch ${packages[*]}: $(grep -m 1 '^ERROR' "$log" | cut -c1-300)" >&2
      exit 1
    fi
    touch "$home/whole"
    rm -f "$log"
  fi
  exec 9>&-
fi
if [ "${1:-}" = --fetch ]; then
  echo "$home"
  exit
fi
exec "$home/bin/snakemake" "$@"
