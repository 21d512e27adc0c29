"""Turn a bad argument into an error that names it, both sizes and how to fix it.

Every public function passes its arguments through here before it computes, so that
no reader meets a traceback from inside NumPy.  ``TypeError`` is for a wrong kind of
object, ``ValueError`` for a wrong size or value.
"""

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike

from mha_lib._types import BoolArray, FloatArray, IntArray, Integer, Shape

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_BOOLS = (bool, np.bool_)
MOST_ENTRIES = 2**36  # of one array


class NotFiniteError(ValueError):
    """An array holds inf or NaN."""


@contextmanager
def needing(module: str, extra: str = "book") -> Iterator[None]:
    """Say how to install what a module needs beyond NumPy, where an import inside fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == "mha_lib":
            raise
        raise ModuleNotFoundError(
            f'{module} needs {error.name}, which is not installed: pip install "mha_lib[{extra}]"',
            name=error.name,
        ) from None


def words(name: str, value: str | Sequence[str]) -> list[str]:
    """Return ``value`` as a list of words; a text is split at spaces."""
    if isinstance(value, str):
        return value.split()
    found = list(value) if isinstance(value, Iterable) else [value]
    for word in found:
        if not isinstance(word, str):
            raise TypeError(
                f"{name} must be a list of words, but holds {type(word).__name__} {word!r}: "
                f"pass [str(word) for word in {name}]"
                if isinstance(value, Iterable)
                else f"{name} must be a list of words, not {type(value).__name__} {value!r}: "
                f"pass a list or a text, such as {name}='the cat sat'"
            )
    return found


def real_array(
    name: str, value: ArrayLike, axes: Sequence[str] = (), gap: str = "0.0"
) -> FloatArray:
    """Return ``value`` as a float32 or float64 array, integers as float64.

    Parameters
    ----------
    name : str
        What the caller calls the argument.
    value : array_like
        Real numbers.
    axes : tuple of str, default ()
        Names of the trailing axes that must exist, as in ``("Tq", "Dk")``.
    gap : str, default "0.0"
        What to put where a masked array has nothing.

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
    if type(value) is np.ndarray and value.dtype in FLOATS and value.ndim >= len(axes):
        return value  # nothing to convert: the usual case, and the quickest
    array = _plain_array(name, value, gap)
    if array.dtype.kind in "iu":
        array = array.astype(np.float64)
    elif array.dtype not in FLOATS:
        raise TypeError(
            f"{name} has dtype {array.dtype}, but must be float32, float64 or integer: "
            f"{_as_numbers(name, array)}"
        )
    if array.ndim < len(axes):
        indexed, missing = _indexed(name, value), len(axes) - array.ndim
        raise ValueError(
            f"{name} has shape {array.shape}, {_count(array.ndim, 'axis', 'axes')}, but needs "
            f"at least {len(axes)}, (..., {', '.join(axes)}): add what is missing with "
            f"{indexed}[{', '.join(['None'] * missing)}]"
            + (f", or {indexed}[:, None] for a column" if array.ndim == missing == 1 else "")
        )
    return array


def matrix(name: str, value: ArrayLike, axes: Sequence[str]) -> FloatArray:
    """Return ``value`` as a float array of exactly the axes named in ``axes``."""
    array = real_array(name, value, axes)
    if array.ndim != len(axes):
        first = ", ".join("0" * (array.ndim - len(axes)))
        raise ValueError(
            f"{name} has shape {array.shape}, {array.ndim} axes, but must have exactly "
            f"{len(axes)}, ({', '.join(axes)}): pass one that all share, such as "
            f"{_indexed(name, value)}[{first}]"
        )
    return array


def integer(name: str, value: Integer, minimum: float) -> int:
    """Return ``value`` as a Python int of at least ``minimum``; any integer type will do."""
    try:
        if isinstance(value, _BOOLS):  # True counts as 1 in Python; here it is a slip
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(
            f"{name} must be an integer, not {type(value).__name__} {value!r}: "
            f"{_as_whole(name, value, minimum)}"
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
        raise ValueError(
            f"{name}={number}, but must lie between 0 and 1: use a number such as {name}=0.5"
        )
    return number


def flag(name: str, value: bool) -> bool:
    """Return ``value`` if it is True or False; any other object might be read as True."""
    if not isinstance(value, _BOOLS):
        raise TypeError(
            f"{name} must be True or False, not {type(value).__name__} {value!r}: "
            f"pass {name}=True or {name}=False"
        )
    return bool(value)


def room(name: str, size: int, n_entries: int) -> None:
    """Raise if an array that ``name`` asks for has more entries than any memory holds."""
    if n_entries > MOST_ENTRIES:
        raise ValueError(
            f"{name}={size} asks for {n_entries} numbers at once, more than fit into memory: "
            f"use a smaller {name}"
        )


def positive(name: str, value: ArrayLike, example: float) -> float:
    """Return ``value`` as a finite Python float above 0."""
    array = real_array(name, value)
    if array.ndim > 0:
        raise TypeError(f"{name} has shape {array.shape}, but must be one number: pass {name}[0]")
    number = float(array)
    if not 0 < number < np.inf:
        raise ValueError(
            f"{name}={number}, but must be a finite number above 0: "
            f"use a number such as {name}={example}"
        )
    return number


def integer_fields(instance: object, names: Iterable[str], minimum: float) -> None:
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
    if isinstance(value, type):
        raise TypeError(f"{name} is the class {value.__name__} itself: pass {example}")
    for attribute in attributes:
        if not hasattr(value, attribute):
            raise TypeError(
                f"{name} is of type {type(value).__name__}, which has no {attribute}: "
                f"pass {example}"
            )


def integer_array(name: str, value: ArrayLike, flags: str = "") -> IntArray:
    """Return ``value`` as an array of integers; its own type may be any integer type.

    ``flags`` is the call that makes integers of boolean entries, where a mere cast would not do.
    """
    array = _plain_array(name, value, "0")
    if array.size == 0 and not isinstance(value, np.ndarray):  # NumPy makes floats of an empty list
        array = array.astype(int)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"{name} has dtype {array.dtype}, but must hold integers: "
            f"{_as_integers(name, array, flags)}"
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
    left_name: str, left: np.ndarray, right_name: str, right: np.ndarray, remedy: str
) -> None:
    """Raise unless two arrays have the same shape."""
    if left.shape != right.shape:
        raise ValueError(
            f"{left_name} has shape {left.shape}, but {right_name} has shape {right.shape}: "
            f"{remedy}"
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
            f"{name} holds inf or NaN: find them with np.argwhere(~np.isfinite({name})), "
            f"and put finite numbers there"
        )


def between_0_and_1(name: str, array: FloatArray) -> None:
    """Raise unless all numbers are attention weights; rounding is forgiven."""
    finite(name, array)
    if array.size and not -1e-6 <= array.min() <= array.max() <= 1 + 1e-6:
        raise ValueError(
            f"{name} runs from {array.min():.3g} to {array.max():.3g}, but weights lie between "
            f"0 and 1: pass what softmax returns, not the scores"
        )


def no_overflow(
    what: str, results: Iterable[FloatArray], named_arrays: Mapping[str, FloatArray]
) -> None:
    """Raise if a result is not finite, though the arrays that it was computed from are."""
    if all(np.isfinite(result).all() for result in results):
        return
    sizes = {name: np.abs(array).max(initial=0) for name, array in named_arrays.items()}
    largest = max(sizes, key=sizes.__getitem__)
    listed = ", ".join(f"{name} up to {size:.1e}" for name, size in sizes.items())
    raise NotFiniteError(
        f"{what} leaves the range of floats, with numbers in {listed}: make those of {largest} "
        f"smaller, as by dividing {largest} by {sizes[largest]:.0e}"
    )


def not_empty(names: str, axis: str, size: int, remedy: str) -> None:
    """Raise if an axis of the named arrays has no entry."""
    if size == 0:
        raise ValueError(f"{names} have width {axis}=0: {remedy}")


def same_size(
    left: str, left_size: int | Shape, right: str, right_size: int | Shape, remedy: str
) -> None:
    """Raise unless two axes that must agree have the same size.

    ``left`` and ``right`` name array and axis, as in ``"q axis Dk"``.
    """
    if left_size != right_size:
        raise ValueError(
            f"{left} has size {left_size}, but {right} has size {right_size}: {remedy}"
        )


def divides(count_name: str, count: int, width_name: str, width: int) -> None:
    """Raise unless ``count`` equal parts of ``width`` exist; offer the nearest counts that do."""
    if width % count == 0 and width > 0:
        return
    if width == 0:
        raise ValueError(
            f"{width_name}=0 leaves nothing to divide among {count_name}={count}: "
            f"make {width_name} a multiple of {count}, such as {count}"
        )
    # Of a width beyond 10^12 not all divisors are found, which would take too long.
    small = [i for i in range(1, min(math.isqrt(width), 10**6) + 1) if width % i == 0]
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


def boolean_mask(
    name: str,
    value: ArrayLike,
    shape: Shape | None = None,
    true: str = "this query may look at this key",
) -> BoolArray:
    """Return ``value`` as a bool array, checked against the ``shape`` that it must broadcast to.

    ``shape=None`` checks only the type; ``true`` says what an entry of True means.
    """
    array = _plain_array(name, value, "False")
    if array.size == 0 and not isinstance(value, np.ndarray):  # NumPy makes floats of an empty list
        array = array.astype(bool)
    if array.dtype != np.bool_:
        raise TypeError(
            f"{name} has dtype {array.dtype}, but must be bool, True where {true}: "
            f"{_as_flags(name, array)}"
        )
    if shape is not None and not _broadcasts_to(array.shape, shape):
        raise ValueError(
            f"{name} has shape {array.shape}, which does not broadcast to (..., Tq, Tk) = {shape}: "
            f"{_as_mask_of(shape, _indexed(name, value), array)}"
        )
    return array


def _plain_array(name, value, gap):
    """Return ``value`` as an array of whatever dtype, unless it is masked or ragged."""
    if _holds_masked(value):
        what, filled = f"{name} is a masked array", f"{name}.filled({gap})"
        if isinstance(value, list | tuple):
            what = f"{name} holds a masked array"
            filled = f"[np.ma.filled(part, {gap}) for part in {name}]"
        hides = {"0": "", "0.0": ", and pass a boolean mask to hide those entries"}
        raise TypeError(
            f"{what}, whose own mask would be ignored: fill its gaps with {filled}"
            f"{hides.get(gap, ', to hide those entries')}"
        )
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"{name} is ragged: its rows have different lengths; give every row the same length"
        ) from error


def _holds_masked(value):
    """Return whether ``value`` is a masked array, or a list that holds one at any depth."""
    if isinstance(value, list | tuple):
        return any(map(_holds_masked, value))
    return isinstance(value, np.ma.MaskedArray)


# How to fix a bad kind.  What stands in the messages as code must do what was meant.


def _indexed(name, value):
    """Return what can be indexed with None, as a list cannot."""
    return name if isinstance(value, np.ndarray) else f"np.asarray({name})"


def _strange(array, wanted):
    """Return how to fix entries that no cast turns into what is wanted, or an empty string."""
    if array.dtype.kind != "O":
        return ""
    if any(entry is None for entry in array.flat):
        return f"put {wanted} in the place of None"
    if any(callable(entry) for entry in array.flat):
        return "call the function, and pass what it returns"
    return ""


def _as_numbers(name, array):
    """Return how to make real numbers of an array."""
    if advice := _strange(array, "numbers"):
        return advice
    if array.dtype.kind == "c":
        return f"take the real part, np.real({name}).astype(np.float64)"
    try:
        array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return "pass a list or an array of real numbers"
    return f"convert it with np.asarray({name}, np.float64)"


def _as_integers(name, array, flags):
    """Return how to make integers of an array."""
    if advice := _strange(array, "integers"):
        return advice
    if array.dtype.kind == "b":
        return f"pass {flags}" if flags else f"convert it with np.asarray({name}, int)"
    try:
        numbers = array.astype(np.float64) if array.dtype.kind != "c" else np.array(np.nan)
    except (TypeError, ValueError, OverflowError):
        numbers = np.array(np.nan)
    if not (np.abs(numbers) < 2**53).all() or array.dtype.kind not in "fOSU":
        return "pass a list or an array of whole numbers"
    if (numbers != np.rint(numbers)).any():
        return f"round it with np.rint({name}).astype(int)"
    return f"convert it with np.asarray({name}, np.float64).astype(int)"


def _as_whole(name, value, minimum):
    """Return how to make a whole number of one value."""
    example = f"pass a whole number, such as {name}={max(minimum, 1)}"
    if callable(value):
        return "call the function, and pass what it returns"
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
        return f"pass {name}[0]" if len(value) == 1 else example
    if np.asarray(value).dtype.kind in "bc":
        return example
    try:
        if float(value) == int(value):
            return f"pass int({name})"
        round(value)
        return f"pass round({name})"
    except (TypeError, ValueError, OverflowError):
        return example


def _as_flags(name, array):
    """Return how to make True and False of an array, as far as it shows what they are."""
    if advice := _strange(array, "True or False"):
        return advice
    try:
        entries = set(
            array.astype(str if array.dtype.kind == "S" else array.dtype).ravel().tolist()
        )
    except TypeError:  # a list or a set, say
        entries = {""}
    for yes, no in (("True", "False"), ("1", "0")):
        if entries <= {yes, no}:
            return f"convert it with np.asarray({name}) == {yes!r}"
    if array.dtype.kind in "SU":
        return "pass a list or an array of True and False"
    if entries == {0}:
        return (
            f"if 0 forbids, convert it with np.asarray({name}, bool), "
            f"and if it is added to the scores, with np.asarray({name}) == 0"
        )
    if entries <= {0, 1}:
        return f"convert 0 and 1 with np.asarray({name}, bool)"
    if array.dtype.kind in "iuf" and max(entries) <= 0:
        return f"convert what is added to the scores with np.asarray({name}) == 0"
    return "pass a list or an array of True and False"


def _as_mask_of(shape, indexed, array):
    """Return how to give a mask the axes that it lacks, or has too many."""
    for index, fitting, meaning in (
        ("[:, None]", array[:, None] if array.ndim > 1 else array, "one mask for each sequence"),
        ("[:, None, None]", array[:, None, None] if array.ndim > 1 else array,
         "one row of keys for each sequence"),
        ("[:, 0]", array[:, 0] if array.ndim > 2 and array.shape[1] == 1 else array,
         "one mask for each sequence"),
    ):  # fmt: skip
        if _broadcasts_to(fitting.shape, shape):
            return f"pass {indexed}{index}, {meaning}"
    return "give it these axes, or 1 where one entry serves all"


def _broadcasts_to(shape, target):
    try:
        return np.broadcast_shapes(shape, target) == tuple(target)
    except ValueError:
        return False


def _count(number, singular, plural):
    return f"{number} {singular if number == 1 else plural}"
