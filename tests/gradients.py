"""Central differences, with which every gradient of the library is compared."""

import numpy as np

STEP = 1e-5
TOLERANCE = 1e-6  # relative; the differences themselves are good to about 1e-9
N_MOVED = 101  # numbers of a larger array that are moved; a wrong row or column is among them


def relative_error(gradient, loss, array):
    """Return how far ``gradient`` is from the central differences of ``loss()``.

    Numbers of ``array`` are moved up and down in place, so that ``loss`` must read it there.  The
    result is the length of the error over the length of the differences, which must not be 0: a
    gradient that is 0 everywhere proves nothing here.
    """
    if gradient.shape != array.shape:
        raise AssertionError(f"gradient {gradient.shape} of an array {array.shape}")
    moved = np.random.default_rng(array.size).permutation(array.size)[:N_MOVED]
    found, expected = [], []
    for index in zip(*np.unravel_index(moved, array.shape), strict=True):
        kept = array[index]
        array[index] = kept + STEP
        above = loss()
        array[index] = kept - STEP
        below = loss()
        array[index] = kept
        found.append(gradient[index])
        expected.append((above - below) / (2 * STEP))
    length = np.linalg.norm(expected)
    if length < 1e-3:
        raise AssertionError("the gradient vanishes, so that nothing is compared")
    return np.linalg.norm(np.subtract(found, expected)) / length
