"""Measure a training step of the three-jobs layer beside the same model in PyTorch.

Needs PyTorch; ``make bench-train`` fetches it into an environment of its own.  Both models have
the same weights and see the same batches, in float64, on one thread; the steps are taken in turn,
so that whatever else the machine does slows both.
"""

import statistics
import sys
import time

import numpy as np
import torch

from mha_lib.learning.models import TokenModel
from mha_lib.learning.tasks import ThreeJobs
from mha_lib.learning.train import Adam, Recipe, clip_gradients

SIZES = [(16, 64, 8), (16, 64, 1), (32, 64, 8)]  # n, d, h; the first is that of chapter 4
N_STEPS, WARM_UP = 300, 30


class TorchModel(torch.nn.Module):
    """The library's `TokenModel` with one layer, in PyTorch's own operations."""

    def __init__(self, model):
        super().__init__()
        self.n_heads, self.shape = model.layers[0].n_heads, (model.n_jobs, model.n_symbols)
        for name, value in model.parameters.items():
            parameter = torch.nn.Parameter(torch.tensor(value))
            self.register_parameter(name.removeprefix("layer 1 "), parameter)

    def forward(self, tokens, marked):
        x = self.embedding[tokens]  # (B, n, d)
        here = torch.nn.functional.one_hot(marked, x.shape[1])[..., None]  # (B, n, 1)
        x = x + here * self.marker
        inside = x + self.positions
        q, k, v = (
            (inside @ w).unflatten(-1, (self.n_heads, -1)).transpose(-3, -2)
            for w in (self.w_q, self.w_k, self.w_v)
        )  # (B, h, n, d_k)
        heads = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + heads.transpose(-3, -2).flatten(-2) @ self.w_o
        return (x @ self.unembedding).unflatten(-1, self.shape)  # (B, n, J, V)


def measure(n, d, n_heads):
    """Return the times of a step of ours and of PyTorch's, in ms, and how far the losses differ."""
    task, recipe = ThreeJobs(n=n), Recipe(N_STEPS, learning_rate=2e-2)
    ours = TokenModel(task, d, n_heads, seed=0)
    theirs = TorchModel(ours)
    our_adam = Adam(ours.parameters)
    their_adam = torch.optim.Adam(theirs.parameters(), lr=1.0, betas=(0.9, 0.99), eps=1e-8)
    rng, times, apart = np.random.default_rng(0), ([], []), []
    for step in range(1, N_STEPS + 1):
        batch = task.batch(rng, recipe.n_sequences)
        tensors = [torch.tensor(a) for a in (batch.tokens, batch.marked)]
        targets, counted = torch.tensor(batch.targets), torch.tensor(batch.counted)

        start = time.perf_counter()
        loss, d_outputs, _ = ours.loss(ours.forward(batch), batch)
        ours.backward(d_outputs)
        clip_gradients(ours.gradients, recipe.largest_norm)
        our_adam.step(ours.gradients, recipe.rate(step))
        middle = time.perf_counter()
        their_adam.zero_grad()
        logits = theirs(*tensors)
        # Accuracy too, as our loss measures it.
        ((logits.argmax(-1) == targets) & counted).sum((0, 1)) / counted.sum((0, 1))
        their_loss = torch.nn.functional.cross_entropy(logits[counted], targets[counted])
        their_loss.backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), recipe.largest_norm)
        their_adam.param_groups[0]["lr"] = recipe.rate(step)
        their_adam.step()
        end = time.perf_counter()

        if step > WARM_UP:
            times[0].append(1000 * (middle - start))
            times[1].append(1000 * (end - middle))
        else:  # later, rounding grows and the two part company
            apart.append(abs(loss - their_loss.item()))
    return *map(statistics.median, times), max(apart)


def main():
    torch.set_num_threads(1)
    print(f"Python {sys.version.split()[0]}, NumPy {np.__version__}, PyTorch {torch.__version__}")
    print(f"float64, one thread, batches of 32, medians of {N_STEPS - WARM_UP} steps in turn\n")
    print("| n, d, h | ours, ms | PyTorch eager, ms | ratio | losses differ by |")
    print("|---|---|---|---|---|")
    for size in SIZES:
        ours, theirs, apart = measure(*size)
        name = ", ".join(map(str, size))
        print(f"| {name} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} | {apart:.0e} |")


if __name__ == "__main__":
    main()
