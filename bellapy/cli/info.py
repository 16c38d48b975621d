"""The command `info`."""

from __future__ import annotations


def info() -> None:
    """Versions, processor, devices, caches."""
    from bellapy.io.outputs import open_output
    from bellapy.jobs.info import describe_system

    with open_output("-") as stream:
        stream.write(f"{describe_system()}\n".encode(errors="backslashreplace"))
