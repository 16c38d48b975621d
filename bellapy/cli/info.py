"""The command `info`."""

from __future__ import annotations

from bellapy.io.outputs import open_output


def info() -> None:
    """Versions, processor, devices, caches."""
    from bellapy.jobs.info import describe_system

    told = f"{describe_system()}\n".encode(errors="backslashreplace")
    with open_output("-") as stream:
        stream.write(told)
