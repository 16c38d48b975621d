"""Score files as LASTZ reads them: a matrix of the four bases, and values such as gap_open_penalty."""

from __future__ import annotations

import numpy as np

from bellapy.errors import InputError
from bellapy.io.compressed import as_text, open_stream
from bellapy.params.wga import DEFAULT_SCORES, GapScores

BASES = "ACGT"
KNOWN = {"gap_open_penalty": "open", "O": "open", "gap_extend_penalty": "extend", "E": "extend"}
THRESHOLDS = {"x_drop": "xdrop", "y_drop": "ydrop", "hsp_threshold": "hspthresh", "gapped_threshold": "gappedthresh"}
OTHERS = {"bad_score", "fill_score"}
MOST_SCORE = 100_000


def read_scores(path: str) -> tuple[GapScores, dict[str, int]]:
    """The scores of a file, and the thresholds in it that are options here (ydrop, hspthresh, gappedthresh, xdrop).

    Lines are `name = value`, comments from # on, a line of column bases, then a line for each row base of the target.  Bases
    may stand before the rows or not.  Unknown bases score `fill_score`, -100 where it is not given.

    Raises
    ------
    InputError : a line that is none of these, a matrix that is not complete, or scores that no alignment can have.
    """
    values: dict[str, int] = {}
    columns: list[str] = []
    rows: list[list[int]] = []
    order: list[str] = []
    with open_stream(path) as stream, as_text(stream) as lines:
        for number, line in enumerate(lines, 1):
            words = line.split("#")[0].replace("=", " = ").split()
            if not words:
                continue
            if len(words) == 3 and words[1] == "=":
                values[words[0]] = _number(path, words[2], number)
            elif not columns:
                columns = [word.upper() for word in words]
                if sorted(columns) != list(BASES):
                    raise InputError(path, "the columns of the matrix have to be A, C, G and T", line=number)
            else:
                if words[0].upper() in BASES:
                    order.append(words.pop(0).upper())
                rows.append([_number(path, word, number) for word in words])
                if len(rows[-1]) != len(BASES) or len(rows) > len(BASES):
                    raise InputError(path, "four rows of four scores are needed", line=number)
    return _checked(path, columns, order or columns, rows, values)


def _number(path: str, word: str, line: int) -> int:
    try:
        value = int(word)
    except ValueError:
        raise InputError(path, f"{word} is no whole number", line=line) from None
    if abs(value) > MOST_SCORE:
        raise InputError(path, f"{word} is beyond {MOST_SCORE:,}, the most a score may be", line=line)
    return value


def _checked(path, columns, order, rows, values) -> tuple[GapScores, dict[str, int]]:
    if not columns or len(rows) != len(BASES) or sorted(order) != list(BASES):
        raise InputError(path, "holds no complete matrix: a line with A C G T, then a row of scores for each of them")
    matrix = np.full((5, 5), values.get("fill_score", -100), np.int32)
    for base, row in zip(order, rows, strict=True):
        for other, score in zip(columns, row, strict=True):
            matrix[BASES.index(base), BASES.index(other)] = score
    if (np.diag(matrix)[:4] <= 0).any():
        raise InputError(path, "a base has to score above 0 with itself")
    costs = {KNOWN[name]: value for name, value in values.items() if name in KNOWN}
    scores = DEFAULT_SCORES._replace(matrix=matrix, **costs)
    if scores.open < 0 or scores.extend < 1:
        raise InputError(path, "gap_open_penalty must not be below 0, and gap_extend_penalty not below 1")
    unknown = values.keys() - KNOWN.keys() - THRESHOLDS.keys() - OTHERS
    if unknown:
        raise InputError(path, f"{min(unknown)} is no value of a score file")
    return scores, {option: values[name] for name, option in THRESHOLDS.items() if name in values}
