"""See what is left of a model as its heads are removed, in one order or another."""

from collections.abc import Mapping, Sequence

import numpy as np
import traitlets

from mha_lib._types import FloatArray, Integer
from mha_lib.learning.pruning import PruningStudy
from mha_lib.widgets import _picture
from mha_lib.widgets._base import FrameWidget, Whole, front_end, style

# What is shown, in this order: key of `PruningStudy.curves`, and its name on the page.
ORDERS = {
    "greedy": "greedy",
    "ablation": "by ablation",
    "gradient": "by gradient at the end",
    "path": "by gradient along the path",
}
CHOICES, FLOOR = "mean of all choices", "without any attention"


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
    _css = style("pruning")

    settings = frame_settings = problem_settings = ("study", "kept")
    study = traitlets.Unicode().tag(sync=True)
    kept = Whole(0, minimum=0)
    _studies = traitlets.Dict().tag(sync=True)  # the curves of each, and what else stays

    def __init__(
        self,
        studies: Mapping[str, PruningStudy | Sequence[PruningStudy]],
        study: str | None = None,
        kept: Integer | None = None,
    ) -> None:
        self._checked = _checked(studies)
        self._results = {name: _results(seeds) for name, seeds in self._checked.items()}
        first = next(iter(self._checked)) if study is None else study
        super().__init__(study=first)
        self.kept = self._most(self.study) if kept is None else kept
        self._studies = {name: self._fixed(name) for name in self._checked}
        self._labels = {"results": list(self._results[first]), "choices": CHOICES, "floor": FLOOR}
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
        return {"study": list(self._checked), "kept": list(range(most + 1))}

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
        dashes = ("", "8 3", "2 3", "8 3 2 3", "4 4", "1 5")
        series = [
            (name, curve[0].tolist(), dash)
            for (name, curve), dash in zip(self._results[self.study].items(), dashes, strict=True)
        ]
        return _picture.figure(
            _picture.lines(series, 1.0, "Accuracy against heads kept", text),
            f"{self.study}: accuracy with 0 (left) to {self._most(self.study)} heads kept (right), "
            "by order of removal.",
        )

    def _fixed(self, study):
        seeds = self._checked[study]
        return {
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
