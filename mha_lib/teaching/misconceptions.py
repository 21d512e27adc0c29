"""Wrong implementations that people write in earnest, each with a sentence that says what it does.

`CATALOGUE` holds them all.  Each has the signature of the function that it stands in for, makes
one mistake, and comes with an input for which the mistake is invisible.  `mha_lib.teaching.checks`
compares a student's answer with them; its `right_function` gives what each stands in for.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mha_lib import _check

SPLIT_CHAPTER = "chapters/02_split_attend_concat_project.ipynb"
SOFTMAX_CHAPTER = "chapters/01_why_one_head_is_not_enough.ipynb"
BUDGET_CHAPTER = "chapters/03_compute_budget.ipynb"
PITFALLS_CHAPTER = "chapters/06_watch_out_for.ipynb"
_PAGES = {  # as a reader knows them
    SOFTMAX_CHAPTER: "chapter 1",
    SPLIT_CHAPTER: "chapter 2",
    BUDGET_CHAPTER: "chapter 3",
    PITFALLS_CHAPTER: "Watch out for",
}

_entered: list["Misconception"] = []  # `CATALOGUE`, once all functions below are in it


@dataclass(frozen=True)
class Misconception:
    """One wrong implementation: what it does, and when nobody sees it.

    Attributes
    ----------
    name : str
        A few words that no other entry has.
    step : str
        Name of the function that it stands in for: one of ``mha_lib``, or one of the two counts
        that `mha_lib.teaching.checks.check_budget` asks for.
    function : callable
        The wrong code, with the signature of the right one.
    sentence : str
        What the code does instead of what was meant, said to the student.
    chapter : str
        File of the book to read on in.
    section : str
        Heading in that file.
    hides : str
        The condition under which the result is right all the same.
    hiding_input : callable
        Returns positional and keyword arguments, ``(args, kwargs)``, that fulfil it.
    exactness : float
        Largest difference from the right result for that input; 0.0 = equal to the bit.
    formal : bool
        Whether such inputs are too far-fetched for the condition to help anybody.
    covers : str
        Name of an entry for a part of the same step that gives the same results from outside; the
        sentence then speaks of both.  Empty if there is none.

    Notes
    -----
    The property ``where`` says in words where to read on.

    Examples
    --------
    >>> entry = next(m for m in CATALOGUE if m.name == "split by a bare reshape")
    >>> entry.hides
    'with one head, or one token'
    >>> entry.where
    "chapter 2, 'Step 2: split'"
    >>> entry.function(np.arange(4.0).reshape(2, 2), 2).tolist()  # right: 0 and 2 together
    [[[0.0], [1.0]], [[2.0], [3.0]]]
    """

    name: str
    step: str
    function: Callable
    sentence: str
    chapter: str
    section: str
    hides: str
    hiding_input: Callable
    exactness: float = 0.0
    formal: bool = False
    covers: str = ""

    @property
    def where(self) -> str:
        """Page and section to read on in, as a reader knows them."""
        section = self.section.replace("$", "")
        return f"{_PAGES[self.chapter]}, '{section}'"


def built_with(entry: Misconception, step: str) -> Callable:
    """Build a larger step that is right but for one wrong part.

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
    >>> entry = next(m for m in CATALOGUE if m.name == "heads averaged")
    >>> x = np.ones((3, 4))
    >>> averaged = built_with(entry, "multi_head_attention")
    >>> averaged(x, np.eye(4), np.eye(4), np.eye(4), np.ones((2, 5)), 2).shape
    (3, 5)
    """
    _check.has("entry", entry, ["step", "function"], "an entry of CATALOGUE")
    wrong = entry.function
    if (entry.step, step) == ("softmax", "scaled_dot_product_attention"):
        return lambda q, k, v, mask=None: _attend(q, k, v, mask, softmax=wrong)
    parts = {
        "softmax": {"attend": lambda q, k, v, mask: _attend(q, k, v, mask, softmax=wrong)},
        "scaled_dot_product_attention": {"attend": wrong},
        "split_heads": {"split": wrong},
        "merge_heads": {"merge": wrong},
    }
    if step != "multi_head_attention" or entry.step not in parts:
        raise ValueError(f"{step} has no part {entry.step}: choose an entry of one of its parts")
    part = parts[entry.step]

    def multi_head_attention(
        x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
    ):
        return _multi_head(
            x, w_q, w_k, w_v, w_o, n_heads, context, mask, return_weights, **part
        )  # fmt: skip

    return multi_head_attention


def _entry(step, name, sentence, *, read, **about):
    """Enter the decorated function into the catalogue."""
    chapter, section = read

    def enter(function):
        _entered.append(Misconception(name, step, function, sentence, chapter, section, **about))
        return function

    return enter


# --- the right steps, as small as can be, for one of them to be exchanged ---------------------


def _softmax(z, axis=-1):
    largest = z.max(axis=axis, keepdims=True)
    e = np.exp(z - np.where(np.isinf(largest), 0, largest).astype(z.dtype))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total).astype(z.dtype)


def _attend(q, k, v, mask=None, softmax=_softmax, scale=None):
    scale = float(np.sqrt(q.shape[-1])) if scale is None else float(scale)
    scores = q @ k.swapaxes(-1, -2) / scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)
    return weights @ v, weights


def _split(x, n_heads):
    *leading, n, d = x.shape
    return x.reshape(*leading, n, n_heads, d // n_heads).swapaxes(-3, -2)


def _merge(x):
    *leading, h, n, d_k = x.shape
    return x.swapaxes(-3, -2).reshape(*leading, n, h * d_k)


def _multi_head(
    x, w_q, w_k, w_v, w_o, n_heads, context=None, mask=None, return_weights=False,
    *, split=_split, attend=_attend, merge=_merge,
):  # fmt: skip
    source = x if context is None else context
    q, k, v = split(x @ w_q, n_heads), split(source @ w_k, n_heads), split(source @ w_v, n_heads)
    heads, weights = attend(q, k, v, mask)
    out = merge(heads) @ w_o
    return (out, weights) if return_weights else out


# --- inputs that hide a mistake ---------------------------------------------------------------


def _numbers(*shape):
    """Return small whole numbers as floats, whose products and sums are exact."""
    return np.random.default_rng(shape).integers(-3, 4, shape).astype(float)


def _call(*args, **kwargs):
    """Return a function that gives copies of these arguments."""
    return lambda: copy.deepcopy((args, kwargs))


def _qkv(tq=5, tk=7, d_k=3, d_v=2, **kwargs):
    return _call(_numbers(tq, d_k), _numbers(tk, d_k), _numbers(tk, d_v), **kwargs)


def _layer(n=5, d=6, n_heads=3, d_out=7, **kwargs):
    """Return arguments of multi-head attention with square projections and some ``w_o``."""
    weights = (_numbers(d, d), _numbers(d, d)[::-1].copy(), _numbers(d, d).T.copy())
    return (_numbers(n, d), *weights, _numbers(d, d_out), n_heads), kwargs


def _one_head():
    return _layer(n_heads=1)


ALL_ALLOWED = np.ones((5, 7), dtype=bool)
NO_ROW_EMPTY = np.tri(5, 7, k=1, dtype=bool)


# --- softmax(z) -------------------------------------------------------------------------------

_ROW_OF_WEIGHTS = (SOFTMAX_CHAPTER, "One row of weights, one blend")
_KEEP_THE_SHAPE = (PITFALLS_CHAPTER, "Mistakes that keep the shape")
_MASKS = (PITFALLS_CHAPTER, "Mistakes with masks")
_SPLIT = (SPLIT_CHAPTER, "Step 2: split")
_ATTEND = (SPLIT_CHAPTER, "Step 3: attend")
_CONCATENATE = (SPLIT_CHAPTER, "Step 4: concatenate")
_OTHER_USES = (SPLIT_CHAPTER, "The same function, other uses")


@_entry(
    "softmax",
    "softmax without subtracting the largest score",
    "Your code takes exp of the scores as they are, so that a large score overflows to inf and "
    "inf / inf is NaN; subtract the largest score of each row first, which changes no weight.",
    read=_ROW_OF_WEIGHTS,
    hides="with scores of ordinary size, up to rounding",
    hiding_input=_call(_numbers(5, 7)),
    exactness=1e-15,
)
def _softmax_without_shift(z):
    e = np.exp(z)
    return e / e.sum(axis=-1, keepdims=True)


@_entry(
    "softmax",
    "softmax with one shift for all rows",
    "Your code subtracts the largest score of the whole array, so that every number of a row far "
    "below it underflows to 0 and 0 / 0 is NaN; each row needs its own largest score.",
    read=_ROW_OF_WEIGHTS,
    hides="while no row lies far below another, up to rounding",
    hiding_input=_call(_numbers(5, 7)),
    exactness=1e-15,
)
def _softmax_with_one_shift(z):
    e = np.exp(z - z.max())
    return e / e.sum(axis=-1, keepdims=True)


@_entry(
    "softmax",
    "softmax over everything",
    "Your code divides by the sum of the whole array, so that all weights together sum to 1 "
    "instead of those of each row.",
    read=_ROW_OF_WEIGHTS,
    hides="with a single row",
    hiding_input=_call(_numbers(7)),
)
def _softmax_over_everything(z):
    e = np.exp(z - z.max())
    return e / e.sum()


@_entry(
    "softmax",
    "softmax along the first axis",
    "Your code sums along axis 0, so that the columns sum to 1 instead of the rows; the weights "
    "of one query lie along the last axis.",
    read=_KEEP_THE_SHAPE,
    hides="with a single row of one axis",
    hiding_input=_call(_numbers(7)),
)
def _softmax_along_first_axis(z):
    e = np.exp(z - z.max(axis=0))
    return e / e.sum(axis=0)


@_entry(
    "softmax",
    "softmax without keepdims",
    "Your code lets the row sums lose their axis, so that broadcasting divides each column, "
    "instead of each row, by a sum; keepdims=True keeps the axis.",
    read=_KEEP_THE_SHAPE,
    hides="with a single row of one axis; with unequal sizes it fails instead",
    hiding_input=_call(_numbers(7)),
)
def _softmax_without_keepdims(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1)


@_entry(
    "softmax",
    "shares without exp",
    "Your code divides the scores by their sum and leaves out exp, so that weights can be "
    "negative, and change when all scores grow by the same number.",
    read=_ROW_OF_WEIGHTS,
    hides="where all scores of a row are equal, and not 0",
    hiding_input=_call(np.full((5, 4), 2.0)),
)
def _shares_without_exp(z):
    return z / z.sum(axis=-1, keepdims=True)


# --- scaled_dot_product_attention(q, k, v, mask) ----------------------------------------------

_ATTENTION = "scaled_dot_product_attention"


@_entry(
    _ATTENTION,
    "no scale",
    "Your code leaves out the division by the root of d_k, so that the weights get sharper the "
    "wider the head is.",
    read=_ATTEND,
    hides="with d_k = 1",
    hiding_input=_qkv(d_k=1),
)
def _no_scale(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = _softmax(scores)
    return weights @ v, weights


@_entry(
    _ATTENTION,
    "scale by d_k without the root",
    "Your code divides by d_k instead of its square root, so that all rows come out too even.",
    read=_ATTEND,
    hides="with d_k = 1",
    hiding_input=_qkv(d_k=1),
)
def _scale_without_root(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1]
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = _softmax(scores)
    return weights @ v, weights


@_entry(
    _ATTENTION,
    "scale by the number of keys",
    "Your code divides by the root of the number of keys, but a score is a sum of d_k products, "
    "and so the scale is the root of d_k, the last axis.",
    read=_ATTEND,
    hides="with as many keys as d_k",
    hiding_input=_qkv(tk=3, d_k=3),
)
def _scale_by_number_of_keys(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(k.shape[-2])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = _softmax(scores)
    return weights @ v, weights


@_entry(
    _ATTENTION,
    "softmax over the queries",
    "Your code lets the weights of each key sum to 1 over the queries, but each query, a row, "
    "shares out a weight of 1 among the keys.",
    read=_KEEP_THE_SHAPE,
    hides="where all scores are equal and there are as many queries as keys",
    hiding_input=_call(np.zeros((4, 3)), _numbers(4, 3), _numbers(4, 2)),
)
def _softmax_over_queries(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = _softmax(scores, axis=-2)
    return weights @ v, weights


@_entry(
    _ATTENTION,
    "keys not transposed",
    "Your code multiplies the queries by the keys as they stand, so that no query meets a key; "
    "each query needs the dot product with each row of k, which is q times k transposed.",
    read=_ATTEND,
    hides="where k is square and symmetric; where it is not square, the product fails",
    hiding_input=_call(_numbers(5, 3), _numbers(3, 3) + _numbers(3, 3).T, _numbers(3, 2)),
)
def _keys_not_transposed(q, k, v, mask=None):
    scores = q @ k / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = _softmax(scores)
    return weights @ v, weights


@_entry(
    _ATTENTION,
    "keys reshaped instead of transposed",
    "Your code reshapes the keys to the transposed shape, which deals out their numbers in the "
    "old order instead of turning rows into columns.",
    read=_ATTEND,
    hides="with d_k = 1, with one key, or where k is square and symmetric",
    hiding_input=_call(_numbers(5, 3), _numbers(3, 3) + _numbers(3, 3).T, _numbers(3, 2)),
)
def _keys_reshaped(q, k, v, mask=None):
    *leading, n_keys, d_k = k.shape
    scores = q @ k.reshape(*leading, d_k, n_keys) / np.sqrt(d_k)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = _softmax(scores)
    return weights @ v, weights


@_entry(
    _ATTENTION,
    "all axes transposed",
    "Your code writes k.T, which reverses all axes, heads and batch too; swap only the last two, "
    "with k.swapaxes(-1, -2).",
    read=_ATTEND,
    hides="for one head without leading axes",
    hiding_input=_qkv(),
)
def _all_axes_transposed(q, k, v, mask=None):
    scores = q @ k.T / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = _softmax(scores)
    return weights @ v, weights


@_entry(
    _ATTENTION,
    "mask ignored",
    "Your code never uses the mask, so that queries look at keys they may not look at.",
    read=_OTHER_USES,
    hides="without a mask, or with one that allows everything",
    hiding_input=_qkv(mask=ALL_ALLOWED),
)
def _mask_ignored(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    weights = _softmax(scores)
    return weights @ v, weights


@_entry(
    _ATTENTION,
    "mask polarity flipped",
    "Your code hides the keys where the mask is True, but here True means that this query may "
    "look at this key.",
    read=_MASKS,
    hides="without a mask",
    hiding_input=_qkv(),
)
def _mask_flipped(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, -np.inf, scores)
    weights = _softmax(scores)
    return weights @ v, weights


@_entry(
    _ATTENTION,
    "mask after the softmax",
    "Your code sets weights to 0 after the softmax, so that the rows no longer sum to 1 and the "
    "output shrinks; hide the scores before it.",
    read=_MASKS,
    hides="without a mask, or with one that allows everything or nothing",
    hiding_input=_qkv(mask=ALL_ALLOWED),
)
def _mask_after_softmax(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    weights = _softmax(scores)
    if mask is not None:
        weights = weights * mask
    return weights @ v, weights


@_entry(
    _ATTENTION,
    "hidden scores set to 0",
    "Your code multiplies the scores by the mask, but a score of 0 is an ordinary score and gets "
    "weight; a hidden key needs the score -inf.",
    read=_MASKS,
    hides="without a mask, or with one that allows everything",
    hiding_input=_qkv(mask=ALL_ALLOWED),
)
def _hidden_scores_zero(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores * mask
    weights = _softmax(scores)
    return weights @ v, weights


@_entry(
    _ATTENTION,
    "hidden scores set to -1e9",
    "Your code gives hidden keys the score -1e9, so that a query that may look nowhere sees equal "
    "scores and takes the mean of all hidden values; its weights and output should be 0.",
    read=_MASKS,
    hides="while every query may look at some key",
    hiding_input=_qkv(mask=NO_ROW_EMPTY),
)
def _hidden_scores_large_negative(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    weights = _softmax(scores)
    return weights @ v, weights


@_entry(
    _ATTENTION,
    "-1e9 added to hidden scores",
    "Your code adds -1e9 to hidden scores, so that a query that may look nowhere gets the weights "
    "that it would have without a mask; its weights and output should be 0.",
    read=_MASKS,
    hides="while every query may look at some key",
    hiding_input=_qkv(mask=NO_ROW_EMPTY),
)
def _large_negative_added(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + (1 - mask) * -1e9
    weights = _softmax(scores)
    return weights @ v, weights


@_entry(
    _ATTENTION,
    "NaN where nothing is allowed",
    "Your code gives hidden keys the score -inf, which is right, but a query that may look "
    "nowhere then computes -inf minus -inf, which is NaN; its weights and output should be 0.",
    read=_MASKS,
    hides="while every query may look at some key",
    hiding_input=_qkv(mask=NO_ROW_EMPTY),
)
def _nan_where_nothing_allowed(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ v, weights


# --- split_heads(x, n_heads) and merge_heads(x) -----------------------------------------------


@_entry(
    "split_heads",
    "split by a bare reshape",
    "Your code reshapes straight to (h, n, d_k), which deals out the numbers in the order they "
    "lie in memory, so that one head mixes several tokens; reshape to (n, h, d_k), then swap.",
    read=_SPLIT,
    hides="with one head, or one token",
    hiding_input=_call(_numbers(5, 6), 1),
)
def _bare_split(x, n_heads):
    *leading, n, d = x.shape
    return x.reshape(*leading, n_heads, n, d // n_heads)


@_entry(
    "split_heads",
    "split without the swap",
    "Your code cuts the columns rightly but leaves the tokens in front; the head axis must come "
    "before the token axis, or each token attends among its own heads.",
    read=_SPLIT,
    hides="with as many tokens as heads, where head i of token j equals head j of token i",
    hiding_input=_call((_numbers(3, 3, 2) + _numbers(3, 3, 2).swapaxes(0, 1)).reshape(3, 6), 3),
)
def _split_without_swap(x, n_heads):
    *leading, n, d = x.shape
    return x.reshape(*leading, n, n_heads, d // n_heads)


@_entry(
    "split_heads",
    "columns dealt out like cards",
    "Your code gives head i every h-th column, but a head gets d_k neighbouring columns.",
    read=_SPLIT,
    hides="with one head, or with as many heads as columns",
    hiding_input=_call(_numbers(5, 3), 3),
)
def _columns_dealt_out(x, n_heads):
    return np.stack([x[..., i::n_heads] for i in range(n_heads)], axis=-3)


@_entry(
    "split_heads",
    "tokens divided among the heads",
    "Your code gives each head some of the tokens, but each head gets all tokens and a slice of "
    "their columns.",
    read=_SPLIT,
    hides="with one head; where h does not divide n, it fails",
    hiding_input=_call(_numbers(5, 6), 1),
)
def _tokens_divided(x, n_heads):
    return np.stack(np.split(x, n_heads, axis=-2), axis=-3)


@_entry(
    "merge_heads",
    "merge without the swap",
    "Your code reshapes (h, n, d_k) straight to (n, d), so that tokens receive each other's "
    "outputs; swap heads and tokens first.",
    read=_CONCATENATE,
    hides="with one head, or one token",
    hiding_input=_call(_numbers(1, 5, 6)),
)
def _bare_merge(x):
    *leading, h, n, d_k = x.shape
    return x.reshape(*leading, n, h * d_k)


@_entry(
    "merge_heads",
    "heads put below each other",
    "Your code concatenates the heads along the tokens, which makes more tokens; they stand side "
    "by side, along the columns.",
    read=_CONCATENATE,
    hides="with one head",
    hiding_input=_call(_numbers(1, 5, 6)),
)
def _heads_below_each_other(x):
    return np.concatenate([x[..., i, :, :] for i in range(x.shape[-3])], axis=-2)


@_entry(
    "merge_heads",
    "columns of the heads interleaved",
    "Your code takes the first column of every head, then the second of every head, and so on; "
    "all columns of head 1 come first.",
    read=_CONCATENATE,
    hides="with one head, or with d_k = 1",
    hiding_input=_call(_numbers(3, 5, 1)),
)
def _columns_interleaved(x):
    *leading, h, n, d_k = x.shape
    return np.moveaxis(x, -3, -1).reshape(*leading, n, d_k * h)


@_entry(
    "merge_heads",
    "heads averaged",
    "Your code takes the mean of the heads, which throws away what makes them different; they "
    "are laid side by side, and W_O learns how to mix them.",
    read=_CONCATENATE,
    hides="with one head",
    hiding_input=_call(_numbers(1, 5, 6)),
)
def _heads_averaged(x):
    return x.mean(axis=-3)


# --- multi_head_attention(x, w_q, w_k, w_v, w_o, n_heads, ...) --------------------------------

_MULTI_HEAD = "multi_head_attention"


@_entry(
    _MULTI_HEAD,
    "bare reshapes there and back",
    "Your code splits and merges the heads by bare reshapes; the two undo each other, but in "
    "between each head attends among pieces of several tokens.",
    read=_SPLIT,
    hides="with one head, or one token",
    hiding_input=_one_head,
)
def _bare_reshapes(
    x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
):
    return _multi_head(
        x, w_q, w_k, w_v, w_o, n_heads, context, mask, return_weights,
        split=_bare_split, merge=_bare_merge,
    )  # fmt: skip


@_entry(
    _MULTI_HEAD,
    "each token attends among its own heads",
    "Your code leaves the tokens in front of the heads, so that each token compares its own heads "
    "with each other and no token sees another; the head axis comes first, then the tokens.",
    read=_SPLIT,
    hides="only with one head and one token, but the shape is always right",
    hiding_input=lambda: _layer(n=1, n_heads=1),
    formal=True,
)
def _attend_among_heads(
    x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
):
    def merge(heads):
        *leading, n, h, d_k = heads.shape
        return heads.reshape(*leading, n, h * d_k)

    return _multi_head(
        x, w_q, w_k, w_v, w_o, n_heads, context, mask, return_weights,
        split=_split_without_swap, merge=merge,
    )  # fmt: skip


@_entry(
    _MULTI_HEAD,
    "scale by the root of d",
    "Your code divides the scores by the root of the model width d, but a head compares d_k "
    "numbers, and so the scale is the root of d_k.",
    read=_KEEP_THE_SHAPE,
    hides="with one head",
    hiding_input=_one_head,
)
def _scale_by_root_of_d(
    x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
):
    def attend(q, k, v, mask):
        return _attend(q, k, v, mask, scale=np.sqrt(x.shape[-1]))

    return _multi_head(
        x, w_q, w_k, w_v, w_o, n_heads, context, mask, return_weights, attend=attend
    )  # fmt: skip


@_entry(
    _MULTI_HEAD,
    "scale by d",
    "Your code divides the scores by the model width d, so that all rows come out nearly even; "
    "the scale is the root of the head's width d_k.",
    read=_ATTEND,
    hides="only where queries are 0, so that there is nothing to scale",
    hiding_input=lambda: ((np.zeros((5, 6)), *_layer()[0][1:]), {"context": _numbers(7, 6)}),
    formal=True,
)
def _scale_by_d(x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False):
    def attend(q, k, v, mask):
        return _attend(q, k, v, mask, scale=x.shape[-1])

    return _multi_head(
        x, w_q, w_k, w_v, w_o, n_heads, context, mask, return_weights, attend=attend
    )  # fmt: skip


@_entry(
    _MULTI_HEAD,
    "W_O forgotten",
    "Your code returns the concatenated heads and forgets the product with W_O, so that the heads "
    "never meet.",
    read=(SPLIT_CHAPTER, "What $W_O$ adds"),
    hides="where W_O is the identity",
    hiding_input=lambda: ((*_layer()[0][:4], np.eye(6), 3), {}),
)
def _w_o_forgotten(
    x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
):
    identity = np.eye(w_v.shape[1], dtype=w_v.dtype)
    return _multi_head(x, w_q, w_k, w_v, identity, n_heads, context, mask, return_weights)


@_entry(
    _MULTI_HEAD,
    "heads never split",
    "Your code never splits the projections, so that a single head as wide as all h together "
    "attends, with one row of weights for each token instead of h; split before attention.",
    read=_SPLIT,
    hides="with one head, as long as nobody asks for the weights",
    hiding_input=_one_head,
)
def _never_split(x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False):
    source = x if context is None else context
    out, weights = _attend(x @ w_q, source @ w_k, source @ w_v, mask)
    return (out @ w_o, weights) if return_weights else out @ w_o


@_entry(
    _MULTI_HEAD,
    "every head as wide as the model",
    "Your code lets every head use all columns of the projections, so that the concatenation has "
    "width h * d and does not fit W_O, which has one row for each of the h * d_v columns.",
    read=_SPLIT,
    hides="with one head",
    hiding_input=_one_head,
)
def _every_head_full_width(
    x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
):
    source = x if context is None else context
    heads = [
        _attend(x @ w_q, source @ w_k, source @ w_v, _of_head(mask, i)) for i in range(n_heads)
    ]
    out = np.concatenate([out for out, _ in heads], axis=-1) @ w_o
    return (out, np.stack([w for _, w in heads], axis=-3)) if return_weights else out


@_entry(
    _MULTI_HEAD,
    "all heads share one head's weights",
    "Your code projects with the same d_k columns for every head, so that all heads do the same; "
    "head i has columns i * d_k to (i + 1) * d_k - 1 for its own.",
    read=_SPLIT,
    hides="with one head",
    hiding_input=_one_head,
)
def _heads_share_weights(
    x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
):
    w_q, w_k, w_v = (np.tile(w[:, : w.shape[1] // n_heads], n_heads) for w in (w_q, w_k, w_v))
    return _multi_head(x, w_q, w_k, w_v, w_o, n_heads, context, mask, return_weights)


@_entry(
    _MULTI_HEAD,
    "x sliced before the projection",
    "Your code cuts x into heads first and projects each slice alone, so that a head sees only "
    "its part of each token; project all of x, then cut the result.",
    read=_SPLIT,
    hides="with one head, or where the projections are zero outside their diagonal blocks",
    hiding_input=_one_head,
)
def _sliced_before_projection(
    x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
):
    def project(tokens, w):
        d, width = w.shape[0] // n_heads, w.shape[1] // n_heads
        blocks = [
            tokens[..., i * d : (i + 1) * d] @ w[i * d : (i + 1) * d, i * width : (i + 1) * width]
            for i in range(n_heads)
        ]
        return np.stack(blocks, axis=-3)

    source = x if context is None else context
    heads, weights = _attend(project(x, w_q), project(source, w_k), project(source, w_v), mask)
    out = _merge(heads) @ w_o
    return (out, weights) if return_weights else out


@_entry(
    _MULTI_HEAD,
    "heads run one after another",
    "Your code feeds the result of one head into the next, which makes them layers; heads work "
    "side by side on the same x and do not see each other.",
    read=(SPLIT_CHAPTER, "Can one head influence another?"),
    hides="with one head",
    hiding_input=_one_head,
)
def _heads_as_layers(
    x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
):
    all_weights = []
    for i in range(n_heads):
        source = x if context is None else context
        x, weights = _attend(x @ w_q, source @ w_k, source @ w_v, _of_head(mask, i))
        all_weights.append(weights)
    out = x @ w_o
    return (out, np.stack(all_weights, axis=-3)) if return_weights else out


@_entry(
    _MULTI_HEAD,
    "projections transposed",
    "Your code multiplies by the transposed projections, as libraries do that store them as "
    "(out, in); here w_q has one row for each column of x, so that the queries are x @ w_q.",
    read=(SPLIT_CHAPTER, "Step 1: project"),
    hides="where the projections are symmetric",
    hiding_input=lambda: (
        (_numbers(5, 6), *(w + w.T for w in _layer()[0][1:4]), np.diag(np.arange(1.0, 7)), 3),
        {},
    ),
)
def _projections_transposed(
    x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
):
    return _multi_head(x, w_q.T, w_k.T, w_v.T, w_o.T, n_heads, context, mask, return_weights)


@_entry(
    _MULTI_HEAD,
    "context ignored",
    "Your code makes keys and values from x although there is a context; in cross-attention only "
    "the queries come from x.",
    read=_OTHER_USES,
    hides="without a context",
    hiding_input=_layer,
)
def _context_ignored(
    x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
):
    return _multi_head(x, w_q, w_k, w_v, w_o, n_heads, None, mask, return_weights)


@_entry(
    _MULTI_HEAD,
    "values from the query side",
    "Your code makes the keys from the context but the values from x; a key and its value belong "
    "to the same token, and both come from the context.",
    read=_OTHER_USES,
    hides="without a context",
    hiding_input=_layer,
)
def _values_from_x(
    x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
):
    source = x if context is None else context
    q, k, v = _split(x @ w_q, n_heads), _split(source @ w_k, n_heads), _split(x @ w_v, n_heads)
    heads, weights = _attend(q, k, v, mask)
    out = _merge(heads) @ w_o
    return (out, weights) if return_weights else out


@_entry(
    _MULTI_HEAD,
    "queries from the context",
    "Your code makes the queries from the context too; each token of x asks with a query of its "
    "own, and the context only gives the keys and values.",
    read=_OTHER_USES,
    hides="without a context",
    hiding_input=_layer,
)
def _queries_from_context(
    x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
):
    source = x if context is None else context
    return _multi_head(source, w_q, w_k, w_v, w_o, n_heads, None, mask, return_weights)


@_entry(
    _MULTI_HEAD,
    "mask not handed on",
    "Your code lets queries look at keys that the mask forbids: it does not hand the mask on to "
    "attention or, if it does, the attention that it calls never uses the mask.",
    read=_OTHER_USES,
    hides="without a mask, or with one that allows everything",
    hiding_input=lambda: _layer(mask=np.ones((5, 5), dtype=bool)),
    covers="mask ignored",
)
def _mask_not_handed_on(
    x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
):
    return _multi_head(x, w_q, w_k, w_v, w_o, n_heads, context, None, return_weights)


@_entry(
    _MULTI_HEAD,
    "mask tiled in the wrong order",
    "Your code folds the heads into the batch and repeats the mask with np.tile, so that a "
    "sequence's heads get the masks of other sequences; np.repeat keeps a sequence together.",
    read=_MASKS,
    hides="with one head, with one sequence, or where all sequences have the same mask",
    hiding_input=lambda: (
        (_numbers(2, 5, 6), *_layer()[0][1:]),
        {"mask": np.broadcast_to(np.tri(5, dtype=bool), (2, 1, 5, 5)).copy()},
    ),
    exactness=1e-12,
)
def _mask_tiled(x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False):
    def attend(q, k, v, mask):
        if mask is None or mask.ndim < 4:
            return _attend(q, k, v, mask)
        q_flat, k_flat, v_flat = (a.reshape(-1, *a.shape[-2:]) for a in (q, k, v))
        out, weights = _attend(q_flat, k_flat, v_flat, np.tile(mask[:, 0], (n_heads, 1, 1)))
        return out.reshape(*q.shape[:-1], -1), weights.reshape(*q.shape[:-1], -1)

    return _multi_head(
        x, w_q, w_k, w_v, w_o, n_heads, context, mask, return_weights, attend=attend
    )  # fmt: skip


@_entry(
    _MULTI_HEAD,
    "mask without its head axis",
    "Your code drops the head axis of a mask for each sequence: with as many sequences as heads "
    "each head gets the mask of one sequence, and nothing fails; mask[:, None] keeps the axis.",
    read=_OTHER_USES,
    hides="with one sequence, or without a mask for each sequence",
    hiding_input=lambda: (
        (_numbers(1, 5, 6), *_layer()[0][1:]),
        {"mask": np.tri(5, dtype=bool)[None, None]},
    ),
)
def _mask_without_head_axis(
    x, w_q, w_k, w_v, w_o, n_heads, *, context=None, mask=None, return_weights=False
):
    if mask is not None and mask.ndim > 3:
        mask = mask[:, 0]
    return _multi_head(x, w_q, w_k, w_v, w_o, n_heads, context, mask, return_weights)


def _of_head(mask, i):
    """Return the part of a mask that concerns head i."""
    if mask is None or mask.ndim < 3:
        return mask
    return mask[..., i if mask.shape[-3] > 1 else 0, :, :]


# --- causal_mask(n, n_past), padding_mask(lengths, n), combine_masks(*masks) ------------------


@_entry(
    "causal_mask",
    "the past hidden instead of the future",
    "Your code allows the upper triangle, so that each token looks at itself and the future; row "
    "i is a query, and it may look at the keys up to i, the lower triangle.",
    read=_OTHER_USES,
    hides="with one token and nothing before it",
    hiding_input=_call(1),
)
def _upper_triangle(n, *, n_past=0):
    return np.triu(np.ones((n, n_past + n), dtype=bool), k=n_past)


@_entry(
    "causal_mask",
    "tokens that cannot look at themselves",
    "Your code leaves out the diagonal, so that no token may look at itself and the first may "
    "look nowhere.",
    read=_OTHER_USES,
    hides="only without tokens: its shape is right, and its numbers never are",
    hiding_input=_call(0),
    formal=True,
)
def _without_diagonal(n, *, n_past=0):
    return np.tri(n, n_past + n, k=n_past - 1, dtype=bool)


@_entry(
    "causal_mask",
    "the keys of the past not counted",
    "Your code counts queries from the first key, but n_past keys stand before the first query, "
    "and every query may look at them.",
    read=_OTHER_USES,
    hides="with n_past = 0",
    hiding_input=_call(5),
)
def _past_not_counted(n, *, n_past=0):
    return np.tri(n, n_past + n, dtype=bool)


@_entry(
    "causal_mask",
    "n_past ignored",
    "Your code ignores n_past, so that the mask has no columns for the n_past keys that stand "
    "before the first query and that every query may look at.",
    read=_OTHER_USES,
    hides="with n_past = 0",
    hiding_input=_call(5),
)
def _past_ignored(n, *, n_past=0):
    return np.tri(n, dtype=bool)


@_entry(
    "padding_mask",
    "filler marked with True",
    "Your code is True where there is filler, but here True means that a key may be looked at, "
    "which is where the real tokens are.",
    read=_MASKS,
    hides="only where sequences have no tokens at all (n = 0)",
    hiding_input=_call(np.array([0, 0]), 0),
    formal=True,
)
def _filler_marked(lengths, n):
    return np.arange(n) >= np.asarray(lengths)[..., None, None, None]


@_entry(
    "padding_mask",
    "one filler token too many",
    "Your code also allows the key just behind the last real token; positions count from 0, so "
    "that the real ones are those below the length.",
    read=_OTHER_USES,
    hides="where no sequence has filler",
    hiding_input=_call(np.array([5, 5]), 5),
)
def _one_too_many(lengths, n):
    return np.arange(n) <= np.asarray(lengths)[..., None, None, None]


@_entry(
    "padding_mask",
    "queries hidden instead of keys",
    "Your code lays the mask along the queries, so that filler looks nowhere while everyone looks "
    "at filler; the last axis, the keys, is the one to hide.",
    read=_OTHER_USES,
    hides="with n = 1",
    hiding_input=_call(np.array([0, 1]), 1),
)
def _queries_hidden(lengths, n):
    return np.arange(n)[:, None] < np.asarray(lengths)[..., None, None, None]


@_entry(
    "combine_masks",
    "masks joined by or",
    "Your code allows a pair where some mask allows it, but a pair is allowed only where all "
    "masks allow it.",
    read=_OTHER_USES,
    hides="where all masks are equal",
    hiding_input=_call(np.tri(5, dtype=bool), np.tri(5, dtype=bool)),
)
def _joined_by_or(*masks):
    allowed = False
    for mask in masks:
        if mask is not None:
            allowed = allowed | mask
    return allowed


@_entry(
    "combine_masks",
    "only the last mask used",
    "Your code keeps only the last mask, so that what the others hide is visible again.",
    read=_OTHER_USES,
    hides="where the last mask hides all that the others hide",
    hiding_input=_call(np.ones((5, 5), dtype=bool), np.tri(5, dtype=bool)),
)
def _only_the_last(*masks):
    allowed = None
    for mask in masks:
        if mask is not None:
            allowed = mask
    return allowed


# --- count_parameters(d, n_heads), count_softmax_entries(n, n_heads) --------------------------

_COUNT = (BUDGET_CHAPTER, "Count first")
_GROWS = (BUDGET_CHAPTER, "What grows with h")


@_entry(
    "count_parameters",
    "the layer counted once for each head",
    "Your code multiplies by the number of heads, as if every head had four (d, d) matrices; the "
    "heads share them, and each has d / h of the columns.",
    read=_COUNT,
    hides="with one head",
    hiding_input=_call(6, 1),
)
def _layer_times_heads(d, n_heads):
    return 4 * n_heads * d * d


@_entry(
    "count_parameters",
    "projections of full width for each head",
    "Your code counts three (d, d) projections for every head and W_O once; a head's projections "
    "are only d / h wide, and all heads together have three (d, d) matrices.",
    read=_COUNT,
    hides="with one head",
    hiding_input=_call(6, 1),
)
def _projections_times_heads(d, n_heads):
    return 3 * n_heads * d * d + d * d


@_entry(
    "count_parameters",
    "W_O not counted",
    "Your code counts the three projections and leaves out W_O, the fourth (d, d) matrix.",
    read=_COUNT,
    hides="only without any width (d = 0)",
    hiding_input=_call(0, 1),
    formal=True,
)
def _w_o_not_counted(d, n_heads):
    return 3 * d * d


@_entry(
    "count_parameters",
    "W_O counted as wide as one head",
    "Your code gives W_O one row for each of the d_k columns of a single head, but it takes in all "
    "heads side by side, h * d_k = d columns.",
    read=_COUNT,
    hides="with one head",
    hiding_input=_call(6, 1),
)
def _w_o_of_one_head(d, n_heads):
    return 3 * d * d + d // n_heads * d


@_entry(
    "count_parameters",
    "one head counted for all",
    "Your code counts the matrices of a single head, d by d_k, and forgets that there are h heads.",
    read=_COUNT,
    hides="with one head",
    hiding_input=_call(6, 1),
)
def _one_head_counted(d, n_heads):
    return 4 * d * (d // n_heads)


@_entry(
    "count_parameters",
    "biases counted",
    "Your code adds a bias of d numbers to each of the four products, as libraries can; the layer "
    "here has w_q, w_k, w_v and w_o and nothing else.",
    read=_COUNT,
    hides="only without any width (d = 0)",
    hiding_input=_call(0, 1),
    formal=True,
)
def _biases_counted(d, n_heads):
    return 4 * (d * d + d)


@_entry(
    "count_softmax_entries",
    "one map counted for all heads",
    "Your code counts n * n scores once, but every head makes n rows of n scores of its own.",
    read=_GROWS,
    hides="with one head",
    hiding_input=_call(5, 1),
)
def _one_map(n, n_heads):
    return n * n


@_entry(
    "count_softmax_entries",
    "one score for each token",
    "Your code counts one score for each token of each head, but each token has a whole row of "
    "them, one for every token that it looks at.",
    read=_GROWS,
    hides="with one token",
    hiding_input=_call(1, 3),
)
def _one_score_per_token(n, n_heads):
    return n_heads * n


@_entry(
    "count_softmax_entries",
    "the scores divided among the heads",
    "Your code divides the scores by the number of heads, as the width is divided; each head "
    "compares all tokens with all tokens, so that the scores grow with h.",
    read=_GROWS,
    hides="with one head",
    hiding_input=_call(5, 1),
)
def _divided_among_heads(n, n_heads):
    return n * n // n_heads


@_entry(
    "count_softmax_entries",
    "heads compared with each other",
    "Your code counts as if the tokens of every head met those of every other, (h * n) squared; a "
    "head compares only its own queries with its own keys.",
    read=_GROWS,
    hides="with one head",
    hiding_input=_call(5, 1),
)
def _heads_compared(n, n_heads):
    return (n_heads * n) ** 2


@_entry(
    "count_softmax_entries",
    "only the causal half counted",
    "Your code counts only the pairs that a causal mask allows; here every token looks at every "
    "token, n * n scores for each head.",
    read=_GROWS,
    hides="with one token",
    hiding_input=_call(1, 3),
)
def _causal_half(n, n_heads):
    return n_heads * n * (n + 1) // 2


CATALOGUE = tuple(_entered)
