"""See what is left of a model as its heads are removed, in one order or another."""

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import traitlets
from numpy.typing import ArrayLike

from mha_lib._types import FloatArray, Integer
from mha_lib.figures.palette import ORDER_LOOKS, TOKENS
from mha_lib.learning.pruning import PruningStudy
from mha_lib.widgets import _picture
from mha_lib.widgets._base import FrameWidget, Whole, front_end, style

# What is shown, in this order: key of `PruningStudy.curves`, which is its short name on the page,
# and the name among the results.
ORDERS = {
    "greedy": "greedy",
    "ablation": "by ablation",
    "gradient": "by gradient at the end",
    "path": "by gradient along the path",
}
CHOICES, FLOOR = "mean of all choices", "without any attention"
SHORT = {
    **{name: key for key, name in ORDERS.items()},
    CHOICES: "mean of all",
    FLOOR: "no attention",
}
BEST = "best choice"
# Matplotlib's marks as the steps of an SVG path from their middle, in pixels: the later in `ORDERS`
# the larger, so that marks that lie on one another stay in sight.
MARKS = {
    "o": "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
    "s": "m-4-4h8v8h-8z",
    "D": "m0-5.5l5.5 5.5l-5.5 5.5l-5.5-5.5z",
    "^": "m0-6.5l6 11h-12z",
    "": "",
}


def _colours():
    """Return a style sheet of the curves' colours, which also the lab has, not the book alone."""

    def rule(where, place):
        names = [name for name in TOKENS if name.startswith("curve")]
        values = "".join(f" --mha-{name}: {TOKENS[name][place]};" for name in names)
        return f"{where} {{{values} }}\n"

    dark = ':is([data-theme="dark"], [data-jp-theme-light="false"]) .mha-pruning'
    light = rule(".mha-pruning", 0)
    paper = f"@media print {{ {rule('.mha-pruning.mha-pruning.mha-pruning', 0)}}}\n"
    return light + rule(dark, 1) + paper


class Pruning(FrameWidget):
    """Vary the number of heads kept, and see what is left with each order of removal.

    Parameters
    ----------
    studies : dict of str to mha_lib.learning.pruning.PruningStudy, or to list of them
        What `mha_lib.learning.study_pruning` returned, by the model's name.  A list holds
        studies of one model trained from several seeds; their median and range are shown.
    study : str, optional
        Name of the model shown first.  None = the first one.
    kept : int, optional
        Number of heads kept.  None = all.
    roles : dict of str to str array, (L, h), optional
        What `mha_lib.learning.head_roles` returned for a model, for the first of its seeds; its
        heads then carry their roles.

    Notes
    -----
    The traits ``study`` and ``kept`` can be read, set, observed and linked.

    Examples
    --------
    >>> from mha_lib.learning import run_three_jobs, study_pruning
    >>> run = run_three_jobs(n_heads=2, d=8, n_steps=2)
    >>> study = study_pruning(run.model, run.tuning, run.reporting)
    >>> pruning = Pruning({"three jobs": study}, kept=1)
    >>> pruning
    Pruning(study='three jobs', kept=1)
    >>> bool(pruning.results()["greedy"][0] == study.curves["greedy"][1])
    True
    """

    _esm = front_end("pruning")
    _css = _colours() + style("pruning")

    settings = frame_settings = problem_settings = ("study", "kept")
    study = traitlets.Unicode().tag(sync=True)
    kept = Whole(0, minimum=0)
    _studies = traitlets.Dict().tag(sync=True)  # the curves of each, and what else stays

    def __init__(
        self,
        studies: Mapping[str, PruningStudy | Sequence[PruningStudy]],
        study: str | None = None,
        kept: Integer | None = None,
        roles: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        self._checked = _checked(studies)
        self._roles = _checked_roles(roles, self._checked)
        self._results = {name: _results(seeds) for name, seeds in self._checked.items()}
        first = next(iter(self._checked)) if study is None else study
        super().__init__(study=first)
        self.kept = self._most(self.study) if kept is None else kept
        self._studies = {name: self._fixed(name) for name in self._checked}
        names = list(self._results[first])
        self._labels = {
            "results": names,
            "short": [SHORT[name] for name in names],
            "marks": [MARKS[_look(name)[1]] for name in names],
            "choices": CHOICES,
            "floor": FLOOR,
            "best": BEST,
        }
        self.recompute()
        self.follow_settings()

    @traitlets.validate("study")
    def _check_study(self, proposal):
        if proposal["value"] not in self._checked:
            names = " or ".join(repr(name) for name in self._checked)
            raise ValueError(f"study={proposal['value']!r} is not there: use {names}")
        return proposal["value"]

    @traitlets.validate("kept")
    def _check_kept(self, proposal):
        most = max(map(self._most, self._checked))
        if proposal["value"] > most:
            raise ValueError(
                f"kept={proposal['value']}, but no model has more than {most} heads: "
                f"use kept <= {most}"
            )
        return proposal["value"]

    def _most(self, study):
        return len(self._checked[study][0].greedy)

    def results(self) -> dict[str, FloatArray]:
        """Return what is left at the present setting.

        Returns
        -------
        results : dict of str to float64 array, (3,)
            For each order of removal, and without any attention: median over the seeds, smallest
            and largest.  For all choices of that many heads: the median over the seeds of the
            mean, and the range of all choices.
        """
        return {name: curve[:, self.kept] for name, curve in self._results[self.study].items()}

    def choices(self):
        most = max(map(self._most, self._checked))
        # The slider runs as the plot does, from all heads to none.
        return {"study": list(self._checked), "kept": list(range(most, -1, -1))}

    def frame(self, study, kept):
        results = np.stack([curve[:, kept] for curve in self._results[study].values()])
        return {"results": results.astype("<f4")}

    def problem(self, study, kept):
        most = self._most(study)
        if kept <= most:
            return ""
        return f"kept={kept}, but “{study}” has {most} heads: use kept <= {most}"

    def picture(self):
        if problem := self.current_problem():
            return _picture.figure("", problem + ".")
        text = f"{self.study}: " + " ".join(
            f"{kept} heads kept: greedy {greedy:.3f}, {CHOICES} {mean:.3f}."
            for kept, greedy, mean in zip(
                range(self._most(self.study), -1, -1),
                self._results[self.study]["greedy"][0][::-1],
                self._results[self.study][CHOICES][0][::-1],
                strict=True,
            )
        )
        return _picture.figure(
            _drawing(self._results[self.study], self.kept, text),
            f"{self.study}: accuracy as heads are removed. Names and numbers are those at "
            f"{self.kept} heads kept; grey: all choices of as many heads, from worst to best.",
        )

    def _fixed(self, study):
        seeds = self._checked[study]
        roles = self._roles.get(study)
        return {
            "roles": None if roles is None else [str(roles[tuple(at)]) for at in seeds[0].greedy],
            "curves": {
                name: curve.round(4).tolist() for name, curve in self._results[study].items()
            },
            "n_seeds": len(seeds),
            "greedy": seeds[0].greedy.tolist(),
            "n_layers": int(seeds[0].greedy[:, 0].max()) + 1,
        }


def _checked(studies):
    """Return the studies as a dict of lists."""
    if not isinstance(studies, dict):
        raise TypeError(
            f"studies must be a dict of studies by name, not {type(studies).__name__}: "
            f'pass {{"three jobs": study_pruning(...)}}'
        )
    if not studies:
        raise ValueError("studies is empty: pass at least one study")
    checked = {
        name: list(seeds) if isinstance(seeds, list | tuple) else [seeds]
        for name, seeds in studies.items()
    }
    for name, seeds in checked.items():
        if not seeds:
            raise ValueError(f"studies[{name!r}] is empty: pass at least one study")
        for seed in seeds:
            if not isinstance(seed, PruningStudy):
                raise TypeError(
                    f"studies[{name!r}] holds a {type(seed).__name__}: "
                    f"pass what study_pruning returned"
                )
        if len(sizes := {len(seed.greedy) for seed in seeds}) > 1:
            raise ValueError(
                f"studies[{name!r}] have {min(sizes)} and {max(sizes)} heads: "
                f"give models of different size different names"
            )
    return checked


def _checked_roles(roles, studies):
    """Return the roles as a dict of arrays (L, h)."""
    if roles is None:
        return {}
    if not isinstance(roles, Mapping):
        raise TypeError(
            f"roles must be a dict of roles by name, not {type(roles).__name__}: "
            f'pass {{"three jobs": head_roles(...)}}'
        )
    checked = {name: np.asarray(values) for name, values in roles.items()}
    for name, values in checked.items():
        if name not in studies:
            raise ValueError(
                f"roles has {name!r}, which is not among the studies: "
                f"use {' or '.join(map(repr, studies))}"
            )
        shape = tuple((studies[name][0].greedy.max(axis=0) + 1).tolist())
        if values.shape != shape:
            raise ValueError(
                f"roles[{name!r}] has shape {values.shape}, but the study's heads are {shape}: "
                f"pass what head_roles returned for this model"
            )
    return checked


def _look(name):
    """Return token and mark of a curve."""
    return ORDER_LOOKS.get(SHORT[name], ("soft", ""))


def _results(seeds):
    """Return per order the middle, least and largest result by heads kept, (3, L h + 1)."""

    def over_seeds(curves, within):
        return np.stack([np.median(curves, axis=0), within.min(axis=0), within.max(axis=0)])

    results = {}
    for key, name in ORDERS.items():
        curves = np.stack([seed.curves[key] for seed in seeds])  # (S, L h + 1)
        results[name] = over_seeds(curves, curves)
    subsets = np.stack([seed.subsets for seed in seeds])  # (S, 3, L h + 1)
    results[CHOICES] = over_seeds(subsets[:, 0], subsets.reshape(-1, subsets.shape[-1]))
    results[FLOOR] = np.repeat(results["greedy"][:, -1:], results["greedy"].shape[1], axis=1)
    # Curves run from all heads to none; the slider runs the other way.
    return {name: curve[:, ::-1] for name, curve in results.items()}


def _drawing(results, kept, text):
    """Return an SVG of the curves, named where ``kept`` heads are kept."""
    total = len(results[CHOICES][0]) - 1
    left, right, top, bottom = 34, 380, 12, 232

    def at(k, value):
        return left + (right - left) * (1 - k / total), bottom - (bottom - top) * value

    def path(values):
        return " ".join("{:.0f},{:.0f}".format(*at(k, value)) for k, value in enumerate(values))

    parts, tags = [], []
    _, low, high = results[CHOICES]
    area = path(high) + " " + " ".join(path(low).split()[::-1])
    parts.append(f'<polygon points="{area}" fill="{_colour("soft")}" opacity="0.16"/>')
    for name, curve in results.items():
        token, mark = _look(name)
        colour = _colour(token)
        width = 2 if mark else 2.5 if name == CHOICES else 1
        line = (
            f'<polyline points="{path(curve[0])}" fill="none" stroke="{colour}" '
            f'stroke-width="{width}"/>'
        )
        marks = "".join(
            "M{:.0f} {:.0f}".format(*at(k, value)) + MARKS[mark] for k, value in enumerate(curve[0])
        )
        if mark:
            line += f'<path d="{marks}" fill="{colour}" stroke="{_colour("page")}"/>'
        parts.insert(1, line)  # the first on top
        tags.append((SHORT[name], curve[0][kept], colour))
    parts.append(f'<polyline points="{path(high)}" fill="none" stroke="{_colour("soft")}"/>')
    tags.insert(list(results).index(CHOICES), (BEST, high[kept], _colour("soft")))
    (x, _), apart = at(kept, 0), 18
    parts.append(f'<path d="M{x:.1f} {top}V{bottom}" stroke="{_colour("soft")}"/>')
    parts.append(f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="currentColor"/>')
    # Names from the lowest up, each above the one before; then, from the top, back into sight.
    order = sorted(range(len(tags)), key=lambda i: (tags[i][1], -i))
    ys, free = [at(0, tag[1])[1] for tag in tags], np.inf
    for i in order:
        ys[i] = min(ys[i], free)
        free = ys[i] - apart
    free = top - 4.0
    for i in order[::-1]:
        ys[i] = max(ys[i], free)
        free = ys[i] + apart
    for (name, value, colour), y in zip(tags, ys, strict=True):
        parts.append(
            f'<path d="M{x:.1f} {at(0, value)[1]:.1f}L{right} {y:.1f}" stroke="{colour}" '
            f'stroke-dasharray="1 2"/><text x="{right + 9}" y="{y + 4.5:.1f}" fill="{colour}">'
            f"{name} {value:.2f}</text>"
        )
    for k in range(total + 1):
        tick = at(k, 0)[0]
        parts.append(f'<text x="{tick:.1f}" y="{bottom + 17}" text-anchor="middle">{k}</text>')
    for value in ("0", "0.5", "1"):
        y = at(0, float(value))[1] + 4.5
        parts.append(f'<text x="{left - 6}" y="{y:.1f}" text-anchor="end">{value}</text>')
    middle = (left + right) / 2
    parts.append(f'<text x="{middle}" y="{bottom + 34}" text-anchor="middle">heads kept</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 510 {bottom + 40}" role="img" '
        'style="width: 100%; max-width: 560px; height: auto">'
        f"<title>Accuracy against heads kept</title><desc>{escape(text)}</desc>"
        f'<g font-size="13" fill="currentColor" stroke-width="1">{"".join(parts)}</g></svg>'
    )


def _colour(token):
    """Return a colour of the palette that follows the theme of the book's pages."""
    return f"var(--mha-{token}, {TOKENS[token][0]})"
