"""Wrong implementations that people really write, each with a sentence that says what it does.

`CATALOGUE` holds them all.  Each has the signature of the function that it stands in for, makes
one mistake, as a rule in a part that can be exchanged alone, and comes with an input for which the
mistake is invisible.  `mha_lib.teaching.checks` compares a student's answer with them;
`mha_lib.teaching.right_function` gives what each stands in for.
"""

from collections.abc import Callable, Mapping

from mha_lib import _check
from mha_lib.teaching.misconceptions import (
    _attention,
    _counts,
    _heads,
    _hiding,
    _layer,
    _layer_inputs,
    _masks,
    _softmax,
)
from mha_lib.teaching.misconceptions._entry import Misconception

__all__ = ["CATALOGUE", "MADE_OF", "Misconception", "build", "built_with", "can_be_joined"]

CATALOGUE = (
    *_softmax.ENTRIES,
    *_attention.ENTRIES,
    *_hiding.ENTRIES,
    *_heads.ENTRIES,
    *_layer.ENTRIES,
    *_layer_inputs.ENTRIES,
    *_masks.ENTRIES,
    *_counts.ENTRIES,
)


def built_with(entry: Misconception, step: str) -> Callable:
    """Build a larger step that is correct except for one part.

    Parameters
    ----------
    entry : Misconception
        The wrong part: of `mha_lib.softmax`, `mha_lib.scaled_dot_product_attention`,
        `mha_lib.split_heads` or `mha_lib.merge_heads`.
    step : str
        ``"scaled_dot_product_attention"`` or ``"multi_head_attention"``.

    Returns
    -------
    function : callable
        With the signature of that step.

    Raises
    ------
    ValueError
        The step has no such part.

    Examples
    --------
    >>> import numpy as np
    >>> entry = next(m for m in CATALOGUE if m.name == "heads averaged")
    >>> x = np.ones((3, 4))
    >>> averaged = built_with(entry, "multi_head_attention")
    >>> averaged(x, np.eye(4), np.eye(4), np.eye(4), np.ones((2, 5)), 2).shape
    (3, 5)
    """
    _check.has("entry", entry, ["step", "function", "parts"], "an entry of CATALOGUE")
    if entry.step not in MADE_OF.get(step, ()):
        raise ValueError(f"{step} has no part {entry.step}: choose an entry of one of its parts")
    return build(step, entry.parts)


def build(step: str, parts: Mapping[str, Callable]) -> Callable:
    """Build a step that is correct except for these parts.

    Parameters
    ----------
    step : str
        A step that has parts.
    parts : mapping
        From names of parts to wrong functions, as in ``Misconception.parts``.

    Returns
    -------
    function : callable
        With the signature of that step.

    Examples
    --------
    >>> build("count_parameters", {"w_o": lambda d, n_heads: 0})(d=6, n_heads=3)
    108
    """
    return _BUILDERS[step](**parts)


def can_be_joined(first: Mapping[str, Callable], second: Mapping[str, Callable]) -> bool:
    """Return whether one function can have both the wrong parts of one mistake and of another.

    Parameters
    ----------
    first, second : mapping
        Wrong parts, as in ``Misconception.parts``.

    Returns
    -------
    can : bool
        Whether there are any, and they are in different places.

    Examples
    --------
    >>> can_be_joined({"scale": abs}, {"softmax": abs})
    True
    >>> can_be_joined({"shift": abs}, {"softmax": abs})  # the shift is a part of the softmax
    False
    """
    inside = set(_softmax.PARTS)
    return bool(first and second) and not (
        first.keys() & second.keys()
        or ("softmax" in first and second.keys() & inside)
        or ("softmax" in second and first.keys() & inside)
    )


_BUILDERS: dict[str, Callable] = {
    "softmax": _softmax.build,
    "split_heads": _heads.build_split,
    "merge_heads": _heads.build_merge,
    "scaled_dot_product_attention": _attention.build,
    "multi_head_attention": _layer.build,
    "causal_mask": _masks.build_causal,
    "padding_mask": _masks.build_padding,
    "count_parameters": _counts.build_parameters,
    "count_softmax_entries": _counts.build_entries,
}
MADE_OF = {  # the steps that are parts of a step
    "scaled_dot_product_attention": ("softmax",),
    "multi_head_attention": (
        "softmax", "scaled_dot_product_attention", "split_heads", "merge_heads",
    ),
}  # fmt: skip
