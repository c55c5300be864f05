#!/usr/bin/env bash
# Makes a book of docs/ with MkDocs of PyPI, in target/book; links that lead nowhere are errors.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdocs=1.6.1 material=9.6.14
tools=target/mkdocs-$mkdocs-$material
if [ ! -x "$tools/bin/mkdocs" ]; then
  python3 -m venv "$tools"
  "$tools/bin/pip" -q install "mkdocs==$mkdocs" "mkdocs-material==$material"
fi
"$tools/bin/mkdocs" build --strict --quiet
echo "target/book/tutorial.html" >&2
