#!/usr/bin/env bash
# Checks names, comments, messages and documentation against scripts/plain-language.tsv. Prints each hit with what to write instead.
#
# usage: scripts/plain-language.sh [FILE ...]     FILE: check these only (all files under version control)
set -euo pipefail
cd "$(dirname "$0")/.."
list=scripts/plain-language.tsv

if [ $# -gt 0 ]; then
  files=("$@")
else
  mapfile -t files < <(git ls-files '*.rs' '*.md' 'cli/tests/help/*.txt' | grep -v -e '^fuzz/' -e '^CHANGELOG.md$')
fi
mapfile -t rust < <(printf '%s\n' "${files[@]}" | grep '\.rs$' || true)

hits=0
# report ADVICE: prints the lines on standard input with the advice.
report() {
  local line
  while IFS= read -r line; do
    echo "$line  [write: $1]" >&2
    hits=$((hits + 1))
  done
}
while IFS=$'\t' read -r where pattern advice; do
  case $where in
    '#'* | '') ;;
    prose) report "$advice" < <(grep -HniE -- "$pattern" "${files[@]}" || true) ;;
    item)
      [ ${#rust[@]} -eq 0 ] ||
        report "$advice" < <(grep -HnE -- "^[[:space:]]*pub(\([a-z]+\))? ((const|unsafe|async) )*(fn|struct|enum|trait|type|const|static|mod) $pattern\b" "${rust[@]}" || true)
      ;;
    *)
      echo "plain-language: $list: no kind '$where'" >&2
      exit 2
      ;;
  esac
done <"$list"

if [ "$hits" -gt 0 ]; then
  echo "plain-language: $hits hits; the rules are in $list" >&2
  exit 1
fi
