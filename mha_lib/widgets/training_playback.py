"""Watch heads find their roles, one moment of training after the other."""

import numpy as np
import traitlets

from mha_lib._types import Integer
from mha_lib.learning.experiments import Run, Snapshot
from mha_lib.learning.roles import BROAD_ENTROPY, NAMED_MASS, chance_scores, head_roles
from mha_lib.widgets import _picture
from mha_lib.widgets._base import FrameWidget, Whole, front_end, style

SMOOTHING = 9  # losses in the running mean that is drawn


class TrainingPlayback(FrameWidget):
    """Move through training, and see the loss fall and the heads take up their roles.

    Parameters
    ----------
    run : mha_lib.learning.experiments.Run
        A trained model with at least 2 snapshots, such as ``run_three_jobs(n_snapshots=25)``.
    step : int, optional
        Step of training shown first.  It must be a snapshot's.  None = the first snapshot's.
    head : int, default 0
        The head shown large, counted from 0 through all layers.

    Notes
    -----
    The traits ``step`` and ``head`` can be read, set, observed and linked.  Maps belong to the
    first sequence of ``run.reporting``; scores, loss and accuracies to all of it.  The scores are
    those of `mha_lib.learning.head_scores`, beside those of
    `mha_lib.learning.chance_scores`.

    Examples
    --------
    >>> from mha_lib.learning.experiments import run_three_jobs
    >>> run = run_three_jobs(n_heads=2, d=8, n_steps=4, n_snapshots=3)
    >>> playback = TrainingPlayback(run)
    >>> playback.step = 4
    >>> playback
    TrainingPlayback(step=4)
    >>> playback.snapshot().weights.shape  # (L, h, n, n)
    (1, 2, 16, 16)
    """

    _esm = front_end("training_playback")
    _css = style("training_playback")

    settings = frame_settings = ("step",)
    step = Whole(0, minimum=0)
    head = Whole(0, minimum=0)
    _run = traitlets.Dict().tag(sync=True)  # what stays the same throughout training

    def __init__(self, run: Run, step: Integer | None = None, head: Integer = 0) -> None:
        if not isinstance(run, Run):
            raise TypeError(
                f"run must be a Run of mha_lib.learning.experiments, not {type(run).__name__}: "
                f"make one with run_three_jobs(n_snapshots=25)"
            )
        snapshots = run.history.snapshots
        if len(snapshots) < 2:
            raise ValueError(
                f"run has {len(snapshots)} snapshots, but needs at least 2: "
                f"train it with n_snapshots=25"
            )
        if not hasattr(run.reporting, "tokens"):
            raise ValueError(
                "run.reporting has no tokens to name: use run_three_jobs or run_induction"
            )
        self._snapshots = dict(sorted(snapshots.items()))
        self._fixed = _fixed(run)
        super().__init__(step=next(iter(self._snapshots)) if step is None else step, head=head)
        self._run = self._fixed
        self.recompute()
        self.follow_settings()

    @traitlets.validate("step")
    def _check_step(self, proposal):
        step, steps = proposal["value"], list(self._snapshots)
        if step not in steps:
            near = [max((s for s in steps if s < step), default=None)]
            near += [min((s for s in steps if s > step), default=None)]
            raise ValueError(
                f"step={step}, but there is no snapshot of that step: "
                f"use step={' or '.join(str(s) for s in near if s is not None)}"
            )
        return step

    @traitlets.validate("head")
    def _check_head(self, proposal):
        head, n_heads = proposal["value"], self._fixed["n_layers"] * self._fixed["n_heads"]
        if head >= n_heads:
            raise ValueError(
                f"head={head}, but there are {n_heads} heads: use head <= {n_heads - 1}"
            )
        return head

    def snapshot(self) -> Snapshot:
        """Return the `mha_lib.learning.Snapshot` of the present step."""
        return self._snapshots[self.step]

    def choices(self):
        return {"step": list(self._snapshots)}

    def frame(self, step):
        snapshot = self._snapshots[step]
        names, roles = self._fixed["names"], head_roles(snapshot.scores)
        scores = np.stack([snapshot.scores[score] for score in self._fixed["scores"]])
        return {
            # As many steps as colours have.
            "weights": (255 * snapshot.weights).round().astype(np.uint8),  # (L, h, n, n)
            "roles": np.vectorize(names.index, otypes=[np.uint8])(roles),  # (L, h)
            "scores": scores.astype("<f4"),  # (S, L, h)
            "loss": np.array(snapshot.loss, "<f4"),
            "measures": np.array(snapshot.measures, "<f4"),
        }

    def problem(self):
        return ""

    def picture(self):
        steps = list(self._snapshots)
        maps = []
        for step in (steps[0], steps[-1]):
            snapshot = self._snapshots[step]
            for layer, head in np.ndindex(snapshot.weights.shape[:2]):
                scores = ", ".join(f"{k} {v[layer, head]:.2f}" for k, v in snapshot.scores.items())
                alt = (
                    f"Attention map of layer {layer + 1} head {head + 1} after step {step}: "
                    f"{scores}."
                )
                maps.append(_picture.weight_map(snapshot.weights[layer, head], alt, width=96))
        half = len(maps) // 2
        losses, highest = self._fixed["losses"], self._fixed["highest"]
        loss = _picture.lines(
            [("loss", losses, "")],
            highest,
            f"Loss over {len(losses)} steps of training",
            f"The loss falls from {losses[0]:.2f} to {losses[-1]:.3f}.",
        )
        return _picture.figure(
            f"{loss}<div>{' '.join(maps[:half])}</div><div>{' '.join(maps[half:])}</div>",
            f"Loss over training; below, the attention maps of all heads after step {steps[0]} and "
            f"after step {steps[-1]}: query rows, key columns, from 0 (dark) to 1 (light).",
        )


def _fixed(run):
    """Return what the front-end shows that does not depend on the step."""
    snapshots = run.history.snapshots
    n_layers, n_heads = next(iter(snapshots.values())).weights.shape[:2]
    losses = smoothed(run.history.losses)
    chance = chance_scores(run.model, run.reporting)
    marked = run.reporting.marked
    return {
        "n_steps": len(run.history.losses),
        "losses": losses.round(4).tolist(),
        "highest": round(float(max(losses.max(), *(s.loss for s in snapshots.values()))), 4),
        "jobs": list(run.task.jobs),
        "job_chance": float(run.task.chance),
        "scores": list(chance),
        "chance": list(chance.values()),
        "names": ["", *(score for score in chance if score != "entropy"), "broad"],
        "name_of": {score: "broad" if score == "entropy" else score for score in chance},
        "smoothing": SMOOTHING,
        "named_mass": NAMED_MASS,
        "broad_entropy": BROAD_ENTROPY,
        "n_layers": n_layers,
        "n_heads": n_heads,
        "causal": run.model.layers[0].causal,
        "tokens": [symbol(token) for token in run.reporting.tokens[0]],
        "marked": None if marked is None else int(marked[0]),
        "n_sequences": len(run.reporting.tokens),
    }


def smoothed(losses, width=SMOOTHING):
    """Return the mean of each loss and its neighbours, ``width`` in all and fewer at the ends."""
    window = np.ones(width)
    return np.convolve(losses, window, "same") / np.convolve(np.ones(len(losses)), window, "same")


def symbol(token):
    """Return the letter of a symbol, counted from 0; its number where letters run out."""
    return chr(ord("A") + token) if token < 26 else str(token)
