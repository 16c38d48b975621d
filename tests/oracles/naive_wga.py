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
                yield at, codes[at : at + len(shape)][ones]

    others, hits = list(windows(query, masks[1])), set()
    words = np.array([word for _, word in others], query.dtype).reshape(-1, len(ones))
    for t, word in windows(target, masks[0]):
        differ = word ^ words
        agrees = ~differ.any(1) | (transition & (differ.sum(1) == 2) & ((differ > 0).sum(1) == 1))
        hits |= {(t, others[x][0]) for x in np.flatnonzero(agrees)}
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
    return {found for found, _ in _hsps_with_hits(target, query, hits, span, matrix, xdrop, least, threshold)}


def sections(target, query, hits, span: int, params, apart: int) -> list[tuple[int, int, int, int, int]]:
    """Sections of HSPs: target and query place, length, score, seeds."""
    found = []
    limits = params.scores.matrix, params.xdrop, int(params.hspthresh * 2 / 3), params.hspthresh
    for (*_, score), within in _hsps_with_hits(target, query, hits, span, *limits):
        cuts = [x for x in range(1, len(within)) if within[x][1] - within[x - 1][1] > span + apart]
        for a, b in zip([0, *cuts], [*cuts, len(within)], strict=True):
            (t, q), (_, last) = within[a], within[b - 1]
            found.append((t, q, last + span - q, score, b - a))
    return found


def _hsps_with_hits(target, query, hits, span: int, matrix, xdrop: int, least: int, threshold: int):
    """HSPs, each with the hits that begin in what was looked at for it."""
    found, seen = [], {}
    for t, q in sorted(hits, key=lambda hit: hit[1]):
        if seen.get(t - q, (0, None))[0] > q:
            seen[t - q][1].append((t, q))
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
            seen[t - q] = q_end + looked, [(t, q)]
            found.append(((t_end - left, q_end - left, left + right, score), seen[t - q][1]))
    return found


def support(hsps, edges, sizes, scores, ydrop: int, reach: int, forget: int, worth: int):
    """For each HSP (target and query place, length, seeds) what speaks for it, and the limits of its extension, place by
    place.  edges : begin and end of its target sequence and of its query sequence.  sizes : places of target and query.
    worth : pairs of bases that a seed stands for.
    """
    own = [n_seeds * worth * int(scores.matrix.max()) for *_, n_seeds in hsps]
    near = _chains_through(hsps, edges, sizes, scores, [ydrop] * len(hsps), own, (reach, forget))
    score = _chains_through(hsps, edges, sizes, scores, [max(ydrop, some) for some in near], own, (reach, forget))
    owners, half = ({}, {}), sizes[1] // 2
    grounds = [
        (range(t, t + size), [q + x if q < half else 2 * half - 1 - q - x for x in range(size)]) for t, q, size, _ in hsps
    ]
    getting = set()
    for x in sorted(range(len(hsps)), key=lambda x: (-score[x], hsps[x])):
        free = min(sum(place not in of for place in ground) for of, ground in zip(owners, grounds[x], strict=True))
        if score[x] > ydrop and 2 * free >= hsps[x][2]:
            getting.add(x)
            for of, ground in zip(owners, grounds[x], strict=True):
                of.update((place, x) for place in ground if place not in of)

    def limit(x: int, genome: int, step: int) -> int:
        """Of the places on one side."""
        here, size = hsps[x][genome], hsps[x][2]
        edge, at = edges[x][2 * genome + (step > 0)], here + size if step > 0 else here - 1
        for place in range(at, edge if step > 0 else edge - 1, step):
            y = owners[genome].get(place if not genome or place < half else 2 * half - 1 - place, x)
            if y == x:
                continue
            steps = [hsps[y][of] - hsps[x][of] for of in (genome, 1 - genome)]
            gap = scores.open + scores.extend * abs(steps[0] - steps[1]) if steps[0] != steps[1] else 0
            if steps[1] * step <= 0 or gap > ydrop:
                return place if step > 0 else place + 1
            is_further = step * (hsps[y][genome] - here) > 0 or (hsps[y][genome] == here and step * (y - x) > 0)
            return limit(y, genome, step) if is_further else edges[y][2 * genome + (step > 0)]
        return edge

    limits = [
        [limit(x, genome, step) for genome in (0, 1) for step in (-1, 1)] if x in getting else list(edges[x])
        for x in range(len(hsps))
    ]
    return [some if x in getting else 0 for x, some in enumerate(score)], limits


def _chains_through(hsps, edges, sizes, scores, most, own, reaches) -> list[int]:
    """The score of the best chain through each HSP.  most : what a gap beside each may cost.  own : what each one adds."""
    turned = [(sizes[0] - t - length, sizes[1] - q - length, length) for t, q, length, _ in hsps]
    to = _chains_up_to([hsp[:3] for hsp in hsps], [edge[::2] for edge in edges], scores, most, own, *reaches)
    begins = [[sizes[0] - edge[1], sizes[1] - edge[3]] for edge in edges]
    back = _chains_up_to(turned, begins, scores, most, own, *reaches)
    return [x + y - z for x, y, z in zip(to, back, own, strict=True)]


def _chains_up_to(hsps, begins, scores, most, own, reach: int, forget: int) -> list[int]:
    """Likewise, of what comes before each HSP; begins : of its sequences."""
    pair, best = int(scores.matrix.max()), list(own)
    for b in sorted(range(len(hsps)), key=lambda x: hsps[x][0] + hsps[x][2]):
        t, q, length = hsps[b]
        for a, (t_before, q_before, size) in enumerate(hsps):
            steps = t - t_before, q - q_before
            ahead = min(*steps, *(step + length - size for step in steps)) > 0
            inside = t_before >= begins[b][0] and q_before >= begins[b][1]
            if not ahead or not inside or max(steps) - size > reach:
                continue
            gap = scores.open + scores.extend * abs(steps[0] - steps[1]) if steps[0] != steps[1] else 0
            faded = best[a] - best[a] * min(forget, t + length - t_before - size) // forget
            if gap <= most[b]:
                best[b] = max(best[b], faded + own[b] - pair * max(0, size - min(steps)) - gap)
    return best


def ungapped_blocks(runs) -> list[list[int]]:
    """Bases without a gap, then bases of the target alone and of the query alone up to the next ones."""
    blocks: list[list[int]] = []
    for operation, size in runs:
        if operation == PAIR:
            blocks.append([size, 0, 0])
        else:
            blocks[-1][1 if operation == TARGET_ALONE else 2] += size
    return blocks
