"""String graphs by their definitions: transitive arcs, bubbles, unitigs.  A graph is a dictionary of lengths by arc."""

from __future__ import annotations

from itertools import product

Arc = tuple[int, int]


def transitive(lengths: dict[Arc, int], fuzz: int) -> set[Arc]:
    """Arcs beside which two others lead to the same place, over as many bases, but for `fuzz`."""
    vertices = {v for arc in lengths for v in arc}
    return {
        (v, w)
        for (v, w), length in lengths.items()
        if any(
            (v, x) in lengths and (x, w) in lengths and abs(lengths[v, x] + lengths[x, w] - length) <= fuzz for x in vertices
        )
    }


def reduced(lengths: dict[Arc, int], fuzz: int) -> dict[Arc, int]:
    """What is left when transitive arcs, and the complements of these, have been taken away until there is none."""
    left = dict(lengths)
    while gone := transitive(left, fuzz):
        left = {arc: n for arc, n in left.items() if arc not in gone and (arc[1] ^ 1, arc[0] ^ 1) not in gone}
    return left


def ways(arcs: set[Arc], source: int, target: int) -> list[list[int]]:
    """All paths from one vertex to another that visit none twice."""
    found, open_ = [], [[source]]
    while open_:
        path = open_.pop()
        if path[-1] == target and len(path) > 1:
            found.append(path)
            continue
        open_ += [[*path, w] for v, w in arcs if v == path[-1] and w not in path]
    return found


def is_bubble(arcs: set[Arc], source: int, sink: int) -> set[int] | None:
    """The inner vertices, if all ways from the source come together in the sink first, and nothing else comes in or out.

    Onodera's definition, for small graphs; None: it is none.
    """
    if source == sink or (source, sink) not in closure(arcs):
        return None
    inner = {v for path in ways(arcs, source, sink) for v in path} - {source, sink}
    after = {w for v, w in arcs if v in inner | {source}}
    before = {v for v, w in arcs if w in inner | {sink}}
    if not (after <= inner | {sink} and before <= inner | {source}):
        return None
    inside = closure({(v, w) for v, w in arcs if v in inner | {source} and w in inner | {sink}})
    return None if any((v, v) in inside for v in inner) else inner


def closure(arcs: set[Arc]) -> set[Arc]:
    """All pairs of vertices with a path from one to the other."""
    found = set(arcs)
    while more := {(a, d) for (a, b), (c, d) in product(found, found) if b == c} - found:
        found |= more
    return found


def unitigs(arcs: set[Arc], n_reads: int) -> set[tuple[frozenset[int], bool]]:
    """Reads of every unitig, and whether it is a circle."""
    single = {
        (v, w) for v, w in arcs if sum(a == v for a, _ in arcs) == 1 and sum(b == w for _, b in arcs) == 1
    }  # fmt: skip
    groups = {v: {v} for v in range(2 * n_reads)}
    for v, w in single:
        together = groups[v] | groups[w]
        for x in together:
            groups[x] = together
    return {
        (frozenset(v >> 1 for v in group), sum(v in group for v, _ in single) == len(group))
        for group in map(frozenset, groups.values())
    }
