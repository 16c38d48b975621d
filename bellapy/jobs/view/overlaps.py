"""A read's overlaps, as text for a terminal or as a picture."""

from __future__ import annotations

from bellapy.io.outputs import ending_of, whole_files
from bellapy.jobs.view.lines import Mate
from bellapy.report.pictures import BELOW, load_drawing, new_figure, short_name

NAME_SHARE = 3  # of the width, one part in so many is for names
MOST_IN_PICTURE = 400
TAIL = 0.06  # of the read's length, drawn where another read goes on beyond


def goes_on(mate: Mate) -> tuple[bool, bool]:
    """Whether the other read has bases beyond the overlap, before and after it as the read looked at runs."""
    before, after = mate.other_start > 0, mate.other_end < mate.length
    return (before, after) if mate.strand > 0 else (after, before)


def overlaps_text(name: str, length: int, mates: list[Mate], width: int) -> str:
    """A line for the read and one for each overlap: > on the same strand, < on the other; - where the other goes on."""
    room = max(20, width - width // NAME_SHARE - 12)
    label = max(8, width - room - 10)
    scale = room / max(length, 1)
    rows = [f"{_cut(name, label):{label}} {'=' * room} {length:,}"]
    for mate in mates:
        first = min(int(mate.start * scale), room - 1)
        size = max(1, round((mate.end - mate.start) * scale))
        before, after = goes_on(mate)
        bar = ("-" if before and first else " ").rjust(first) if first else ""
        bar += (">" if mate.strand > 0 else "<") * min(size, room - first)
        bar += "-" if after and len(bar) < room else ""
        rows.append(f"{_cut(mate.name, label):{label}} {bar:{room}} {mate.identity:.1%}")
    return "\n".join([*rows, f"{len(mates):,} overlaps", ""])


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + "~"


def draw_overlaps(path: str, name: str, length: int, mates: list[Mate]) -> None:
    """The same as a picture; of more than MOST_IN_PICTURE overlaps the longest."""
    longest = sorted(mates, key=lambda mate: mate.start - mate.end)[:MOST_IN_PICTURE]
    shown = [mate for mate in mates if mate in set(longest)]
    figure, line = new_figure((9, 1.8 + 0.09 * max(len(shown), 10)), 130), load_drawing().lines.Line2D
    axes, tail = figure.add_subplot(), TAIL * length
    axes.plot([0, length], [0, 0], color="#1a1a1a", linewidth=4, solid_capstyle="butt")
    for row, mate in enumerate(shown, 1):
        colour = "#4f86b8" if mate.strand > 0 else "#b3400f"
        axes.plot([mate.start, mate.end], [-row, -row], color=colour, linewidth=3, solid_capstyle="butt")
        before, after = goes_on(mate)
        for beyond, at, way in ((before, mate.start, -tail), (after, mate.end, tail)):
            if beyond:
                axes.plot([at, at + way], [-row, -row], color=colour, linewidth=0.7)
    axes.set_yticks([])
    axes.set_xlabel("place in the read (bases)")
    axes.set_title(
        f"{short_name(name)}: {len(mates):,} overlaps" + (f", the longest {len(shown)}" if len(shown) < len(mates) else ""),
        fontsize=9,
    )
    handles = [line([], [], color=colour, linewidth=3) for colour in ("#4f86b8", "#b3400f")]
    handles.append(line([], [], color="#777777", linewidth=0.7))
    figure.legend(handles, ["same strand", "other strand", "the other read goes on"], fontsize=7, **BELOW)
    axes.spines[["top", "right", "left"]].set_visible(False)
    with whole_files(path) as (written,):
        figure.savefig(written, format=ending_of(path))
