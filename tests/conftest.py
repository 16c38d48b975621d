"""Hypothesis profiles, and fixtures of several test modules."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from bellapy.errors import BellapyError
from bellapy.xdrop import BACKENDS

settings.register_profile(
    "default", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


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
    return BACKENDS[device]()


@pytest.fixture
def rng() -> np.random.Generator:
    """The same random numbers for every test."""
    return np.random.default_rng(20240)
