#!/usr/bin/env bash
# Writes SHA256SUMS of the files in a folder, and signs it if GENUMA_SIGNING_KEY names a key of gpg: SHA256SUMS.asc.
#
# usage: scripts/dist/sums.sh FOLDER
set -euo pipefail
if [ $# -ne 1 ] || [ ! -d "$1" ]; then
  echo "usage: scripts/dist/sums.sh FOLDER" >&2
  exit 2
fi
cd "$1"

rm -f SHA256SUMS SHA256SUMS.asc
find . -maxdepth 1 -type f ! -name 'SHA256SUMS*' ! -name '.*' -printf '%P\0' | LC_ALL=C sort -z | xargs -0 -r sha256sum >.sums
mv .sums SHA256SUMS
cat SHA256SUMS
if [ -n "${GENUMA_SIGNING_KEY-}" ]; then
  gpg --batch --yes --armor --local-user "$GENUMA_SIGNING_KEY" --detach-sign --output SHA256SUMS.asc SHA256SUMS
  echo "dist: SHA256SUMS.asc: signed by $GENUMA_SIGNING_KEY" >&2
else
  echo "dist: SHA256SUMS is not signed: GENUMA_SIGNING_KEY names no key of gpg" >&2
fi
