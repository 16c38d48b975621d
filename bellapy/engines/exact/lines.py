"""The order of lines: which rows of an anti-diagonal are alive, where its borders are, and what is kept of it.

`antidiagonals.py` computes the cells; `band.py` owns all arrays.  Every 64 lines or more the scores are looked at, and
rows are given up at both ends whose cells cannot reach the known score any more.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner
from bellapy.engines.exact.antidiagonals import differences_line, limit_ends, whole_line
from bellapy.engines.exact.line_state import (
    CELLS,
    CHECKS,
    FIRST,
    IS_WHOLE,
    LAST,
    LINE,
    PLACE,
    ROWS,
    SCORE,
)  # fmt: skip
from bellapy.engines.exact.rule import NONE

WIDE = 2048  # rows
ROWS_AT_ONCE = 2048  # that a core keeps at hand while it goes from line to line


@njit_entry
def put_in_order(bound):
    """Raise a bound, (any,) int32, so that it never rises."""
    most = bound[-1]
    for k in range(len(bound) - 1, -1, -1):
        most = max(most, bound[k])
        bound[k] = most


@njit_inner
def _next_rows(m, s):
    """Go on to the next line: one row more at most, and none that the corridor excludes.  m, s : Frame, State."""
    now, n = s.now, len(m.row_bound) - 1
    now[LINE] += 1
    line, last = now[LINE], now[LAST]
    if last < n and line - last - 1 >= m.first[last // ROWS]:
        now[LAST] = last + 1
        s.reach[last + 1, 0] = min(s.reach[last + 1, 0], line - last - 1)
    while now[FIRST] <= now[LAST] and line - now[FIRST] > m.last[max(0, now[FIRST] - 1) // ROWS]:
        s.reach[now[FIRST], 1] = line - now[FIRST] - 1
        now[FIRST] += 1


@njit_inner
def _differences_borders(m, s, line, begin, end):
    """Row 0 and column 0 of a line, if they lie in the rows from `begin` to `end`, the last one included."""
    first = m.plain.first
    if begin == 0:
        at = len(m.column_bound) - 1 - line
        s.d.v[at], s.d.x[at] = m.top[line] - m.top[line - 1] + first, m.top_gap[line] - m.top[line] + first
    if end == line:
        s.d.u[line], s.d.y[line] = m.left[line] - m.left[line - 1] + first, m.left_gap[line] - m.left[line] + first


@njit_inner
def _whole_borders(m, s, line, first, last):
    """The same in whole scores; first, last : rows of the line, as in the functions below."""
    high = s.w.high[line % 3]
    if first == 0:
        high[1], s.w.f[len(m.column_bound) - 1 - line] = m.top[line], m.top_gap[line]
    if last == line:
        high[line + 1], s.w.e[line] = m.left[line], m.left_gap[line]


@njit_inner
def _follow(m, s, line, end):
    """Take the cell whose score is known one line on: to the right if its row is still there, else down.

    end : the last row of the line that is computed.  False: the cell lies below it.
    """
    now, first = s.now, s.spans[line % len(s.spans), 0]
    if now[PLACE] >= first:
        now[SCORE] += np.int64(s.d.v[len(m.column_bound) - 1 - line + now[PLACE]]) - m.plain.first
    elif now[PLACE] == end:
        return False
    else:
        now[PLACE] += 1
        now[SCORE] += np.int64(s.d.u[now[PLACE]]) - m.plain.first
    return True


@njit_inner
def _difference_lines(m, s, begin, end):
    """Lines after `begin` to `end`, whose rows `spans` has, in differences, ROWS_AT_ONCE rows at a time.

    What a row needs of the one above, it finds by column, where that one left it last: whatever line it is at.
    """
    columns, now, spans = len(m.column_bound) - 1, s.now, s.spans
    followed = begin  # the line up to which a cell's score was followed
    lowest, highest = spans[(begin + 1) % len(spans), 0], spans[end % len(spans), 1]
    for part in range(lowest, highest + 1, ROWS_AT_ONCE):
        for line in range(begin + 1, end + 1):
            first, last = spans[line % len(spans), 0], spans[line % len(spans), 1]
            low, high = max(part, first), min(part + ROWS_AT_ONCE - 1, last)
            if low > high:
                continue
            place = columns - line + low
            differences_line(m.codes, s.d, m.raised, low, place, high - low + 1)
            if low == first or high == last:
                limit_ends(s.d, m.raised.most, low, place, high - low + 1)
            _differences_borders(m, s, line, low, high)
            if followed == line - 1 and low - 1 <= now[PLACE] <= high and _follow(m, s, line, high):
                followed = line


@njit_inner
def _note_best(s, line, first, last, best):
    """The first cell of a line, in order of rows, that has the score `best`; kept if it beats, or precedes, the last."""
    high, kept = s.w.high[line % 3], s.best
    for i in range(first, last + 1):
        if high[i + 1] == best:
            j = line - i
            if best > kept[0] or kept[1] < 0 or i < kept[1] or i == kept[1] and j < kept[2]:
                kept[0], kept[1], kept[2] = best, i, j
            return


@njit_inner
def _keep_ends(m, s, line, first, last):
    """The cells of the last row and column that a line has."""
    n, columns, high = len(m.row_bound) - 1, len(m.column_bound) - 1, s.w.high[line % 3]
    if last == n:
        s.last_row[line - n] = high[n + 1]
    if 0 <= line - columns == first:
        s.last_column[line - columns] = high[line - columns + 1]


@njit_inner
def _whole_from_differences(m, s):
    """H of the last two lines, and E and F of the last one, from differences."""
    now, d, w, first = s.now, s.d, s.w, m.plain.first
    line, shift = now[LINE], len(m.column_bound) - 1 - now[LINE]
    high, before = w.high[line % 3], w.high[(line - 1) % 3]
    high[now[PLACE] + 1] = score = now[SCORE]
    for i in range(now[PLACE], now[LAST]):
        score += np.int64(d.u[i + 1]) - np.int64(d.v[shift + i])
        high[i + 2] = score
    score = now[SCORE]
    for i in range(now[PLACE], now[FIRST], -1):
        score -= np.int64(d.u[i]) - np.int64(d.v[shift + i - 1])
        high[i] = score
    for i in range(now[FIRST], now[LAST] + 1):
        before[i + 1] = high[i + 1] + first - d.v[shift + i]
    if now[FIRST] > 0:
        before[now[FIRST]] = high[now[FIRST] + 1] + first - d.u[now[FIRST]]
    high[now[FIRST]], high[now[LAST] + 2] = NONE, NONE


@njit_inner
def _gaps_from_differences(m, s):
    """E and F of the last line, whose H is known, from differences."""
    shift = len(m.column_bound) - 1 - s.now[LINE]
    for i in range(s.now[FIRST], s.now[LAST] + 1):
        h = np.int64(s.w.high[s.now[LINE] % 3, i + 1]) - m.plain.first
        s.w.e[i], s.w.f[shift + i] = h + s.d.y[i], h + s.d.x[shift + i]


@njit_inner
def _differences_from_whole(m, s):
    """Differences of the last line from whole scores; a neighbour that was not computed lies as low as it may."""
    now, d, w, first = s.now, s.d, s.w, m.plain.first
    shift, most = len(m.column_bound) - 1 - now[LINE], m.plain.match + 2 * first
    high, before = w.high[now[LINE] % 3], w.high[(now[LINE] - 1) % 3]
    for i in range(now[FIRST], now[LAST] + 1):
        h = np.int64(high[i + 1]) + first
        d.u[i], d.v[shift + i] = min(most, h - before[i]), min(most, h - before[i + 1])
        d.y[i], d.x[shift + i] = max(0, w.e[i] - h + 2 * first), max(0, w.f[shift + i] - h + 2 * first)
    now[PLACE] = (now[FIRST] + now[LAST]) // 2
    now[SCORE] = high[now[PLACE] + 1]


@njit_inner
def _is_dead(m, s, line, i):
    """Whether row i of a line cannot reach the best score known, nor what begins in later cells of its row or column."""
    score, wanted = np.int64(s.w.high[line % 3, i + 1]) + m.open, s.best[0]
    bound = min(m.row_bound[i], m.column_bound[line - i])
    if score + bound < wanted:
        return True
    may_begin = (m.floor or m.keep_ends) and bound >= wanted  # off the borders, or on them (semiglobal)
    return not may_begin and score + m.blocks.most[i // m.blocks.rows, (line - i) // m.blocks.columns] < wanted


@njit_inner
def _give_up_rows(m, s):
    """Drop the rows at both ends that no alignment of the best score known may cross; where H of two lines is known."""
    now = s.now
    line, shift = now[LINE], len(m.column_bound) - 1 - now[LINE]
    first, last = now[FIRST], now[LAST]
    while first <= last and _is_dead(m, s, line, first) and (first == 0 or _is_dead(m, s, line - 1, first - 1)):
        s.reach[first, 1] = line - first
        s.d.v[shift + first] = s.d.x[shift + first] = 0
        if len(s.w.f):
            s.w.f[shift + first] = NONE
        first += 1
    while last > first and _is_dead(m, s, line, last) and (last == line or _is_dead(m, s, line - 1, last)):
        s.d.u[last] = s.d.y[last] = 0
        if len(s.w.e):
            s.w.e[last] = NONE
        last -= 1
    for i in range(last + 1, now[LAST] + 1):
        s.reach[i, 1] = line - i  # overwritten if the row comes back
    now[FIRST], now[LAST] = first, last
    high = s.w.high[line % 3]
    high[first], high[last + 2] = NONE, NONE


@njit_inner
def _next_check(now):
    """The line before which the scores are not looked at again.  now : of State."""
    lines = CHECKS[0] if now[LAST] - now[FIRST] < WIDE else CHECKS[1]
    return now[LINE] - now[LINE] % lines + lines


@njit_inner
def _needs_whole(m, s):
    """Whether the next lines, until the next check, have to be computed in whole scores."""
    now = s.now
    lines = _next_check(now) - now[LINE]
    line, first, last = now[LINE], now[FIRST], now[LAST]
    if m.floor and min(m.row_bound[max(1, first)], m.column_bound[max(1, line - last)]) >= s.best[0]:
        return True  # an alignment may begin here, and not only on the borders, which have their scores
    if m.keep_ends and (last + lines >= len(m.row_bound) - 1 or line - first + lines >= len(m.column_bound) - 1):
        return True
    if m.seek:
        before, high = s.w.high[(line - 1) % 3], s.w.high[line % 3]
        for i in range(first - 1, last + 1):  # a path may go on from the row before, one line before
            best = max(before[i + 1], high[i + 1])
            if best + (lines // 2 + 1) * m.plain.match >= s.best[0]:
                return True
    return False


@njit_inner
def _keep_line(m, s, kept):
    """Keep the last line, in differences.  kept : Kept, with room."""
    first, n = s.now[FIRST], s.now[LAST] - s.now[FIRST] + 1
    shift, at = len(m.column_bound) - 1 - s.now[LINE], kept.used[1]
    about = kept.about[kept.used[0]]
    about[0], about[1], about[2], about[4] = s.now[LINE], first, n, at
    about[3] = s.w.high[s.now[LINE] % 3, first + 1]
    for i in range(n):
        kept.values[at + i], kept.values[at + n + i] = s.d.u[first + i], s.d.y[first + i]
        kept.values[at + 2 * n + i] = s.d.v[shift + first + i]
        kept.values[at + 3 * n + i] = s.d.x[shift + first + i]
    kept.used[0] += 1
    kept.used[1] += 4 * n


@njit_entry
def begin_at(m, s, line, first, n, score, values):
    """Go to a line that was kept; m, s : Frame, State.  line, first, n, score : as in Kept.about.  values : its own."""
    now, shift = s.now, len(m.column_bound) - 1 - line
    now[LINE], now[FIRST], now[LAST], now[PLACE], now[SCORE] = line, first, first + n - 1, first, score
    for i in range(n):
        s.d.u[first + i], s.d.y[first + i] = values[i], values[n + i]
        s.d.v[shift + first + i], s.d.x[shift + first + i] = values[2 * n + i], values[3 * n + i]
    _whole_from_differences(m, s)
    _go_on(m, s)


@njit_inner
def _go_on(m, s):
    """Prepare for the lines after one whose differences, and H, are known: in differences or in whole scores."""
    now = s.now
    now[IS_WHOLE] = _needs_whole(m, s)
    if now[IS_WHOLE]:
        _gaps_from_differences(m, s)
    now[PLACE] = (now[FIRST] + now[LAST]) // 2
    now[SCORE] = s.w.high[now[LINE] % 3, now[PLACE] + 1]


@njit_inner
def _whole_lines(m, s, begin, end):
    """Lines after `begin` to `end`, whose rows `spans` has, in whole scores."""
    columns = len(m.column_bound) - 1
    for line in range(begin + 1, end + 1):
        first, last = s.spans[line % len(s.spans), 0], s.spans[line % len(s.spans), 1]
        best = whole_line(m.codes, s.w, m.plain, line, first, columns - line + first, last - first + 1)
        _whole_borders(m, s, line, first, last)
        if m.seek and best >= s.best[0]:
            _note_best(s, line, first, last, best)
        if m.keep_ends:
            _keep_ends(m, s, line, first, last)


@njit_inner
def _lines(m, s, stop):
    """Lines up to `stop`, or until no row is left."""
    now = s.now
    begin = now[LINE]
    while now[LINE] < stop and now[FIRST] <= now[LAST]:
        _next_rows(m, s)
        line, first, last = now[LINE], now[FIRST], now[LAST]
        s.spans[line % len(s.spans), 0], s.spans[line % len(s.spans), 1] = first, last
        now[CELLS] += max(0, last - first + 1 - (first == 0) - (last == line))
    end = now[LINE] if now[FIRST] <= now[LAST] else now[LINE] - 1
    if end == begin:
        return
    if now[IS_WHOLE]:
        _whole_lines(m, s, begin, end)
    else:
        _difference_lines(m, s, begin, end)


@njit_entry
def begin_lines(m, s):
    """Line 0, the corner.  m, s : Frame, State."""
    s.w.high[:, :3] = NONE
    s.w.high[0, 1] = m.top[0]
    s.now[SCORE], s.reach[0, 0] = m.top[0], 0
    s.now[IS_WHOLE] = _needs_whole(m, s)


@njit_entry
def run_lines(m, s, kept, stop):
    """Go on until about line `stop`, the end, or until there is no room for the line that is to be kept.

    m, s, kept : Frame, State, Kept.  At the end s.now[FIRST] > s.now[LAST], or the line is the matrix's last.
    """
    end, now = len(m.row_bound) + len(m.column_bound) - 2, s.now
    while now[LINE] < min(stop, end) and now[FIRST] <= now[LAST]:
        n = now[LAST] - now[FIRST] + 1 + CHECKS[1]
        if kept.used[0] == len(kept.about) or m.every and kept.used[1] + 4 * n > len(kept.values):
            return
        _lines(m, s, min(end, _next_check(now)))
        if now[FIRST] > now[LAST]:
            return
        if not now[IS_WHOLE]:
            _whole_from_differences(m, s)
        _give_up_rows(m, s)
        if now[FIRST] > now[LAST]:
            return
        is_kept = m.every and now[LINE] % m.every == 0
        if now[IS_WHOLE]:
            now[IS_WHOLE] = _needs_whole(m, s)
            if is_kept or not now[IS_WHOLE]:
                _differences_from_whole(m, s)
        else:
            _go_on(m, s)
        if is_kept:
            _keep_line(m, s, kept)
