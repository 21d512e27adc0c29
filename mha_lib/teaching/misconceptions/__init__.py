"""Wrong implementations that people really write, each with a sentence that says what it does.

`CATALOGUE` holds them all.  Each has the signature of the function that it stands in for, makes
one mistake, and comes with an input for which the mistake is invisible.  `mha_lib.teaching.checks`
compares a student's answer with them; `mha_lib.teaching.right_function` gives what each stands
in for.
"""

from collections.abc import Callable
from functools import partial

from mha_lib import _check
from mha_lib.teaching.misconceptions import (
    _attention,
    _counts,
    _heads,
    _layer,
    _masks,
    _softmax,
)
from mha_lib.teaching.misconceptions._entry import Misconception

__all__ = ["CATALOGUE", "Misconception", "built_with"]

CATALOGUE = (
    *_softmax.ENTRIES,
    *_attention.ENTRIES,
    *_heads.ENTRIES,
    *_layer.ENTRIES,
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
    _check.has("entry", entry, ["step", "function"], "an entry of CATALOGUE")
    wrong = entry.function

    def attention(q, k, v, mask=None):
        return _attention.attend(q, k, v, mask, softmax=wrong)

    if (entry.step, step) == ("softmax", "scaled_dot_product_attention"):
        return attention
    parts = {
        "softmax": {"attend": attention},
        "scaled_dot_product_attention": {"attend": wrong},
        "split_heads": {"split": wrong},
        "merge_heads": {"merge": wrong},
    }
    if step != "multi_head_attention" or entry.step not in parts:
        raise ValueError(f"{step} has no part {entry.step}: choose an entry of one of its parts")
    return _layer.as_layer(partial(_layer.layer, **parts[entry.step]))
