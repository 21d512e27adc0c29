"""Central differences, with which every gradient of the library is compared."""

import numpy as np

STEP = 1e-5
TOLERANCE = 1e-6  # relative; the differences themselves are good to about 1e-9


def relative_error(gradient, loss, array):
    """Return how far ``gradient`` is from the central differences of ``loss()``.

    Each number of ``array`` is moved up and down in place, so that ``loss`` must read it there.
    The result is the length of the difference over the length of the differences, which must not
    be 0: a gradient that is 0 everywhere proves nothing here.
    """
    expected = np.empty(array.shape)
    for index in np.ndindex(array.shape):
        kept = array[index]
        array[index] = kept + STEP
        above = loss()
        array[index] = kept - STEP
        below = loss()
        array[index] = kept
        expected[index] = (above - below) / (2 * STEP)
    if gradient.shape != array.shape:
        raise AssertionError(f"gradient {gradient.shape} of an array {array.shape}")
    length = np.linalg.norm(expected)
    if length < 1e-3:
        raise AssertionError("the gradient vanishes, so that nothing is compared")
    return np.linalg.norm(gradient - expected) / length
