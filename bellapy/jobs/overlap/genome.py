"""What the spectrum of k-mers shows of the genome: its share in repeats, and how far two haplotypes are apart.

k-mers that both haplotypes have make a peak of the spectrum, those of one alone a smaller peak at half its count (Vurture et
al. 2017, doi:10.1093/bioinformatics/btx153).  Uneven depth makes shoulders, no second peak, and errors a slope.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bellapy.records import Estimate

LEAST_TELLING, REPEATED = 6.0, 1.75  # copies of a k-mer that occurs once; times as many are of a repeat
LEVEL_FACTOR = 1.4  # reads whose level is so far from the usual one lie in repeats, or are of another molecule or species
LEAST_PEAK = 12  # a count; with less a peak at half of it is part of the slope that errors make
WINDOW = 10  # one in so many of the counts up to the peak are taken together
LEAST_SURE = 4  # standard deviations by which a peak has to rise from what lies on either side of it
HIGHEST = 1.45  # a peak, in units of what depth and error rate let expect: the rate holds what haplotypes differ in
ABOVE = 1.05  # of the depth: no k-mer that occurs once is more frequent
SLOPE, HALF, VALLEY, END = (0.2, 0.42), (0.42, 0.575), (0.575, 0.87), 1.6  # parts of the spectrum, in units of the peak


def share_in_repeats(spectrum: np.ndarray, found: Estimate, k: int) -> float | None:
    """The share of the genome whose k-mers occur elsewhere in it; None where depth is too low to tell two copies from one.

    spectrum : (n,) distinct k-mers by count, which are repeats from REPEATED times the usual count on.
    """
    if found.depth is None or found.error_rate is None:
        return None
    usual = found.depth * (1 - found.error_rate) ** k
    if usual < LEAST_TELLING:
        return None
    counts = np.arange(len(spectrum))
    places = spectrum * counts
    real = counts > usual / 4  # errors lie below
    in_repeats = counts > REPEATED * usual
    return float(places[in_repeats].sum() / max(1.0, places[real].sum()))


class _Sums(NamedTuple):
    """A spectrum, and for each count the sum of it over the counts near to it; (n,) float64."""

    spectrum: np.ndarray
    near: np.ndarray

    def extreme(self, choose, low: float, high: float) -> int:
        """The count between two, both included, with the highest or the lowest sum; choose : np.argmax or np.argmin."""
        begin, end = min(round(low), len(self.near) - 1), round(high) + 1
        return begin + int(choose(self.near[begin:end]))

    def rises(self, top: int, beside: int) -> bool:
        """Whether there are surely more k-mers near the one count than near the other."""
        above, below = self.near[top], self.near[beside]
        return bool(above - below > LEAST_SURE * math.sqrt(above + below))


def near_usual(level: np.ndarray, usual: float) -> np.ndarray:
    """Mask of the reads whose level is about the usual one; level : of `Survey`."""
    return (level * LEVEL_FACTOR > usual) & (level < LEVEL_FACTOR * usual)


def find_heterozygosity(spectrum: np.ndarray, depth: float, error_rate: float, k: int) -> float | None:
    """Differences per base between two haplotypes; None where the spectrum shows no second peak.

    Of the k-mers under the main peak each is one place of the genome, of those under the other one two are: a place shows
    two k-mers where one of its k bases differs.

    Parameters
    ----------
    spectrum : (n,) distinct k-mers of a sample by count, of the reads `near_usual`; not scaled up.
    depth, error_rate : of `Estimate`.
    """
    mean = depth * (1 - error_rate) ** k
    width = max(1, round(mean / WINDOW / 2))
    sums = _Sums(spectrum, np.convolve(spectrum, np.ones(2 * width + 1), "same"))
    peak = sums.extreme(np.argmax, mean, max(mean, min(HIGHEST * mean, ABOVE * depth)))
    if peak < LEAST_PEAK:
        return None
    slope, half, valley = (
        sums.extreme(choose, *(share * peak for share in part))
        for choose, part in ((np.argmin, SLOPE), (np.argmax, HALF), (np.argmin, VALLEY))
    )
    if not (sums.rises(half, slope) and sums.rises(half, valley)):
        return None
    of_one, of_both = spectrum[slope:valley].sum() / 2, spectrum[valley : round(END * peak)].sum()
    return float(1 - (of_both / (of_one + of_both)) ** (1 / k))
