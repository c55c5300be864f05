#!/usr/bin/env python3
"""Counts the words and the sentence lengths of the user guide.

usage: scripts/guide-words.py [FOLDER]     FOLDER: docs/guide without it

How it counts:
- Words of a page are its strings between white space, in the whole file: prose, tables, headings and commands.
- Sentences are counted in prose only. Code blocks (fenced, or indented by four spaces), tables and headings are left out.
- A sentence ends at . ! ? or : before white space, at the end of a list item, and at the end of a paragraph.
- Markup is removed first: a link counts as its text, and inline code as it is written.

Prints words, sentences, the median and the 90th percentile of the sentence lengths, and the longest sentences.
Exit code 1: more than 25,000 words, a median above 16 words, or a 90th percentile above 28 words.
"""

import re
import sys
from pathlib import Path

MAX_WORDS = 25_000
MAX_MEDIAN = 16
MAX_P90 = 28
LONGEST_SHOWN = 15


def prose_blocks(text):
    """Paragraphs and list items of a page, one string each."""
    blocks, block, fenced = [], [], False

    def end():
        if block:
            blocks.append(" ".join(block))
            block.clear()

    in_item = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
            end()
            continue
        if fenced:
            continue
        stripped = line.strip()
        if not stripped:
            end()
            in_item = False
        elif line.startswith("    ") and not in_item:
            end()
        elif stripped.startswith(("|", "#", "<!--", "![")):
            end()
        elif re.match(r"([-*]|\d+\.) ", stripped):
            end()
            in_item = True
            block.append(re.sub(r"^([-*]|\d+\.) +", "", stripped))
        else:
            block.append(stripped)
    end()
    return blocks


def sentences(block):
    block = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", block)
    block = block.replace("**", "")
    parts = re.split(r"(?<=[.!?:])[)\"']?\s+", block)
    return [part for part in (p.strip() for p in parts) if re.search(r"\w", part)]


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "docs" / "guide"
    pages = sorted(folder.rglob("*.md"))
    if not pages:
        sys.exit(f"guide-words: no pages in {folder}")
    words, lengths = 0, []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        count = len(text.split())
        words += count
        own = [(len(s.split()), page.name, s) for b in prose_blocks(text) for s in sentences(b)]
        lengths += own
        print(f"{count:7} words {len(own):5} sentences  {page.name}")
    lengths.sort(reverse=True, key=lambda item: item[0])
    numbers = sorted(item[0] for item in lengths)
    median = numbers[len(numbers) // 2]
    p90 = numbers[int(len(numbers) * 0.9)]
    print(f"{words:7} words {len(numbers):5} sentences, median {median} words, 90th percentile {p90}")
    print("longest sentences:")
    for count, page, sentence in lengths[:LONGEST_SHOWN]:
        print(f"{count:5}  {page}: {sentence}")
    if words > MAX_WORDS or median > MAX_MEDIAN or p90 > MAX_P90:
        print("guide-words: above the limits (25,000 words, median 16, 90th percentile 28)", file=sys.stderr)
        sys.exit(1)


main()
