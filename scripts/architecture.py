#!/usr/bin/env python3
"""Draws docs/architecture.svg: the crates of the workspace and their dependencies, from the Cargo.toml files.

An arrow points from a crate to a crate that it depends on. Dependencies that follow from others are left out: if A depends on B and B on C,
there is no arrow from A to C. Dependencies for tests and builds only are left out too.

usage: scripts/architecture.py [--check]
  --check   changes nothing, exits with 1 if the picture differs from the crates
"""

import pathlib
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/architecture.svg"
BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y, MARGIN, TITLE_HEIGHT = 104, 40, 18, 56, 20, 44
# Fill and outline in light and in dark pages, by the first folder of a crate.
COLOURS = {
    "genomics": ("reads, k-mers, alignment, mutations", "#e3f0e6", "#3d7a4e", "#1d3325", "#7cc492"),
    "hardware": ("memory, CPUs, disks and devices", "#e4ecf7", "#3a63a0", "#1c2a40", "#86aee6"),
    "other": ("runs, plans, reports", "#f5eddc", "#93702a", "#362c17", "#d9b566"),
}


def read_crates():
    """Folder and direct dependencies of each crate, by its name without `genuma-`."""
    members = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["members"]
    manifests = {folder: tomllib.loads((ROOT / folder / "Cargo.toml").read_text()) for folder in members}
    short = {manifest["package"]["name"]: manifest["package"]["name"].removeprefix("genuma-") for manifest in manifests.values()}
    return {
        short[manifest["package"]["name"]]: (folder, {short[name] for name in manifest.get("dependencies", {}) if name in short})
        for folder, manifest in manifests.items()
    }


def without_implied(direct):
    """The dependencies that do not follow from others."""

    def reachable(crate):
        return direct[crate].union(*(reachable(other) for other in direct[crate])) if direct[crate] else set()

    return {crate: of - set().union(*(reachable(other) for other in of)) for crate, of in direct.items()}


def arrange(direct):
    """Rows of crates, those without dependencies in the last one, and the points of each arrow. A crate is in the lowest row above all that it
    depends on. An arrow that crosses rows has a place of its own in each of them, so that it does not cross boxes."""
    row_of = {}

    def find_row(crate):
        if crate not in row_of:
            row_of[crate] = 1 + max((find_row(other) for other in direct[crate]), default=-1)
        return row_of[crate]

    num_rows = 1 + max(find_row(crate) for crate in direct)
    rows = [sorted(crate for crate in direct if row_of[crate] == row) for row in range(num_rows)]
    below = {crate: [] for crate in direct}
    arrows = {}
    for crate in sorted(direct):
        for other in sorted(direct[crate]):
            places = [(crate, other, row) for row in range(row_of[crate] - 1, row_of[other], -1)]
            for place in places:
                rows[place[2]].append(place)
            arrows[crate, other] = path = [crate, *places, other]
            for upper, lower in zip(path, path[1:]):
                below.setdefault(upper, []).append(lower)
    above = {}
    for upper, lowers in below.items():
        for lower in lowers:
            above.setdefault(lower, []).append(upper)
    # Each place moves to the mean of its neighbours, in rows from below and from above in turn.
    for sweep in range(24):
        neighbours, order = (below, range(1, num_rows)) if sweep % 2 == 0 else (above, range(num_rows - 2, -1, -1))
        position = {place: index / max(1, len(row) - 1) for row in rows for index, place in enumerate(row)}
        for number in order:
            row = rows[number]

            def mean(place, position=position, neighbours=neighbours):
                near = [position[other] for other in neighbours.get(place, [])]
                return sum(near) / len(near) if near else position[place]

            row.sort(key=lambda place: (mean(place), str(place)))
            position.update({place: index / max(1, len(row) - 1) for index, place in enumerate(row)})
    return rows[::-1], arrows


def draw():
    """The picture as SVG text."""
    crates = read_crates()
    rows, arrows = arrange(without_implied({crate: of for crate, (_, of) in crates.items()}))
    is_crate = lambda place: isinstance(place, str)
    width_of = lambda place: BOX_WIDTH if is_crate(place) else GAP_X
    row_width = lambda row: sum(width_of(place) + GAP_X for place in row) - GAP_X
    labels = {name: meaning if name == "other" else f"{name}: {meaning}" for name, (meaning, *_) in COLOURS.items()}
    legend_width = {name: 48 + 6.5 * len(label) for name, label in labels.items()}
    width = 2 * MARGIN + max(*map(row_width, rows), sum(legend_width.values()))
    centre = {}
    for number, row in enumerate(rows):
        x, free = MARGIN, width - 2 * MARGIN - row_width(row)
        for place in row:
            x += free / (len(row) + 1)
            centre[place] = (x + width_of(place) / 2, MARGIN + TITLE_HEIGHT + number * (BOX_HEIGHT + GAP_Y) + BOX_HEIGHT / 2)
            x += width_of(place) + GAP_X
    height = MARGIN * 2 + TITLE_HEIGHT + len(rows) * (BOX_HEIGHT + GAP_Y) - GAP_Y
    light = "".join(f".{name}{{fill:{fill};stroke:{line}}}" for name, (_, fill, line, _, _) in COLOURS.items())
    dark = "".join(f".{name}{{fill:{fill};stroke:{line}}}" for name, (_, _, _, fill, line) in COLOURS.items())
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="Crates of genuma and their dependencies" '
        'font-family="sans-serif" font-size="13">',
        "<style>.page{fill:#fff}text{fill:#1c1c1c;text-anchor:middle}.key{text-anchor:start}.arrow{fill:none;stroke:#8a8a8a}.head{fill:#8a8a8a}"
        f"{light}@media(prefers-color-scheme:dark){{.page{{fill:#151515}}text{{fill:#eee}}{dark}}}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="head" d="M0 0L8 4L0 8z"/>'
        "</marker></defs>",
        '<rect class="page" width="100%" height="100%"/>',
    ]
    x = MARGIN
    for name, label in labels.items():
        out.append(f'<rect class="{name}" x="{x:.0f}" y="{MARGIN}" width="16" height="16" rx="3"/><text class="key" x="{x + 24:.0f}" y="{MARGIN + 13}">{label}</text>')
        x += legend_width[name]
    for _, path in sorted(arrows.items()):
        (x, y), *rest = [centre[place] for place in path]
        y += BOX_HEIGHT / 2
        line = f"M{x:.0f} {y:.0f}"
        for number, (to_x, to_y) in enumerate(rest):
            is_last = number == len(rest) - 1
            top = to_y - BOX_HEIGHT / 2
            line += f"C{x:.0f} {(y + top) / 2:.0f} {to_x:.0f} {(y + top) / 2:.0f} {to_x:.0f} {top:.0f}"
            if not is_last:
                line += f"V{to_y + BOX_HEIGHT / 2:.0f}"
            x, y = to_x, to_y + BOX_HEIGHT / 2
        out.append(f'<path class="arrow" d="{line}" marker-end="url(#head)"/>')
    for crate, (folder, _) in sorted(crates.items()):
        x, y = centre[crate]
        group = folder.split("/")[0]
        group = group if group in COLOURS else "other"
        label = "genuma (cli)" if crate == "genuma" else crate
        out.append(
            f'<g><title>{folder}</title><rect class="{group}" x="{x - BOX_WIDTH / 2:.0f}" y="{y - BOX_HEIGHT / 2:.0f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" '
            f'rx="6"/><text x="{x:.0f}" y="{y + 5:.0f}">{label}</text></g>'
        )
    return "\n".join(out) + "\n</svg>\n"


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    picture = draw()
    if not sys.argv[1:]:
        PICTURE.write_text(picture)
    elif not PICTURE.is_file() or PICTURE.read_text() != picture:
        sys.exit("docs/architecture.svg differs from the crates: run scripts/architecture.py")


if __name__ == "__main__":
    main()
