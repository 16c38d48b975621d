"""Hypothesis profiles, and fixtures of several test modules."""

from __future__ import annotations

import csv
import gzip
import logging
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from numba import config as numba_config
from strategies import make_reads, make_seeds, on_tables

from bellapy.engines.extend import BACKENDS
from bellapy.errors import BellapyError
from bellapy.report.log import logger

ORACLE = Path(__file__).parent / "data" / "oracle_seqan_xdrop.tsv.gz"

settings.register_profile(
    "default", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_configure(config: pytest.Config) -> None:
    """Let numbers wrap around where nothing is compiled, as they do in compiled code."""
    if numba_config.DISABLE_JIT:
        config.addinivalue_line("filterwarnings", "ignore:overflow encountered in scalar:RuntimeWarning")


if numba_config.ENABLE_CUDASIM:
    from numba.cuda.simulator.kernelapi import FakeCUDAShared

    shared_array, making = FakeCUDAShared.array, threading.Lock()

    def made_once(shared, shape, dtype):
        """Shared arrays of the simulator, one for each line of a kernel.

        Its own function makes two where two threads come to a line at once, and each thread goes on with another one.
        """
        if shape == 0:
            return shared_array(shared, shape, dtype)
        caller = sys._getframe(1)
        line = caller.f_code.co_filename, caller.f_lineno
        with making:
            if line not in shared._allocations:
                shared._allocations[line] = np.empty(shape, dtype)
        return shared._allocations[line]

    FakeCUDAShared.array = made_once


@pytest.fixture(scope="session", params=sorted(BACKENDS))
def device(request) -> str:
    """The name of every backend that runs here."""
    try:
        BACKENDS[request.param]()
    except (ImportError, BellapyError) as error:
        pytest.skip(f"backend {request.param} does not run here: {error}")
    return request.param


@pytest.fixture(scope="session")
def backend(device):
    """The function of every backend that runs here."""
    return on_tables(BACKENDS[device]())


@pytest.fixture
def quick_threads():
    """Numba's simulator waits for its threads in a loop: let others in more often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4 if numba_config.ENABLE_CUDASIM else before)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def said(monkeypatch, caplog):
    """What goes to the log, as `caplog`, and once: after a run, pytest would hear it from the package's logger, too."""
    monkeypatch.setattr(logger, "propagate", True)
    monkeypatch.setattr(logger, "handlers", [])
    caplog.set_level(logging.INFO, logger=logger.name)
    return caplog


@pytest.fixture
def rng() -> np.random.Generator:
    """The same random numbers for every test."""
    return np.random.default_rng(20240)


@pytest.fixture(scope="session")
def oracle():
    """SeqAn's extensions: rows by seed length and X, with the reads (V and H of each row) and seeds they are about."""
    with gzip.open(ORACLE, "rt") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert len(rows) == 3000
    groups = {}
    for row in rows:
        groups.setdefault((int(row["k"]), int(row["X"])), []).append(row)
    cases = {}
    for key, group in groups.items():
        reads = make_reads([row[name] for row in group for name in ("seqV", "seqH")])
        even = np.arange(0, 2 * len(group), 2)
        places = ([int(row[name]) for row in group] for name in ("posV", "posH"))
        cases[key] = group, reads, make_seeds(even, even + 1, np.ones(len(group)), *places, key[0])
    return cases
