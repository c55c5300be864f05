#!/usr/bin/env bash
# Makes a book of docs/ with MkDocs of PyPI, in target/book. Links to missing pages and anchors are errors; links to files outside docs/ are
# not checked here.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdocs=1.6.1 material=9.6.14
tools=target/mkdocs-$mkdocs-$material
if [ ! -x "$tools/bin/mkdocs" ]; then
  python3 -m venv "$tools"
  "$tools/bin/pip" -q install "mkdocs==$mkdocs" "mkdocs-material==$material"
fi
# --strict would refuse links to files outside docs/ (README.md, bench/results/), and --quiet would hide the warnings.
log=$("$tools/bin/mkdocs" build 2>&1) || { echo "$log" >&2; exit 1; }
if grep -E '^(WARNING|ERROR)' <<<"$log" | grep -vE "but the target '\.\./|link '\.\./[^']*', but the target is not found" >&2; then
  echo "docs: links to missing pages or anchors" >&2
  exit 1
fi
echo "target/book/index.html" >&2
