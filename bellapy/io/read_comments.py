"""Comments of reads, which stand behind their names: read once more, for what is written of the reads in the end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bellapy.errors import InputError
from bellapy.io.base_tags import ABOUT_BASES
from bellapy.io.compressed import is_read_once
from bellapy.io.fastx import stream_records
from bellapy.io.read_filter import ReadFilter
from bellapy.params.reads import ReadParams
from bellapy.report.log import logger

TAG = re.compile(rb"[A-Za-z][A-Za-z0-9]:[AifZHB]:[ -~]*")
ABOUT_QUALITY = b"rq:f:", b"qs:f:"  # accuracy by PacBio, mean quality by Oxford Nanopore
MANY_VALUES = 16  # an array of more is about bases or signals, not about the read
CHANGED = "the reads have changed since they were read. Start again."
LENGTH = re.compile(rb"[ \t]?\blength=\d+\b")  # as in files of the Sequence Read Archive


def tags_of(comment: bytes) -> list[bytes] | None:
    """The SAM tags that a comment consists of; None: it is something else."""
    fields = comment.split(b"\t")
    return fields if comment and all(TAG.fullmatch(field) for field in fields) else None


def _is_of_bases(tag: bytes, length: int) -> bool:
    """Whether a tag is about single bases of a read of this length, or about their quality."""
    value = tag[5:]
    is_long = tag[3:4] == b"B" and value.count(b",") > MANY_VALUES
    is_as_long = tag[3:4] == b"Z" and len(value) == length
    return is_long or is_as_long or tag.startswith((*ABOUT_BASES, *ABOUT_QUALITY))


class ReadComments:
    """What is true of reads whose bases were changed, in the order of the reads.

    left_out : in how many reads something was left out, by tag.
    """

    def __init__(self, paths: Sequence[str], wanted: ReadParams):
        self._paths, self._wanted = paths, wanted
        self.left_out: dict[str, int] = {}

    def __call__(self, names: Sequence[str]) -> Iterator[bytes]:
        """What is to be put behind each name, with what parts them.

        names : of all reads.

        Raises
        ------
        InputError : the files do not hold these reads any more.
        """
        if any(map(is_read_once, self._paths)):
            logger.info("comments of the reads are left out: standard input and pipes can be read once only")
            yield from (b"" for _ in names)
            return
        n = 0
        for records in ReadFilter(self._wanted)(stream_records(self._paths)):
            for name, comment, bases in zip(records.names, records.comments, records.sequences, strict=True):
                if n == len(names) or name.decode() != names[n]:
                    raise InputError(self._paths[0], CHANGED)
                n += 1
                yield self._true(comment, len(bases))
        if n < len(names):
            raise InputError(self._paths[0], CHANGED)

    def _true(self, comment: bytes, length: int) -> bytes:
        if not comment:
            return b""
        tags = tags_of(comment)
        if tags is None:
            kept = LENGTH.sub(b"", comment).strip()
            if kept != comment:
                self._count("length")
            return b" " + kept if kept else b""
        kept_tags = [tag for tag in tags if not _is_of_bases(tag, length)]
        for tag in sorted(set(tags).difference(kept_tags)):
            self._count(tag[:2].decode())
        return b"".join(b"\t" + tag for tag in kept_tags)

    def _count(self, tag: str) -> None:
        self.left_out[tag] = self.left_out.get(tag, 0) + 1

    def tell(self) -> None:
        """Log what was left out."""
        if self.left_out:
            counts = ", ".join(f"{tag} of {n:,}" for tag, n in sorted(self.left_out.items()))
            logger.info("comments left out, since they are about bases or qualities before correction: %s reads", counts)
