"""What several test modules share."""

import os
import shutil

import numpy as np
import pytest

from mha_lib.learning.encoder import Encoder
from mha_lib.learning.experiments import run_induction, run_three_jobs
from mha_lib.learning.models import TokenModel
from mha_lib.learning.pruning import study_pruning
from mha_lib.learning.weights import weights_folder

# The first has no windows and no menus, and takes half the time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture
def rng():
    """Return the same random numbers for every test."""
    return np.random.default_rng(20170612)


@pytest.fixture
def awkward():
    """Return a function that gives an array a read-only copy lying backwards in memory."""

    def make(array):
        copy = np.flip(np.flip(array).copy())
        copy.flags.writeable = False
        return copy

    return make


@pytest.fixture(scope="session")
def tiny_runs():
    """Return two models, barely trained, with 4 snapshots each.

    The scores of the last snapshot are made up, so that there are heads of every name.
    """
    runs = {
        "three jobs": run_three_jobs(n_heads=4, d=16, n_steps=30, n_snapshots=4),
        "induction": run_induction(n_heads=2, d=16, n_steps=33, n_snapshots=4),
    }
    runs["three jobs"].history.snapshots[30].scores.update(
        {
            "previous token": np.array([[0.93, 0.08, 0.07, 0.5]]),
            "marked token": np.array([[0.03, 0.61, 0.06, 0.5]]),
            "entropy": np.array([[0.11, 0.35, 0.91, 0.9]]),
        }
    )
    runs["induction"].history.snapshots[33].scores.update(
        {
            "previous token": np.array([[0.98, 0.51], [0.13, 0.12]]),
            "induction": np.array([[0.02, 0.07], [0.89, 0.52]]),
            "entropy": np.array([[0.05, 0.41], [0.17, 0.95]]),
        }
    )
    return runs


@pytest.fixture(scope="session")
def tiny_studies(tiny_runs):
    """Return studies of small models on little data: for the three jobs, of three seeds."""

    def study(model, task, seed):
        data = [task.batch(np.random.default_rng([seed, i]), 11) for i in range(2)]
        return study_pruning(model, *data)

    jobs, induction = tiny_runs.values()
    models = [jobs.model, *(TokenModel(jobs.task, 16, n_heads=4, seed=seed) for seed in (1, 2))]
    return {
        "three jobs": [study(model, jobs.task, seed) for seed, model in enumerate(models)],
        "induction": study(induction.model, induction.task, 3),
    }


@pytest.fixture(scope="session")
def encoder():
    """Return the trained encoder of chapter 5 in float64, if `make weights` has been run."""
    for package in ("safetensors", "tokenizers"):
        pytest.importorskip(package)
    if not weights_folder().is_dir():
        pytest.skip(f"the weights are not in {weights_folder()}: run `make weights`")
    return Encoder.load(dtype=np.float64)


@pytest.fixture(scope="session")
def browser():
    """Return the system's Chromium, driven by Playwright, which starts once in a process.

    Without one the tests are skipped on a reader's machine, and fail in CI, where the environment
    variable CI is set.
    """
    path = next(filter(None, map(shutil.which, NAMES)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sync_playwright = None
    if path is None or sync_playwright is None:
        missing = "no Chromium found" if path is None else "playwright is not installed"
        report = pytest.fail if os.environ.get("CI") else pytest.skip
        report(f"browser tests not run: {missing} (install chromium and `pip install playwright`)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield chromium
        chromium.close()
