"""The folder that a command keeps what it has done in: `--workdir`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bellapy.cli.options import Given
from bellapy.errors import ParameterError
from bellapy.params.fields import given_values
from bellapy.params.run import WorkdirParams

if TYPE_CHECKING:  # loaded when needed
    from bellapy.io.workdir import Workdir


@contextmanager
def given_folder(given: Given, kind: str, options: Mapping[str, Any], inputs: Sequence[str]) -> Iterator[Workdir | None]:
    """The folder that was named, new or gone on with; None where none was.

    kind, options, inputs : as in `open_workdir`.
    """
    from bellapy.io.workdir import open_workdir

    place = WorkdirParams(**given_values(given, WorkdirParams._fields))
    if place.workdir is None:
        if place.keep_workdir:
            raise ParameterError("--keep-workdir: name a folder with --workdir")
        yield None
        return
    with open_workdir(place.workdir, kind, options, inputs, keep=place.keep_workdir) as work:
        yield work
