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
        Step of training shown first.  It must be a snapshot's.  None = the first at which the head
        has a role, or else the last.
    head : int, optional
        The head shown large, counted from 0 through all layers.  None = the one whose attention to
        one place grows most in training.

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

    def __init__(self, run: Run, step: Integer | None = None, head: Integer | None = None) -> None:
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
        head = _growing(self._snapshots) if head is None else head
        super().__init__(step=next(iter(self._snapshots)), head=head)
        self.step = self._first_named() if step is None else step
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

    def _first_named(self):
        """Return the first step at which the chosen head has a role; the last if at none."""
        roles = {step: head_roles(s.scores).flat[self.head] for step, s in self._snapshots.items()}
        final = roles[max(roles)]
        return next((step for step, role in roles.items() if role and role == final), max(roles))

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
        rows = []
        steps = [min(self._snapshots), max(self._snapshots)]
        for step in steps:
            snapshot = self._snapshots[step]
            roles = head_roles(snapshot.scores)
            maps = []
            for place in np.ndindex(snapshot.weights.shape[:2]):
                scores = ", ".join(f"{k} {v[place]:.2f}" for k, v in snapshot.scores.items())
                name = "layer {} head {}".format(*np.add(place, 1))
                alt = f"Attention map of {name} after step {step}: {scores}."
                image = _picture.weight_map(snapshot.weights[place], alt, width=92)
                maps.append(
                    '<span style="display: inline-block; width: 6.5rem; vertical-align: top">'
                    f"{image}<br><small>{name}<br><b>{roles[place]}</b></small></span>"
                )
            rows.append(f"<p>After step {step}:</p><div>{' '.join(maps)}</div>")
        losses, highest = self._fixed["losses"], self._fixed["highest"]
        loss = _picture.lines(
            [("loss", losses, "")],
            highest,
            f"Loss over {len(losses)} steps of training",
            f"The loss falls from {losses[0]:.2f} to {losses[-1]:.3f}.",
        )
        return _picture.figure(
            loss + "".join(rows),
            f"Loss over training; below, the attention maps of all heads after step {steps[0]} and "
            f"after step {steps[-1]}: query rows, key columns, from 0 (dark) to 1 (light).",
        )


def _growing(snapshots):
    """Return the head whose score for one place, of all places, grows most."""
    first, *_, last = snapshots.values()
    sharp = [score for score in last.scores if score != "entropy"]
    growth = np.max([last.scores[score] - first.scores[score] for score in sharp], axis=0)  # (L, h)
    return int(growth.argmax())


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
