#!/usr/bin/env bash
# Sets up the peers that genuma is measured against, and prints their versions.
#
# bwa, samtools, bcftools and Delly are Debian's; GATK and its libraries come from Maven Central (253 MB, once) into
# ~/.cache/genuma, or into the folder that GENUMA_CACHE names.
#
# usage: bench/peers.sh [--gatk-only]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pom=$here/peers/pom.xml
cache=${GENUMA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/genuma}

if [ "${1:-}" = --gatk-only ]; then
  "$here/../scripts/setup.sh" test
else
  "$here/../scripts/setup.sh" bench
fi

version=$(sed -n 's/.*<gatk.version>\(.*\)<.*/\1/p' "$pom")
# Named after the pom too: another list of libraries is another folder.
gatk=$cache/gatk-$version-$(sha256sum "$pom" | cut -c1-8)
if [ ! -d "$gatk" ]; then
  echo "peers: fetching GATK $version into $gatk" >&2
  mkdir -p "$cache"
  new=$(mktemp -d "$cache/gatk-new.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  if ! mvn -B -ntp -q -f "$pom" dependency:copy-dependencies -DoutputDirectory="$new" >&2; then
    echo "peers: Maven could not fetch GATK $version: see its message above" >&2
    exit 1
  fi
  mv -T "$new" "$gatk"
fi
if [ "${1:-}" = --gatk-only ]; then
  echo "$gatk"
  exit
fi

# Each of these prints its version its own way; bwa fails while it does.
{
  bwa 2>&1 || true
} | sed -n 's/^Version: /bwa /p'
samtools --version | sed -n 1p
bcftools --version | sed -n 1p
delly --version 2>&1 | sed -n 's/^Delly version: v/delly /p'
"$here/../scripts/gatk.sh" --version 2>/dev/null | sed -n 's/^The Genome Analysis Toolkit (GATK) v/GATK /p'
