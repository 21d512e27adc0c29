"""What passes between a student's process and the one that judges it: data, and nothing to run.

Both sides use this.  `pack` turns what a function got or gave into JSON; `unpack` takes nothing
on trust, since the other side may send whatever it likes.
"""

import base64
import json
import math
import re

import numpy as np

LARGEST = 32_000_000  # bytes of one message
MOST_LISTS = 300_000  # in one message; each takes far more room than it has characters
MOST_ENTRIES = 1_000_000  # of an array; the checks refuse larger ones
MOST_ITEMS, MOST_DEPTH, MOST_TEXT = 1000, 8, 20_000
_NUMBERS = re.compile(r"[<>|=][fiub]\d{1,2}")
_DTYPE = re.compile(r"[<>|=][a-zA-Z]\d{0,3}")  # more would take room for one entry
_ARRAY, _SCALAR = np.ndarray, np.generic  # whatever a notebook makes of NumPy's names
NO_DATA = ("odd", "form")  # kinds of what has a name or a form only
_SINGLES = {"NotImplemented": NotImplemented, "Ellipsis": Ellipsis}


class Odd:
    """What cannot be passed on; subclasses have the name of the type that it had."""


def send(stream, content):
    """Write one message.

    Parameters
    ----------
    stream : file
        Open for writing bytes.
    content : dict
        Of what JSON knows.
    """
    data = json.dumps(content).encode("utf-8", "replace")
    if len(data) > LARGEST:
        raise ValueError(f"a message of {len(data)} bytes is too large")
    stream.write(len(data).to_bytes(8, "big") + data)
    stream.flush()


def receive(stream):
    """Read one message.

    Parameters
    ----------
    stream : file
        Open for reading bytes.

    Returns
    -------
    content : dict or None
        None at the end, and after what is no message.
    """
    head = stream.read(8)
    size = int.from_bytes(head, "big")
    if len(head) < 8 or size > LARGEST:
        return None
    data = stream.read(size)
    if data.count(b"[") + data.count(b"{") > MOST_LISTS:
        return None
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def pack(value, depth=0):
    """Return a value as JSON, or the name of its type where it is no plain data.

    Parameters
    ----------
    value : object
        Anything.
    depth : int
        How deep it lies in another one.

    Returns
    -------
    packed : list
        The kind, and what is needed to make the value again.
    """
    kind = type(value)  # subclasses could redefine what they are
    if kind is _ARRAY:
        return _packed_array(value)
    if value is None or kind in (bool, float) or (kind is str and len(value) <= MOST_TEXT):
        return ["plain", value]
    if kind is int and abs(value) < 10**4000:  # longer ones are no JSON
        return ["plain", value]
    if isinstance(value, _SCALAR) and kind is value.dtype.type:
        dtype = value.dtype.str
        if _NUMBERS.fullmatch(dtype):
            return ["number", dtype, _text(value.tobytes())]
    for name, single in _SINGLES.items():
        if value is single:
            return ["single", name]
    if kind in (tuple, list) and len(value) <= MOST_ITEMS and depth < MOST_DEPTH:
        return [kind.__name__, [pack(item, depth + 1) for item in value]]
    if kind is dict and len(value) <= MOST_ITEMS and depth < MOST_DEPTH:
        return ["dict", [[pack(k, depth + 1), pack(v, depth + 1)] for k, v in value.items()]]
    return ["odd", str(kind.__name__)[:100]]


def unpack(packed):
    """Return the value that was packed.

    Parameters
    ----------
    packed : object
        What came from the other side.

    Returns
    -------
    value : object
        Of Python's and NumPy's own types, or an `Odd` one.

    Raises
    ------
    ValueError
        It is nothing that `pack` returns.
    """
    try:
        kind, *rest = packed
        return _UNPACK[kind](*rest)
    except (TypeError, KeyError, ValueError, IndexError, OverflowError, RecursionError) as error:
        raise ValueError(f"no packed value: {type(error).__name__}") from None


def odd(name):
    """Return an object whose type has this name, and that can do nothing."""
    return type(plain_name(name), (Odd,), {})()


def printable(text):
    """Return a text from the other side that can be written to a terminal."""
    return "".join(c if c.isprintable() else " " for c in str(text)[:200])


def plain_name(name):
    """Return letters, digits and ``_`` of a name that came from the other side."""
    return re.sub(r"[^A-Za-z0-9_]", "", str(name)[:100]) or "object"


def _packed_array(array):
    dtype, shape = array.dtype.str, list(array.shape)
    if _NUMBERS.fullmatch(dtype) and array.size <= MOST_ENTRIES:
        return ["array", dtype, shape, _text(array.tobytes())]
    # Its form is enough to say why it is no answer.
    return ["form", dtype if _DTYPE.fullmatch(dtype) else "|O", shape]


def _text(data):
    return base64.b64encode(data).decode()


def _array(dtype, shape, text):
    shape = _shape(shape)
    if not _NUMBERS.fullmatch(dtype) or math.prod(shape) > MOST_ENTRIES:
        raise ValueError
    data = base64.b64decode(text, validate=True)
    if np.dtype(dtype).kind == "b":  # any byte but 0 is true, and none is truer
        return (np.frombuffer(data, np.uint8) != 0).reshape(shape)
    return np.frombuffer(data, dtype).reshape(shape).copy()


def _form(dtype, shape):
    if not _DTYPE.fullmatch(dtype):
        raise ValueError
    return np.broadcast_to(np.zeros((), dtype), _shape(shape))  # takes no room


def _shape(shape):
    if not all(type(n) is int and 0 <= n < 2**62 for n in shape) or len(shape) > 32:
        raise ValueError
    return tuple(shape)


def _plain(value):
    if value is not None and type(value) not in (bool, int, float, str):
        raise ValueError
    return value


_UNPACK = {
    "plain": _plain,
    "array": _array,
    "form": _form,
    "number": lambda dtype, text: _array(dtype, [], text)[()],
    "single": _SINGLES.__getitem__,
    "tuple": lambda items: tuple(map(unpack, items)),
    "list": lambda items: list(map(unpack, items)),
    "dict": lambda pairs: {unpack(key): unpack(value) for key, value in pairs},
    "odd": odd,
}
