#!/usr/bin/env bash
# Installs the peers of the tests that Debian does not have: Python packages of PyPI (scripts/python-peers.txt) in a virtual environment, and
# GATK of Maven Central (bench/peers.sh). What cannot be installed is reported, and its tests are skipped.
#
# GENUMA_CACHE: the folder that keeps them (~/.cache/genuma).
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${GENUMA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/genuma}
mkdir -p "$cache"

# Another list of packages is another folder. The link names the folder of this list once everything in it is installed.
python=$cache/python-$(sha256sum scripts/python-peers.txt | cut -c1-8)
if [ "$(readlink "$cache/python")" != "$python" ]; then
  echo "test-peers: installing $(grep -v '^#' scripts/python-peers.txt | paste -sd ' ') into $python" >&2
  rm -rf "$cache/python" "$python"
  if { python3 -m venv "$python" && "$python/bin/pip" -q --disable-pip-version-check install -r scripts/python-peers.txt; } >&2; then
    ln -s "$python" "$cache/python"
  else
    rm -rf "$python"
    echo "test-peers: these packages cannot be installed (see above); their tests are skipped" >&2
  fi
fi
bench/peers.sh --gatk-only >/dev/null || echo "test-peers: GATK cannot be installed (see above); its tests are skipped" >&2
