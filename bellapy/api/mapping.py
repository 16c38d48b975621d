"""Mapping of reads to a reference, as a function that can be called again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from bellapy.api.inputs import Reads, as_reads, as_records, named, no_more, paths_of
from bellapy.compute.gpu.devices import choose_device
from bellapy.compute.resources import Resources
from bellapy.compute.threads import usable_cores
from bellapy.errors import ParameterError
from bellapy.io.path_text import cigars_of
from bellapy.jobs.map.batches import batches
from bellapy.jobs.map.choose import PRIMARY, SECONDARY, SUPPLEMENTARY
from bellapy.jobs.map.circles import circles_of
from bellapy.jobs.map.output import draw
from bellapy.jobs.map.pipeline import Mapped, Mapper
from bellapy.jobs.map.run import Wanted, cards_for, map_all, prepare
from bellapy.params import MapParams, map_preset
from bellapy.params.fields import check, fields_of, given_values, options_of
from bellapy.params.map import MapOptions, MapWriting, ScoreOptions, adjusted
from bellapy.params.run import RunParams
from bellapy.report.run_report import RunReport

if TYPE_CHECKING:  # loaded when needed
    from bellapy.io.fastx_lines import Records
    from bellapy.jobs.map.gpu.rounds import MappingCards

KINDS = {PRIMARY: "primary", SECONDARY: "secondary", SUPPLEMENTARY: "supplementary"}


class Mapping(NamedTuple):
    """An alignment of a read; positions are 0-based, half-open, on the forward strand of read and reference.

    strand : +1, or -1 where the read's reverse complement aligns.  kind : primary, secondary or supplementary.
    score : of the alignment; of the chain where nothing was aligned.  n_matches, n_columns : of the alignment.
    cigar : along the reference, without clips; None where nothing was aligned.
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
    quality: int
    kind: str
    score: int
    cigar: str | None


class Aligner:
    """A reference that reads can be mapped to, by several threads at once.

    Parameters
    ----------
    reference : a FASTA file, a file made by `bellapy index`, a dictionary of sequences by name, or pairs of both.
    preset : clr, ont, hq or hifi; None: by the errors of the first reads that are mapped.
    align : False: only chain seeds.  secondary : give secondary alignments, too.
    circular : names of sequences that are circles, or `all`.  An alignment over an origin gives a record for each part, with
        the score and the quality of the whole.
    device : cpu; cuda, the GPUs, which pay for millions of bases in a call; auto, the GPUs if there are any.
    options : match, mismatch, gap_open, gap_extend, zdrop, end_bonus, most_secondary, as options of `bellapy map`.

    Raises
    ------
    ParameterError : an option out of range.  InputError : a reference that cannot be read.  TypeError : no such option.
    DeviceError : a GPU is asked for and none can be used.
    """

    def __init__(
        self, reference: Reads, *, preset: str | None = None, align: bool = True, secondary: bool = True,
        circular: Sequence[str] | str = (), device: str = "cpu", **options: Any,
    ):  # fmt: skip
        known = options_of(MapOptions, MapWriting, ScoreOptions)
        names = (*ScoreOptions._fields, "zdrop", "end_bonus", "most_secondary")
        no_more(options, names)
        check(given_values(options, names) | {"device": device}, known | fields_of(RunParams))
        self._given, self._align, self._secondary = options, align, secondary
        self._circular = circles_of(circular, align)
        self._preset, self._lock = preset, Lock()
        self._mapper: Mapper | None = None
        adjusted(map_preset(preset), options)  # told now
        paths = paths_of(reference)
        if paths is not None and len(paths) > 1:
            raise ParameterError("reference: one file is needed")
        self._reference = as_reads(reference) if paths is None else paths[0]
        self.report = RunReport("bellapy.map")
        self._device = choose_device(device)
        self._cards: MappingCards | None = None

    def map(self, reads: Reads | bytes, *, threads: int | None = None) -> Iterator[Mapping]:
        """The alignments of reads, in the order of reads, the best first.

        The first call makes the index, and learns from its first reads how wide bands have to be.

        Parameters
        ----------
        reads : as those of `bellapy.overlap`; names may occur twice.  Or one sequence, which is named "read"; text is taken
            for a sequence if all of it stands for bases, and no file has this name.  threads : None: all cores.

        Raises
        ------
        InputError : a reference or reads that cannot be read.
        """
        stream = batches(as_records(named(reads, "read")))
        first = next(stream, None)
        if first is None:
            return
        threads = usable_cores() if threads is None else threads
        mapper = self._ready(first, threads)
        for parts in map_all(mapper, self._cards, chain([first], stream), list, threads):
            for part in parts:
                yield from self._records(mapper, part)

    def _adjust(self, params: MapParams) -> MapParams:
        return adjusted(params, self._given)

    def _ready(self, first: Records, threads: int) -> Mapper:
        with self._lock:
            if self._mapper is None:
                wanted = Wanted(self._preset, self._adjust, self._align, self._circular)
                self._cards = cards_for(Resources(threads, self._device, devices=self.report.devices))
                self._mapper = prepare(self._reference, first, wanted, self.report, threads, cards=self._cards)
            return self._mapper

    def _records(self, mapper: Mapper, mapped: Mapped) -> Iterator[Mapping]:
        hits, index, paths = mapped.hits, mapper.index, mapped.paths
        texts: list[bytes] | None = None
        if paths is not None:
            texts = cigars_of(draw(paths, hits.row, mapped.codes, index.codes)).to_list()
        names, lengths = mapped.records.names, [len(sequence) for sequence in mapped.records.sequences]
        columns = (
            hits.read, hits.kind, hits.strand, hits.q_start, hits.q_end, hits.sequence, hits.t_start, hits.t_end,
            hits.n_matches, hits.n_columns, hits.quality, hits.score,
        )  # fmt: skip
        for h, row in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            read, kind, strand, q_start, q_end, target, t_start, t_end, matches, n_columns, quality, score = row
            if kind == SECONDARY and not self._secondary:
                continue
            yield Mapping(
                names[read].decode(), lengths[read], q_start, q_end, -1 if strand else 1, index.names[target],
                int(index.lengths[target]), t_start, t_end, matches, n_columns, quality, KINDS[kind], score,
                texts[h].decode() if texts is not None else None,
            )  # fmt: skip


def map(reference: Reads, reads: Reads, *, threads: int | None = None, **options: Any) -> Iterator[Mapping]:
    """Map reads to a reference, one after another: what `bellapy map` does.  Use `Aligner` to map more than once.

    Parameters
    ----------
    reference, reads : as the reads of `overlap`; the reference may also be a file made by `bellapy index`.
    threads : None: all cores.
    options : those of `Aligner`.

    Returns
    -------
    The alignments, in the order of reads, then of falling score; reads without one have none.

    Raises
    ------
    ParameterError, InputError : as `Aligner`, and for reads that cannot be read.
    """
    return Aligner(reference, **options).map(reads, threads=threads)
