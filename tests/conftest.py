"""What several test modules share."""

import numpy as np
import pytest


@pytest.fixture
def rng():
    """Return the same random numbers for every test."""
    return np.random.default_rng(20170612)


@pytest.fixture
def awkward():
    """Return a function that gives an array a read-only copy lying backwards in memory."""

    def make(array):
        copy = np.flip(np.flip(array).copy())
        copy.flags.writeable = False
        return copy

    return make
