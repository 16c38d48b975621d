"""A command under a bound on memory that compiled starts again, where nothing is lost by it."""

import pytest

from bellapy.cli.session import session
from bellapy.compute import own_process
from bellapy.errors import MemoryLimitError
from bellapy.io import outputs


class StartedAgain(Exception):
    """Stands for the end of this process."""


@pytest.mark.parametrize(
    ("compiled", "stdin", "writing", "again"),
    [(1.0, False, False, True), (0.0, False, False, False), (1.0, True, False, False), (1.0, False, True, False)],
)
def test_a_command_that_compiled_starts_again(monkeypatch, capsysbinary, tmp_path, compiled, stdin, writing, again):
    def start_again() -> None:
        raise StartedAgain

    monkeypatch.setattr(own_process, "may_start_again", lambda: True)
    monkeypatch.setattr(own_process, "start_again", start_again)
    monkeypatch.setattr(outputs, "_streams", [])
    (tmp_path / "reads.fa").write_text(">r\nACGT\n")
    inputs = ["-" if stdin else str(tmp_path / "reads.fa")]
    with (
        pytest.raises(StartedAgain if again else MemoryLimitError),
        session({"threads": 1, "max_memory": "100M"}, inputs, {}) as run,
    ):
        run.report.compile_s = compiled
        if writing:
            with outputs.open_output("-") as stream:
                stream.write(b"begun\n")
        raise MemoryLimitError(10**8, "the alignment", 2 * 10**8)
