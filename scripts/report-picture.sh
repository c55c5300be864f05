#!/usr/bin/env bash
# Draws the picture of a report for the documentation: docs/guide/report.png of the tutorial's call, or any report.
#
# usage: scripts/report-picture.sh                    calls as docs/guide/tutorial.md does, and draws docs/guide/report.png
#        scripts/report-picture.sh REPORT.html PNG    draws this report
# GENUMA: the program, target/release/genuma unless given. Wants Chromium.
set -euo pipefail
if [ $# -ne 0 ] && [ $# -ne 2 ]; then
  echo "usage: scripts/report-picture.sh [REPORT.html PNG]" >&2
  exit 2
fi
root=$(cd "$(dirname "$0")/.." && pwd)
if ! command -v chromium >/dev/null; then
  echo "report-picture: chromium is not installed (apt-get install chromium)" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ $# -eq 2 ]; then
  report=$(realpath "$1") picture=$2
else
  genuma=$(realpath "${GENUMA:-$root/target/release/genuma}")
  report=$work/calls/report.html picture=$root/docs/guide/report.png
  cp -r "$root/docs/tutorial/changes" "$work"
  # As in the tutorial, whose command the page shows.
  (cd "$work" && "$genuma" -q call --tumor changes/tumor_1.fq.gz changes/tumor_2.fq.gz \
    --normal changes/normal_1.fq.gz changes/normal_2.fq.gz --reference changes/ref.fa -o calls)
fi
# The first call is opened, so that the picture shows its reads. Its link must not scroll the page.
sed 's|</body>|<script>document.querySelector("tr.call:not(.filtered)").click(); history.replaceState(null, "", "#")</script></body>|' "$report" >"$work/opened.html"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" --window-size=1400,1500 \
  --virtual-time-budget=10000 --screenshot="$work/report.png" "file://$work/opened.html" >"$work/log" 2>&1 || {
  cat "$work/log" >&2
  exit 1
}
mv "$work/report.png" "$picture"
echo "report-picture: $picture" >&2
