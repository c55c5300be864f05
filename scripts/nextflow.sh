#!/usr/bin/env bash
# Runs Nextflow without plugins, fetching it at the first call: scripts/nextflow.sh run workflow/main.nf ...
#
# Nextflow and its libraries come from Maven Central (40 MB, once) into ~/.cache/genuma, or into the folder that GENUMA_CACHE
# names. For local runs and Slurm; AWS Batch needs a plugin, hence an installed Nextflow (docs/guide/cluster.md).
#
# usage: scripts/nextflow.sh --fetch | ARGUMENTS OF NEXTFLOW
set -euo pipefail
pom=$(cd "$(dirname "$0")" && pwd)/nextflow/pom.xml
cache=${GENUMA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/genuma}
version=$(sed -n 's/.*<nextflow.version>\(.*\)<.*/\1/p' "$pom")
# Named after the pom too: another list of libraries is another folder.
home=$cache/nextflow-$version-$(sha256sum "$pom" | cut -c1-8)

if ! command -v java >/dev/null; then
  echo "nextflow: java is not installed (apt-get install openjdk-17-jre-headless)" >&2
  exit 1
fi
if [ ! -d "$home" ]; then
  if ! command -v mvn >/dev/null; then
    echo "nextflow: mvn is not installed, which fetches Nextflow (apt-get install maven)" >&2
    exit 1
  fi
  mkdir -p "$cache"
  new=$(mktemp -d "$cache/nextflow-new.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  if ! mvn -B -ntp -q -f "$pom" dependency:copy-dependencies -DoutputDirectory="$new/lib" >"$new/log" 2>&1; then
    echo "nextflow: Maven could not fetch Nextflow $version: $(grep -m 1 ERROR "$new/log" | cut -c1-300)" >&2
    exit 1
  fi
  rm "$new/log"
  # Whoever else fetched it meanwhile has the same.
  mv -T "$new" "$home" 2>/dev/null || [ -d "$home" ]
fi
if [ "${1:-}" = --fetch ]; then
  echo "$home"
  exit
fi

# Neither plugins nor a newer version are looked for.
export NXF_OFFLINE=true NXF_PLUGINS_DEFAULT=false NXF_DISABLE_CHECK_LATEST=true NXF_HOME="${NXF_HOME:-$cache/nextflow-home}"
opens=()
for package in java.io java.lang java.net java.nio java.util java.util.concurrent.atomic java.util.concurrent.locks java.util.regex \
  jdk.internal.misc jdk.internal.vm sun.net.www.protocol.file sun.net.www.protocol.ftp sun.net.www.protocol.http \
  sun.net.www.protocol.https sun.nio.ch sun.nio.fs; do
  opens+=("--add-opens=java.base/$package=ALL-UNNAMED")
done
exec java "${opens[@]}" -XX:TieredStopAtLevel=1 -cp "$home/lib/*" nextflow.cli.Launcher "$@"
