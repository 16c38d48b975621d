"""What calls return: alignments as columns, which can be gone through, turned into other tables, and written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from bellapy.errors import BellapyError, ParameterError
from bellapy.io.outputs import check_outputs, open_output
from bellapy.io.overlap_writer import choose_output, formatter, open_writer
from bellapy.io.paf import format_overlaps
from bellapy.io.path_text import cigars
from bellapy.io.table_text import NameTable
from bellapy.jobs.extend import format_extensions
from bellapy.records import Extensions, Overlaps, Paths, ReadSet
from bellapy.report.run_report import RunReport
from bellapy.version import __version__

if TYPE_CHECKING:  # optional
    import pandas
    import pyarrow


class Columns:
    """A table of columns of equal length, which a class that derives from this makes."""

    def columns(self) -> dict[str, np.ndarray]:
        """All columns by name; text is held as objects."""
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """All columns as a data frame.

        Raises
        ------
        BellapyError : pandas is not installed.
        """
        frame: pandas.DataFrame = _installed("pandas").DataFrame(self.columns())
        return frame

    def to_arrow(self) -> pyarrow.Table:
        """All columns as an Arrow table.

        Raises
        ------
        BellapyError : pyarrow is not installed.
        """
        table: pyarrow.Table = _installed("pyarrow").table(self.columns())
        return table


def _installed(name: str) -> Any:
    """A package that is optional."""
    try:
        return import_module(name)
    except ImportError:
        raise BellapyError(f"{name} is not installed; pip install {name} installs it") from None


class Overlap(NamedTuple):
    """An overlap; positions are 0-based, half-open, on the forward strand of each read.

    strand : +1, or -1 where the target's reverse complement aligns.  score : of the alignment.
    n_support : shared k-mers near the seed.  n_matches, n_columns : of the alignment; estimates where there is no path.
    cigar : the path along the target's forward strand, as in PAF; None where none was asked for.
    """

    query: str
    query_length: int
    query_start: int
    query_end: int
    strand: int
    target: str
    target_length: int
    target_start: int
    target_end: int
    n_matches: int
    n_columns: int
    score: int
    n_support: int
    cigar: str | None


@dataclass(frozen=True, repr=False)
class OverlapTable(Columns):
    """Overlaps in the order in which they are written: by query, target and strand.

    reads : all reads, as given.  records : the columns of all overlaps; see `bellapy.records.Overlaps`.
    report : what was done; see docs/report.md.
    """

    reads: ReadSet
    records: Overlaps
    report: RunReport
    _parts: tuple[tuple[Overlaps, Paths], ...] | None = None

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        return f"<OverlapTable: {len(self):,} overlaps of {len(self.reads):,} reads>"

    @overload
    def __getitem__(self, which: int) -> Overlap: ...
    @overload
    def __getitem__(self, which: slice) -> list[Overlap]: ...
    def __getitem__(self, which: int | slice) -> Overlap | list[Overlap]:
        return self._rows[which]

    @cached_property
    def _rows(self) -> list[Overlap]:
        return list(self)

    def __iter__(self) -> Iterator[Overlap]:
        columns = self.columns()
        texts = columns.pop("cigar", None)
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        for row, text in zip(rows, [None] * len(self) if texts is None else texts, strict=True):
            yield Overlap._make((*row, text))

    def columns(self) -> dict[str, np.ndarray]:
        """The fields of `Overlap`, each as an array (n,); `cigar` where paths were asked for."""
        some, lengths = self.records, self.reads.lengths
        names = np.array(self.reads.names, dtype=object)
        found = {
            "query": names[some.query_id], "query_length": lengths[some.query_id], "query_start": some.query_start,
            "query_end": some.query_end, "strand": some.strand, "target": names[some.target_id],
            "target_length": lengths[some.target_id], "target_start": some.target_start, "target_end": some.target_end,
            "n_matches": some.n_matches, "n_columns": some.n_columns, "score": some.score, "n_support": some.n_support,
        }  # fmt: skip
        return found if self._parts is None else {**found, "cigar": _texts([paths for _, paths in self._parts])}

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        cs: bool = False,
        sort: bool = False,
        threads: int = 1,
    ) -> None:
        """Write all overlaps, as `bellapy overlap` does.

        path : a file; its ending says the format: .sam, .bam, anything else PAF; .gz and .bgz compress.
        format : paf, sam, bam or bella.  cs : differences in cs:Z, too.  sort : BAM by target, with an index.

        Raises
        ------
        ParameterError : SAM, BAM or cs without paths, or options that contradict each other.
        OutputError : the file cannot be written.
        """
        output = choose_output(
            os.fspath(path), format, cigar=self._parts is not None and format != "bella", cs=cs, sort=sort
        )
        if output.paths and self._parts is None:
            raise ParameterError("base-level paths are needed for this: call overlap with cigar=True")
        check_outputs({"path": output.path, "the index": output.index})
        with open_writer(output, self.reads, "bellapy.overlap", __version__, threads) as write:
            if self._parts is None or not output.paths:
                for lines in format_overlaps(self.reads, self.records, output.format):
                    write(lines)
                return
            show = formatter(output, self.reads)
            for overlaps, paths in self._parts:
                write(show(overlaps, paths))


@dataclass(frozen=True, repr=False)
class ExtensionTable(Columns):
    """The alignment of every pair, in the order given.

    records : their columns; see `bellapy.records.Extensions`.  report : what was done; see docs/report.md.
    """

    records: Extensions | Overlaps
    report: RunReport
    _reads: ReadSet
    _paths: Paths | None = None

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        return f"<ExtensionTable: {len(self):,} pairs>"

    def columns(self) -> dict[str, np.ndarray]:
        """score, query_start, query_end, target_start, target_end : (n,) int32; `cigar` where paths were asked for."""
        names = ("score", "query_start", "query_end", "target_start", "target_end")
        found = {name: getattr(self.records, name) for name in names}
        return found if self._paths is None else {**found, "cigar": _texts([self._paths])}

    def write(self, path: str | os.PathLike[str], *, cs: bool = False) -> None:
        """Write what `bellapy extend` does.

        cs : differences in cs:Z, too.

        Raises
        ------
        ParameterError : cs without paths.
        OutputError : the file cannot be written.
        """
        if cs and self._paths is None:
            raise ParameterError("base-level paths are needed for this: call extend with cigar=True")
        with open_output(os.fspath(path)) as stream:
            stream.write(format_extensions(self._reads, self.records, self._paths, cs=cs))


def _texts(parts: list[Paths]) -> np.ndarray:
    """CIGARs of all paths, as objects."""
    return text_objects([cigars(paths) for paths in parts])


def text_objects(tables: list[NameTable]) -> np.ndarray:
    """All texts, as objects."""
    return np.array([text.decode() for table in tables for text in table.to_list()], dtype=object)
