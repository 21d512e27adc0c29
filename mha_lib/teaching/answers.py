"""Call a function, read what it returned as plain numbers, and compare two answers."""

import linecache
import math
import os
import re
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mha_lib.teaching import misconceptions

COUNT = ("the count",)  # what a function that counts returns

_INTEGERS, _FLOATS = (int, np.int32, np.int64), (float, np.float32, np.float64)
_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
_CATALOGUE = f"{Path(misconceptions.__file__).parent}{os.sep}"
_NUMPY = f"{Path(np.__file__).parent}{os.sep}"


@dataclass(frozen=True)
class Answer:
    """What a call gave: arrays as plain numbers, or an error.

    Attributes
    ----------
    arrays : tuple
        Shape, dtype and flat tuple of numbers of each array.
    problem : str
        What is wrong with the form of the answer; empty if nothing is.
    error : str
        Type and message of what was raised.
    error_type : str
        Only its type.
    callees : tuple of str
        The functions that led to one that is not written yet.

    Examples
    --------
    >>> answer = Answer(arrays=(((2,), "float64", (0.0, 1.0)),))
    >>> answer.equals(answer, tolerance=1e-8)
    True
    """

    arrays: tuple = ()
    problem: str = ""
    error: str = ""
    error_type: str = ""
    callees: tuple[str, ...] = ()

    @property
    def chain(self) -> str:
        """The functions that led to one that is not written yet, in words."""
        return _chain(self.callees)

    def equals(self, other: "Answer", tolerance: float) -> bool:
        """Return whether both have arrays of equal shapes and numbers."""
        return (
            len(self.arrays) == len(other.arrays) > 0
            and not self.error
            and not other.error
            and all(
                shape == other_shape and _same_numbers(numbers, other_numbers, tolerance * largest)
                for (shape, _, numbers), (other_shape, _, other_numbers), largest in zip(
                    self.arrays, other.arrays, other._largest, strict=True
                )
            )
        )

    @cached_property
    def _largest(self):
        return [_largest(numbers) for _, _, numbers in self.arrays]

    def likeness(self, other: "Answer", tolerance: float) -> int:
        """Return 2 for the same numbers or error, 1 for an error of the same type, else 0."""
        if self.error and other.error:
            return 2 if self.error == other.error else int(self.error_type == other.error_type)
        return 2 if self.equals(other, tolerance) else 0


def ask(function: Callable, args: tuple, kwargs: dict[str, Any], parts: tuple[str, ...]) -> Answer:
    """Call a function with copies of these arguments, and read its answer.

    Parameters
    ----------
    function : callable
        The function; whatever it raises is in the answer, except that somebody stops it.
    args, kwargs : tuple, dict
        Its arguments.
    parts : tuple of str
        Names of what it is to return; ``COUNT`` for one whole number.

    Returns
    -------
    answer : Answer
        In plain numbers.

    Examples
    --------
    >>> ask(lambda x: x + 1, (np.arange(2),), {}, ("the sum",)).arrays
    (((2,), 'int64', (1, 2)),)
    """
    args = tuple(_copied(a) for a in args)
    kwargs = {name: _copied(a) for name, a in kwargs.items()}
    before = _bytes_in(args, kwargs)
    # Without warnings: the mistakes that they tell of show in the numbers.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = compute(function, args, kwargs, parts)
    if not answer.error and _bytes_in(args, kwargs) != before:
        return Answer(
            arrays=answer.arrays,
            problem="changed its input in place, as z -= 1 does too; the caller still needs it: "
            "work on a new array, or on a copy",
        )
    return answer


def compute(
    function: Callable, args: tuple, kwargs: dict[str, Any], parts: tuple[str, ...]
) -> Answer:
    """Call a function that leaves its arguments alone and warns of nothing; else like `ask`.

    Parameters
    ----------
    function : callable
        A right function, or a wrong one of the catalogue.
    args, kwargs : tuple, dict
        Its arguments.
    parts : tuple of str
        Names of what it is to return.

    Returns
    -------
    answer : Answer
        In plain numbers.

    Examples
    --------
    >>> compute(max, (2, 3), {}, COUNT).arrays
    (((), 'int', (3,)),)
    """
    try:
        with np.errstate(all="ignore"):
            value = function(*args, **kwargs)
        return _read(value, parts)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit in a function too
        return _failure(error, function)


def complaint(
    answer: Answer, right: Answer, parts: tuple[str, ...], axes: tuple[str, ...], tolerance: float
) -> tuple[str, str]:
    """Say how an answer differs from the right one.

    Parameters
    ----------
    answer, right : Answer
        The two to compare.
    parts, axes : tuple of str
        Names of what is returned, and their axes in words.
    tolerance : float
        Below which they count as the same, relative to the largest number.

    Returns
    -------
    wrong, remark : str
        What is wrong, and what there is to say although it costs nothing; both may be empty.

    Examples
    --------
    >>> right = ask(lambda: 2, (), {}, COUNT)
    >>> complaint(ask(lambda: 3, (), {}, COUNT), right, COUNT, ("one whole number",), 1e-8)
    ('the count is 3, but should be 2', '')
    """
    if answer.problem:
        return answer.problem, ""
    remark = ""
    for part, meaning, given, expected in zip(
        parts, axes, answer.arrays, right.arrays, strict=True
    ):
        (shape, dtype, numbers), (right_shape, right_dtype, right_numbers) = given, expected
        if shape != right_shape:
            return f"{part} has shape {shape}, but should have {right_shape}, {meaning}", ""
        if parts == COUNT:
            if numbers != right_numbers:
                return f"the count is {numbers[0]}, but should be {right_numbers[0]}", ""
            if dtype == "float":
                remark = "a remark, at no cost: this is a float; // divides whole numbers exactly"
            continue
        if dtype != right_dtype:
            if (dtype, right_dtype) not in _REMARKS:
                return f"{part} has dtype {dtype}, but should have {right_dtype}", ""
            remark = f"a remark, at no cost: {_REMARKS[dtype, right_dtype]}"
        wrong = _wrong_numbers(part, shape, numbers, right_numbers, tolerance)
        if wrong:
            return wrong, ""
    return "", remark


_REMARKS = {  # given dtype, right dtype
    ("float64", "float32"): (
        "float32 came in and float64 came out, as happens when dividing by np.sqrt(d_k), a float64 "
        "number; float(np.sqrt(d_k)) avoids it"
    ),
    ("float32", "float64"): (
        "float64 came in and float32 came out, which keeps 7 of 16 digits; that is enough here"
    ),
}


# --- calling ----------------------------------------------------------------------------------


def _copied(value):
    return value.copy() if isinstance(value, np.ndarray) else value


def _bytes_in(args, kwargs):
    arrays = [a for a in (*args, *kwargs.values()) if isinstance(a, np.ndarray)]
    return [(a.shape, a.dtype.str, a.tobytes()) for a in arrays]


def _failure(error, function):
    """Return the answer of a function that raised this error."""
    kind, message = type(error).__name__, _message(error)
    said = f"{kind}: {message}" if message else kind
    callees = _callees(error, function) if kind == "NotImplementedError" else ()
    if callees:
        told = f"calls {_chain(callees)}, which is not written yet"
    else:
        told = f"raised {said}{_place(error, function)}{_in_words(message)}"
    return Answer(problem=told, error=said, error_type=kind, callees=callees)


def _message(error):
    try:
        lines = str(error).splitlines()
    except Exception:  # a student's own exception may fail to tell about itself
        lines = ["(no message)"]
    return lines[0][:300] if lines else ""


_IN_WORDS = {  # part of a common error message of NumPy or Python, and what it means
    "unexpected keyword argument": "a function on the way does not take this argument",
    "could not be broadcast": "two arrays whose sizes do not fit each other axis by axis",
    "cannot reshape": "the new shape does not have as many numbers as the old one",
    "truth value of an array": "to ask whether an argument was given, test with `is not None`",
    "cannot be interpreted as an integer": "a size must be a whole number: divide sizes with //",
}


def _in_words(message):
    """Return, in brackets, what an error means, if it is a common one."""
    sizes = re.search(r"matmul.*size (\d+) is different from (\d+)", message)
    if sizes:
        right, left = sizes.groups()
        return f" (a matrix product whose left side has {left} columns, but the right {right} rows)"
    return next((f" ({words})" for key, words in _IN_WORDS.items() if key in message), "")


def _callees(error, function):
    """Return the names of the functions that led from a student's function to an error."""
    frames = [
        frame.name
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((_PACKAGE, _NUMPY))
    ]
    names = [name for name in frames[1:] if not name.startswith("<")]
    # A decorator has a frame of its own, and the name of what it decorates.
    return () if not names or names[-1] == getattr(function, "__name__", "") else tuple(names)


def _chain(callees):
    return ", which calls ".join(f"`{name}`" for name in callees)


def _place(error, function):
    """Return in which line of the student's code an error arose."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(_CATALOGUE)
        or not frame.filename.startswith((_PACKAGE, _NUMPY, "<frozen"))
    ]
    if not frames:
        return ""
    own = getattr(getattr(function, "__code__", None), "co_filename", None)
    frame = ([f for f in frames if f.filename == own] or frames)[-1]
    text = linecache.getline(frame.filename, frame.lineno).strip()
    return f", in line {frame.lineno}" + (f": {text}" if text else "")


# --- reading ----------------------------------------------------------------------------------


def _read(value, parts):
    """Turn what a function returned into plain numbers, or say why that is not possible."""
    if value is None:
        return Answer(problem="returned None: the function has no return, or returns nothing")
    if value is NotImplemented or value is Ellipsis:
        return Answer(problem=f"returned {value!r}: there is nothing here yet")
    if parts == COUNT:
        return _read_count(value)
    if len(parts) == 1:
        values = (value,)
    elif type(value) not in (tuple, list):
        return Answer(
            problem=f"returned {_a(value)}: it must return two arrays, {' and '.join(parts)}"
        )
    elif len(value) != len(parts):
        return Answer(
            problem=f"returned {len(value)} values: it must return two, {' and '.join(parts)}"
        )
    else:
        values = tuple(value)
    for part, array in zip(parts, values, strict=True):
        if type(array) is not np.ndarray:  # a subclass could redefine what comparing means
            return Answer(problem=f"{part} is {_a(array)}: it must be a NumPy array")
        if array.dtype.kind not in "fiub" or array.size > 1_000_000:
            return Answer(
                problem=f"{part} has dtype {array.dtype} and shape {array.shape}: "
                f"it must be an array of real numbers, and not a huge one"
            )
    return Answer(arrays=tuple((a.shape, str(a.dtype), tuple(a.ravel().tolist())) for a in values))


def _read_count(value):
    """Turn one whole number into an answer without axes; a float may be one too."""
    if type(value) not in _INTEGERS + _FLOATS:  # a subclass could redefine what comparing means
        return Answer(problem=f"the count is {_a(value)}: it must be a whole number, an int")
    if not abs(value) < 1e15:  # NaN fails too
        return Answer(problem="the count is NaN, inf or huge, which no count here is")
    if type(value) in _INTEGERS:
        return Answer(arrays=(((), "int", (int(value),)),))
    return Answer(arrays=(((), "float", (float(value),)),))


def _a(value):
    """Return what kind of object this is, with an article."""
    name = type(value).__name__
    return f"an {name}" if name[:1] in "aeiou" or name == "ndarray" else f"a {name}"


# --- comparing --------------------------------------------------------------------------------


def _largest(numbers):
    """Return the largest finite one, to which a tolerance is relative."""
    return max([1e-3, *(abs(number) for number in numbers if number - number == 0)])


def _same_numbers(left, right, bound):
    """Compare numbers, NaN equal to NaN."""
    return left == right or all(
        a == b or abs(a - b) <= bound or (a != a and b != b)  # NaN
        for a, b in zip(left, right, strict=True)
    )


def _wrong_numbers(part, shape, numbers, right_numbers, tolerance):
    """Return in words how these numbers differ from the right ones of the same shape."""
    if _same_numbers(numbers, right_numbers, tolerance * _largest(right_numbers)):
        return ""
    n_nan = sum(math.isnan(number) for number in numbers)
    if n_nan:
        return (
            f"{part} holds NaN in {n_nan} of its {len(numbers)} numbers, "
            f"which is what inf / inf and 0 / 0 give"
        )
    pairs = list(zip(numbers, right_numbers, strict=True))
    if any(isinstance(number, bool) for number in right_numbers):
        n_wrong = sum(a != b for a, b in pairs)
        return f"{part} is wrong in {n_wrong} of its {len(numbers)} entries"
    width = shape[-1]
    if "weights" in part and width:
        for start in range(0, len(numbers), width):
            found, wanted = (sum(n[start : start + width]) for n in (numbers, right_numbers))
            if not abs(found - wanted) < 1e-3:
                why = "" if wanted > 0.5 else ", since its query may look nowhere"
                return f"a row of {part} sums to {found:.3g}, but should sum to {wanted:.3g}{why}"
    difference = max(abs(a - b) for a, b in pairs)
    return f"{part} has the right shape, but numbers that are off by up to {difference:.3g}"
