"""The output of overlaps: its format, chosen by its name, and its writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from bellapy.errors import ParameterError
from bellapy.io.outputs import alignment_format, is_special, open_output
from bellapy.params.overlap import FORMATS

if TYPE_CHECKING:  # for types alone: what this module asks for is checked before NumPy is loaded
    from bellapy.records import Overlaps, Paths, ReadSet


@dataclass(frozen=True)
class Destination:
    """path : "-" is standard output.  format : one of `params.overlap.FORMATS`.

    cigar, cs : tags to write.  sort : BAM by target, with an index.  paths : whether paths are needed.
    """

    path: str
    format: str
    cigar: bool
    cs: bool
    sort: bool
    paths: bool
    both_directions: bool = False

    @property
    def index(self) -> str | None:
        """The file of a sorted BAM's index."""
        return f"{self.path}.bai" if self.sort else None

    def check(self, names: Sequence[str]) -> None:
        """Raise InputError for names of reads that the format has no place for."""
        if self.format in ("sam", "bam"):
            _sam().check_names(names)


def choose_output(
    path: str, overlap_format: str | None = None, *, cigar: bool = False, cs: bool = False, sort: bool = False,
    trim: bool = False, both_directions: bool = False,
) -> Destination:  # fmt: skip
    """The output that options ask for.

    Parameters
    ----------
    overlap_format : None: by the ending of `path` (.sam, .bam), else PAF.
    trim : paths are to be trimmed.

    Raises
    ------
    ParameterError : an unknown format, or options that contradict each other.
    """
    overlap_format = alignment_format(path, overlap_format)
    if overlap_format not in FORMATS:
        raise ParameterError(f"--format {overlap_format}: choose from {', '.join(FORMATS)}")
    paths = cigar or cs or trim or overlap_format in ("sam", "bam")
    if overlap_format == "bella" and paths:
        raise ParameterError("--format bella: has no place for base-level paths; leave out --cigar, --cs, --trim-identity")
    if sort and (overlap_format != "bam" or path == "-" or is_special(path)):
        raise ParameterError("--sort: only BAM is sorted; name a file that ends in .bam with -o")
    if both_directions and (overlap_format != "paf" or paths):
        raise ParameterError("--both-directions: only PAF without base-level paths is written so")
    return Destination(path, overlap_format, cigar, cs, sort, paths, both_directions)


def formatter(output: Destination, reads: ReadSet) -> Callable[[Overlaps, Paths], bytes]:
    """What makes lines of overlaps and their paths."""
    from bellapy.io import paf, sam, table_text

    names = table_text.NameTable.of(reads.names)
    if output.format == "paf":
        return lambda overlaps, paths: paf.format_with_paths(reads, overlaps, paths, output.cigar, output.cs, names)
    return lambda overlaps, paths: sam.format_records(reads, overlaps, paths, output.cs, names)


@contextmanager
def open_writer(
    output: Destination, reads: ReadSet, command: str, version: str, threads: int
) -> Iterator[Callable[[bytes], object]]:
    """A function that takes lines; SAM and BAM get a header first."""
    if output.format in ("paf", "bella"):
        with open_output(output.path) as stream:
            yield stream.write
        return
    header = _sam().make_header(reads, command, version)
    if output.format == "bam":
        with _sam().open_bam(output.path, header, output.index, threads) as write:
            yield write
        return
    with open_output(output.path) as stream:
        stream.write(header.encode())
        yield stream.write


def _sam() -> ModuleType:
    """What writes SAM and BAM, which loads compiled code."""
    from bellapy.io import sam

    return sam
