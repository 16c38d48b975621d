"""Whole-genome alignment from its definitions, slow and plain."""

from __future__ import annotations

import numpy as np

LOWEST = -(10**15)
PAIR, QUERY_ALONE, TARGET_ALONE = range(3)


def ydrop(query, target, scores, drop: int, dead: set = frozenset()):
    """Score, end (i, j) and path (operations from the end back) of an extension; dead : cells that no path may use."""
    matrix, opened, extended = scores
    h, e, f = {(0, 0): 0}, {(0, 0): -opened - extended}, {(0, 0): -opened - extended}
    came, best, end, r, lived = {}, 0, (0, 0), 0, [False, True]
    while any(lived):
        r += 1
        highest, where = LOWEST, None
        for i in range(max(0, r - len(target)), min(len(query), r) + 1):
            j = r - i
            pair = h.get((i - 1, j - 1), LOWEST) + (int(matrix[target[j - 1], query[i - 1]]) if i and j else 0)
            a, b = e.get((i, j - 1), LOWEST), f.get((i - 1, j), LOWEST)
            score = max(pair, a, b)
            if score < best - drop or score < LOWEST // 2 or (i, j) in dead:
                continue
            way = PAIR if score == pair else TARGET_ALONE if score == a else QUERY_ALONE
            new = score - opened - extended
            came[i, j] = way, a - extended >= new, b - extended >= new
            h[i, j], e[i, j], f[i, j] = score, max(new, a - extended), max(new, b - extended)
            if score > highest:
                highest, where = score, (i, j)
        lived = [lived[1], where is not None]
        if highest > best:
            best, end = highest, where
    return best, end, _back(came, end)


def _back(came, end) -> list[int]:
    (i, j), path, gap = end, [], PAIR
    while (i, j) != (0, 0):
        way, e_extends, f_extends = came[i, j]
        if (gap == TARGET_ALONE and not e_extends) or (gap == QUERY_ALONE and not f_extends):
            gap = PAIR
        gap = way if gap == PAIR else gap
        path.append(gap)
        i -= gap != TARGET_ALONE
        j -= gap != QUERY_ALONE
    return path


def cells_of_path(q: int, t: int, runs) -> set[tuple[int, int]]:
    """Query and target base of every cell that a path passes through; a base alone stays at the other side's last base."""
    cells = set()
    for operation, size in runs:
        for _ in range(size):
            cells.add((q - (operation == TARGET_ALONE), t - (operation == QUERY_ALONE)))
            q += operation != TARGET_ALONE
            t += operation != QUERY_ALONE
    return cells


def seed_hits(target, query, masks, shape: str, transition: bool) -> set[tuple[int, int]]:
    """Places of windows that agree where the pattern has ones, but for one transition."""
    ones = [x for x, one in enumerate(shape) if one == "1"]

    def windows(codes, masked):
        for at in range(len(codes) - len(shape) + 1):
            if (codes[at : at + len(shape)] < 4).all() and not masked[at : at + len(shape)].any():
                yield at, [int(codes[at + x]) for x in ones]

    hits = set()
    others = list(windows(query, masks[1]))
    for t, a in windows(target, masks[0]):
        for q, b in others:
            differ = [x ^ y for x, y in zip(a, b, strict=True) if x != y]
            if not differ or (transition and differ == [2]):
                hits.add((t, q))
    return hits


def diagonal(target, query, pairs, matrix, xdrop: int) -> tuple[int, int, int]:
    """Length and score of the best beginning of some pairs of places, and how many were looked at."""
    best = run = length = n = 0
    for n, (t, q) in enumerate(pairs, 1):
        run += int(matrix[target[t], query[q]])
        if run > best:
            best, length = run, n
        if run < best - xdrop:
            break
    return length, best, n


def path_score(target, query, t: int, q: int, runs, scores) -> int:
    """The score of a path, counted from its columns."""
    matrix, opened, extended = scores
    total = 0
    for operation, size in runs:
        if operation == PAIR:
            total += int(matrix[target[t : t + size], query[q : q + size]].sum())
        else:
            total -= opened + extended * size
        t += size if operation != QUERY_ALONE else 0
        q += size if operation != TARGET_ALONE else 0
    return total


def levels(target, query, t: int, q: int, runs, scores, forgiven: int) -> np.ndarray:
    """The score behind every pair and every gap of a path, with gaps of more than `forgiven` bases counted as so long."""
    matrix, opened, extended = scores
    total, out = 0, []
    for operation, size in runs:
        if operation == PAIR:
            out += (total + np.cumsum(matrix[target[t : t + size], query[q : q + size]])).tolist()
        else:
            out.append(total - opened - extended * min(size, forgiven))
        total = out[-1]
        t += size if operation != QUERY_ALONE else 0
        q += size if operation != TARGET_ALONE else 0
    return np.array(out)


def entropy(target, query, t: int, q: int, length: int) -> float:
    """Entropy of the matching bases of a segment, 1 for fewer than 20 of them."""
    same = target[t : t + length][target[t : t + length] == query[q : q + length]]
    counts = np.bincount(same, minlength=4)[:4]
    shares = counts[counts > 0] / length
    return 1.0 if counts.sum() < 20 else float(-(shares * np.log(shares)).sum() / np.log(4.0))


def hsps(target, query, hits, span: int, matrix, xdrop: int, least: int, threshold: int) -> set[tuple[int, int, int, int]]:
    """HSPs of seed hits (target and query place): target and query place, length, score."""
    found, seen = set(), {}
    for t, q in sorted(hits, key=lambda hit: hit[1]):
        if seen.get(t - q, 0) > q:
            continue
        t_end, q_end = t + span, q + span
        before = [(t_end - n, q_end - n) for n in range(1, min(t_end, q_end) + 1)]
        after = [(t_end + n, q_end + n) for n in range(min(len(target) - t_end, len(query) - q_end))]
        left, score, _ = diagonal(target, query, before, matrix, xdrop)
        right, more, looked = diagonal(target, query, after, matrix, xdrop)
        score += more
        if least <= score <= 3 * threshold:
            score = int(score * entropy(target, query, t_end - left, q_end - left, left + right))
        if score >= least:
            seen[t - q] = q_end + looked
            found.add((t_end - left, q_end - left, left + right, score))
    return found


def chains(hsps, edges, scores, ydrop: int, reach: int, forget: int) -> tuple[list[int], list[list[int]]]:
    """For each HSP (target and query place, length, score) its section's score, and the limits of its extension, by all
    links there are.  edges : for each HSP, begin and end of the target sequence and of the query sequence.
    """
    most = 1 << 20
    before, first = _chains_up_to(hsps, [edge[::2] for edge in edges], scores, ydrop, reach, forget)
    turned = [(most - t - length, most - q - length, length, score) for t, q, length, score in hsps]
    begins = [[most - edge[1], most - edge[3]] for edge in edges]
    behind, last = _chains_up_to(turned, begins, scores, ydrop, reach, forget)
    support = [x + y - hsp[3] for x, y, hsp in zip(before, behind, hsps, strict=True)]
    return support, [[a[0], most - b[0], a[1], most - b[1]] for a, b in zip(first, last, strict=True)]


def _chains_up_to(hsps, begins, scores, ydrop: int, reach: int, forget: int):
    """Likewise, of what comes before each HSP; begins : of its sequences."""
    _, opened, extended = scores
    pair = int(scores.matrix.max())
    best, section, limits = ([0] * len(hsps) for _ in range(3))
    for b in sorted(range(len(hsps)), key=lambda x: hsps[x][0] + hsps[x][2]):
        t, q, length, score = hsps[b]
        whole, near = [(score, -1, 0)], [(score, -1)]
        for a, (t_before, q_before, size, _) in enumerate(hsps):
            steps = t - t_before, q - q_before
            ahead = min(*steps, *(step + length - size for step in steps)) > 0
            inside = t_before >= begins[b][0] and q_before >= begins[b][1]
            if not ahead or not inside or max(steps) - size > reach:
                continue
            gap = opened + extended * abs(steps[0] - steps[1]) if steps[0] != steps[1] else 0
            gain = score - pair * max(0, size - min(steps)) - gap
            faded = best[a] - best[a] * min(forget, t + length - t_before - size) // forget
            whole.append((faded + gain, a, gap))
            if gap <= ydrop:
                near.append((section[a] + gain, a))
        (best[b], a, gap), (section[b], beside) = max(whole), max(near)
        limits[b] = limits[beside] if beside >= 0 else list(begins[b])
        if gap > ydrop:
            section[b] = score
            limits[b] = [min(t, hsps[a][0] + hsps[a][2]), min(q, hsps[a][1] + hsps[a][2])]
    return section, limits


def ungapped_blocks(runs) -> list[list[int]]:
    """Bases without a gap, then bases of the target alone and of the query alone up to the next ones."""
    blocks: list[list[int]] = []
    for operation, size in runs:
        if operation == PAIR:
            blocks.append([size, 0, 0])
        else:
            blocks[-1][1 if operation == TARGET_ALONE else 2] += size
    return blocks
