"""How the main job walks through the files: how often it leaves one for another, and climbs back into one that waits.

    python benchmarks/walk.py READS

Counted are Python's calls between files of the command line, the api and the job `overlap`, in the first thread, one task to
a round.  What only hands out records and numbers (PLUMBING) is looked through.  A stay is a function of another file that a
file calls; it counts once.  What runs while modules are imported, such as the bodies of classes, is no call.  A climb is a
call into a file that is itself waiting for the call to end.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import bellapy
from bellapy.cli import app

PACKAGE = f"{Path(bellapy.__file__).parent}{os.sep}"
ROOMS = "cli/", "api/", "jobs/overlap/"
PLUMBING = "work.py", "store.py", "report.py", "app.py", "options.py", "values.py"
NO_CALLS = "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "__getattr__"


class Walk:
    """What a profiler sees."""

    def __init__(self) -> None:
        self.stays: Counter[tuple[str, str, str]] = Counter()
        self.climbs: Counter[tuple[str, str, str]] = Counter()
        self._stack: list[str] = []
        self._importing = 0

    def see(self, frame: FrameType, event: str, _: object) -> None:
        """As `sys.setprofile` calls it."""
        code = frame.f_code
        name = code.co_filename.removeprefix(PACKAGE)
        if event not in ("call", "return"):
            return
        if code.co_name == "<module>":
            self._importing += 1 if event == "call" else -1
        if self._importing or not name.startswith(ROOMS) or code.co_name in ("<module>", *NO_CALLS):
            return
        if event == "return":
            del self._stack[-1:]
            return
        before = next((file for file in reversed(self._stack) if not file.endswith(PLUMBING)), "")
        through = bool(self._stack) and self._stack[-1].endswith(PLUMBING)
        if not name.endswith(PLUMBING) and (name != before or through):
            self.stays[before, name, code.co_name] += 1
            if name in self._stack:
                self.climbs[before, name, code.co_name] += 1
        self._stack.append(name)


def walk_through(reads: str) -> tuple[int, Walk]:
    """Run the job with a file of reads: its status, and what was seen."""
    walk, sys.argv = Walk(), ["bellapy", "overlap", "-q", "-t1", "--device", "cpu", reads, "-o", os.devnull]
    sys.setprofile(walk.see)
    try:
        code = app._guarded(app.app)
    finally:
        sys.setprofile(None)
    return code, walk


def main() -> None:
    """Run the job, and tell."""
    code, walk = walk_through(sys.argv[1])
    files = {file for _, file, _ in walk.stays}
    print(f"status {code}; {len(files)} files, {len(walk.stays)} stays, {sum(walk.climbs.values())} climbs")
    for (before, file, function), n in walk.climbs.items():
        print(f"{n} from {before} into {file}: {function}")


if __name__ == "__main__":
    main()
