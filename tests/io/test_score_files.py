"""Score files of LASTZ, and files that are none."""

from __future__ import annotations

import numpy as np
import pytest

from bellapy.errors import InputError
from bellapy.io.score_files import read_scores
from bellapy.params.wga import HOXD70

MATRIX = "\n".join(" ".join(map(str, row[:4])) for row in HOXD70[:4])


def test_a_matrix_with_and_without_row_letters(tmp_path):
    path = tmp_path / "scores"
    path.write_text(f"gap_open_penalty=400 # as usual\nO = 500\nE=20\ny_drop = 5000\n\nA C G T\n{MATRIX}\n")
    scores, found = read_scores(str(path))
    assert np.array_equal(scores.matrix, HOXD70) and (scores.open, scores.extend) == (500, 20) and found == {"ydrop": 5000}
    path.write_text("fill_score = -7\n  T A C G\nT 1 -2 -3 -4\nA -5 2 -6 -7\nC -8 -9 3 -1\nG -1 -1 -1 4\n")
    scores, _ = read_scores(str(path))
    assert scores.matrix.tolist() == [
        [2, -6, -7, -5, -7], [-9, 3, -1, -8, -7], [-1, -1, 4, -1, -7], [-2, -3, -4, 1, -7], [-7] * 5
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no complete matrix"),
        ("A C G\n1 2 3", "columns"),
        ("A C G T\n1 2 3 4", "no complete matrix"),
        ("A C G T\n" + "1 2 3\n" * 4, "four rows of four"),
        ("A C G T\n" + "1 x 3 4\n" * 4, "no whole number"),
        ("A C G T\n" + "1 -1 -1 -1\n" * 4, "above 0 with itself"),
        (f"E = 0\nA C G T\n{MATRIX}", "gap_extend_penalty"),
        (f"colour = 3\nA C G T\n{MATRIX}", "colour is no value"),
        (f"O = 1000000\nA C G T\n{MATRIX}", "beyond"),
    ],
)
def test_what_is_no_score_file(tmp_path, text, words):
    (tmp_path / "scores").write_text(text)
    with pytest.raises(InputError, match=words):
        read_scores(str(tmp_path / "scores"))
