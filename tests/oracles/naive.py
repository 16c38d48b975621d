"""Slow, obvious versions of the core stages: the oracles of the tests.

Plain Python on strings, written from the definitions.  Nothing here imports bellapy.
"""

from __future__ import annotations

from collections import defaultdict

KNOWN = frozenset("ACGT")
COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A"}
DEAD = float("-inf")


def reverse_complement(sequence: str) -> str:
    """The other strand; letters outside ACGT become N."""
    return "".join(COMPLEMENT.get(letter, "N") for letter in reversed(sequence.upper()))


def canonical_kmers(sequence: str, k: int) -> list[tuple[int, str, int]]:
    """(position, canonical form, strand) of every k-mer; strand is +1 where the sequence shows the canonical form.

    A k-mer with a letter outside ACGT is none, and a palindrome, which has no strand, is left out.
    """
    sequence = sequence.upper()
    found = []
    for position in range(len(sequence) - k + 1):
        kmer = sequence[position : position + k]
        other = reverse_complement(kmer)
        if KNOWN.issuperset(kmer) and kmer != other:
            found.append((position, min(kmer, other), 1 if kmer < other else -1))
    return found


def kmer_places(reads: list[str], k: int) -> dict[str, list[tuple[int, int, int]]]:
    """(read, position, strand) of all occurrences of every canonical k-mer, in ascending order."""
    places = defaultdict(list)
    for read_id, sequence in enumerate(reads):
        for position, kmer, strand in canonical_kmers(sequence, k):
            places[kmer].append((read_id, position, strand))
    return dict(places)


def matrix_entries(reads: list[str], k: int, lower: int, upper: int) -> dict[str, list[tuple[int, int, int]]]:
    """The columns of A: the places of every k-mer that occurs `lower` to `upper` times."""
    return {kmer: places for kmer, places in kmer_places(reads, k).items() if lower <= len(places) <= upper}


def products(entries: dict[str, list[tuple[int, int, int]]]) -> dict[tuple[int, int, int], list[tuple[int, int]]]:
    """A·Aᵀ with query < target: (query position, target position) of all shared k-mers of (query, target, strand)."""
    found = defaultdict(list)
    for places in entries.values():
        for query, query_pos, query_strand in places:
            for target, target_pos, target_strand in places:
                if query < target:
                    found[query, target, query_strand * target_strand].append((query_pos, target_pos))
    return {candidate: sorted(shared) for candidate, shared in found.items()}


def implied_length(query_pos, target_pos, strand, query_length, target_length, seed_length) -> int:
    """Overlap of two reads that are laid over each other by one seed and run on to the first end on either side."""
    if strand < 0:
        target_pos = target_length - (target_pos + seed_length)
    left = min(query_pos, target_pos)
    right = min(query_length - (query_pos + seed_length), target_length - (target_pos + seed_length))
    return left + seed_length + right


def spaced_support(shared: list[tuple[int, int]], k: int) -> int:
    """Shared k-mers that lie at least k from the one taken before on both reads, in order of query position."""
    taken = []
    for query_pos, target_pos in sorted(shared):
        if not taken or (query_pos - taken[-1][0] >= k and abs(target_pos - taken[-1][1]) >= k):
            taken.append((query_pos, target_pos))
    return len(taken)


def _border_lives(k: int, gap: int, floor: int, xdrop: int) -> bool:
    return -gap <= xdrop if k == 1 else k * gap > floor


class Tilted:
    """Which of the best cells is the end: the one with the highest of 64 times the score less `tilt` for each base.

    It is looked at after every 64 anti-diagonals and at the end.  The extension stops after such a look if 64 times the best
    score, less `tilt` for each anti-diagonal, is more than `fall` below the highest so far; `fall` 0: never.
    """

    def __init__(self, tilt: int, fall: int):
        self.tilt, self.fall, self.highest, self.end = tilt, fall, 0, (0, 0, 0)

    def look(self, best: tuple[int, int, int]) -> None:
        score, columns, rows = best
        tilted = 64 * score - self.tilt * (columns + rows)
        if tilted > self.highest:
            self.highest, self.end = tilted, best

    def stops(self, best: tuple[int, int, int], k: int) -> bool:
        if k % 64:
            return False
        self.look(best)
        return self.fall > 0 and 64 * best[0] - self.tilt * k < self.highest - self.fall


def xdrop_best(
    query: str, target: str, match: int, mismatch: int, gap: int, xdrop: int, tilt: int = 0, fall: int = 0
) -> tuple[int, int, int]:
    """Best end of an X-drop extension from the start of both sequences: score, query bases, target bases.

    With a tilt, the end that `Tilted` chooses.

    The whole dynamic-programming table, without any window.  A cell's score comes from its three neighbours.  It is
    dead below the best score of all earlier anti-diagonals less `xdrop`; a cell of row 0 or column 0, a pure gap, dies
    already when it equals that, but on anti-diagonal 1.  A letter outside ACGT matches nothing.  The best end has the
    highest score, then the earliest anti-diagonal, then the smallest query column.
    """
    columns, rows = len(query), len(target)
    if not columns or not rows:
        return 0, 0, 0
    table = [[DEAD] * (rows + 1) for _ in range(columns + 1)]
    table[0][0] = 0
    best, tilted = (0, 0, 0), Tilted(tilt, fall)
    for k in range(1, columns + rows + 1):
        floor = best[0] - xdrop
        cells = range(max(0, k - rows), min(k, columns) + 1)
        for c in cells:
            r = k - c
            if c == 0 or r == 0:
                if _border_lives(k, gap, floor, xdrop):
                    table[c][r] = k * gap
                continue
            equal = query[c - 1] == target[r - 1] and query[c - 1] in KNOWN
            score = max(table[c - 1][r - 1] + (match if equal else mismatch), table[c - 1][r] + gap, table[c][r - 1] + gap)
            if score >= floor:
                table[c][r] = score
        for c in cells:
            if table[c][k - c] > best[0]:
                best = (table[c][k - c], c, k - c)
        if tilted.stops(best, k):
            return tilted.end
    tilted.look(best)
    return tilted.end


def xdrop_best_sparse(
    query: str, target: str, match: int, mismatch: int, gap: int, xdrop: int, tilt: int = 0, fall: int = 0
) -> tuple[int, int, int]:
    """The same as `xdrop_best` for long sequences: only live cells are held, one dictionary for an anti-diagonal."""
    columns, rows = len(query), len(target)
    if not columns or not rows:
        return 0, 0, 0
    older, old = {}, {0: 0}  # column to score
    best, k, tilted = (0, 0, 0), 0, Tilted(tilt, fall)
    while older or old:
        k += 1
        floor = best[0] - xdrop
        new = {}
        for c in sorted({c + step for c in old for step in (0, 1)} | {c + 1 for c in older}):
            r = k - c
            if c > columns or r > rows:
                continue
            if c == 0 or r == 0:
                if _border_lives(k, gap, floor, xdrop):
                    new[c] = k * gap
                continue
            equal = query[c - 1] == target[r - 1] and query[c - 1] in KNOWN
            score = max(
                older.get(c - 1, DEAD) + (match if equal else mismatch),
                max(old.get(c - 1, DEAD), old.get(c, DEAD)) + gap,
            )
            if score >= floor:
                new[c] = score
        for c, score in new.items():
            if score > best[0]:
                best = (score, c, k - c)
        if tilted.stops(best, k):
            return tilted.end
        older, old = old, new
    tilted.look(best)
    return tilted.end


def xdrop_longest(query: str, target: str, match: int, mismatch: int, gap: int, xdrop: int, *_) -> tuple[int, int, int]:
    """Where SeqAn 2.4's gapped X-drop extension ends: score, query bases, target bases.

    Written after its rule, with its windows: columns run over the query, rows over the target, d1, d2, d3 are the last
    three anti-diagonals, each a list whose slot 0 is column `offset`.  Letters outside ACGT are all N, and N equals N.
    """
    query = "".join(letter if letter in KNOWN else "N" for letter in query)
    target = "".join(letter if letter in KNOWN else "N" for letter in target)
    columns, rows = len(query) + 1, len(target) + 1
    if columns == 1 or rows == 1:
        return 0, 0, 0
    d1, d2 = [], [0]
    d3 = [DEAD, DEAD] if -gap > xdrop else [gap, gap]
    offset1 = offset2 = offset3 = 0
    min_column, max_column, k, best = 1, 2, 1, 0
    while min_column < max_column:
        k += 1
        d1, d2 = d2, d3
        offset1, offset2, offset3 = offset2, offset3, min_column - 1
        d3 = [DEAD] * (max_column + 1 - offset3)
        if k * gap > best - xdrop:
            if offset3 == 0:
                d3[0] = k * gap
            if k == max_column:
                d3[max_column - offset3] = k * gap
        highest = DEAD
        for column in range(min_column, max_column):
            row = k - column
            score = max(d2[column - offset2 - 1], d2[column - offset2]) + gap
            score = max(score, d1[column - offset1 - 1] + (match if query[column - 1] == target[row - 1] else mismatch))
            if score >= best - xdrop:
                d3[column - offset3] = score
                highest = max(highest, score)
        best = max(best, highest)
        while (
            min_column - offset3 < len(d3)
            and d3[min_column - offset3] == DEAD
            and min_column - offset2 - 1 < len(d2)
            and d2[min_column - offset2 - 1] == DEAD
        ):
            min_column += 1
        while max_column - offset3 > 0 and d3[max_column - offset3 - 1] == DEAD and d2[max_column - offset2 - 1] == DEAD:
            max_column -= 1
        max_column += 1
        min_column = max(min_column, k + 2 - rows)
        max_column = min(max_column, columns)
    column, diagonal = len(d3) + offset3 - 2, k
    score = d3[column - offset3]
    if score == DEAD and d2[-2] != DEAD:
        column, diagonal = len(d2) + offset2 - 2, k - 1
        score = d2[-2]
    elif score == DEAD and len(d2) > 2 and d2[-3] != DEAD:
        column, diagonal = len(d2) + offset2 - 3, k - 1
        score = d2[-3]
    if score == DEAD:
        for slot, value in enumerate(d1):
            if value > score:
                column, diagonal, score = slot + offset1, k - 2, value
    return (0, 0, 0) if score == DEAD else (score, column, diagonal - column)


def xdrop_steps(flanks, steps, near: int, least: int, longest: bool = False):
    """Both flanks of an anchor, extended in one or two steps: score, query bases, target bases of each, and where its first
    step ended.

    flanks : two pairs of sequences.  The second step goes on from there if both sequences have more than `near` bases left,
    and the first one found at least `least` bases on the two sides together, of the mean of query and target.
    """
    extend = xdrop_longest if longest else xdrop_best_sparse
    firsts = [extend(query, target, *steps[0]) for query, target in flanks]
    found = sum(q + t for _, q, t in firsts) / 2
    ends = []
    for (query, target), (score, q, t) in zip(flanks, firsts, strict=True):
        turn = q, t
        if len(steps) > 1 and min(len(query) - q, len(target) - t) > near and found >= least:
            more = extend(query[q:], target[t:], *steps[1])
            score, q, t = score + more[0], q + more[1], t + more[2]
        ends.append((score, q, t, turn))
    return ends


def steps_path(query: str, target: str, steps, end, turn, n_is_n: bool) -> str:
    """The path of such an extension, from its end back to the start, as `xdrop_path`."""
    (q, t), rest = turn, (end[0] - turn[0], end[1] - turn[1])
    return xdrop_path(query[q:], target[t:], steps[-1], rest, n_is_n) + xdrop_path(query, target, steps[0], turn, n_is_n)


def xdrop_path(query: str, target: str, scoring, end, n_is_n: bool) -> str:
    """The path of an X-drop extension to a live cell `end` (query bases, target bases): M, I or D for every column, from
    there back to the start.  Of the best predecessors a pair comes first, then a query base alone (I), then a target base
    alone.

    The whole table as in `xdrop_best`; with `n_is_n`, letters outside ACGT match each other.
    """
    match, mismatch, gap, xdrop = scoring[:4]
    columns, rows = len(query), len(target)
    table = {(0, 0): 0}
    steps, best = {}, 0
    for k in range(1, columns + rows + 1):
        floor, highest = best - xdrop, best
        for c in range(max(0, k - rows), min(k, columns) + 1):
            r = k - c
            if c == 0 or r == 0:
                if _border_lives(k, gap, floor, xdrop):
                    table[c, r], steps[c, r] = k * gap, "I" if c else "D"
                continue
            pair = query[c - 1] == target[r - 1] if query[c - 1] in KNOWN else n_is_n and target[r - 1] not in KNOWN
            ways = (
                (table.get((c - 1, r - 1), DEAD) + (match if pair else mismatch), "M"),
                (table.get((c - 1, r), DEAD) + gap, "I"),
                (table.get((c, r - 1), DEAD) + gap, "D"),
            )
            score, step = max(ways, key=lambda way: way[0])
            if score >= floor and score > DEAD:
                table[c, r], steps[c, r] = score, step
                highest = max(highest, score)
        best = highest
    path, (c, r) = "", end
    while (c, r) != (0, 0):
        step = steps[c, r]
        path += step
        c, r = c - (step != "D"), r - (step != "I")
    return path


def left_aligned(path: str, query: str, target: str) -> str:
    """A path, M, I or D for every column, with gaps moved left by one column as often as that is possible.

    A gap moves across a pair where the base before it equals its last base; the first column stays.
    """
    moved = True
    while moved:
        moved, at = False, 0
        places = [(0, 0)]
        for step in path:
            q, t = places[-1]
            places.append((q + (step != "D"), t + (step != "I")))
        while at < len(path):
            end = at + 1
            while end < len(path) and path[end] == path[at]:
                end += 1
            if path[at] != "M" and at > 1 and path[at - 1] == "M":
                side, bases = (0, query) if path[at] == "I" else (1, target)
                if bases[places[at][side] - 1] == bases[places[end][side] - 1]:
                    path = path[: at - 1] + path[at:end] + "M" + path[end:]
                    moved = True
                    break
            at = end
    return path


def edit_distance(query: str, target: str) -> int:
    """Levenshtein's."""
    row = list(range(len(target) + 1))
    for i, letter in enumerate(query, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(target, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (letter != other))
    return row[-1]
