"""Whole-genome alignment, as a function."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellapy.api.inputs import Reads, as_records, named, no_more, paths_of, run_params, source_of
from bellapy.api.tables import Columns, Overlap
from bellapy.errors import ParameterError
from bellapy.io.genomes import genome_of
from bellapy.io.maf import Layout, cigar, format_alignments, format_of
from bellapy.io.outputs import open_output
from bellapy.jobs.wga.chain import join_chains
from bellapy.jobs.wga.means import Means
from bellapy.jobs.wga.pipeline import align_genomes
from bellapy.jobs.wga.run import ReadGenomesStage, check_size
from bellapy.params.fields import options_of
from bellapy.params.wga import WgaParams, make_wga_params
from bellapy.records.genomes import Alignment, Genome
from bellapy.report.run_report import RunReport
from bellapy.version import __version__


@dataclass(frozen=True, repr=False)
class AlignmentTable(Columns):
    """Alignments of two genomes, by their place on the target.

    records : see `bellapy.records.genomes.Alignment`.  report : what was done; see docs/report.md.
    """

    target: Genome
    query: Genome
    records: tuple[Alignment, ...]
    report: RunReport

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        return f"<AlignmentTable: {len(self):,} alignments>"

    def columns(self) -> dict[str, np.ndarray]:
        """Those of `Overlap` but n_support, each as an array (n,); positions are on the forward strand of both."""
        layout, rows = Layout(self.target, self.query), []
        for one in self.records:
            (target, query), (t_length, q_length) = layout.names(one), layout.lengths(one)
            matches, columns = layout.counts(one)[0], int(one.runs[:, 1].sum())
            rows.append((query, q_length, *one.forward(q_length), one.strand, target, t_length, one.t_start, one.t_end,
                         matches, columns, one.score, cigar(one)))  # fmt: skip
        names = [name for name in Overlap._fields if name != "n_support"]
        columns_of = zip(*rows, strict=True) if rows else ((),) * len(names)
        texts = {"query", "target", "cigar"}
        return {
            name: np.array(column, dtype=object if name in texts else np.int64)
            for name, column in zip(names, columns_of, strict=True)
        }

    def write(self, path: str | os.PathLike[str], *, format: str | None = None, chain: bool = False) -> None:
        """Write all alignments, as `bellapy wga` does.

        path : a file; its ending says the format: .maf, .paf, .sam, .axt, .psl or .chain; .gz compresses.
        format : one of them.  chain : join alignments to chains, for the format chain.

        Raises
        ------
        ParameterError : a name that tells no format, or chains in another one.  OutputError : the file cannot be written.
        """
        kind = format_of(os.fspath(path), format)
        if chain and kind != "chain":
            raise ParameterError(f"chain: joins alignments over long gaps, which {kind} does not show; write .chain")
        written = join_chains(list(self.records)) if chain else list(self.records)
        with open_output(os.fspath(path)) as stream:
            for text in format_alignments(kind, self.target, self.query, written):
                stream.write(text)


def wga(
    target: Reads | bytes, query: Reads | bytes | None = None, *, threads: int | None = None, device: str = "auto",
    max_memory: int | str | None = None, **options: Any,
) -> AlignmentTable:  # fmt: skip
    """Align two genomes, target first: what `bellapy wga` does.

    Parameters
    ----------
    target, query : a sequence, a FASTA file, a dictionary of sequences by name, or pairs of both; lower case marks repeats.
        query None: the target is aligned with itself.
    threads : None: all cores.  device : cpu, cuda, or auto, as of `bellapy wga`.  max_memory : bytes, or 2GiB.
    options : the options of `bellapy wga` by their names, with _ for -: preset="close", one_to_one=True.

    Raises
    ------
    ParameterError : an option out of range.  InputError : sequences that cannot be read.
    DeviceError : no GPU can be used.  TypeError : an option of no such name.
    """
    no_more(options, options_of(WgaParams).keys() - {"itself"})
    params = make_wga_params({**options, "itself": query is None})
    report = RunReport("bellapy.wga", __version__, params.to_dict())
    means = Means.of(run_params(threads, device, max_memory), report, params)
    with report.stage(ReadGenomesStage("read")) as stage:
        first = _genome(target, "target", params)
        second = first if query is None else _genome(query, "query", params)
        stage.target_bases, stage.query_bases = first.n_bases, second.n_bases
    found = align_genomes(first, second, params, means)
    report.finish()
    return AlignmentTable(first, second, tuple(found), report)


def _genome(given: Reads | bytes, name: str, params: WgaParams) -> Genome:
    sequences = named(given, name)
    if len(paths_of(sequences) or [""]) != 1:
        raise ParameterError(f"{name}: one file is needed")
    genome = genome_of(as_records(sequences), source_of(sequences))
    check_size(genome, source_of(sequences), params)
    return genome
