#!/usr/bin/env python3
"""Finds swallowed I/O errors: `.ok()`, `.unwrap_or_default()`, `.is_ok_and(...)`, `.map_or(...)`, `.flatten()`, `if let Ok`,
`while let Ok` and `let Ok(...) = ... else` on the result of reading, examining or writing a file, and `.exists()`,
`.is_file()` and `.is_dir()` of a path.

usage: scripts/io-errors.py [--self-test]

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
MAPPED = r"(?:\s*\.(?:map|and_then)" + ARGUMENTS + ")*"
ENDS = r"(?:ok|unwrap_or_default|is_ok|is_ok_and|is_err|unwrap_or|unwrap_or_else|map_or)\(|into_iter\(\)\s*\.flatten\(\)"
READS = r"\b\w+\.(?:read|write|seek)\([^()]+\)"
SWALLOWED = re.compile(
    CALL + MAPPED + r"\s*\.(?:" + ENDS + ")"
    # A pattern that drops the error.
    + r"|\blet Ok\((?:[^()]|\([^()]*\))*\) = (?:[\w.&():]*?)(?:" + CALL + "|" + READS + ")" + MAPPED + r"\s*(?:&&|\{|else)"
    # These return false after an error. Metadata and file types have methods of the same names.
    + r"|(?<!meta)(?<!metadata)(?<!found)(?<!kind)(?<!file)(?<!type)(?<!\(\))(?<!\?)\.(?:exists|is_file|is_dir)\(\)"
)
KERNEL_FILE = re.compile(r"/proc|/sys|proc/|cgroup|kernel")
EXCUSE = "// I/O error ignored: "


def code_without_tests(path):
    """The text of a file up to its test module."""
    return re.split(r"^#\[cfg\(test\)\]", path.read_text(), maxsplit=1, flags=re.M)[0]


def swallowed(text):
    """Numbers of the lines with a swallowed error."""
    lines = text.split("\n")
    for found in SWALLOWED.finditer(text):
        first = text.count("\n", 0, found.start())
        # The statement may begin some lines before.
        around = lines[max(0, first - 2) : text.count("\n", 0, found.end()) + 1]
        if any(EXCUSE in line for line in around) or KERNEL_FILE.search(found.group(0) + lines[first]):
            continue
        yield first + 1


# Statements for the self-test: errors that are swallowed, and others.
BAD = [
    "let size = fs::metadata(path).map_or(0, |file| file.len());",
    "let size = path.metadata().map(|file| (file.dev(), file.ino())).ok();",
    "while let Ok(n @ 1..) = text.read(&mut buffer) {",
    "if let Ok(text) = fs::read_to_string(path) {",
    "let Ok(entries) = folder.read_dir() else { continue };",
    "let Ok(file) = File::open(path) else { return };",
    "if !path.exists() {",
    "paths.iter().find(|path| path.is_file())",
    "let text = fs::read(path).unwrap_or_default();",
    "for entry in fs::read_dir(path).into_iter().flatten() {",
    "File::open(path).and_then(|file| file.sync_all()).is_ok()",
]
GOOD = [
    "let size = fs::metadata(path)?.len();",
    "let size = path.metadata().map(|file| file.len()).map_err(refused)?;",
    "while let n @ 1.. = text.read(&mut buffer)? {",
    "match fs::read_to_string(path) {",
    "if !path.try_exists()? {",
    "if metadata.is_file() {",
    "if path.metadata()?.is_file() {",
    "Ok(kind) if kind.is_file() => names.push(name),",
    "let text = fs::read_to_string(\"/proc/self/stat\").unwrap_or_default();",
    "// I/O error ignored: it is reported later.\nlet size = fs::metadata(path).map_or(0, |file| file.len());",
    "let Ok(number) = text.parse::<u32>() else { continue };",
]


def self_test():
    missed = [line for line in BAD if list(swallowed(line)) != [1]]
    wrong = [line for line in GOOD if list(swallowed(line))]
    for line in missed:
        print(f"not found: {line}")
    for line in wrong:
        print(f"found, but right: {line}")
    if missed or wrong:
        sys.exit(1)


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(__file__).resolve().parent.parent
    is_test = re.compile(r"/(tests|benches|examples|target|testing)/|/tests\.rs$|/testing\.rs$|^(faults|fuzz|bench)/|/build\.rs$")
    paths = [path for path in root.rglob("*.rs") if not is_test.search("/" + str(path.relative_to(root)))]
    paths = [path for path in paths if str(path.relative_to(root)).split("/")[0] not in ("target", "faults", "fuzz", "bench")]
    places = [f"{path.relative_to(root)}:{line}" for path in sorted(paths) for line in swallowed(code_without_tests(path))]
    for place in places:
        print(f"{place}: an I/O error is swallowed; report it, or add '{EXCUSE}REASON'")
    if places:
        sys.exit(1)


if __name__ == "__main__":
    main()
