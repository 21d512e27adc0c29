"""What passes between a student's process and the one that judges it."""

import io
import json

import numpy as np
import pytest

from assignments.grader import wire


def passed(value):
    return wire.unpack(json.loads(json.dumps(wire.pack(value))))


@pytest.mark.parametrize(
    "value",
    [None, True, 3, -0.5, "text", (1, [2.0, None]), {"a": (1,)}, NotImplemented, ..., 10**3000],
    ids=lambda value: type(value).__name__,
)
def test_plain_values_pass(value):
    assert passed(value) == value
    assert type(passed(value)) is type(value)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", ">f8", "i8", "u1", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (2, 0, 3)])
def test_arrays_pass_with_form_and_numbers(dtype, shape):
    value = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    got = passed(value)
    assert (got.dtype, got.shape) == (value.dtype, value.shape)
    assert np.array_equal(got, value)


def test_numbers_of_numpy_keep_their_type():
    assert type(passed(np.float32(0.5))) is np.float32
    assert passed(np.int64(7)) == 7


def test_nan_and_inf_pass():
    assert np.array_equal(passed(np.array([np.nan, -np.inf])), [np.nan, -np.inf], equal_nan=True)


class Liar(np.ndarray):
    pass


class Zero(float):
    pass


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (np.zeros(3).view(Liar), "Liar"),
        (Zero(), "Zero"),
        ({1}, "set"),
        pytest.param(10**5000, "int", id="a long number"),
        ([0] * 2000, "list"),
        (np.ma.masked_array([1.0]), "MaskedArray"),
    ],
)
def test_what_is_no_data_keeps_the_name_of_its_type_alone(value, name):
    got = passed(value)
    assert isinstance(got, wire.Odd)
    assert type(got).__name__ == name
    assert vars(got) == {}


@pytest.mark.parametrize(
    "value",
    [np.array([{}], object), np.array(["a"]), np.broadcast_to(0.0, 2**40), np.zeros(2, complex)],
)
def test_arrays_of_something_else_or_too_large_keep_their_form(value):
    got = passed(value)
    assert (got.dtype.kind, got.shape) == (value.dtype.kind, value.shape)
    assert got.base.nbytes <= 16  # no room is taken


def test_what_holds_itself_ends():
    loop = []
    loop.append(loop)
    got = passed(loop)
    for _ in range(wire.MOST_DEPTH):
        got = got[0]
    assert isinstance(got, wire.Odd)


@pytest.mark.parametrize(
    "packed",
    [
        None, [], ["no kind"], ["array"], ["array", "O", [1], "AAAA"], ["array", "<f8", [-1], ""],
        ["array", "<f8", [2], "AAAA"], ["array", "<f8", [10**9, 10**9], ""],
        ["array", "<f8", [True], "AAAAAAAAAAA="], ["array", "<f8,<i4", [1], "AAAA"],
        ["form", "<f8", [2**62]], ["form", "(1000,1000)f8", [3]], ["plain", [1]],
        ["dict", [[["list", []], ["plain", 1]]]], ["single", "exit"], ["tuple", 3], ["number"],
        ["form", "<f8", [2**30] * 9], ["form", "<U999999999", [1]],
    ],
)  # fmt: skip
def test_what_was_never_packed_is_refused(packed):
    with pytest.raises(ValueError, match="no packed value"):
        wire.unpack(packed)


def test_what_moves_a_terminal_is_left_out():
    assert wire.printable("a\x1b[2Jb\n\udc80") == "a [2Jb  "


def test_a_true_is_no_truer_than_another():
    got = wire.unpack(["array", "|b1", [2], "AgE="])  # the bytes 2 and 1
    assert got.tobytes() == b"\1\1"


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 7, b"\xff" * 8, (2).to_bytes(8, "big") + b"[]",
             (4).to_bytes(8, "big") + b"nope", (10**5).to_bytes(8, "big") + b"[" * 10**5]
)  # fmt: skip
def test_what_is_no_message_is_none(data):
    assert wire.receive(io.BytesIO(data)) is None


def test_a_message_cannot_take_far_more_room_than_it_has_bytes():
    data = b'{"a": [' + b"[]," * wire.MOST_LISTS + b"1]}"
    assert wire.receive(io.BytesIO(len(data).to_bytes(8, "big") + data)) is None


def test_messages_come_as_they_were_sent():
    stream = io.BytesIO()
    for content in ({"a": 1}, {"b": "\udc80"}):
        wire.send(stream, content)
    stream.seek(0)
    assert [wire.receive(stream), wire.receive(stream)] == [{"a": 1}, {"b": "\udc80"}]
    assert wire.receive(stream) is None
