#!/bin/sh
# Lists the Rust files of more than 600 lines; a file that long holds several concerns. Exits
# with 1 if there are any.
# Usage: scripts/file-lengths.sh
cd "$(dirname "$0")/.." || exit 2
git ls-files '*.rs' | xargs wc -l | awk '$2 != "total" && $1 > 600 { print $2 ": " $1 " lines"; n++ } END { exit n > 0 }'
