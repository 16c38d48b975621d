"""Words that users of minimap2 have in their fingers: -x with the name of a preset, -a and -ax, --cs=long."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence

CS_FORMS = {"--cs=long": "--cs-long", "--cs=short": "--cs"}
OUTPUTS = re.compile(r".*\.(?:sam|bam|cram)(?:\.b?gz)?", re.IGNORECASE)


def from_minimap2(args: Sequence[str], is_preset: Callable[[str], bool]) -> list[str]:
    """The arguments of a command, with --preset, --format and --cs-long for minimap2's words.

    is_preset : whether a word names a preset; in `overlap`, -x is followed by a number as well.
    """
    made, words = list[str](), iter(args)
    for word in words:
        if word == "--":
            return [*made, word, *words]
        if word in CS_FORMS:
            made.append(CS_FORMS[word])
            continue
        if word == "long" and made and made[-1] == "--cs" and not os.path.exists(word):
            made[-1] = CS_FORMS["--cs=long"]
            continue
        match = re.fullmatch(r"-(a?)(?:x(.*))?", word)
        if not match or word == "-":
            made.append(word)
            continue
        asked, name = match.groups()
        if asked and not _names_alignments(args):
            made += ["--format", "sam"]
        if name is None:
            continue
        name = name or next(words, None)
        made += ["--preset" if name is None or asked or is_preset(name) else "-x", *([] if name is None else [name])]
    return made


def _names_alignments(args: Iterable[str]) -> bool:
    """Whether the output's name says SAM, BAM or CRAM already."""
    return any(OUTPUTS.fullmatch(word) for word in args if not word.startswith("--"))
