"""How large the mistakes of `mha_lib.teaching.misconceptions` are, and what it takes to see them.

A situation is a kind of input, drawn anew for each seed.  Sizes are different primes, except
where a name says otherwise, and so a mistake that hides in one situation shows in another.
"""

from dataclasses import dataclass
from html import escape
from textwrap import fill
from typing import Any

import numpy as np

from mha_lib import _check
from mha_lib._types import Integer
from mha_lib.teaching.misconceptions import CATALOGUE, Misconception, built_with
from mha_lib.teaching.steps import right_function

ENTRY = ("step", "function", "hiding_input")  # what an entry is told by
_NOTICED = 1e-8  # a relative error that rounding does not reach


@dataclass(frozen=True)
class Effect:
    """What a mistake does to the result in one situation.

    Attributes
    ----------
    situation : str
        Name of the situation, out of `situations`.
    errors : tuple of float
        For each seed the norm of the difference, relative to the norm of the right result; for
        masks the share of entries that are wrong; for counts the error relative to the right
        count.  Empty if there are no numbers to compare.
    problem : str
        What everybody notices: an error, a wrong shape or NaN.  Empty otherwise.
    loud : bool
        Whether it fails or has another shape: no number is needed to notice.

    Examples
    --------
    >>> Effect("three heads", (0.9, 1.0, 1.4))
    1.10 (0.90 to 1.40)
    """

    situation: str
    errors: tuple[float, ...] = ()
    problem: str = ""
    loud: bool = False

    @property
    def noticed(self) -> bool:
        """Whether a comparison with the right result would notice."""
        return bool(self.problem) or not all(error <= _NOTICED for error in self.errors)  # or NaN

    def __repr__(self) -> str:
        if self.problem:
            return self.problem
        if not self.noticed:
            return "hidden"
        mean, low, high = (_short(f(self.errors)) for f in (np.mean, min, max))
        return mean if low == high else f"{mean} ({low} to {high})"


@dataclass(frozen=True)
class EffectTable:
    """Entries of the catalogue with their effects; it shows itself in a notebook.

    Attributes
    ----------
    title : str
        What the entries stand in for.
    rows : tuple of dict
        For each entry the texts ``name``, ``sentence``, ``effect``, ``hides`` and ``read``.

    Examples
    --------
    >>> table = effect_table("merge_heads")
    >>> table.title, len(table.rows)
    ('merge_heads', 5)
    """

    title: str
    rows: tuple[dict[str, str], ...]

    def __repr__(self) -> str:
        return "\n\n".join([self._headline(), *(_as_text(row) for row in self.rows)])

    def _repr_html_(self):
        bodies = "".join(_as_html(row) for row in self.rows)
        heads = "".join(f'<th scope="col">{head}</th>' for head in ("Effect", "Hidden", "Read on"))
        title = escape(self.title)
        return (
            f"<details><summary>{escape(self._headline())}</summary>"
            f'<table class="mha-effects">'
            f"<caption>{title}: effects as mean (range of 5 seeds)</caption>"
            f"<thead><tr>{heads}</tr></thead>{bodies}</table></details>"
        )

    def _headline(self):
        return f"{self.title}: {len(self.rows)} mistakes"


def situations(step: str) -> list[str]:
    """Return the names of the situations in which a step is tried.

    Parameters
    ----------
    step : str
        Name of a function that the catalogue has wrong versions of.

    Returns
    -------
    names : list of str
        In the order in which `effect` tries them.

    Examples
    --------
    >>> situations("split_heads")
    ['three heads', 'as many heads as tokens']
    """
    return list(_choose("step", step, _SITUATIONS))


def draw(step: str, situation: str, seed: Integer) -> tuple[tuple, dict[str, Any]]:
    """Draw the arguments of a step in one situation.

    Parameters
    ----------
    step : str
        Name of a function that the catalogue has wrong versions of.
    situation : str
        One of ``situations(step)``.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    args : tuple
        Positional arguments.
    kwargs : dict
        Keyword arguments.

    Examples
    --------
    >>> (x, n_heads), _ = draw("split_heads", "three heads", seed=0)
    >>> x.shape, n_heads
    ((5, 21), 3)
    """
    make = _choose("situation", situation, _choose("step", step, _SITUATIONS))
    return make(np.random.default_rng(_check.integer("seed", seed, minimum=0)))


def measure(
    entry: Misconception, situation: str, *, step: str | None = None, n_seeds: Integer = 5
) -> Effect:
    """Compare a wrong function with the right one, for several seeds.

    Parameters
    ----------
    entry : Misconception
        The wrong function.
    situation : str
        One of ``situations(step)``.
    step : str, optional
        A larger step that the mistake is built into, as in `mha_lib.teaching.built_with`.
        None = ``entry.step``.
    n_seeds : int, optional
        Seeds 0 to ``n_seeds - 1`` are drawn.

    Returns
    -------
    effect : Effect
        With one relative error for each seed, or with what went wrong otherwise.

    Examples
    --------
    >>> entry = next(m for m in CATALOGUE if m.name == "split by a bare reshape")
    >>> measure(entry, "one head", step="multi_head_attention")
    hidden
    """
    n_seeds = _check.integer("n_seeds", n_seeds, minimum=1)
    _check.has("entry", entry, ENTRY, "an entry of CATALOGUE")
    step = entry.step if step is None else step
    _choose("step", step, _SITUATIONS)
    wrong = entry.function if step == entry.step else built_with(entry, step)
    errors, nan_rows = [], []
    for seed in range(n_seeds):
        expected = _looked_at(right_function(step), draw(step, situation, seed))
        with np.errstate(all="ignore"):  # what overflows shows in the numbers
            try:
                found = _looked_at(wrong, draw(step, situation, seed))
            except ValueError:  # what NumPy raises where sizes do not fit
                return Effect(situation, problem="fails with an error", loud=True)
        if found.shape != expected.shape:
            told = f"shape {found.shape} instead of {expected.shape}"
            return Effect(situation, problem=told, loud=True)
        nan_rows.append(int(np.isnan(found).any(axis=-1).sum()))
        errors.append(_relative_error(found, expected))
    if any(nan_rows):
        n_rows = expected.size // expected.shape[-1]
        low, high = min(nan_rows), max(nan_rows)
        count = low if low == high else f"{low} to {high}"
        return Effect(situation, problem=f"NaN in {count} of {n_rows} rows")
    return Effect(situation, tuple(errors))


def effect(entry: Misconception, n_seeds: Integer = 5) -> Effect:
    """Return what a mistake does in the first situation where it shows in numbers alone.

    Parameters
    ----------
    entry : Misconception
        The wrong function.
    n_seeds : int, optional
        Seeds 0 to ``n_seeds - 1`` are drawn.

    Returns
    -------
    effect : Effect
        If it is loud wherever it shows, the first of those situations.

    Raises
    ------
    LookupError
        It shows in no situation.

    Examples
    --------
    >>> entry = next(m for m in CATALOGUE if m.name == "keys not transposed")
    >>> effect(entry).situation
    'all sizes equal'
    """
    _check.has("entry", entry, ENTRY, "an entry of CATALOGUE")
    shown = [e for e in _all_effects(entry, n_seeds) if e.noticed]
    if not shown:
        raise LookupError(
            f"{entry.name!r} shows in no situation: add one to mha_lib/teaching/effects.py"
        )
    return next((e for e in shown if not e.loud), shown[0])


def hidden_error(entry: Misconception) -> float:
    """Return the largest difference from the right result for the input that hides a mistake.

    Parameters
    ----------
    entry : Misconception
        The wrong function, with its ``hiding_input``.

    Returns
    -------
    error : float
        Over all numbers that are returned; at most ``entry.exactness``.

    Raises
    ------
    ValueError
        The two results differ in shape: the mistake is not hidden.

    Examples
    --------
    >>> hidden_error(next(m for m in CATALOGUE if m.name == "heads averaged"))
    0.0
    """
    _check.has("entry", entry, ENTRY, "an entry of CATALOGUE")
    args, kwargs = entry.hiding_input()
    right, wrong = (
        _arrays(function(*args, **kwargs))
        for function in (right_function(entry.step), entry.function)
    )
    largest = 0.0
    for expected, found in zip(right, wrong, strict=True):
        if expected.shape != found.shape:
            raise ValueError(
                f"{entry.name!r} gives shape {found.shape} instead of {expected.shape}: "
                f"choose another hiding_input"
            )
        gap = np.abs(np.subtract(found, expected, dtype=float))
        largest = np.maximum(largest, gap.max(initial=0.0))  # max() would lose a NaN
    return float(largest)


def effect_table(*steps: str) -> EffectTable:
    """Tabulate all entries of some steps: what they do, how large that is, when it hides.

    Parameters
    ----------
    *steps : str
        Names of functions that the catalogue has wrong versions of.

    Returns
    -------
    table : EffectTable
        With 5 seeds for each effect.

    Examples
    --------
    >>> effect_table("softmax").rows[0]["effect"]
    'scores around 10,000: NaN in 5 of 5 rows'
    """
    for step in steps:
        _choose("step", step, _SITUATIONS)
    entries = [entry for entry in CATALOGUE if entry.step in steps]
    return EffectTable(", ".join(steps), tuple(_row(entry) for entry in entries))


# --- measuring --------------------------------------------------------------------------------


def _choose(name, key, table):
    if not isinstance(key, str) or key not in table:
        raise ValueError(f"{name} is {key!r}: choose from {', '.join(table)}")
    return table[key]


def _arrays(result):
    """Return one or more results as arrays, a count as an array of one number."""
    return tuple(map(np.atleast_1d, result if isinstance(result, tuple) else (result,)))


def _looked_at(function, arguments):
    """Call a function and return its result: of two the first, or the weights if asked for."""
    args, kwargs = arguments
    return _arrays(function(*args, **kwargs))[-1 if "return_weights" in kwargs else 0]


def _relative_error(found, expected):
    if expected.dtype == bool:
        return float(np.mean(found != expected))
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def _all_effects(entry, n_seeds):
    return [measure(entry, situation, n_seeds=n_seeds) for situation in situations(entry.step)]


# --- situations -------------------------------------------------------------------------------


def _scores(shift=0.0, shape=(5, 7)):
    return lambda rng: ((rng.normal(size=shape) + shift,), {})


def _one_query_far_above(rng):
    z = rng.normal(size=(5, 7))
    z[0] += 1e4
    return (z,), {}


def _some_pairs(rng, n_queries, n_keys):
    """Return a mask that allows and forbids every query something."""
    mask = rng.random((n_queries, n_keys)) < 0.6
    mask[:, 0], mask[:, 1] = True, False
    return mask


def _qkv(leading=(), sizes=(5, 11, 7, 3), mask=False, n_empty=0):
    n_queries, n_keys, d_k, d_v = sizes

    def make(rng):
        shapes = ((n_queries, d_k), (n_keys, d_k), (n_keys, d_v))
        args = tuple(rng.normal(size=(*leading, *shape)) for shape in shapes)
        if not mask:
            return args, {}
        allowed = _some_pairs(rng, n_queries, n_keys)
        allowed[:n_empty] = False
        return args, {"mask": allowed}

    return make


def _layer(n=5, d=21, n_heads=3, n_context=0, mask=False, n_empty=0, times=1, **kwargs):
    def make(rng):
        w_q, w_k, w_v, w_o = rng.normal(size=(4, d, d)) / np.sqrt(d)
        asked = {"context": rng.normal(size=(n_context, d))} if n_context else {}
        x = rng.normal(size=(n, d))
        # Values so many times as wide as keys.
        w_v, w_o = np.tile(w_v, times), np.tile(w_o, (times, 1))
        if mask:
            asked["mask"] = _some_pairs(rng, n, n)
            asked["mask"][:n_empty] = False
        return (x, w_q, w_k, w_v, w_o, n_heads), asked | kwargs

    return make


def _a_mask_for_each_sequence(n_sequences):
    def make(rng):
        (x, *rest), _ = _layer()(rng)
        x = np.stack([x, *rng.normal(size=(n_sequences - 1, *x.shape))])
        mask = np.stack([_some_pairs(rng, 5, 5) for _ in range(n_sequences)])[:, None]
        return (x, *rest), {"mask": mask}

    return make


def _size_and_heads(n_heads, times=1):
    return lambda rng: ((times * int(rng.choice([5, 7, 11, 13])), n_heads), {})


_SITUATIONS = {  # the plainest first: `effect` takes the first in which a mistake shows
    "softmax": {
        "5 rows of 7 scores": _scores(),
        "scores around 10,000": _scores(shift=1e4),
        "one row far above the others": _one_query_far_above,
        "as many rows as columns": _scores(shape=(5, 5)),
        "leading axes": _scores(shape=(2, 5, 7)),
    },
    "scaled_dot_product_attention": {
        "unequal sizes": _qkv(),
        "a mask": _qkv(mask=True),
        "two queries that may look nowhere": _qkv(mask=True, n_empty=2),
        "leading axes": _qkv(leading=(2, 13)),
        "all sizes equal": _qkv(leading=(5, 5), sizes=(5, 5, 5, 5)),
    },
    "split_heads": {
        "three heads": lambda rng: ((rng.normal(size=(5, 21)), 3), {}),
        "as many heads as tokens": lambda rng: ((rng.normal(size=(3, 21)), 3), {}),
    },
    "merge_heads": {"three heads": lambda rng: ((rng.normal(size=(3, 5, 7)),), {})},
    "multi_head_attention": {
        "three heads": _layer(),
        "a mask": _layer(mask=True),
        "a token that may look nowhere": _layer(mask=True, n_empty=1),
        "a context": _layer(n_context=11),
        "a context as long as x": _layer(n_context=5),
        "a mask for each sequence": _a_mask_for_each_sequence(2),
        "three sequences with masks": _a_mask_for_each_sequence(3),
        "wide values, weights returned": _layer(times=2, return_weights=True),
        "one head": _layer(n_heads=1),
    },
    "causal_mask": {
        "five tokens": lambda rng: ((5,), {}),
        "five tokens after three": lambda rng: ((5,), {"n_past": 3}),
    },
    "padding_mask": {"three sequences": lambda rng: ((rng.integers(1, 7, size=3), 7), {})},
    "combine_masks": {
        "two masks": lambda rng: ((_some_pairs(rng, 5, 7), _some_pairs(rng, 5, 7)), {})
    },
    "count_parameters": {
        "three heads": _size_and_heads(3, times=3),  # h has to divide d
        "one head": _size_and_heads(1),
    },
    "count_softmax_entries": {
        "three heads": _size_and_heads(3),
        "one head": _size_and_heads(1),
    },
}


# --- the table --------------------------------------------------------------------------------


def _row(entry):
    shown = effect(entry)
    loud = next((e for e in _all_effects(entry, 1) if e.loud), shown)
    told = sorted({loud.situation: loud, shown.situation: shown}.items(), key=_order_in(entry))
    return {
        "name": entry.name,
        "sentence": entry.sentence,
        "effect": "; ".join(f"{situation}: {found}" for situation, found in told),
        "hides": _hidden(entry),
        "read": entry.where,
    }


def _order_in(entry):
    names = situations(entry.step)
    return lambda item: names.index(item[0])


def _hidden(entry):
    error = hidden_error(entry)
    size = "only rounding" if 0 < entry.exactness >= error else f"error {_short(error)}"
    return f"{size} {entry.hides.removesuffix(', up to rounding')}"


def _short(number):
    if number == 0:
        return "0"
    return f"{number:.2f}" if number < 10 else f"{number:.0f}"


def _as_text(row):
    labelled = [f"{label}: {row[label]}" for label in ("effect", "hides", "read")]
    lines = [row["name"], *(fill(t, 76, initial_indent="  ", subsequent_indent="    ")
                            for t in (row["sentence"], *labelled))]  # fmt: skip
    return "\n".join(lines)


def _as_html(row):
    cells = "".join(f"<td>{escape(row[key])}</td>" for key in ("effect", "hides", "read"))
    return (
        f'<tbody><tr><th scope="rowgroup" colspan="3">{escape(row["name"])}</th></tr>'
        f'<tr><td colspan="3">{escape(row["sentence"])}</td></tr><tr>{cells}</tr></tbody>'
    )
