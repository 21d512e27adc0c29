"""Turn a bad argument into an error that names it, both sizes and the way out.

Every public function passes its arguments through here before it computes, so that
no reader meets a traceback from inside NumPy.  ``TypeError`` is for a wrong kind of
object, ``ValueError`` for a wrong size or value.
"""

import math
import operator
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from mha_lib._types import BoolArray, FloatArray, IntArray, Integer, Shape

FLOATS = (np.float32, np.float64)
_DTYPES = tuple(map(np.dtype, FLOATS))
_BOOLS = (bool, np.bool_)


class NotFiniteError(ValueError):
    """An array holds inf or NaN."""


def real_array(name: str, value: ArrayLike, axes: Sequence[str] = ()) -> FloatArray:
    """Return ``value`` as a float32 or float64 array, integers as float64.

    Parameters
    ----------
    name : str
        What the caller calls the argument.
    value : array_like
        Real numbers.
    axes : tuple of str, default ()
        Names of the trailing axes that must exist, as in ``("Tq", "Dk")``.

    Returns
    -------
    array : float array
        ``value`` itself where it is already a float32 or float64 array.

    Raises
    ------
    TypeError
        ``value`` is not made of real numbers, or is a masked array.
    ValueError
        ``value`` is ragged, or has fewer axes than named.
    """
    if type(value) is np.ndarray and value.dtype in _DTYPES and value.ndim >= len(axes):
        return value  # nothing to convert: the usual case, and the quickest
    array = _plain_array(name, value)
    if array.dtype.kind in "iu":
        array = array.astype(np.float64)
    elif array.dtype not in FLOATS:
        way_out = f"convert it with {name}.astype(np.float64)"
        if array.dtype.kind == "c":
            way_out = f"take its real part, {name}.real"
        elif array.dtype.kind not in "bf":  # converted, None would become NaN
            way_out = f"make every entry a number, then {way_out}"
        raise TypeError(
            f"{name} has dtype {array.dtype}, but must be float32, float64 or integer: {way_out}"
        )
    if array.ndim < len(axes):
        raise ValueError(
            f"{name} has shape {array.shape}, {_count(array.ndim, 'axis', 'axes')}, but needs "
            f"at least {len(axes)}, (..., {', '.join(axes)}): add axes with {name}[None]"
        )
    return array


def matrix(name: str, value: ArrayLike, axes: Sequence[str]) -> FloatArray:
    """Return ``value`` as a float array of exactly the two axes named in ``axes``."""
    array = real_array(name, value, axes)
    if array.ndim != len(axes):
        raise ValueError(
            f"{name} has shape {array.shape}, {array.ndim} axes, but must have exactly "
            f"{len(axes)}, ({', '.join(axes)}): pass one matrix, shared by all leading indices"
        )
    return array


def integer(name: str, value: Integer, minimum: int) -> int:
    """Return ``value`` as a Python int of at least ``minimum``; any integer type will do."""
    try:
        if isinstance(value, _BOOLS):  # True counts as 1 in Python; here it is a slip
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(
            f"{name} must be an integer, not {type(value).__name__} {value!r}: "
            f"pass {name} as a whole number such as int({name})"
        ) from None
    if number < minimum:
        raise ValueError(f"{name}={number} is too small: use {name} >= {minimum}")
    return number


def fraction(name: str, value: ArrayLike) -> float:
    """Return ``value`` as a Python float between 0 and 1."""
    array = real_array(name, value)
    if array.ndim > 0:
        raise TypeError(f"{name} has shape {array.shape}, but must be one number: pass {name}[0]")
    number = float(array)
    if not 0 <= number <= 1:
        raise ValueError(f"{name}={number}, but must lie between 0 and 1")
    return number


def positive(name: str, value: ArrayLike) -> float:
    """Return ``value`` as a finite Python float above 0."""
    array = real_array(name, value)
    if array.ndim > 0:
        raise TypeError(f"{name} has shape {array.shape}, but must be one number: pass {name}[0]")
    number = float(array)
    if not 0 < number < np.inf:
        raise ValueError(f"{name}={number}, but must be a finite number above 0: use 0.01 or 1.0")
    return number


def integer_fields(instance: object, names: Iterable[str], minimum: int) -> None:
    """Turn the named fields of a frozen dataclass into Python ints of at least ``minimum``."""
    for name in names:
        object.__setattr__(instance, name, integer(name, getattr(instance, name), minimum))


# Quoted, since NumPy loads its random numbers only when they are named.
def generator(name: str, value: "np.random.Generator") -> "np.random.Generator":
    """Return ``value`` if it is a random generator."""
    if not isinstance(value, np.random.Generator):
        raise TypeError(
            f"{name} must be a generator, not {type(value).__name__}: "
            f"make one with np.random.default_rng(seed)"
        )
    return value


def has(name: str, value: object, attributes: Iterable[str], example: str) -> None:
    """Raise unless ``value`` has all these attributes, as the ``example`` has."""
    for attribute in attributes:
        if not hasattr(value, attribute):
            raise TypeError(
                f"{name} is of type {type(value).__name__}, which has no {attribute}: "
                f"pass {example}"
            )


def integer_array(name: str, value: ArrayLike) -> IntArray:
    """Return ``value`` as an array of integers; its own type may be any integer type."""
    array = _plain_array(name, value)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"{name} has dtype {array.dtype}, but must hold integers: "
            f"convert it with {name}.astype(int)"
        )
    return array


def axis(value: Integer, name: str, array: np.ndarray) -> int:
    """Return ``value`` as the index of an axis of the named array."""
    number = integer("axis", value, minimum=-array.ndim)
    if number >= array.ndim:
        raise ValueError(
            f"axis={number}, but {name} has {array.ndim} axes: use axis <= {array.ndim - 1}"
        )
    return number


def same_shape(
    left_name: str, left: np.ndarray, right_name: str, right: np.ndarray, way_out: str
) -> None:
    """Raise unless two arrays have the same shape."""
    if left.shape != right.shape:
        raise ValueError(
            f"{left_name} has shape {left.shape}, but {right_name} has shape {right.shape}: "
            f"{way_out}"
        )


def within(name: str, array: IntArray, size: int, counted: str) -> None:
    """Raise unless all integers of ``array`` are indices of something that there is ``size`` of."""
    if array.size and not 0 <= array.min() <= array.max() < size:
        raise ValueError(
            f"{name} runs from {array.min()} to {array.max()}, but there are {counted}={size}: "
            f"use 0 to {size - 1}"
        )


def finite(name: str, array: FloatArray) -> None:
    """Raise if there is an inf or a NaN in ``array``."""
    if not np.isfinite(array).all():
        raise NotFiniteError(
            f"{name} holds inf or NaN, with which nothing can be learned: "
            f"find them with np.argwhere(~np.isfinite({name})) and take them out"
        )


def not_empty(names: str, axis: str, size: int, way_out: str) -> None:
    """Raise if an axis of the named arrays has no entry."""
    if size == 0:
        raise ValueError(f"{names} have width {axis}=0: {way_out}")


def same_size(
    left: str, left_size: int | Shape, right: str, right_size: int | Shape, way_out: str
) -> None:
    """Raise unless two axes that must agree have the same size.

    ``left`` and ``right`` name array and axis, as in ``"q axis Dk"``.
    """
    if left_size != right_size:
        raise ValueError(
            f"{left} has size {left_size}, but {right} has size {right_size}: {way_out}"
        )


def divides(count_name: str, count: int, width_name: str, width: int) -> None:
    """Raise unless ``count`` equal parts of ``width`` exist; offer the nearest counts that do."""
    if width % count == 0 and width > 0:
        return
    if width == 0:
        raise ValueError(f"{width_name}=0 leaves nothing to divide among {count_name}={count}")
    small = [i for i in range(1, math.isqrt(width) + 1) if width % i == 0]
    divisors = small + [width // i for i in small]
    below = max(i for i in divisors if i < count)
    above = min((i for i in divisors if i > count), default=None)
    nearest = f"{below}" if above is None else f"{below} or {above}"
    multiple = f"{width - width % count} or " if width > count else ""
    raise ValueError(
        f"{count_name}={count} does not divide {width_name}={width}: use {count_name}={nearest}, "
        f"or make {width_name} a multiple of {count}, such as "
        f"{multiple}{width - width % count + count}"
    )


def leading_shape(named_arrays: Mapping[str, np.ndarray], n_trailing: int) -> Shape:
    """Return the broadcast shape of all but the last ``n_trailing`` axes of the named arrays."""
    shapes = {name: array.shape[: array.ndim - n_trailing] for name, array in named_arrays.items()}
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        what = "leading axes" if n_trailing else "shapes"
        raise ValueError(
            f"the {what} do not broadcast: {listed}; "
            f"make them equal, or 1 where one array serves all"
        ) from None


def broadcasts(name: str, array: np.ndarray, shape: Shape, meaning: str) -> None:
    """Raise unless ``array`` broadcasts to ``shape``, which it means to fill."""
    if not _broadcasts_to(array.shape, shape):
        raise ValueError(
            f"{name} has shape {array.shape}, which does not broadcast to {tuple(shape)}: "
            f"give {meaning}"
        )


def boolean_mask(name: str, value: ArrayLike, shape: Shape | None = None) -> BoolArray:
    """Return ``value`` as a bool array, checked against the ``shape`` that it must broadcast to.

    ``shape=None`` checks the type alone.
    """
    array = _plain_array(name, value)
    if array.dtype != np.bool_:
        raise TypeError(
            f"{name} has dtype {array.dtype}, but must be bool, "
            f"True where this query may look at this key: convert 0/1 with {name}.astype(bool), "
            f"and an additive mask with {name} == 0"
        )
    if shape is not None and not _broadcasts_to(array.shape, shape):
        raise ValueError(
            f"{name} has shape {array.shape}, which does not broadcast to (..., Tq, Tk) = {shape}: "
            f"give it these axes, or 1 where one entry serves all"
        )
    return array


def _plain_array(name, value):
    """Return ``value`` as an array of whatever dtype, unless it is masked or ragged."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, whose own mask would be ignored: fill its gaps with "
            f"{name}.filled(...), and say by a boolean mask argument what nobody may look at"
        )
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"{name} is ragged: its rows have different lengths; give every row the same length"
        ) from error


def _broadcasts_to(shape, target):
    try:
        return np.broadcast_shapes(shape, target) == tuple(target)
    except ValueError:
        return False


def _count(number, singular, plural):
    return f"{number} {singular if number == 1 else plural}"
