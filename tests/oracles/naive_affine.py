"""The table of two-piece affine alignment, written from its definition, cell by cell; nothing here imports bellapy."""

from __future__ import annotations

LOWEST = float("-inf")


def gap_cost(n: int, costs: tuple[int, int, int, int]) -> int:
    """costs : open1, extend1, open2, extend2."""
    return min(costs[0] + n * costs[1], costs[2] + n * costs[3]) if n else 0


def pair_score(a: str, b: str, match: int, mismatch: int, unknown: int) -> int:
    if a not in "ACGT" or b not in "ACGT":
        return unknown
    return match if a == b else mismatch


def table(query: str, target: str, match: int, mismatch: int, unknown: int, costs, band=(-1e9, 1e9)) -> list[list[float]]:
    """H(i, j): the best score of a path from (0, 0) within a band of diagonals j - i; every gap of every length is tried."""
    h = [[LOWEST] * (len(target) + 1) for _ in range(len(query) + 1)]
    h[0][0] = 0
    for i in range(len(query) + 1):
        for j in range(len(target) + 1):
            if not band[0] <= j - i <= band[1]:
                continue
            ways = [h[i][j]]
            if i and j:
                ways.append(h[i - 1][j - 1] + pair_score(query[i - 1], target[j - 1], match, mismatch, unknown))
            ways += [h[i - n][j] - gap_cost(n, costs) for n in range(1, i + 1)]
            ways += [h[i][j - n] - gap_cost(n, costs) for n in range(1, j + 1)]
            h[i][j] = max(ways)
    return h


def extension(h: list[list[float]], zdrop: float = float("inf")) -> tuple[int, int, int]:
    """Score, i, j of the best cell, the first by i + j and then by i; anti-diagonals after a drop are not looked at."""
    best, before = (0, 0, 0), 0
    rows, columns = len(h), len(h[0])
    for r in range(rows + columns - 1):
        cells = [(h[i][r - i], i, r - i) for i in range(max(0, r - columns + 1), min(rows - 1, r) + 1)]
        highest = max(cell[0] for cell in cells)
        if highest > best[0]:
            best = next(cell for cell in cells if cell[0] == highest)
        if best[0] - max(highest, before) > zdrop:
            break
        before = highest
    return best


def path_score(query: str, target: str, runs, match: int, mismatch: int, unknown: int, costs) -> tuple[int, int, int]:
    """Score, query and target bases of a path: runs of (operation M, I or D, length), neighbours different."""
    score = i = j = 0
    last = None
    for operation, size in runs:
        assert operation != last and size > 0
        last = operation
        if operation == "M":
            score += sum(pair_score(query[i + x], target[j + x], match, mismatch, unknown) for x in range(size))
        else:
            score -= gap_cost(size, costs)
        i, j = i + size * (operation != "D"), j + size * (operation != "I")
    return score, i, j


def path(query: str, target: str, h: list[list[float]], match: int, mismatch: int, unknown: int, costs, i: int, j: int):
    """Runs of the path to cell (i, j): a pair where it explains the score, else the shortest gap, of two the target's."""
    runs: list[tuple[str, int]] = []
    while i or j:
        if i and j and h[i][j] == h[i - 1][j - 1] + pair_score(query[i - 1], target[j - 1], match, mismatch, unknown):
            step = ("M", 1)
        else:
            gaps = [(n, "D") for n in range(1, j + 1) if h[i][j] == h[i][j - n] - gap_cost(n, costs)]
            gaps += [(n, "I") for n in range(1, i + 1) if h[i][j] == h[i - n][j] - gap_cost(n, costs)]
            step = min(gaps)[::-1]
        operation, size = step
        i, j = i - size * (operation != "D"), j - size * (operation != "I")
        if runs and runs[-1][0] == operation:
            size += runs.pop()[1]
        runs.append((operation, size))
    return runs[::-1]


def band(query: str, target: str, rows: int, mode_is_global: bool = True) -> tuple[int, int]:
    """The lowest and the highest diagonal of a band of so many rows around the corners."""
    lowest = -2 * (rows // 2)
    if mode_is_global:
        lowest += 2 * ((len(target) - len(query)) // 4)
    return lowest, lowest + 2 * rows - 1
