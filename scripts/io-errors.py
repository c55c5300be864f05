#!/usr/bin/env python3
"""Finds swallowed I/O errors: `.ok()`, `.unwrap_or_default()`, `.is_ok_and(...)`, `.flatten()` on the result of reading,
examining or writing a file.

An error of a read must end the run or be reported, or the result is silently another. Files below /proc and /sys may be
absent or forbidden anywhere and are exempt. Elsewhere a comment `// I/O error ignored: REASON` on the line before, or on
the line itself, says why the error does not matter. Code of tests is not examined.
"""

import pathlib
import re
import sys

ARGUMENTS = r"\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\)"
CALL = (
    r"(?:\bfs::\w+|\bFile::(?:open|create)|\.(?:metadata|symlink_metadata|read_dir|read_link|read_to_end|read_to_string"
    r"|read_line|read_exact|read_until|read_at|sync_all|sync_data|set_len|fill_buf|canonicalize|try_exists))" + ARGUMENTS
)
SWALLOWED = re.compile(CALL + r"\s*\.(?:ok\(\)|unwrap_or_default\(\)|is_ok_and\(|unwrap_or\(|into_iter\(\)\s*\.flatten\(\))")
KERNEL_FILE = re.compile(r"/proc|/sys|proc/|cgroup|kernel")
EXCUSE = "// I/O error ignored: "


def code_without_tests(path):
    """The text of a file up to its test module."""
    return re.split(r"^#\[cfg\(test\)\]", path.read_text(), maxsplit=1, flags=re.M)[0]


def swallowed(path):
    """Numbers of the lines with a swallowed error."""
    text = code_without_tests(path)
    lines = text.split("\n")
    for found in SWALLOWED.finditer(text):
        first = text.count("\n", 0, found.start())
        # The statement may begin some lines before.
        around = lines[max(0, first - 2) : text.count("\n", 0, found.end()) + 1]
        if any(EXCUSE in line for line in around) or KERNEL_FILE.search(found.group(0)):
            continue
        yield first + 1


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    is_test = re.compile(r"/(tests|benches|examples|target|testing)/|/tests\.rs$|/testing\.rs$|^(faults|fuzz|bench)/|/build\.rs$")
    paths = [path for path in root.rglob("*.rs") if not is_test.search("/" + str(path.relative_to(root)))]
    paths = [path for path in paths if str(path.relative_to(root)).split("/")[0] not in ("target", "faults", "fuzz", "bench")]
    places = [f"{path.relative_to(root)}:{line}" for path in sorted(paths) for line in swallowed(path)]
    for place in places:
        print(f"{place}: an I/O error is swallowed; report it, or add '{EXCUSE}REASON'")
    if places:
        sys.exit(1)


if __name__ == "__main__":
    main()
