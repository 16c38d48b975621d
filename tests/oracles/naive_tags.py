"""Piles, tag graph and realignment from their definitions, in plain Python.  A read is (start, symbols)."""

from __future__ import annotations

UNIT, SLOTS, LETTERS = 64, 6, 5
GAP, UNKNOWN, INSERTED = 4, 5, 8
ANCHOR, MARGIN, LONGEST, MISMATCH, GAP_COST = 8, 2, 256, 3, 2


def shift_left(symbols, template, start):
    """Move one gap by one place as long as any moves; a gap next to another of its kind belongs to it."""
    out = [*symbols]
    at = 0
    while at < len(out):
        if out[at] != GAP and out[at] < INSERTED:
            at += 1
            continue
        kind = out[at] == GAP
        begin = at
        while at < len(out) and (out[at] == GAP if kind else out[at] >= INSERTED):
            at += 1
        end = at
        while True:
            while begin - 1 > 0 and (out[begin - 1] == GAP if kind else out[begin - 1] >= INSERTED):
                begin -= 1
            if begin - 1 <= 0 or out[begin - 1] == GAP or out[begin - 1] >= INSERTED:
                break
            column = start + sum(symbol < INSERTED for symbol in out[: begin - 1])
            size = end - begin
            same = template[column] == template[column + size] if kind else out[begin - 1] == out[end - 1] - INSERTED
            if not same:
                break
            before = out[begin - 1]
            out[begin - 1 : end] = (
                [GAP] * size + [before] if kind else [before + INSERTED] + out[begin : end - 1] + [out[end - 1] - INSERTED]
            )
            begin, end = begin - 1, end - 1
    return out


def _links(reads, n_columns):
    """Nodes by column, links between nodes, coverage, and reads beside the template."""
    links, cover, others = {}, [0] * n_columns, [0] * n_columns
    for i, (start, symbols) in enumerate(reads):
        if symbols is None:
            continue
        column, node = start - 1, "start" if start == 0 else None
        for symbol in symbols:
            if symbol < INSERTED:
                column += 1
                others[column] += i > 0
                if symbol == UNKNOWN:
                    node = None
                    continue
                new = (column, 0, symbol)
                cover[column] += 1
            else:
                if node is None or symbol - INSERTED > 3 or node == "start" or node[1] + 1 == SLOTS:
                    continue
                new = (column, node[1] + 1, symbol - INSERTED)
            if node is not None:
                links.setdefault(new, {}).setdefault(node, 0)
                links[new][node] += 1
            node = new
    return links, cover, others


def consensus(template, reads, insertion, gap, least, with_template):
    """Codes, whether they are raw, and where each column begins."""
    n = len(template)
    links, cover, others = _links(reads if with_template else [(0, None), *reads[1:]], n)
    score, back, best = {"start": 0}, {}, "start"
    for column in range(n):
        nodes = sorted(node for node in links if node[0] == column)
        for node in nodes:
            ways = [(score[m] + UNIT * count, m) for m, count in links[node].items() if m in score]
            if not ways:
                continue
            highest = max(way for way, _ in ways)
            back[node] = min((m for way, m in ways if way == highest), key=lambda m: m if m != "start" else (-1,))
            cost = insertion * cover[column] if node[1] else gap * cover[column] * (node[2] == GAP)
            score[node] = highest - cost
        if not any((column, 0, letter) in score for letter in range(LETTERS)):
            others[column] = 0
            for letter in range(LETTERS):
                score[column, 0, letter], back[column, 0, letter] = score[best], best
        here = [node for node in score if node != "start" and node[0] == column]
        highest = max(score[node] for node in here)
        best = min(node for node in here if score[node] == highest)
    path, node = [], best
    while node != "start":
        path.append(node)
        node = back[node]
    codes, raw, begins = [], [], []
    for column, slot, letter in reversed(path):
        if slot == 0:
            begins.append(len(codes))
        if others[column] < least:
            if slot == 0:
                codes.append(template[column])
                raw.append(True)
        elif slot or letter != GAP:
            codes.append(letter)
            raw.append(False)
    return codes, raw, [*begins, len(codes)]


def _cheapest(bases, codes):
    """Symbols of the cheapest alignment from corner to corner; from the end a pair, then a base of the read alone."""
    cost = [[0] * (len(bases) + 1) for _ in range(len(codes) + 1)]
    for i in range(len(codes) + 1):
        for j in range(len(bases) + 1):
            ways = []
            if i and j:
                ways.append(cost[i - 1][j - 1] + (0 if bases[j - 1] == codes[i - 1] else MISMATCH))
            if j:
                ways.append(cost[i][j - 1] + GAP_COST)
            if i:
                ways.append(cost[i - 1][j] + GAP_COST)
            cost[i][j] = min(ways, default=0)
    i, j, out = len(codes), len(bases), []
    while i or j:
        price = 0 if i and j and bases[j - 1] == codes[i - 1] else MISMATCH
        if i and j and cost[i][j] == cost[i - 1][j - 1] + price:
            i, j = i - 1, j - 1
            out.append(bases[j])
        elif j and cost[i][j] == cost[i][j - 1] + GAP_COST:
            j -= 1
            out.append(bases[j] + INSERTED)
        else:
            i -= 1
            out.append(GAP)
    return out[::-1]


def _first_path(start, symbols, begins):
    """The read's bases, and for each column of the consensus the base that stands there, or None."""
    bases, mates, column, free = [], {}, start - 1, []
    first = begins[start]
    for symbol in symbols:
        if symbol < INSERTED:
            column += 1
            free = list(range(begins[column], begins[column + 1]))
        if symbol != GAP:
            if free:
                mates[free.pop(0) - first] = len(bases)
            bases.append(symbol % INSERTED)
    return bases, [mates.get(i) for i in range(begins[column + 1] - first)]


def new_columns(codes, begins, template):
    """Which columns of a consensus are not just those of the template, or have lost a neighbour."""
    new = [True] * len(codes)
    for column, (begin, end) in enumerate(zip(begins, begins[1:], strict=False)):
        if end - begin == 1:
            new[begin] = codes[begin] != template[column]
    for begin, end in zip(begins, begins[1:], strict=False):
        if begin == end:
            for column in (begin - 1, begin):
                if 0 <= column < len(codes):
                    new[column] = True
    return new


def _as_it_was(bases, mates, base, mate):
    """Symbols of bases base to mate - 1 and of columns with these mates, on the first path."""
    out = []
    for at in mates:
        while at is not None and base < at:
            out.append(bases[base] + INSERTED)
            base += 1
        out.append(GAP if at is None else bases[at])
        base += at is not None
    return out + [letter + INSERTED for letter in bases[base:mate]]


def realign(start, symbols, codes, begins, new=None):
    """Start and symbols of one read on the consensus.

    new : which columns differ from what the read was aligned to before; None: all.
    """
    bases, mates = _first_path(start, symbols, begins)
    first, n = begins[start], len(mates)
    column = base = 0
    out = []
    while column < n or base < len(bases):
        runs, at, limit = [], column, min(n, column + LONGEST)
        while at < limit:
            end = at
            while end < n and mates[end] is not None and bases[mates[end]] == codes[first + end]:
                if end > at and mates[end] != mates[end - 1] + 1:
                    break
                end += 1
            runs.append((at, end))
            at = max(end, at + 1)
        anchor = next((run for run in runs if run[1] - run[0] >= ANCHOR), None)
        if anchor is None and limit < n:
            size = max(end - begin for begin, end in runs)
            anchor = next(run for run in runs if run[1] - run[0] == size) if size else (limit, limit)
        begin, end = anchor or (n, n)
        inner = 2 * MARGIN < end - begin
        kept, kept_end = begin + MARGIN * (inner and begin > column), end - MARGIN * (inner and end < n)
        if end > begin:
            mate = mates[begin] + kept - begin
        elif begin < n:
            mate = next((m + 1 for m in reversed(mates[column:begin]) if m is not None), base)
        else:
            mate = len(bases)
        if new is None and kept > column or new and any(new[first + column : first + kept]):
            out += _cheapest(bases[base:mate], codes[first + column : first + kept])
        else:
            out += _as_it_was(bases, mates[column:kept], base, mate)
        out += bases[mate : mate + kept_end - kept]
        column, base = kept_end, mate + kept_end - kept
    while out and (out[0] == GAP or out[0] >= INSERTED):
        first += out.pop(0) == GAP
    while out and (out[-1] == GAP or out[-1] >= INSERTED):
        out.pop()
    return first, shift_left(out, codes, first)


def _shown(reads, column):
    """What reads show in a column: letters, the first base behind it or None, and whether the read goes on."""
    for start, symbols in reads:
        at, last, seen = start - 1, start - 1 + sum(symbol < INSERTED for symbol in symbols), None
        for i, symbol in enumerate(symbols):
            if symbol >= INSERTED:
                continue
            at += 1
            if at == column:
                behind = symbols[i + 1] - INSERTED if i + 1 < len(symbols) and symbols[i + 1] >= INSERTED else None
                seen = symbol, behind if behind is not None and behind < GAP else None, at < last
        if seen:
            yield seen


def _run_from(codes, column, longest):
    """Equal bases from a column on, if a run of them begins there."""
    if column and codes[column - 1] == codes[column]:
        return 0
    n = 1
    while column + n < len(codes) and codes[column + n] == codes[column]:
        n += 1
    return min(n, longest)


def _tandem_from(codes, column):
    """The unit of a tandem repeat of two or three bases that begins with a column, and the columns of the repeat."""
    for period in (2, 3):
        unit, end = codes[column : column + period], column
        while end < len(codes) and codes[end] == unit[(end - column) % period] and codes[end] < GAP:
            end += 1
        earlier = column > 0 and codes[column - 1] == unit[-1]
        if end - column >= 2 * period and len(set(unit)) > 1 and not earlier:
            return unit, range(column, end)
    return [], range(0)


def _has_unit(codes, voices, odds, unit, columns, longest, rarer):
    """Whether reads show all units of a tandem repeat: each of its bases is looked at as those of a run."""
    if len(columns) // len(unit) > longest:
        return True
    shown, _, missing = odds
    letters = [letter for letter, _, _ in voices(columns[0]) if letter <= GAP]
    evidence = 0
    for i, base in enumerate(unit):
        first = columns[0]
        while i == 0 and first > 0 and codes[first - 1] == base:
            first -= 1
        own = [at for at in range(first, columns[-1] + 1) if codes[at] == base]
        lacking = sum(letter == GAP for at in own for letter, _, _ in voices(at))
        lacking -= sum(more == base for at in range(max(0, first - 1), columns[-1] + 1) for _, more, _ in voices(at))
        lacking = min(len(letters), max(0, lacking) // unit.count(base))
        run = min(longest, len(own))
        evidence += shown[base][run] * (len(letters) - lacking) + missing[base][run] * lacking - rarer
    return evidence >= 0


def judge(codes, reads, odds, least, longest, many, rarer):
    """Codes, whether they are raw, slots and begins; odds: (shown, other, missing), each by the base and length of a run.

    many : reads with which the first one, the template, does not count.  rarer : evidence that a base more needs beyond 0.
    """
    shown, other, missing = odds
    out, begins, gone = [], [], 0

    def voices(column):
        seen = list(_shown(reads[1:], column))
        return seen + list(_shown(reads[:1], column)) if len(seen) < many else seen

    for column, code in enumerate(codes):
        begins.append(len(out))
        seen = voices(column)
        few = len(seen) < max(2, least)
        unit, columns = ([], []) if few or column < gone else _tandem_from(codes, column)
        if unit and len(voices(column + len(unit) - 1)) >= max(2, least):
            gone = gone if _has_unit(codes, voices, odds, unit, columns, longest, rarer) else column + len(unit)
        if column < gone:
            continue
        run = 0 if few or code >= GAP else _run_from(codes, column, longest)
        known = [letter for letter, _, _ in seen if letter <= GAP]
        later = [at for at in range(column + 1, column + _run_from(codes, column, len(codes)))] if run else []
        unlike = sum(letter < GAP and letter != code for at in later for letter, _, _ in voices(at))
        n_bases = len(known) - known.count(GAP)
        n_shown = n_bases if 1 + len(later) > longest else max(0, known.count(code) - unlike)
        weights = [odd[code][run] for odd in odds] if run else [0, 0, 0]
        against = weights[0] * n_shown + weights[1] * (n_bases - n_shown) + weights[2] * known.count(GAP)
        if run == 0 or against >= rarer:
            out.append((code, few, 0))
        if few or column + 1 == len(codes):
            continue
        behind = [base for _, base, _ in seen if base is not None]
        if codes[column + 1] != code:
            next_run = range(column + 1, column + 1 + _run_from(codes, column + 1, len(codes)))
            behind += [base for at in next_run for _, base, _ in voices(at) if base == codes[at]]
        counts = {base: behind.count(base) for base in range(GAP) if base != code and base in behind}
        if not counts:
            continue
        base = max(counts, key=lambda b: (counts[b], -b))
        size = next((i for i, letter in enumerate(codes[column + 1 :]) if letter != base), len(codes) - column - 1)
        inside, beside = range(column + 1, column + 1 + size), [column + 1 + size]
        beside = [at for at in beside if at < len(codes)] + [column]
        misplaced = sum(x is not None and x != base for at in inside for _, x, _ in voices(at))
        misplaced += sum(letter == base for at in beside for letter, _, _ in voices(at))
        n = sum(goes_on for _, _, goes_on in seen)
        n_bases = min(n, len(behind) + misplaced * max(0, n - len(behind)) // max(1, n))
        n_shown = n_bases if 1 + size > longest else min(n, counts[base])
        run = min(longest, 1 + size)
        evidence = shown[base][run] * n_shown + other[base][run] * (n_bases - n_shown)
        if evidence + missing[base][run] * (n - n_bases) > rarer:
            out.append((base, False, 1))
    begins.append(len(out))
    return *(list(part) for part in (zip(*out, strict=True) if out else ([], [], []))), begins


def cost(bases, columns):
    """Least cost of an alignment from end to end: 3 for two unequal bases, 2 for a gap."""
    scores = [[2 * (i + j) for j in range(len(columns) + 1)] for i in range(len(bases) + 1)]
    for i, base in enumerate(bases, 1):
        for j, column in enumerate(columns, 1):
            pair = scores[i - 1][j - 1] + 3 * (base != column)
            scores[i][j] = min(pair, scores[i - 1][j] + 2, scores[i][j - 1] + 2)
    return scores[-1][-1]


def gains(codes, reads, begin, end, changed, longer, flank, longest):
    """What the longer one of codes and `changed` gains each read across codes[begin:end]; None: too long to be told."""
    first, last = max(0, begin - flank), min(len(codes), end + flank)
    unit = abs(len(changed) - len(codes))
    if last - first + unit > longest:
        return None
    as_is, other = codes[first:last], changed[first : last + len(changed) - len(codes)]
    found = []
    for start, symbols in reads[1:]:
        columns = [start + sum(x < INSERTED for x in symbols[:i]) - (s >= INSERTED) for i, s in enumerate(symbols)]
        if start > first or start + sum(x < INSERTED for x in symbols) < last:
            continue
        some = [(c, s) for c, s in zip(columns, symbols, strict=True) if first <= c < last]
        bases = [s & 7 for c, s in some if s != GAP and not (c == last - 1 and s >= INSERTED)]
        if len(bases) < longest:
            found.append((cost(bases, as_is) - cost(bases, other)) * (1 if longer else -1))
    return found


def with_unit(codes, begin, unit, longer):
    """Codes with one unit more, or less, at a place."""
    return codes[:begin] + (codes[begin : begin + unit] + codes[begin:] if longer else codes[begin + unit :])


def _parting_of(codes, reads_of, k, end, doubted):
    """The base that reads show most often in a run, but for its own; None: too few do."""
    inside = [letter for at in range(k, end) for letter, _, _ in reads_of[at]]
    inside += [added for at in range(k, end - 1) for _, added, _ in reads_of[at]]
    best = max((base for base in range(4) if base != codes[k]), key=lambda base: (inside.count(base), -base))
    return best if inside.count(best) and doubted * inside.count(best) >= len(reads_of[k]) else None


def judge_lengths(codes, reads, weights, least, longest_run, doubted, flank, longest, rarer):
    """Codes and begins of a consensus whose runs and tandem repeats have the likelier lengths, with bases that part runs."""
    out, begins, free, gone, middle = [], [], 0, 0, len(weights[0][0]) // 2
    reads_of = [list(_shown(reads[1:], column)) for column in range(len(codes))]
    parts = {}

    def tell(its, base, n_units, unit):
        return sum(weights[base][n_units][middle + max(-middle, min(middle, gain))] for gain in its) - rarer * unit

    for k, base in enumerate(codes):
        sites, run = [], 0
        if base < GAP and len(reads_of[k]) >= max(2, least):
            unit, columns = _tandem_from(codes, k)
            run = _run_from(codes, k, len(codes))
            sites = [(len(unit), columns[-1] + 1)] if unit else []
            sites += [(1, k + run)] if run else []
        more = []
        for unit, end in sites:
            lacking = sum(letter <= GAP and letter != codes[at] for at in range(k, end) for letter, _, _ in reads_of[at])
            beside = [at for at in (k - 1, end) if 0 <= at < len(codes) and codes[at] != base]
            shown = sum(letter == base for at in beside for letter, _, _ in reads_of[at])
            shown += sum(added == base for _, added, _ in reads_of[k - 1]) if k else 0
            for longer, enough in (
                (False, doubted * lacking >= len(reads_of[k]) * unit and end > k + 1),
                (True, doubted * shown >= len(reads_of[k])),
            ):
                changed = with_unit(codes, k, unit, longer)
                its = gains(codes, reads, k, end, changed, longer, flank, longest) if enough and k >= free else None
                if its is None:
                    continue
                evidence = tell(its, base, min(longest_run, (end - k) // unit + longer), unit)
                if evidence > 0 if longer else evidence < 0:
                    free = end + 1
                    more, gone = (codes[k : k + unit], gone) if longer else ([], k + unit)
        other = _parting_of(codes, reads_of, k, k + run, doubted) if run > 1 and k >= free else None
        if other is not None:
            told = {}
            for at in range(k + 1, k + run):
                its = gains(codes, reads, k, k + run, [*codes[:at], other, *codes[at:]], True, flank, longest)
                told[at] = -1 if its is None else tell(its, other, 1, 1)
            best = max(told, key=lambda at: (told[at], -at))
            if told[best] > 0:
                parts[best], free = other, k + run + 1
        begins.append(len(out))
        out += more + ([parts[k]] if k in parts else []) + ([] if k < gone else [base])
    return out, [*begins, len(out)]
